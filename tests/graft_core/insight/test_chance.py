"""The shuffle test: counts and p-values against enumeration, the fast way against the slow one, false marks and power."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk

import graft_core as gc
from graft_core.errors import GroupMissingError, NotComputableError, UsageError
from graft_core.insight import _chance_kernels, _chance_noise, _chance_td
from graft_core.insight._chance_again import block_of, clearness, credit_again
from graft_core.insight._chance_deal import Deal, deal, distinct_deals
from graft_core.insight._chance_decide import Tally
from graft_core.insight._chance_td import td_blocks
from graft_core.insight.chance import Chance, chance, sentence, shuffled, too_small_sentence
from graft_core.insight.findings import findings
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


@pytest.fixture(scope="module")
def tables(root: Path) -> ModuleType:
    """benchmarks/chance.py, which makes the README's figures."""
    spec = importlib.util.spec_from_file_location("benchmarks_chance", root / "benchmarks" / "chance.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def rows_with(rows: list[dict[str, Any]], batch: RolloutBatch, outcome: FloatArray) -> list[dict[str, Any]]:
    """The rows with other outcomes, one per rollout row of the batch."""
    new = dict(zip(zip_ids(batch), outcome.tolist(), strict=True))
    return [r | {"outcome": None if np.isnan(x := new[r["group_id"], r["rollout_id"]]) else x} for r in rows]


def zip_ids(batch: RolloutBatch) -> list[tuple[str, str]]:
    return [(batch.group_ids[g], r) for g, r in zip(batch.group.tolist(), batch.rollout_ids, strict=True)]


def one_group(*outcomes: float, path: Callable[[int], str]) -> RolloutBatch:
    rows = [row for i, x in enumerate(outcomes) for row in walk(f"r{i}", path(i), x, "end")]
    return batch_of(rows)


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


# -- counts and p-values ----------------------------------------------------------------------------------------------


def enumerated(rows: list[dict[str, Any]], settings: Settings) -> list[tuple[FloatArray, FloatArray]]:
    """(outcomes, credits) of every arrangement of the outcomes of one group, each batch built anew."""
    batch = batch_of(rows)
    ones = int(batch.outcome.sum())
    found = []
    for chosen in itertools.combinations(range(batch.n_rollouts), ones):
        outcome = np.zeros(batch.n_rollouts)
        outcome[list(chosen)] = 1
        other = batch_of(rows_with(rows, batch, outcome))
        found.append((outcome, settings.credit(other, settings.estimator)[other.order]))
    return found


@pytest.fixture(scope="module")
def small() -> list[dict[str, Any]]:
    rows = random_rows(5, groups=1, rollouts=8, states=4)
    wins = {"r0", "r3", "r4"}
    return [r | {"outcome": float(r["rollout_id"] in wins)} for r in rows]


def test_counts_match_enumeration(small: list[dict[str, Any]]) -> None:
    batch = batch_of(small)
    counts = [
        int(((outcome[batch.step_rollout] == 0) & (credit > 1e-9)).sum()) for outcome, credit in enumerated(small, LOOK)
    ]
    assert len(counts) == 56
    assert np.std(counts) > 1
    found = chance(batch, shuffles=4000)
    assert found.observed == findings(batch).summary["good_steps"] > 0
    assert found.mean == pytest.approx(np.mean(counts), abs=4 * np.std(counts) / 4000**0.5)
    assert set(found.counts.tolist()) == set(counts)
    assert (found.low, found.high) == tuple(np.round(np.percentile(counts, [5, 95])))


def test_p_values_match_enumeration(small: list[dict[str, Any]]) -> None:
    settings = LOOK.with_options(estimator="path_gae", lam=0.02)
    batch = batch_of(small)
    cases = enumerated(small, settings)
    observed = settings.credit(batch, "path_gae")[batch.order]
    dealt = deal(batch, 800, 0)
    found = Tally.empty(dealt.columns)
    # without standard errors p compares the credits themselves
    found.add(batch, block_of(batch, credit_again(batch, settings, dealt), None), dealt)
    estimated = found.per_step(batch, found.p)
    listed = np.flatnonzero(np.isfinite(estimated))
    assert listed.size == 10
    for p in listed:
        # steps whose credit is the same in every arrangement stand for each other
        same = [k for k in range(batch.n_steps) if all(abs(c[k] - c[p]) < 1e-12 for _, c in cases)]
        rows = np.unique(batch.step_rollout[same])
        failed = [(o, c) for o, c in cases if (o[rows] == 0).any()]
        exact = np.mean([c[p] >= observed[p] - 1e-9 for _, c in failed])
        assert estimated[p] == pytest.approx(exact, abs=0.07)


def test_listed_steps_are_the_good_steps_of_findings() -> None:
    rows = random_rows(9, groups=4, rollouts=8, unknown=0.1)
    batch = batch_of([*rows[::2], *rows[1::2]])  # file order is not path order
    assert not batch.in_path_order
    for settings in (LOOK, LOOK.with_options(estimator="graft", lam=0.3), LOOK.with_options(per="action")):
        found, good = chance(batch, settings, shuffles=30), findings(batch, settings).good
        assert good.size > 0
        assert np.array_equal(np.flatnonzero(np.isfinite(found.p)), np.sort(good))
        assert np.array_equal(np.isfinite(found.q), np.isfinite(found.p))
        assert found.observed == good.size
        assert not (found.beyond & ~np.isfinite(found.p)).any()


def test_equal_steps_share_one_class() -> None:
    credit = np.array([[0.5, 0.1, 0.2], [0.5, 0.1, 0.2], [0.5, 0.2, 0.1], [np.nan] * 3])
    batch = one_group(1, 0, path=lambda i: "S:a T:b")
    block = block_of(batch, credit, None)
    assert np.diff(block.starts).tolist() == [2, 1]
    assert sorted(block.steps.tolist()) == [0, 1, 2]
    assert np.diff(block_of(batch, credit, np.arange(12.0).reshape(4, 3)).starts).tolist() == [1, 1, 1]


# -- what is marked ---------------------------------------------------------------------------------------------------


def crossroads(n: int, strong: bool, group: str = "g") -> list[dict[str, Any]]:
    """Left wins nine times in ten, right once in ten; or both half the time. Every second rollout goes left."""
    rows = []
    for i in range(n):
        rare = i // 2 % 10 == 0
        won = ((i % 2 == 0) != rare) if strong else i // 2 % 2 == 0
        way = "left" if i % 2 == 0 else "right"
        rows += walk(f"r{i}", f"S:{way} {way}:on", float(won), f"end {won}", group=group)
    return rows


def test_a_strong_effect_is_marked_and_its_absence_is_not() -> None:
    batch = batch_of(crossroads(40, strong=True))
    found = chance(batch)
    marked = [batch.text(int(batch.action[p])) for p in np.flatnonzero(found.beyond)]
    assert marked == ["left", "left"]  # of the two failed rollouts that went left
    assert (found.p[found.beyond] <= 0.01).all() and (found.q[found.beyond] <= 0.05).all()
    assert not chance(batch_of(crossroads(40, strong=False))).beyond.any()


def test_a_group_too_small_is_named_and_never_marked() -> None:
    rows = crossroads(40, strong=True, group="large")
    rows += [r | {"group_id": "tiny"} for r in crossroads(44, strong=True) if r["rollout_id"] in ("r0", "r2", "r3", "r4")]
    batch = batch_of(rows)
    found = chance(batch)
    assert batch.group_ids == ["large", "tiny"]
    assert found.too_small.tolist() == [False, True]
    tiny = batch.group[batch.step_rollout] == 1
    assert np.isfinite(found.p[tiny]).any() and not found.beyond[tiny].any()
    assert found.beyond[~tiny].any()


@pytest.mark.parametrize(
    ("outcomes", "small"),
    [("1100", True), ("10000000", True), ("11000000", False), ("1111", False), ("1" + "0" * 19, False), ("1" + "0" * 18, True)],
)
def test_too_small_by_number_of_arrangements(outcomes: str, small: bool) -> None:
    batch = one_group(*map(float, outcomes), path=lambda i: f"S:{'ab'[i % 2]} {'ab'[i % 2]}:on")
    assert chance(batch, shuffles=99).too_small.tolist() == [small]


def test_few_shuffles_are_too_few() -> None:
    batch = batch_of(crossroads(40, strong=True))
    few, enough = chance(batch, shuffles=18), chance(batch, shuffles=19)
    assert few.too_small.tolist() == [True] and not few.beyond.any()
    assert enough.too_small.tolist() == [False]
    assert too_small_sentence(few) == "With 18 shuffles no single step can be told from luck; expected at least 19."


def test_empty_list_where_nothing_is(tables: ModuleType) -> None:
    household = gc.load(tables.ROOT / "sample_data" / "household.jsonl")
    lake, _ = tables.sampled("frozen-lake", 4, 16, 7)
    assert tables.false_lists(household, 12) <= 2
    assert tables.false_lists(lake, 12) <= 2
    assert np.isfinite(chance(shuffled(lake, 1)).p).sum() > 20  # there is something to be wrong about


def test_the_list_is_not_vacuous(tables: ModuleType) -> None:
    found = tables.lake_power(64, 8, 1)
    assert found.good > 500
    assert found.share >= 0.5
    assert found.wrong <= 0.05 * found.marked


def test_steps_before_the_one_choice_that_matters_are_not_marked(tables: ModuleType) -> None:
    batch, truly = tables.one_choice(4, 64, 3)
    found = chance(batch)
    assert (found.beyond & truly).sum() > 0.7 * (np.isfinite(found.p) & truly).sum() > 0
    assert (found.beyond & ~truly).sum() <= 0.1 * found.beyond.sum()


@pytest.mark.parametrize("options", [{"lam": 0.0}, {"lam": 0.25}], ids=str)
def test_other_estimators_do_not_mark_them_either(tables: ModuleType, options: dict[str, Any]) -> None:
    batch, truly = tables.one_choice(4, 64, 3)
    found = chance(batch, LOOK.with_options(estimator="path_gae", **options), shuffles=99)
    assert (found.beyond & truly).sum() > 0.7 * (np.isfinite(found.p) & truly).sum() > 0
    assert (found.beyond & ~truly).sum() <= 0.15 * found.beyond.sum()


# -- the rest ---------------------------------------------------------------------------------------------------------


def test_same_seed_same_answer_and_other_seed_another() -> None:
    batch = batch_of(random_rows(2, groups=3, rollouts=8))
    first, again, other = chance(batch), chance(batch), chance(batch, seed=1)
    assert np.array_equal(first.counts, again.counts) and np.array_equal(first.p, again.p, equal_nan=True)
    assert not np.array_equal(first.counts, other.counts)
    assert first.as_dict()["seed"] == 0 and first.as_dict()["shuffles"] == 200


def test_progress_is_told_once_per_shuffle_where_it_takes_time() -> None:
    batch = batch_of(random_rows(2, groups=2, rollouts=4))
    told: list[tuple[int, int]] = []
    chance(batch, LOOK.with_options(estimator="path_gae"), shuffles=5, progress=lambda *x: told.append(x))
    assert told == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]


