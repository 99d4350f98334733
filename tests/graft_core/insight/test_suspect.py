"""Suspect merges: a hidden key is found and named, correct keys stay quiet, and no alarm is never "clean"."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk
from suspect_groups import graph_of, random_walks

from graft_core.graph import build_graph
from graft_core.insight import suspect
from graft_core.insight._suspect_group import corrected, walks_of
from graft_core.insight._suspect_split import gain, low_information, parted, parts
from graft_core.insight.suspect import TESTS, Suspects, pair, sentence, suspects


@pytest.fixture(scope="module")
def experiment(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("suspect_experiment", root / "benchmarks" / "suspect.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def hidden(experiment: ModuleType) -> tuple[object, Suspects]:
    made = experiment.sample(experiment.HIDDEN[4], 5, 16, 101)
    return made, suspects(made.graph)


# -- correct keys ----------------------------------------------------------------------------------------------


def test_clean_worlds_stay_quiet_and_rarely_flag_a_node(experiment: ModuleType) -> None:
    row = experiment.measure(experiment.CLEAN[4], 30, 16, 102)
    assert row.alarms <= 0.2 and row.flagged_clean <= 0.05


# -- what is hidden is found ---------------------------------------------------------------------------------------


def test_a_hidden_key_raises_the_alarm_and_the_key_is_named(hidden: tuple[object, Suspects], experiment: ModuleType) -> None:
    made, found = hidden
    key = experiment.key_text(experiment.HIDDEN[4])
    assert found.alarms == 5
    named = [said.rule == f"visited:{key}" for said in found.groups]
    assert sum(named) >= 4
    for said in found.groups:
        assert said.effects[0].silenced and not said.effects[0].p <= suspect.NODE_LEVEL
        assert said.nodes and all(found.graph.node_group[u] == said.group for u in said.nodes)
    flagged = found.flag & made.positive  # type: ignore[attr-defined]
    assert flagged.sum() >= 0.6 * made.positive.sum()  # type: ignore[attr-defined]
    assert json.loads(json.dumps(found.as_dict()))["alarms"] == 5
    words = sentence(found, 0)
    assert "1 in 30" in words and "has visited" in words and "ends the alarm" in words


def test_the_two_rollouts_shown_differ_in_the_milestone(hidden: tuple[object, Suspects]) -> None:
    _, found = hidden
    graph = found.graph
    shown = 0
    for said in found.groups:
        for node in said.nodes:
            both = pair(found, node)
            if both is None or both.w < 0:
                continue
            shown += 1
            assert both.one.rollout != both.other.rollout
            for moment, met in ((both.one, True), (both.other, False)):
                start = int(graph.batch.offsets[moment.rollout])
                assert graph.src[moment.position] == node and moment.position == start + moment.t
                assert (both.w in graph.src[start : moment.position].tolist()) is met
                stop = int(graph.batch.offsets[moment.rollout + 1])
                assert moment.met_after == (both.w in graph.src[moment.position + 1 : stop].tolist())
    assert shown >= 10


def test_nothing_happens_is_found_and_guard_is_proposed(experiment: ModuleType) -> None:
    made = experiment.sample(experiment.DANCED, 4, 16, 103)
    found = suspects(made.graph)
    assert (found.flag & made.positive).sum() >= 3
    assert [said.rule for said in found.groups].count("guard") >= 3
    node = int(np.flatnonzero(found.flag & made.positive)[0])
    assert suspect.node_sentence(found, node)


def test_same_action_elsewhere_names_two_visits_with_the_same_action() -> None:
    graph = graph_of(*(["P:x U:a A:x", "Q:x U:a B:x", "P:x U:b C:x"] * 6))
    found = suspects(graph)
    node = int(np.flatnonzero(graph.node_text == graph.batch.observation[1])[0])
    assert TESTS[found.test[node]] == "next" and found.groups[0].word == "nodes"
    assert found.groups[0].rule in ("history:1", "guard")
    assert suspect.NEXT_SENTENCE in sentence(found, 0)
    both = pair(found, node)
    assert both is not None
    one, other = both.one.position, both.other.position
    assert graph.pair[one] == graph.pair[other] and graph.dst[one] != graph.dst[other]
    assert graph.src[one - 1] != graph.src[other - 1]


# -- finer keys ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["visited", "history:1", "actions:1", "guard"])
def test_parting_nodes_here_is_what_the_rule_does_to_the_graph(rule: str) -> None:
    """Same partition of steps, same coverage test statistic, as building the graph anew with the rule."""
    batch = batch_of(random_rows(5, groups=2, rollouts=8, no_final=0.2))
    graph = build_graph(batch)
    for group in range(2):
        walks = walks_of(graph, group)
        w = 1
        spec = f"visited:{batch.text(int(graph.node_text[walks.keys[w]]))}" if rule == "visited" else rule
        made = parted(walks, *parts(graph, walks, rule, w))
        finer = walks_of(build_graph(batch, ["exact", spec]), group)
        for left, right in ((made.path, finer.path), (made.pair, finer.pair), (made.next, finer.next)):
            pairs = set(zip(left.tolist(), right.tolist(), strict=True))
            assert len(pairs) == np.unique(left).size == np.unique(right).size
        assert (made.after >= 0).tolist() == (finer.after >= 0).tolist()


def test_a_finer_key_is_said_to_help_only_where_it_foretells_the_next_node() -> None:
    helps = walks_of(graph_of(*(["P:x U:a A:x", "Q:x U:a B:x"] * 6)), 0)
    useless = walks_of(graph_of(*(["P:x U:a A:x", "Q:x U:a B:x", "Q:x U:a A:x", "P:x U:a B:x"] * 6)), 0)
    for walks, better in ((helps, True), (useless, False)):
        came = np.concatenate([[0], walks.path[:-1] + 1])
        came[walks.offsets[:-1]] = 0
        assert (gain(walks, came) > 0) is better


def test_gain_is_the_formula_written_out() -> None:
    graph = build_graph(batch_of(random_rows(8, groups=1, rollouts=7)))
    walks = walks_of(graph, 0)
    part = np.arange(walks.path.size) % 2
    steps = list(zip(walks.walk_of_step.tolist(), walks.pair.tolist(), part.tolist(), walks.next.tolist(), strict=True))
    total = 0.0
    for i, a, h, v in steps:
        rest = [s for s in steps if s[0] != i]
        k = len({s[3] for s in steps if s[1] == a})
        p0 = (sum(s[1] == a and s[3] == v for s in rest) + 0.5) / (sum(s[1] == a for s in rest) + 0.5 * k)
        fine = [s for s in rest if s[1] == a and s[2] == h]
        p1 = (sum(s[3] == v for s in fine) + 2 * p0) / (len(fine) + 2)
        total += np.log(p1) - np.log(p0)
    assert gain(walks, part) == pytest.approx(total / len(steps))


# -- the same for everyone ----------------------------------------------------------------------------------------


def fingerprint(found: Suspects) -> str:
    return repr(found.as_dict())


def test_results_do_not_depend_on_threads_or_on_the_other_groups(experiment: ModuleType) -> None:
    made = experiment.sample(experiment.HIDDEN[4], 3, 8, 104)
    one = suspects(made.graph, threads=1)
    assert fingerprint(one) == fingerprint(suspects(made.graph, threads=4))
    assert fingerprint(one) != fingerprint(suspects(made.graph, seed=1))
    calls: list[tuple[int, int]] = []
    suspects(made.graph, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 3), (2, 3), (3, 3)]

    rows = {g: random_rows(40 + i, groups=1, rollouts=12) for i, g in enumerate("ab")}
    for g, own in rows.items():
        for row in own:
            row["group_id"] = g
    both = suspects(build_graph(batch_of(rows["a"] + rows["b"])))
    alone = suspects(build_graph(batch_of(rows["b"])))
    assert both.groups[1].p == alone.groups[0].p
    own = both.graph.node_group == 1
    np.testing.assert_array_equal(both.p_own[own], alone.p_own)


PROGRAM = """
import sys
sys.path[:0] = [{support!r}]
from row_batches import batch_of, random_rows
from graft_core.graph import build_graph
from graft_core.insight.suspect import suspects
print(suspects(build_graph(batch_of(random_rows(6, groups=2, rollouts=16))), draws=199).as_dict())
"""


def test_results_do_not_depend_on_the_hash_seed(root: Path) -> None:
    program = PROGRAM.format(support=str(root / "tests" / "graft_core" / "support"))
    said = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": "1"}, cwd=root, capture_output=True, check=True
    )
    here = suspects(build_graph(batch_of(random_rows(6, groups=2, rollouts=16))), draws=199).as_dict()
    assert said.stdout.decode().strip() == repr(here)


# -- very many moments -------------------------------------------------------------------------------------------


def test_what_a_budget_leaves_out_is_the_least_visited_and_is_said(hidden: tuple[object, Suspects]) -> None:
    _, full = hidden
    graph = full.graph
    assert not full.left.any() and all(said.tested == said.testable for said in full.groups)
    found = suspects(graph, budget=40_000_000)
    for said, whole in zip(found.groups, full.groups, strict=True):
        own = graph.node_group == said.group
        tested, left = np.flatnonzero(own & found.judged), np.flatnonzero(own & found.left)
        assert 0 < tested.size == said.tested < said.testable == whole.tested
        assert (np.sort(np.append(tested, left)) == np.flatnonzero(own & full.judged)).all()
        assert graph.visits[tested].min() >= graph.visits[left].max()
        assert said.judged == whole.judged and said.p == whole.p
        # the work that was planned stays within the group's share of the budget, and one more node would not have
        order = [*tested, left[np.argmax(graph.visits[left])]]
        walked = np.repeat(np.arange(graph.batch.n_rollouts), graph.batch.lengths)
        cost = [graph.batch.lengths[np.unique(walked[graph.src == u])].sum() * 2 * (99 + 999) for u in order]
        share = 40_000_000 * graph.batch.lengths[graph.batch.group == said.group].sum() / 6400
        assert sum(cost[:-1]) <= share < sum(cost) or (said.tested == 1 and cost[0] > share)
        assert f"Only {said.tested} of {said.testable} moments were tested one by one, the most visited ones." in sentence(
            found, said.group
        )
        # p of a tested node is what it was, and false-discovery rates are over the tested nodes
        np.testing.assert_array_equal(found.p_own[tested], full.p_own[tested])
        assert np.isnan(found.p_own[left]).all() and np.isnan(found.q_own[left]).all()
        little = low_information(graph)[tested]
        for part in (tested[little], tested[~little]):
            np.testing.assert_array_equal(found.q_own[part], corrected(found.p_own[part]))
        quiet = left[~found.flag[left]]
        assert all("Not tested" in suspect.node_sentence(found, int(u)) for u in quiet)
    assert "were tested one by one" not in sentence(full, 0) + suspect.summary(full)
    assert "In 5 of them only the most visited moments were tested one by one" in suspect.summary(found)
    assert found.as_dict()["groups"][0]["tested"] == found.groups[0].tested


# -- words --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paths", "ends", "word", "says"),
    [
        (["A:x B:x"] * 3, "", "rare", "seen too rarely to judge"),
        (random_walks(8, 1), "", "small", "stay unseen"),
        (random_walks(16, 2), "", "none", "almost surely show"),
        (random_walks(16, 3), "abEE" * 4, "cut", "turn limits hide"),
    ],
)
def test_a_quiet_group_is_never_called_clean(paths: list[str], ends: str, word: str, says: str) -> None:
    found = suspects(graph_of(*paths, ends=ends))
    assert found.groups[0].word == word
    assert says in sentence(found, 0)
    assert "clean" not in sentence(found, 0)
    assert "clean" not in suspect.summary(found)


def test_long_or_shared_texts_are_named_by_hash_and_the_rule_works() -> None:
    """The proposed rule can be applied as it stands."""
    long = "K" * 200
    paths = [f"A:x {long}:x A:y D:x", f"A:x A:x {long}:x A:y A:y D:x"] * 10
    graph = graph_of(*paths)
    node = int(graph.src[1])
    rule = suspect.visited_rule(graph, node)
    assert rule.startswith("visited:#")
    finer = build_graph(graph.batch, ["exact", rule])
    assert finer.n_ordinary > graph.n_ordinary
    assert suspect.visited_rule(graph, int(graph.src[0])) == "visited:A"


def test_an_empty_batch_and_rollouts_without_steps_are_no_error() -> None:
    found = suspects(build_graph(batch_of([*walk("r0", "", 1.0), *walk("r1", "", 0.0)])))
    assert found.groups[0].word == "rare" and np.isnan(found.groups[0].p)
    assert sentence(found, 0)
    assert suspects(build_graph(batch_of([]))).groups == ()
