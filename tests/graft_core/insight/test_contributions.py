"""Contributions sum to the value, are its derivatives, and leaving a rollout out is the batch without it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk

import graft_core as gc
from graft_core.errors import GraftError, UsageError
from graft_core.graph import TrajectoryGraph
from graft_core.insight import _chain
from graft_core.insight.contributions import WHOLE_BATCH, contributions, influence, step_contributions
from graft_core.values import Values

VECTORS = ["hand", "grid", "slip", "conflicts", "wide", "mixed", "scores"]
SINKS = ["split", "merge", "bootstrap"]
Rows = list[dict[str, Any]]


def read(path: Path) -> Rows:
    return [row for row in map(json.loads, path.read_text().splitlines()) if "graft_format" not in row]


def solved(graph: TrajectoryGraph, **options: Any) -> Values | None:
    try:
        return gc.solve_values(graph, **options)
    except GraftError:
        return None


def all_values(graph: TrajectoryGraph) -> list[Values]:
    """Values under every weighting, reward and discount that this batch allows."""
    found = [
        solved(graph, gamma=gamma, weighting=weighting, rewards=rewards, prior=prior)
        for gamma in (0.99, 0.7, 1.0)
        for weighting in ("visits", "distinct", "max")
        for rewards in ("outcome", "dense")
        for prior in ((0.0, 0.4, 3.0) if weighting == "visits" else (0.0,))
    ]
    return [values for values in found if values is not None]


def group_sums(graph: TrajectoryGraph, values: Values) -> tuple[np.ndarray, np.ndarray]:
    sums = np.full(graph.n_nodes, np.nan)
    for group in np.unique(graph.node_group):
        nodes = np.flatnonzero(graph.node_group == group)
        sums[nodes] = contributions(graph, values, nodes).amount.sum(axis=1)
    return sums, values.v


@pytest.mark.parametrize("sinks", SINKS)
@pytest.mark.parametrize("name", VECTORS)
def test_contributions_sum_to_the_value_of_every_node(vectors: Path, name: str, sinks: str) -> None:
    graph = gc.build_graph(batch_of(read(vectors / f"{name}.jsonl")), sinks=sinks)
    kinds = all_values(graph)
    assert len(kinds) >= 6
    for values in kinds:
        sums, v = group_sums(graph, values)
        np.testing.assert_allclose(sums, v, rtol=0, atol=1e-9)


def test_a_pencil_example() -> None:
    """S is left three times: once to A (r0), twice to B; B is left by r1 to a failure and by r2 to a success."""
    rows = walk("r0", "S:a A:x", 1.0, "end")
    rows += walk("r1", "S:b B:y", 0.0, "end") + walk("r2", "S:b B:z", 1.0, "end")
    graph = gc.build_graph(batch_of(rows))
    values = gc.solve_values(graph, gamma=0.9)
    found = contributions(graph, values, [0])
    third = 0.9 * 0.9 / 3
    assert found.share[0] == pytest.approx([third, third, third])
    assert found.amount[0] == pytest.approx([third, 0.0, third])
    assert contributions(graph, gc.solve_values(graph, gamma=0.9, weighting="distinct"), [0]).share[
        0
    ] == pytest.approx([0.81 / 2, 0.81 / 4, 0.81 / 4])


def outcomes_raised(rows: Rows, group: str, rollout: str) -> Rows:
    """The rows with one rollout's outcome raised by one."""
    return [
        {**row, "outcome": row["outcome"] + 1} if (row["group_id"], row["rollout_id"]) == (group, rollout) else row
        for row in rows
    ]


@pytest.mark.parametrize("weighting, prior", [("visits", 0.0), ("visits", 2.0), ("distinct", 0.0)])
@pytest.mark.parametrize("sinks", SINKS)
def test_a_share_is_what_the_value_gains_when_that_outcome_rises_by_one(
    sinks: str, weighting: str, prior: float
) -> None:
    rows = random_rows(3, groups=1, rollouts=7, scores=0.5)
    graph = gc.build_graph(batch_of(rows), sinks=sinks)
    options = {"gamma": 0.9, "weighting": weighting, "prior": prior}
    nodes = np.arange(graph.n_ordinary)
    values = gc.solve_values(graph, **options)
    share = contributions(graph, values, nodes).share
    for i, rollout in enumerate(graph.batch.rollout_ids):
        raised = gc.build_graph(batch_of(outcomes_raised(rows, "g0", rollout)), sinks=sinks)
        gain = gc.solve_values(raised, **options).v[nodes] - values.v[nodes]
        np.testing.assert_allclose(share[:, i], gain, atol=1e-9)


