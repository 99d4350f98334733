"""The shuffle test: counts and p-values against enumeration, false marks and power, and what it says in words."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from dealt_rows import one_group, rows_with
from row_batches import batch_of, random_rows, walk

import graft_core as gc
from graft_core.errors import GroupMissingError, NotComputableError, UsageError
from graft_core.insight._chance_again import block_of, credit_again
from graft_core.insight._chance_deal import deal
from graft_core.insight._chance_decide import Tally, marked
from graft_core.insight.chance import Chance, chance, sentence, shuffled, too_small_sentence
from graft_core.insight.findings import findings
from graft_core.rollouts import FloatArray, RolloutBatch
from graft_core.settings import LOOK, Settings


@pytest.fixture(scope="module")
def tables(root: Path) -> ModuleType:
    """benchmarks/chance.py, which makes the README's figures."""
    spec = importlib.util.spec_from_file_location("benchmarks_chance", root / "benchmarks" / "chance.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


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


def test_what_is_too_small_is_not_marked_whatever_its_p(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of(crossroads(40, strong=True))
    module = sys.modules["graft_core.insight.chance"]
    monkeypatch.setattr(module, "too_small", lambda *_: (np.array([True]), np.array([True])))
    assert np.nanmin(chance(batch).p) <= 0.01
    assert not chance(batch).beyond.any()


def tally_of(columns: list[list[float]]) -> Tally:
    """A tally with the given high scores under each deal, the observed ones first; none of these is near 0: pi0 = 1/4."""
    found = Tally.empty(len(columns))
    found.near[1:] = 8
    found.columns = [np.repeat(np.arange(len(columns)), [len(c) for c in columns])]
    found.scores = [np.array([x for c in columns for x in c])]
    found.observed = [np.array(columns[0])]
    return found


def test_rate_by_pencil() -> None:
    # 40 deals, the observed one with scores 6, 5, 5, 3, and three others with one score of 4 each
    found = tally_of([[6, 5, 5, 3], [4], [4], [4], *[[]] * 36])
    rates = np.array([0.025, 0.025, 0.025, 7 / 40 / 4])
    mark, q = marked(found, 0.05)
    assert q == pytest.approx(rates / 4)
    assert mark.all()
    found.near[0] = 8  # as many classes near 0 as the deals have
    mark, q = marked(found, 0.03)
    assert q == pytest.approx(rates)
    assert mark.tolist() == [True, True, True, False]


def test_a_clump_that_deals_often_make_is_not_believed() -> None:
    # thirty equal scores look rare (30 * 3 / 20 / 30 / 4 = 3.75 %), but three deals in twenty have such a clump
    clump = [5.0] * 30
    mark, q = marked(tally_of([clump, clump, clump, *[[]] * 17]), 0.05)
    assert q == pytest.approx([0.0375] * 30)
    assert not mark.any()
    mark, _ = marked(tally_of([clump, *[[]] * 19]), 0.05)
    assert mark.all()


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
    rate = "at a false-discovery rate of 5 %."
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
