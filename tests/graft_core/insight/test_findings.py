"""Good steps in failures, largest drops, measures and conflicts, against counts made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graft_core as gc
from graft_core.insight import describe, findings
from graft_core.insight.findings import lambda_counts, lost_positions
from graft_core.insight.measures import sink_conflicts
from graft_core.insight.moment import edge_facts, edge_rows, node_facts, node_rows
from graft_core.rollouts import RolloutBatch
from graft_core.settings import LOOK


@pytest.fixture
def hand(vectors: Path) -> RolloutBatch:
    return gc.load(vectors / "hand.jsonl")


def test_hand_by_pencil(hand: RolloutBatch) -> None:
    found = findings(hand)
    assert found.summary["good_steps"] == 1
    row = found.table().iloc[0]
    assert (row["rollout_id"], row["step"], row["action"]) == ("r1", 0, "door")
    # V(D) = g 2/3 (opened twice, kicked once). S goes left 2 of 5 times, to the door 3 of 5; L leads back to S once
    # and into failure once: V(L) = g V(S) / 2, V(S) = g (2/5 V(L) + 3/5 V(D)), so V(S) = g 3/5 V(D) / (1 - g g / 5).
    g = 0.99
    v_d = g * 2 / 3
    v_s = g * 3 / 5 * v_d / (1 - g * g / 5)
    assert row["value_before"] == pytest.approx(v_s, abs=1e-12)
    assert row["value_after"] == pytest.approx(v_d, abs=1e-12)
    assert row["credit"] == pytest.approx(g * v_d - v_s, abs=1e-12)
    lost = [(r["rollout_id"], r["step"]) for r in found.rows(found.lost)]
    assert lost == [("r1", 1), ("r3", 0)]


def test_support_counts_rollouts_of_known_outcome(vectors: Path) -> None:
    batch = gc.load(vectors / "mixed.jsonl")
    found = findings(batch)
    for row in found.rows(np.arange(batch.n_steps)):
        steps = [
            p for p in range(batch.n_steps)
            if found.graph.src[p] == row["node"] and batch.known[batch.step_rollout[p]]
        ]
        assert row["seen_by"] == len({int(batch.step_rollout[p]) for p in steps})


def test_a_normalised_estimator_does_not_decide_signs(vectors: Path) -> None:
    batch = gc.load(vectors / "grid.jsonl")
    plain = findings(batch, estimator="path_gae", lam=0.5)
    normal = findings(batch, estimator="graft", lam=0.5)
    assert np.array_equal(plain.good, normal.good)
    assert not np.allclose(normal.shown, normal.credit)


def test_at_lambda_one_no_failed_step_is_good(vectors: Path) -> None:
    for name in ("hand", "grid", "slip", "wide"):
        counts = lambda_counts(gc.load(vectors / f"{name}.jsonl"))
        assert counts[-1]["lam"] == 1.0
        assert counts[-1]["good_steps"] == 0
        assert counts[0]["sign_changes"] == 0
    assert counts[0]["good_steps"] > 0


def test_lambda_counts_agree_with_findings(vectors: Path) -> None:
    batch = gc.load(vectors / "wide.jsonl")
    for entry in lambda_counts(batch):
        assert entry["good_steps"] == findings(batch, estimator="path_gae", lam=entry["lam"]).good.size


def test_lost_is_the_smallest_credit_of_each_failed_rollout(vectors: Path) -> None:
    batch = gc.load(vectors / "grid.jsonl")
    found = findings(batch)
    lost = {int(batch.step_rollout[p]): float(found.credit[p]) for p in lost_positions(batch, found.credit)}
    for row in range(batch.n_rollouts):
        steps = np.flatnonzero(batch.step_rollout == row)
        least = float(found.credit[steps].min()) if steps.size and batch.success[row] == 0 else 0.0
        if least < -1e-9:
            assert lost[row] == least
        else:
            assert row not in lost


def test_measures_by_brute_force(vectors: Path) -> None:
    for name in ("hand", "grid", "conflicts", "mixed"):
        batch = gc.load(vectors / f"{name}.jsonl")
        facts = describe(batch)["graph"]
        at: dict[tuple[int, str], list[int]] = {}
        for p in range(batch.n_steps):
            row = int(batch.step_rollout[p])
            at.setdefault((int(batch.group[row]), batch.text(int(batch.observation[p]))), []).append(row)
        n = batch.n_steps
        assert facts["nodes"] == len(at)
        assert facts["merge_rate"] == pytest.approx(1 - len(at) / n)
        assert facts["group_size_2"] == pytest.approx(sum(len(r) for r in at.values() if len(r) > 1) / n)
        assert facts["shared"] == pytest.approx(sum(len(r) for r in at.values() if len(set(r)) > 1) / n)


def test_sink_conflicts_by_brute_force(vectors: Path) -> None:
    for name in ("conflicts", "mixed", "slip"):
        batch = gc.load(vectors / f"{name}.jsonl")
        ends: dict[tuple[int, str], list[int]] = {}
        leaves: dict[tuple[int, str], set[int]] = {}
        for row in range(batch.n_rollouts):
            if batch.lengths[row] and batch.final_observation[row] >= 0:
                ends.setdefault((int(batch.group[row]), batch.text(int(batch.final_observation[row]))), []).append(row)
        for p in range(batch.n_steps):
            row = int(batch.step_rollout[p])
            leaves.setdefault((int(batch.group[row]), batch.text(int(batch.observation[p]))), set()).add(row)
        different = [rows for rows in ends.values() if len({batch.outcome[r] for r in rows if batch.known[r]}) > 1]
        again = {k: [r for r in rows if leaves.get(k, set()) - {r}] for k, rows in ends.items()}
        facts = sink_conflicts(gc.build_graph(batch))
        assert facts["outcomes_states"] == len(different)
        assert facts["outcomes_rollouts"] == sum(map(len, different))
        assert facts["left_again_states"] == sum(1 for rows in again.values() if rows)
        assert facts["left_again_rollouts"] == sum(map(len, again.values()))
        assert len(facts["states"]) == len({k for k, r in again.items() if r} | {k for k in ends if ends[k] in different})


def test_conflicts_vector_has_both_kinds(vectors: Path) -> None:
    facts = sink_conflicts(gc.build_graph(gc.load(vectors / "conflicts.jsonl")))
    assert facts["outcomes_states"] > 0
    assert facts["left_again_states"] > 0


def test_moment_facts(hand: RolloutBatch) -> None:
    found = findings(hand)
    node = int(found.graph.src[5])  # D, where r1 kicks
    facts = node_facts(found.graph, found.values.v, node, td=found.credit)
    assert facts["text"] == "D"
    assert (facts["visits"], len(facts["rollouts"])) == (3, 3)
    assert (facts["succeeded"], facts["failed"]) == (2, 1)
    assert [(a["action"], a["count"]) for a in facts["actions"]] == [("open", 2), ("kick", 1)]
    assert facts["actions"][0]["td"] == pytest.approx(0.99 - 0.66, abs=1e-12)
    edge = edge_facts(found.graph, found.values.v, int(found.graph.edge[5]), td=found.credit)
    assert (edge["action"], edge["count"], edge["text_after"]) == ("kick", 1, "lose")
    assert [(i["rollout_id"], i["step"]) for i in edge["instances"]] == [("r1", 1)]
    nodes = node_rows(found.graph, found.values.v, 0)
    assert sum(r["visits"] for r in nodes if r["kind"] == "moment") == hand.n_steps
    assert sum(r["count"] for r in edge_rows(found.graph, 0)) == hand.n_steps


def test_networkx_export_keeps_counts(hand: RolloutBatch) -> None:
    graph = gc.build_graph(hand)
    made = graph.to_networkx("g0")
    assert made.number_of_nodes() == graph.n_nodes
    assert sum(d["count"] for _, _, d in made.edges(data=True)) == hand.n_steps
    assert {d["text"] for _, d in made.nodes(data=True)} == {"S", "L", "D", "win", "lose"}


def test_look_is_graph_td_beside_grpo(hand: RolloutBatch) -> None:
    assert findings(hand).settings == LOOK