def test_under_dense_a_rollout_contributes_its_own_rewards() -> None:
    rows = random_rows(5, groups=1, rollouts=6)
    graph = gc.build_graph(batch_of(rows))
    values = gc.solve_values(graph, gamma=0.9, rewards="dense")
    found = contributions(graph, values, np.arange(graph.n_ordinary))
    assert np.isnan(found.share).all()
    for i, rollout in enumerate(graph.batch.rollout_ids):
        doubled = [{**r, "reward": r["reward"] * (2 if r["rollout_id"] == rollout else 1)} for r in rows]
        again = gc.solve_values(gc.build_graph(batch_of(doubled)), gamma=0.9, rewards="dense")
        np.testing.assert_allclose(found.amount[:, i], again.v[: graph.n_ordinary] - values.v[: graph.n_ordinary], atol=1e-9)


def test_unknown_outcomes_contribute_nothing_and_a_node_only_they_reach_has_none() -> None:
    rows = walk("r0", "S:a A:x", 1.0, "end") + walk("r1", "S:a Z:x", None, "end")
    graph = gc.build_graph(batch_of(rows))
    found = contributions(graph, gc.solve_values(graph, gamma=0.5), np.arange(3))
    assert found.amount[:2, 1].tolist() == [0.0, 0.0]
    assert np.isnan(found.amount[2]).all()


def test_nodes_of_two_groups_are_refused() -> None:
    rows = walk("r0", "S:a", 1.0, "e", group="g") + walk("r0", "S:a", 1.0, "e", group="h")
    graph = gc.build_graph(batch_of(rows))
    with pytest.raises(UsageError, match="one group"):
        contributions(graph, gc.solve_values(graph), [0, 1])


