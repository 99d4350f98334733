"""The merged graph against pencil and against dictionaries (method.md sec. 2)."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk
from slow_reference import build

import graft_core as gc
from graft_core.errors import GroupMissingError, UsageError
from graft_core.rollouts import RolloutBatch

SINKS = ("split", "merge", "bootstrap")


def names(batch: RolloutBatch, graph: gc.TrajectoryGraph) -> list[str]:
    return [batch.text(i) for i in graph.node_text]


def test_pencil() -> None:
    batch = batch_of(walk("a", "S:left L:back S:door", 1.0, "win") + walk("b", "S:door D:kick", 0.0, "win"))
    graph = gc.build_graph(batch)
    assert names(batch, graph) == ["S", "L", "D", "win", "win"]
    assert graph.node_is_sink.tolist() == [False, False, False, True, True]
    assert graph.sink_value[3:].tolist() == [1.0, 0.0]
    assert np.isnan(graph.sink_value[:3]).all()
    assert graph.visits.tolist() == [3, 1, 1, 1, 1]
    assert graph.node_rollouts.tolist() == [2, 1, 1, 1, 1]
    edges = {
        (names(batch, graph)[u], batch.text(a), int(v)): int(n)
        for u, a, v, n in zip(graph.edge_src, graph.edge_text, graph.edge_dst, graph.count, strict=True)
    }
    assert edges == {("S", "left", 1): 1, ("L", "back", 0): 1, ("S", "door", 3): 1, ("S", "door", 2): 1, ("D", "kick", 4): 1}
    assert graph.start.tolist() == [0, 0]
    assert graph.end.tolist() == [3, 4]
    assert graph.n_ordinary == 3


@pytest.mark.parametrize("sinks", SINKS)
@pytest.mark.parametrize("seed", range(12))
def test_counts_against_dictionaries(sinks: str, seed: int) -> None:
    rows = random_rows(seed, unknown=0.2, no_final=0.2, empty=0.1, scores=0.3)
    random.Random(seed).shuffle(rows)
    batch, slow = batch_of(rows), build(rows, sinks)
    graph = gc.build_graph(batch, sinks=sinks)
    node_of: dict[int, Any] = {}
    for step in slow.steps:
        p = int(np.flatnonzero(batch.order == step.row)[0])
        for fast, name in ((int(graph.src[p]), step.node), (int(graph.dst[p]), step.to)):
            assert node_of.setdefault(fast, name) == name
    assert len(set(node_of.values())) == len(node_of) == graph.n_nodes
    found = Counter()
    for u, a, v, n, known in zip(
        graph.edge_src, graph.edge_text, graph.edge_dst, graph.count, graph.count_known, strict=True
    ):
        assert n >= known
        if known:
            found[node_of[u], batch.text(a), node_of[v]] += int(known)
    assert found == slow.count
    assert graph.count.sum() == batch.n_steps
    for node, name in node_of.items():
        assert graph.node_is_sink[node] == (name not in {s.node for s in slow.steps})
        if name in slow.sink:
            assert graph.sink_value[node] == pytest.approx(slow.sink[name], abs=1e-12)
    leaving = Counter(step.node for step in slow.steps)
    through = {name: len({s.rollout for s in slow.steps if s.node == name}) for name in leaving}
    for node in range(graph.n_ordinary):
        assert graph.visits[node] == leaving[node_of[node]]
        assert graph.node_rollouts[node] == through[node_of[node]]


def test_array_invariants() -> None:
    batch = batch_of(random_rows(5, groups=8, unknown=0.2, no_final=0.3))
    graph = gc.build_graph(batch)
    assert np.array_equal(graph.edge_src[graph.edge], graph.src)
    assert np.array_equal(graph.edge_dst[graph.edge], graph.dst)
    assert np.array_equal(graph.pair_node[graph.pair], graph.src)
    assert np.array_equal(graph.edge_pair[graph.edge], graph.pair)
    assert np.array_equal(np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr)), graph.edge_src)
    keys = list(zip(graph.edge_src, graph.pair_action[graph.edge_pair], graph.edge_dst, strict=True))
    assert keys == sorted(set(keys))
    assert not graph.node_is_sink[graph.edge_src].any()
    assert np.array_equal(graph.node_group[graph.src], batch.group[batch.step_rollout])
    assert np.array_equal(graph.node_group[graph.edge_src], graph.node_group[graph.edge_dst])
    assert graph.pair_count.sum() == batch.n_steps
    assert graph.pair_count_known.sum() == batch.step_known.sum()
    sinks = np.flatnonzero(graph.node_is_sink)
    assert graph.visits[sinks].sum() == (batch.lengths > 0).sum()


def test_graphs_never_cross_groups() -> None:
    batch = batch_of(walk("a", "S:go", 1.0, "E", group="g0") + walk("a", "S:go", 0.0, "E", group="g1"))
    graph = gc.build_graph(batch, sinks="merge")
    assert graph.n_nodes == 4
    assert gc.estimate(batch, "graft_td", sinks="merge") == pytest.approx([0.0, 0.0])


def two_ends() -> list[dict[str, Any]]:
    return walk("a", "S:go", 1.0, "E") + walk("b", "S:go", 0.0, "E") + walk("c", "S:stay", 0.0, None)


def test_split_keeps_outcomes_apart_and_merge_averages_them() -> None:
    batch = batch_of(two_ends())
    split, merge = gc.build_graph(batch), gc.build_graph(batch, sinks="merge")
    assert sorted(split.sink_value[split.node_is_sink]) == [0.0, 0.0, 1.0]
    assert sorted(merge.sink_value[merge.node_is_sink]) == [0.0, 0.5]
    # without a final observation: a sink of its own, whatever the rule
    assert split.node_text[split.end[2]] == merge.node_text[merge.end[2]] == -1


def test_a_sink_without_final_observation_is_shared_by_outcome() -> None:
    rows = walk("a", "S:x", 0.0) + walk("b", "T:y", 0.0) + walk("c", "T:y", 1.0)
    for rule in SINKS:
        graph = gc.build_graph(batch_of(rows), sinks=rule)
        assert graph.end[0] == graph.end[1] != graph.end[2]


def test_bootstrap_goes_on_only_where_the_rule_says() -> None:
    def ends_in_ordinary(rows: list[dict[str, Any]]) -> bool:
        batch = batch_of(rows)
        graph = gc.build_graph(batch, sinks="bootstrap")
        return not graph.node_is_sink[graph.end[batch.rollout_ids.index("cut")]]

    other = walk("b", "L:on", 1.0, "win")
    assert ends_in_ordinary(walk("cut", "S:go", 0.0, "L", truncated=True) + other)
    assert not ends_in_ordinary(walk("cut", "S:go", 0.0, "L", terminated=True) + other)
    assert not ends_in_ordinary(walk("cut", "S:go", 0.0, "M", truncated=True) + other)
    assert not ends_in_ordinary(walk("cut", "S:go", 0.0, None, truncated=True) + other)
    # only the rollout itself leaves L again, or only one of unknown outcome, or one of another group
    assert not ends_in_ordinary(walk("cut", "L:go S:go", 0.0, "L", truncated=True))
    assert not ends_in_ordinary(walk("cut", "S:go", 0.0, "L", truncated=True) + walk("b", "L:on", None, "win"))
    assert not ends_in_ordinary(walk("cut", "S:go", 0.0, "L", truncated=True) + walk("b", "L:on", 1.0, group="h"))
    # itself and another one
    assert ends_in_ordinary(walk("cut", "L:go S:go", 0.0, "L", truncated=True) + other)


def test_unknown_outcomes_count_in_totals_only() -> None:
    batch = batch_of(walk("a", "S:go", 1.0, "E") + walk("b", "S:go", None, "E") + walk("c", "S:go", None, "F"))
    graph = gc.build_graph(batch)
    assert graph.visits[0] == 3
    assert graph.visits_known[0] == 1
    assert graph.node_rollouts[0] == 3
    assert graph.node_rollouts_known[0] == 1
    assert graph.count.sum() == 3
    assert graph.count_known.sum() == 1
    assert np.isnan(graph.sink_value[graph.end[1]])


def test_interleaved_rows_give_the_same_credit() -> None:
    rows = random_rows(11, groups=4, unknown=0.2)
    shuffled = rows[:]
    random.Random(3).shuffle(shuffled)
    plain, mixed = batch_of(rows), batch_of(shuffled)
    assert not mixed.in_path_order
    by_step = {
        (r["group_id"], r["rollout_id"], r["step"]): i for i, r in enumerate(r for r in rows if r["step"] is not None)
    }
    place = [by_step[r["group_id"], r["rollout_id"], r["step"]] for r in shuffled if r["step"] is not None]
    for name in ("grpo", "gigpo", "graft_td", "graft", "path_gae"):
        np.testing.assert_allclose(gc.estimate(mixed, name), gc.estimate(plain, name)[place], rtol=0, atol=1e-12)


def test_the_task_root_is_the_mean_over_known_first_states() -> None:
    batch = batch_of(walk("a", "S:go", 1.0, "E") + walk("b", "T:go", 0.0, "F") + walk("c", "T:go", None, "F"))
    graph = gc.build_graph(batch)
    assert graph.needs_root(0)
    assert graph.root_value(0, gc.solve_values(graph, gamma=0.5).v) == pytest.approx(0.25)
    alone = gc.build_graph(batch_of(walk("a", "S:go", 1.0, "E") + walk("b", "S:stay", 0.0, "E")))
    assert not alone.needs_root(0)
    assert np.isnan(gc.build_graph(batch_of(walk("c", "T:go", None, "F"))).root_value(0, np.zeros(2)))


def test_rollouts_without_steps() -> None:
    batch = batch_of(walk("a", "", 1.0) + walk("b", "S:go", 0.0, "E") + walk("c", "", None))
    graph = gc.build_graph(batch)
    assert graph.n_nodes == 2
    assert graph.start.tolist() == [-1, 0, -1]
    assert graph.end.tolist() == [-1, 1, -1]
    # it still counts among the group's outcomes
    assert gc.estimate(batch, "dr_grpo").tolist() == [-0.5]


def test_no_steps_at_all() -> None:
    batch = batch_of(walk("a", "", 1.0) + walk("b", "", 0.0))
    for rule in SINKS:
        graph = gc.build_graph(batch, sinks=rule)
        assert graph.n_nodes == graph.n_edges == 0
        assert gc.solve_values(graph).v.size == 0
    for name in gc.estimators():
        if not gc.estimators()[name].needs:
            assert gc.estimate(batch, name).size == 0, name


def test_raw_actions_keep_what_the_model_said_apart() -> None:
    said = walk("a", "S:go", 1.0, "E", action_text="I think: go") + walk("b", "S:go", 0.0, "E", action_text="go now")
    batch = batch_of(said)
    assert gc.build_graph(batch).n_pairs == 1
    assert gc.build_graph(batch, actions="raw").n_pairs == 2


def test_wrong_words() -> None:
    batch = batch_of(two_ends())
    with pytest.raises(UsageError, match="sinks: 'splat' is not allowed, expected one of split, merge, bootstrap"):
        gc.build_graph(batch, sinks="splat")
    with pytest.raises(UsageError, match=r"unknown action rule 'parse' \(did you mean 'parsed'\?\)"):
        gc.build_graph(batch, actions="parse")


def test_assumed_groups_are_refused() -> None:
    batch = batch_of(two_ends())
    i = batch.rollouts.schema.get_field_index("group_assumed")
    assumed = batch.rollouts.set_column(i, batch.rollouts.schema.field(i), [[True] * batch.n_rollouts])
    guessed = RolloutBatch(assumed, batch.steps, batch.texts)
    with pytest.raises(GroupMissingError, match="choose one with --group-by"):
        gc.build_graph(guessed)
    with pytest.raises(GroupMissingError):
        gc.estimate(guessed, "grpo")
