"""Outcomes dealt anew: the deals themselves, all of them at once against batches made anew, and standard errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dealt_rows import one_group, rows_with
from row_batches import batch_of, random_rows, walk

import graft_core as gc
from graft_core.insight import _chance_kernels, _chance_noise, _chance_td
from graft_core.insight._chance_again import block_of, clearness, credit_again
from graft_core.insight._chance_deal import Deal, deal, distinct_deals
from graft_core.insight._chance_td import td_blocks
from graft_core.insight.chance import chance
from graft_core.rollouts import FloatArray, RolloutBatch
from graft_core.settings import LOOK, Settings

VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"sinks": "merge"},
    {"sinks": "bootstrap"},
    {"weighting": "distinct"},
    {"weighting": "distinct", "sinks": "merge", "gamma": 0.8},
    {"gamma": 1.0},
    {"per": "action"},
    {"per": "action", "sinks": "merge", "weighting": "distinct"},
    {"prior": 2.0},
    {"prior": 0.5, "per": "action", "sinks": "bootstrap", "gamma": 0.9},
    {"rules": ("history:1",)},
)


# -- dealing ----------------------------------------------------------------------------------------------------------


def test_outcomes_are_dealt_within_groups_and_with_their_flags() -> None:
    rows = random_rows(3, groups=4, rollouts=7, unknown=0.2, scores=0.5, empty=0.2)
    for row in rows:  # a flag of its own: success from 0.3 upwards, unlike the threshold
        row["success"] = None if row["outcome"] is None else row["outcome"] >= 0.3
    batch = batch_of(rows)
    dealt = deal(batch, 50, 0)
    assert np.array_equal(dealt.outcome[:, 0], batch.outcome, equal_nan=True)
    moved = 0
    for s in range(51):
        x = dealt.outcome[:, s]
        assert np.array_equal(np.isnan(x), ~batch.known)
        assert np.array_equal(dealt.failed[:, s], batch.known & (x < 0.3))
        for g in range(batch.n_groups):
            mine = (batch.group == g) & batch.known
            assert sorted(x[mine]) == sorted(batch.outcome[mine])
        moved += int(np.nansum(x != batch.outcome))
    assert moved > 500


def test_every_arrangement_comes_equally_often() -> None:
    batch = one_group(1, 1, 0, 0, path=lambda i: "S:a")
    dealt = deal(batch, 6000, 1)
    codes, times = np.unique(dealt.outcome[:, 1:].T @ [8, 4, 2, 1], return_counts=True)
    assert codes.size == 6
    assert np.abs(times - 1000).max() < 130  # 4.5 standard deviations


def test_number_of_arrangements() -> None:
    rows = [r for i, x in enumerate([1, 1, 0, 0, 0, None]) for r in walk(f"a{i}", "S:a", x, "e", group="A")]
    rows += [r for i, x in enumerate([0.5, 0.5, 0.2, 1]) for r in walk(f"b{i}", "S:a", x, "e", group="B")]
    rows += [r for i in range(5) for r in walk(f"c{i}", "S:a", 1.0, "e", group="C")]
    assert np.exp(distinct_deals(batch_of(rows))) == pytest.approx([10, 12, 1])


# -- the fast way is exact --------------------------------------------------------------------------------------------


def all_at_once(batch: RolloutBatch, settings: Settings, dealt: Deal) -> FloatArray:
    credit = np.full((batch.n_steps, dealt.columns), np.nan)
    for block in td_blocks(batch, settings, dealt):
        credit[block.steps] = block.of_steps(block.credit)
    return credit


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_all_shuffles_at_once_equal_batches_built_anew(variant: dict[str, Any]) -> None:
    settings = LOOK.with_options(**variant)
    for seed in range(3):
        odds = {"unknown": 0.15, "scores": 0.3 * seed, "no_final": 0.2, "empty": 0.1}
        rows = random_rows(seed, groups=3, rollouts=6, **odds)
        batch = batch_of(rows)
        dealt = deal(batch, 5, seed)
        fast, slow = all_at_once(batch, settings, dealt), credit_again(batch, settings, dealt)
        for s in range(dealt.columns):
            other = batch_of(rows_with(rows, batch, dealt.outcome[:, s]))
            anew = settings.credit(other, "graft_td")[other.order]
            assert np.allclose(fast[:, s], anew, rtol=0, atol=1e-10, equal_nan=True)
            assert np.allclose(slow[:, s], anew, rtol=0, atol=1e-10, equal_nan=True)


@pytest.mark.parametrize("name", ["salt", "gigpo", "graphgpo", "graft", "rtmc"])
@pytest.mark.parametrize("sinks", ["split", "merge", "bootstrap"])
def test_shared_batches_equal_batches_built_anew(name: str, sinks: str) -> None:
    settings = LOOK.with_options(estimator=name, sinks=sinks)
    rows = random_rows(11, groups=3, rollouts=6, unknown=0.15, scores=0.3, no_final=0.2, empty=0.1)
    batch = batch_of(rows)
    dealt = deal(batch, 4, 0)
    again = credit_again(batch, settings, dealt)
    for s in range(dealt.columns):
        other = batch_of(rows_with(rows, batch, dealt.outcome[:, s]))
        anew = settings.credit(other, name)[other.order]
        assert np.allclose(again[:, s], anew, rtol=0, atol=1e-10, equal_nan=True)


@pytest.mark.parametrize("name", ["hand", "grid", "slip", "conflicts", "wide", "mixed", "scores"])
def test_reference_vectors_fast_and_slow(vectors: Path, name: str) -> None:
    batch = gc.load(vectors / f"{name}.jsonl")
    dealt = deal(batch, 10, 0)
    for variant in VARIANTS[:7]:
        settings = LOOK.with_options(**variant)
        fast, slow = all_at_once(batch, settings, dealt), credit_again(batch, settings, dealt)
        assert np.allclose(fast, slow, rtol=0, atol=1e-10, equal_nan=True)


def test_sweeps_and_factorisation_agree() -> None:
    batch = batch_of(random_rows(5, groups=1, rollouts=40, states=30))
    dealt = deal(batch, 3, 0)
    graph = gc.build_graph(batch)
    steps = np.flatnonzero(batch.step_known)
    part = _chance_td._part(graph, LOOK, 0.99, steps, np.array([True]))
    assert np.diff(part.starts).max() > 5
    constant = np.random.default_rng(0).random((part.node.size, dealt.columns))
    solved = []
    for dense in (1500, 1):
        v = constant.copy()
        assert _chance_kernels.solve_columns(
            part.nodes, part.starts, part.indptr, part.edge_dst, part.weight, 0.99, v, dense, 1e-13
        )
        solved.append(v)
    assert np.abs(solved[0] - solved[1]).max() < 1e-9


def test_blocks_of_groups_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of(random_rows(8, groups=6, rollouts=8, unknown=0.1))
    whole = chance(batch, shuffles=40)
    monkeypatch.setattr(_chance_td, "NUMBERS", 500)
    assert len(list(td_blocks(batch, LOOK, deal(batch, 40, 0)))) > 3
    parts = chance(batch, shuffles=40)
    assert parts.as_dict() == whole.as_dict()
    assert np.array_equal(parts.p, whole.p, equal_nan=True)
    assert np.array_equal(parts.q, whole.q, equal_nan=True)


# -- standard errors --------------------------------------------------------------------------------------------------


def slow_noise(batch: RolloutBatch, settings: Settings) -> FloatArray:
    """T of the study of intervals, one group, observed outcomes, one number per step: loops over a dense system."""
    graph = gc.build_graph(batch)
    gamma = settings.resolved("graft_td")["gamma"]
    v = gc.solve_values(graph, gamma=gamma).v
    steps = np.flatnonzero(batch.step_known).tolist()
    nodes = sorted({int(graph.src[p]) for p in steps})
    pairs = sorted({int(graph.pair[p]) for p in steps})
    place = {("node", u): i for i, u in enumerate(nodes)}
    place |= {("pair", a): len(nodes) + i for i, a in enumerate(pairs)}
    system = np.eye(len(place))
    n = {("node", u): sum(graph.src[p] == u for p in steps) for u in nodes}
    n |= {("pair", a): sum(graph.pair[p] == a for p in steps) for a in pairs}
    q = {a: np.mean([gamma * v[graph.dst[p]] for p in steps if graph.pair[p] == a]) for a in pairs}
    squares = dict.fromkeys(place, 0.0)
    for p in steps:
        u, a, w = int(graph.src[p]), int(graph.pair[p]), int(graph.dst[p])
        system[place["node", u], place["pair", a]] -= 1 / n["node", u]
        if ("node", w) in place:
            system[place["pair", a], place["node", w]] -= gamma / n["pair", a]
        squares["node", u] += (q[a] - v[u]) ** 2
        squares["pair", a] += (gamma * v[w] - q[a]) ** 2
    m = np.linalg.inv(system)
    total = {u: squares["node", u] + sum(squares["pair", a] for a in pairs if graph.pair_node[a] == u) for u in nodes}
    pooled = max(sum(total.values()) / max(sum(n["node", u] - 1 for u in nodes), 1), 1e-6)
    luck = sum(squares["pair", a] for a in pairs) / max(sum(n["pair", a] - 1 for a in pairs), 1)
    of_node = {u: (total[u] + 4 * pooled) / (n["node", u] + 3) / n["node", u] for u in nodes}
    of_pair = {a: (squares["pair", a] + 4 * luck) / (n["pair", a] + 3) / n["pair", a] for a in pairs}
    out = np.full(batch.n_steps, np.nan)
    for p in steps:
        u, a, w = int(graph.src[p]), int(graph.pair[p]), int(graph.dst[p])
        if settings.resolved("graft_td")["per"] == "action":
            # Q(u, a) moves with what follows it and with its own luck, V(u) with everything
            follows = m[place["pair", a]]
            g = {x: follows[place["node", x]] - m[place["node", u], place["node", x]] for x in nodes}
            variance = sum(g[x] ** 2 * of_node[x] for x in nodes)
            variance += (1 + 2 * g[u] * n["pair", a] / n["node", u]) * of_pair[a]
        else:
            after = gamma * m[place["node", w]] if ("node", w) in place else np.zeros(len(place))
            variance = sum(
                (after[place["node", x]] - m[place["node", u], place["node", x]]) ** 2 * of_node[x] for x in nodes
            )
        out[p] = np.sqrt(variance)
    return out


@pytest.mark.parametrize("per", ["transition", "action"])
@pytest.mark.parametrize("seed", [1, 2])
def test_noise_against_loops(per: str, seed: int) -> None:
    batch = batch_of(random_rows(seed, groups=1, rollouts=12, states=6, unknown=0.1))
    settings = LOOK.with_options(per=per)
    clear = clearness(batch, settings, deal(batch, 1, 0))
    assert clear is not None
    credit = settings.credit(batch, "graft_td")[batch.order]
    want = np.nan_to_num(credit / slow_noise(batch, settings))
    assert (np.abs(want) > 0.1).sum() > 15
    assert np.allclose(clear[:, 0], want, rtol=1e-8, atol=1e-9)


def test_noise_of_large_groups_by_random_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of(random_rows(4, groups=2, rollouts=15, states=8))
    dealt = deal(batch, 3, 0)
    (exact,) = td_blocks(batch, LOOK, dealt)
    monkeypatch.setattr(_chance_noise, "EXACT_NODES", 0)
    monkeypatch.setattr(_chance_noise, "SIGNS", 4000)
    (rough,) = td_blocks(batch, LOOK, dealt)
    assert exact.clear is not None and rough.clear is not None
    some = np.abs(exact.clear) > 1e-6
    assert not np.array_equal(exact.clear, rough.clear)
    assert np.abs(rough.clear[some] / exact.clear[some] - 1).max() < 0.12


def test_equal_steps_share_one_class() -> None:
    credit = np.array([[0.5, 0.1, 0.2], [0.5, 0.1, 0.2], [0.5, 0.2, 0.1], [np.nan] * 3])
    batch = one_group(1, 0, path=lambda i: "S:a T:b")
    block = block_of(batch, credit, None)
    assert np.diff(block.starts).tolist() == [2, 1]
    assert sorted(block.steps.tolist()) == [0, 1, 2]
    assert np.diff(block_of(batch, credit, np.arange(12.0).reshape(4, 3)).starts).tolist() == [1, 1, 1]