@pytest.mark.parametrize("limit", ["factor", "iterate"])
def test_large_groups_are_solved_as_exactly(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    graph = gc.build_graph(batch_of(random_rows(1, groups=1, rollouts=60, states=40)))
    monkeypatch.setattr(_chain, "DENSE_LIMIT", 0)
    if limit == "iterate":
        monkeypatch.setattr(_chain, "FACTOR_LIMIT", 0)
    values = gc.solve_values(graph)
    sums, v = group_sums(graph, values)
    np.testing.assert_allclose(sums, v, atol=1e-9)


def test_parts_of_a_step_sum_to_both_values_and_to_the_credit(vectors: Path) -> None:
    batch = batch_of(read(vectors / "mixed.jsonl"))
    found = gc.findings(batch)
    for position in np.flatnonzero(batch.step_known):
        parts = step_contributions(found.graph, found.values, int(position))
        before, after = found.values.v[[found.graph.src[position], found.graph.dst[position]]]
        assert math.fsum(part.before for part in parts) == pytest.approx(before, abs=1e-9)
        assert math.fsum(part.after for part in parts) == pytest.approx(after, abs=1e-9)
        assert math.fsum(part.to_credit for part in parts) == pytest.approx(found.credit[position], abs=1e-9)
        assert [abs(p.to_credit) for p in parts] == sorted((abs(p.to_credit) for p in parts), reverse=True)
        assert sum(part.own for part in parts) == 1


def key_of(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["group_id"], row["rollout_id"], row["step"]


def options_of(name: str) -> dict[str, Any]:
    return {"graft_td": {"per": "action"}, "graft": {"reach": "distinct"}, "path_gae": {"lam": 0.7}}.get(name, {})


LEFT_OUT = [(name, options_of(name), "split") for name in gc.estimators() if name not in WHOLE_BATCH]
LEFT_OUT += [("graft_td", {}, "merge"), ("graft_td", {}, "bootstrap"), ("graft", {}, "bootstrap"), ("salt", {}, "merge")]
LEFT_OUT += [("graft_td", {"rewards": "dense"}, "split"), ("graft_td", {"weighting": "distinct"}, "bootstrap")]
LEFT_OUT += [("graft_td", {"weighting": "max"}, "split"), ("graft_td", {"prior": 2.0}, "split")]


@pytest.mark.filterwarnings("ignore:gae_critic")
@pytest.mark.parametrize("name, options, sinks", LEFT_OUT)
def test_leaving_a_rollout_out_is_the_batch_without_it(name: str, options: dict[str, Any], sinks: str) -> None:
    rows = random_rows(11, groups=2, rollouts=6, scores=0.3, unknown=0.2)
    for i, row in enumerate(rows):
        row |= {"logprob": -(i * 7 % 5) / 3, "value": (i * 3 % 7) / 7}
    batch = batch_of(rows)
    found = gc.findings(batch, estimator=name, sinks=sinks, **options)
    checked = 0
    for rollout in batch.rollout_ids[:6]:
        fewer = [r for r in rows if (r["group_id"], r["rollout_id"]) != ("g0", rollout)]
        less = gc.findings(batch_of(fewer), estimator=name, sinks=sinks, **options)
        at = {key_of(r): i for i, r in enumerate(r for r in fewer if r["step"] is not None)}
        kept = [r for r in rows if r["step"] is not None]
        for position in np.flatnonzero(batch.group[batch.step_rollout] == 0)[::4].tolist():
            row = kept[int(batch.order[position])]
            left = next((one for one in influence(found, position).rollouts if one.rollout_id == rollout), None)
            if left is None or left.own:
                continue
            expected = less.credit[np.flatnonzero(less.batch.order == at[key_of(row)])[0]]
            assert left.credit == pytest.approx(expected, abs=1e-9, nan_ok=True)
            assert left.change == pytest.approx(expected - found.credit[position], abs=1e-9, nan_ok=True)
            checked += 1
    assert checked >= 10


def test_leaving_out_the_only_rollout_that_leaves_a_state_makes_an_end_of_it() -> None:
    """Under bootstrap r1 goes on through M only while another known rollout leaves M."""
    rows = walk("r0", "S:a M:x", 1.0, "end", terminated=True)
    rows += walk("r1", "S:a", 0.0, "M", truncated=True) + walk("r2", "S:b", 0.0, "end", terminated=True)
    found = gc.findings(batch_of(rows), sinks="bootstrap", gamma=0.5)
    assert found.values.v[0] == pytest.approx(2 / 3 * 0.5 * 0.5)
    step = int(np.flatnonzero(found.batch.step_rollout == 1)[0])
    assert found.values.v[found.graph.dst[step]] == pytest.approx(0.5)
    without_r0 = next(one for one in influence(found, step).rollouts if one.rollout_id == "r0")
    assert without_r0.value_after == 0.0
    assert without_r0.credit == pytest.approx(0.0)


def test_the_most_influential_rollout_and_the_lone_witness() -> None:
    """Two of three rollouts meet in M; only r0 knows what lies behind x."""
    rows = walk("r0", "S:a M:x N:z", 1.0, "end") + walk("r1", "S:a M:y", 0.0, "end") + walk("r2", "S:b", 0.0, "end")
    found = gc.findings(batch_of(rows), gamma=1.0)
    first = influence(found, 0)  # S -> M: 1/2 - 1/3
    assert first.most is not None
    assert first.most.rollout_id == "r1"  # without it M always ends well: 1 - 1/2 instead of 1/6
    assert first.most.change == pytest.approx(1 / 3)
    assert not first.undefined_without_own
    by_id = {one.rollout_id: one for one in first.rollouts}
    assert by_id["r0"].credit == pytest.approx(0.0)  # without it nobody succeeds
    assert by_id["r2"].credit == pytest.approx(0.0)
    lone = influence(found, 1)  # M -> N, seen by r0 alone
    assert lone.undefined_without_own
    assert math.isnan(next(one for one in lone.rollouts if one.own).credit)


def test_what_cannot_be_left_out_says_why() -> None:
    rows = walk("r0", "S:a", 1.0, "e") + walk("r1", "S:a", 0.0, "f") + walk("r2", "S:a", None, "f")
    found = gc.findings(batch_of(rows))
    assert "unknown" in influence(found, 2).missing
    some = influence(found, 0, most=1)
    assert not some.complete
    assert len(some.rollouts) == 1