def test_values_by_maximum_take_the_slow_way() -> None:
    batch = batch_of(random_rows(2, groups=3, rollouts=6))
    settings = LOOK.with_options(weighting="max")
    found = chance(batch, settings, shuffles=10)
    assert found.observed == findings(batch, settings).summary["good_steps"] == 0
    assert found.counts.tolist() == [0] * 10


@pytest.mark.parametrize(
    "rows",
    [
        [],
        walk("r", "", 1.0),
        walk("r", "S:a", None, "e"),
        walk("r", "S:a", 0.0, "e"),
        walk("r", "", 0.0) + walk("q", "S:a", 1.0),
    ],
    ids=["nothing", "no steps", "unknown", "one rollout", "one without steps"],
)
@pytest.mark.parametrize("name", ["graft_td", "gigpo", "grpo"])
def test_batches_without_anything_to_say(rows: list[dict[str, Any]], name: str) -> None:
    batch = batch_of(rows)
    found = chance(batch, LOOK.with_options(estimator=name), shuffles=20)
    assert (found.observed, found.low, found.high) == (0, 0, 0)
    assert np.isnan(found.p).all() and not found.beyond.any()
    assert found.p.shape == found.beyond.shape == (batch.n_steps,)


def test_what_cannot_be_done_is_said() -> None:
    batch = batch_of(random_rows(0))
    with pytest.raises(NotComputableError, match="chance needs rewards 'outcome'"):
        chance(batch, LOOK.with_options(rewards="dense"))
    for shuffles in (0, -1, 2.5):
        with pytest.raises(UsageError, match="shuffles"):
            chance(batch, shuffles=shuffles)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="level"):
        chance(batch, level=1.0)
    rollouts = batch.rollouts.set_column(13, "group_assumed", [[True] * batch.n_rollouts])
    with pytest.raises(GroupMissingError):
        chance(RolloutBatch(rollouts, batch.steps, batch.texts))


