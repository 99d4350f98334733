"""Graph measures against the vectors, a pencil and plain dictionaries (method.md sec. 7)."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk

import graft_core as gc
from graft_core.insight.chance import chance
from graft_core.insight.measures import alternatives, rule_table
from graft_core.insight.merges import action_table, largest_merges, low_information_merges
from graft_core.insight.propagation import per_step, propagation_graph, propagation_visits
from graft_core.insight.strictness import stricter, strictness
from graft_core.rollouts import RolloutBatch

VECTORS = ["hand", "grid", "slip", "conflicts", "wide", "mixed", "scores"]


@pytest.mark.parametrize("name", VECTORS)
def test_propagation_equals_the_vectors(vectors: Path, name: str) -> None:
    graph = gc.build_graph(gc.load(vectors / f"{name}.jsonl"))
    expected = json.loads((vectors / f"{name}.expected.json").read_text())["steps"]
    for column, degree in (("propagation_graph", propagation_graph(graph)), ("propagation_visits", propagation_visits(graph))):
        found = per_step(graph, degree)
        right = np.array([np.nan if step[column] is None else step[column] for step in expected], dtype=float)
        assert np.array_equal(found, right, equal_nan=True)


def brute_propagation(batch: RolloutBatch) -> list[float]:
    graph = gc.build_graph(batch)
    web = nx.DiGraph()
    web.add_nodes_from(range(graph.n_ordinary))
    last: dict[int, int] = {}
    for p in np.flatnonzero(graph.known).tolist():
        last[int(batch.step_rollout[p])] = int(graph.src[p])
        if graph.dst[p] < graph.n_ordinary:
            web.add_edge(int(graph.src[p]), int(graph.dst[p]))
    reach = {u: {u} | nx.descendants(web, u) for u in web}
    return [sum(node in reach[u] for node in last.values()) for u in range(graph.n_ordinary)]


@pytest.mark.parametrize("seed", range(4))
def test_propagation_against_reachability_in_large_groups(seed: int) -> None:
    """150 rollouts a group: more than two words of bits."""
    batch = batch_of(random_rows(seed, groups=2, rollouts=150, states=30, unknown=0.3, empty=0.1, forward=1.0))
    graph = gc.build_graph(batch)
    assert propagation_graph(graph)[: graph.n_ordinary].tolist() == brute_propagation(batch)
    assert not propagation_graph(graph)[graph.n_ordinary :].any()


HAND = (
    walk("a", "S:go A:up S:go B:up", 1.0, "E")
    + walk("b", "S:go A:down C:up", 0.0, "F")
    + walk("c", "S:stop", None, "F")
    + walk("d", "S:go S:go", 0.0, "F", group="other")
)


def test_describe_with_a_pencil() -> None:
    found = gc.describe(batch_of(HAND))["graph"]
    assert found["nodes"] == 5  # S A B C, and S of the other task
    assert found["merge_rate"] == pytest.approx(1 - 5 / 10)
    assert found["group_size_2"] == pytest.approx(8 / 10)  # all but B and C
    assert found["shared"] == pytest.approx(6 / 10)  # S (4 steps) and A (2) in the first task
    assert found["shared_actions"] == pytest.approx(3 / 10)  # (S, go) of a, a and b
    assert found["mean_group_size"] == 2
    assert found["remerge_index"] == pytest.approx(2 / 5)  # S: a first state and (A, up); the other S: first and (S, go)
    # S informs and is informed by both known rollouts; C only by b, and B only by a
    degrees = {"S": 2, "A": 2, "B": 1, "C": 1, "other": 1}
    per = [degrees[k] for k in ("S", "A", "S", "B", "S", "A", "C", "other", "other")]
    assert found["propagation"]["graph"] == pytest.approx(np.mean(per))
    assert found["propagation"]["graph_one"] == pytest.approx(4 / 9)
    assert found["propagation"]["visits_one"] == pytest.approx(4 / 9)
    assert found["stochastic_pairs"] == pytest.approx(2 / 7)  # (S, go) leads to A and B; the other's to S and its end


def test_without_steps_measures_are_undefined() -> None:
    found = gc.describe(batch_of(walk("a", "", 1.0) + walk("b", "", None)))["graph"]
    for name in ("remerge_index", "mean_group_size", "shared_actions", "stochastic_pairs"):
        assert np.isnan(found[name])
    assert np.isnan(found["propagation"]["graph"])


def test_measures_do_not_depend_on_the_order_of_rows() -> None:
    rows = random_rows(3, groups=4, unknown=0.2)
    turned = sorted(rows, key=lambda row: (row["rollout_id"], -(row["step"] or 0)))
    first, second = gc.describe(batch_of(rows))["graph"], gc.describe(batch_of(turned))["graph"]
    for name in ("nodes", "shared", "remerge_index", "shared_actions"):
        assert first[name] == pytest.approx(second[name])
    assert first["propagation"] == pytest.approx(second["propagation"])


def test_largest_merges_show_different_texts_first() -> None:
    rows = walk("a", "door-1:x door-2:x wall:x wall:x wall:x", 1.0) + walk("b", "door-1:x", 0.0)
    merges = largest_merges(gc.build_graph(batch_of(rows), ["masked:number"]))
    assert [(m["steps"], m["rollouts"], m["distinct"]) for m in merges] == [(3, 2, 2), (3, 1, 1)]
    assert [(t["text"], t["steps"]) for t in merges[0]["texts"]] == [("door-1", 2), ("door-2", 1)]
    assert merges[0]["texts"][0]["segments"] == [{"text": "door-", "equal": True}, {"text": "1", "equal": False}]
    assert [m["steps"] for m in largest_merges(gc.build_graph(batch_of(rows)), limit=1)] == [3]


def shell_rows() -> list[dict[str, Any]]:
    rows = walk("a", "S:cd N:ls A:rm N:ls", 1.0) + walk("b", "S:mv N:cat", 0.0)
    for row in rows:
        row["observation"] = row["observation"].replace("N", "")
    return rows


def test_low_information_merges_and_their_warning() -> None:
    batch = batch_of(shell_rows())
    found = low_information_merges(gc.build_graph(batch))
    assert [(m["reason"], m["text"], m["steps"], m["rollouts"], m["origins"]) for m in found] == [("empty", "", 3, 2, 3)]
    warning = gc.describe(batch)["graph"]["warnings"][0]
    assert (warning["code"], warning["count"], warning["where"]) == ("low_information_merges", 1, "group g")
    assert "3 of 6 steps" in warning["sentence"]
    assert low_information_merges(gc.build_graph(batch, ["guard"])) == []
    codes = [w["code"] for w in gc.describe(batch, ["guard"])["graph"]["warnings"]]
    assert "low_information_merges" not in codes


def test_one_way_in_is_no_merge() -> None:
    rows = walk("a", "S:cd N:ls", 1.0) + walk("b", "S:cd N:cat", 0.0)
    for row in rows:
        row["observation"] = row["observation"].replace("N", "")
    assert low_information_merges(gc.build_graph(batch_of(rows))) == []


def test_actions_that_nobody_shares() -> None:
    rows = [row for i in range(4) for row in walk(f"r{i}", "S:go T:stop", 1.0, action_text=[f"I think {i}: go", f"so {i}"])]
    batch = batch_of(rows)
    table = action_table(gc.build_graph(batch, actions="raw"))
    share = {row["actions"]: row["shared"] for row in table["rules"]}
    assert share == {"parsed": 1.0, "raw": 0.0, "normalised": 1.0, "verb": 1.0}
    assert table["proposed"] == "parsed"
    assert action_table(gc.build_graph(batch))["proposed"] == "parsed"
    warning = next(w for w in gc.describe(batch, actions="raw")["graph"]["warnings"] if w["code"] == "actions_unshared")
    assert "0.0 % of the steps" in warning["sentence"] and "--actions parsed shares 100 %" in warning["sentence"]
    alone = batch_of([row for i in range(4) for row in walk(f"r{i}", f"S:go{i}", 1.0)])
    assert action_table(gc.build_graph(alone))["proposed"] == "parsed"  # nothing shares: the chosen one stays
    assert action_table(gc.build_graph(batch_of(walk("r", "S:Go", 1.0) + walk("q", "S:go", 1.0))))["proposed"] == "normalised"


def test_rule_table_is_what_each_rule_says_alone() -> None:
    batch = batch_of(random_rows(5, groups=4, rollouts=8))
    table = rule_table(batch)
    assert [row["rules"] for row in table] == ["exact", "normalised", "guard", "history:1", "actions:1", "prefix"]
    assert [row["chosen"] for row in table] == [True] + [False] * 5
    for row in table:
        alone = gc.describe(batch, row["rules"].split("+"))["graph"]
        for name in ("nodes", "merge_rate", "group_size_2", "shared", "remerge_index", "propagation"):
            assert row[name] == alone[name]
        assert row["good_steps"] == gc.findings(batch, rules=(row["rules"],)).good.size
    assert table[-1]["remerge_index"] == 0


def test_rule_table_with_chance_and_with_rules_that_do_not_apply() -> None:
    batch = batch_of(random_rows(5, groups=4, rollouts=8))
    fine, wrong = rule_table(batch, [("exact",), ("field:state",)], with_chance=True)
    assert fine["chance"] == chance(batch, gc.Settings()).as_dict()
    assert wrong == {"rules": "field:state", "chosen": False, "error": wrong["error"]}
    assert "steps have no such field" in wrong["error"]


def test_alternatives_stand_beside_what_was_chosen() -> None:
    batch = batch_of(random_rows(1))
    assert alternatives(batch, ("normalised", "guard")) == [
        ("normalised", "guard"),
        ("exact",),
        ("normalised",),
        ("normalised", "guard", "history:1"),
        ("normalised", "guard", "actions:1"),
        ("prefix",),
    ]
    quiet = batch_of(walk("a", "S:x N:y", 1.0, "nothing happens.", admissible=None))
    assert ("carry_noop", "normalised") in alternatives(quiet, ("normalised",))
    assert alternatives(batch, ("history:2",)) == [("history:2",), ("exact",), ("normalised",), ("prefix",)]


def test_strictness() -> None:
    batch = batch_of(random_rows(2, groups=4, rollouts=8))
    for of, rule in (("observations", "history"), ("actions", "actions")):
        rows = strictness(batch, of=of, up_to=3)  # type: ignore[arg-type]
        assert [row["rules"] for row in rows] == ["exact", *(f"{rule}:{k}" for k in (1, 2, 3))]
        for row in rows:
            alone = gc.describe(batch, [row["rules"]])["graph"]
            assert (row["merge_rate"], row["shared"]) == (alone["merge_rate"], alone["shared"])
            assert row["good_steps"] == gc.findings(batch, rules=(row["rules"],)).good.size
        merged = [row["merge_rate"] for row in rows]
        assert merged == sorted(merged, reverse=True)
    assert stricter(("normalised", "history:3"), "actions", 2) == ("normalised", "actions:2")
    assert stricter(("history:3",), "observations", 0) == ("exact",)
    assert strictness(batch, up_to=0, with_chance=True)[0]["chance"] == chance(batch, gc.Settings()).as_dict()


def test_remerge_index_against_dictionaries() -> None:
    rows = random_rows(8, groups=3)
    ways: dict[Any, set[Any]] = defaultdict(set)
    before: dict[Any, Any] = {}
    for row in rows:
        if row["step"] is None:
            continue
        run = (row["group_id"], row["rollout_id"])
        ways[row["group_id"], row["observation"]].add(before.get(run))
        before[run] = (row["observation"], row["action"])
    expected = np.mean([len(w) >= 2 for w in ways.values()])
    assert gc.describe(batch_of(rows))["graph"]["remerge_index"] == pytest.approx(expected)