def said(observed: int, low: int, high: int, beyond: int = 0) -> str:
    none = np.zeros(0)
    flags = np.arange(50) < beyond
    flat = np.zeros(1, dtype=bool)
    return sentence(
        Chance(observed, 0.0, low, high, none, none, flags, flat, flat, none.astype(int), none.astype(int), 200, 0)
    )


def test_sentences() -> None:
    rate = "(at most 5 % false marks expected)."
    luck = "44 good steps found; 47 to 60 would be found if outcomes were dealt at random"
    assert said(44, 47, 60) == f"{luck}: fewer than luck gives. No single one is beyond luck {rate}"
    assert said(50, 47, 60, 1).endswith(f"no more than luck gives. 1 of them is beyond luck {rate}")
    assert said(61, 47, 60, 12).endswith(f": more than luck gives. 12 of them are beyond luck {rate}")
    assert said(1, 0, 2).startswith("1 good step found; 0 to 2 would be found if outcomes were dealt at random: no more")
    assert said(0, 0, 0) == "0 good steps found; none would be found if outcomes were dealt at random."
    assert said(3, 0, 0).startswith("3 good steps found; none would be found if outcomes were dealt at random: more than")
    assert said(3, 4, 4).startswith("3 good steps found; 4 would be found")


def test_small_groups_in_words() -> None:
    rows = [r | {"group_id": f"g{k}"} for k in range(3) for r in crossroads(4, strong=True)]
    assert too_small_sentence(chance(batch_of(rows))) == "With 4 rollouts per task no single step can be told from luck."
    rows += crossroads(40, strong=True, group="large") + crossroads(3, strong=False, group="other")
    assert too_small_sentence(chance(batch_of(rows))) == (
        "In 4 of 5 tasks no single step can be told from luck: 3 to 4 rollouts, with so few of one outcome, allow too few "
        "ways to deal the outcomes anew."
    )
    assert too_small_sentence(chance(batch_of(crossroads(40, strong=True)))) == ""


def test_tau_bench_finds_no_more_than_luck(test_data: Path) -> None:
    found = chance(gc.load(test_data / "tau_bench" / "gpt-4o-airline.json"))
    assert found.observed == 44
    assert found.low <= 53 <= found.high
    assert (abs(found.low - 47) <= 1) and (abs(found.high - 60) <= 1)
    assert sentence(found).startswith(f"44 good steps found; {found.low} to {found.high} would be found")
    assert too_small_sentence(found) == "With 4 rollouts per task no single step can be told from luck."
