"""Estimators side by side."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import orjson
import pytest
from row_batches import batch_of, random_rows, walk
from scipy.stats import spearmanr

import graft_core as gc
from graft_core.insight.compare import agreement, compare, mirror, scale, scales, signs

NAN = math.nan


def test_mirror_lists_the_bad_steps_of_successes_worst_first() -> None:
    found = gc.findings(batch_of(random_rows(1, unknown=0.2)))
    batch, c = found.batch, found.credit
    expected = [
        p for p in range(batch.n_steps) if batch.success[batch.step_rollout[p]] == 1 and c[p] < -1e-9
    ]  # fmt: skip
    shown = mirror(batch, c)
    assert sorted(shown.tolist()) == expected
    assert len(expected) > 3
    assert np.all(np.diff(c[shown]) >= 0)
    rows = found.rows(shown)
    assert all(row["credit"] < 0 for row in rows)


def test_rounding_is_no_bad_step() -> None:
    batch = batch_of(walk("r0", "S:a T:b", 1.0, "e"))
    assert mirror(batch, np.array([-1e-9, -2e-9])).tolist() == [1]


def test_signs_have_a_tolerance_and_keep_nan() -> None:
    assert signs([1e-9, -1e-9, 2e-9, -2e-9]).tolist() == [0, 0, 1, -1]
    assert np.isnan(signs([NAN])).all()


def test_spearman_is_scipys_and_signs_are_counted() -> None:
    pick = np.random.default_rng(0)
    a, b = pick.integers(-3, 4, 200).astype(float), pick.integers(-3, 4, 200).astype(float)
    a[:5], b[3:9] = NAN, NAN
    both = ~np.isnan(a) & ~np.isnan(b)
    found = agreement("grpo", a, "graft_td", b)
    assert found.steps == both.sum() == 191
    assert found.spearman == pytest.approx(spearmanr(a[both], b[both]).statistic)
    assert found.same_sign == pytest.approx(np.mean(np.sign(a[both]) == np.sign(b[both])))
    assert found.opposite == pytest.approx(np.mean(np.sign(a[both]) * np.sign(b[both]) == -1))


def test_rounding_changes_neither_rank_nor_sign() -> None:
    a = np.array([0.0, 1.0, 2.0, 3.0])
    b = np.array([1e-12, 1.0, 2.0, 3.0])
    found = agreement("a", a, "b", b)
    assert (found.spearman, found.same_sign, found.top) == (pytest.approx(1.0), 1.0, ())
    noise = np.array([1e-12, -1e-12, 0.0, 3e-13])
    assert math.isnan(agreement("a", a, "b", noise).spearman)


def test_top_disagreements_put_opposite_signs_first() -> None:
    a = np.array([5.0, 4.0, 3.0, 2.0, 0.0, NAN])
    b = np.array([-1.0, 2.0, 0.0, -3.0, 9.0, -9.0])
    found = agreement("a", a, "b", b)
    assert set(found.top[:2]) == {0, 3}
    assert set(found.top[2:]) == {2, 4}
    assert agreement("a", a, "b", b, top=1).top == found.top[:1]


def test_two_credits_without_a_common_step() -> None:
    found = agreement("grpo", np.array([1.0, NAN]), "graft_td", np.array([NAN, 1.0]))
    assert found.steps == 0
    assert math.isnan(found.spearman)
    assert found.sentence == "GRPO and graph TD share no step."


def test_scale_by_pencil() -> None:
    x, reference = np.array([3.0, -4.0, 0.0, 1e-12, NAN]), np.array([6.0, 8.0, NAN, 0.0, 100.0])
    row = scale("graft_td", x, "grpo", reference)
    assert (row.steps, row.largest, row.zeros) == (4, 4.0, 0.5)
    assert row.mean == pytest.approx(-0.25)
    assert row.std == pytest.approx(math.sqrt(25 / 4 - 0.0625))
    assert row.rms == pytest.approx(math.sqrt(25 / 4))
    assert row.ratio == pytest.approx(0.5)  # over the three steps both have


@pytest.mark.parametrize(
    "factor, words",
    [
        (1 / 5.5, "Switching from GRPO to graph TD divides the advantage scale by 5.5."),
        (3.0, "Switching from GRPO to graph TD multiplies the advantage scale by 3.0."),
        (1.01, "Switching from GRPO to graph TD keeps the advantage scale."),
        (0.0, "graph TD is 0 on every step that it shares with GRPO."),
    ],
)
def test_the_sentence_of_a_scale(factor: float, words: str) -> None:
    reference = np.array([1.0, -1.0, 2.0])
    assert scale("graft_td", factor * reference, "grpo", reference).sentence == words


def test_a_reference_of_zeros_gives_no_ratio() -> None:
    row = scale("graft_td", np.ones(3), "grpo", np.zeros(3))
    assert math.isnan(row.ratio)
    assert row.sentence == "GRPO is 0 on every step they share, so there is no scale to compare with."
    assert scales({"grpo": np.zeros(3)})[0].sentence == "The others are compared with this one."


def test_compare_pairs_all_and_says_what_is_missing() -> None:
    batch = batch_of(random_rows(2))
    found = compare(batch, ["graft_td", "gae_critic" if "gae_critic" in gc.estimators() else "grpo", "grpo", "rloo"])
    assert {"graft_td", "grpo", "rloo"} == set(found.credits)
    assert {(pair.first, pair.second) for pair in found.agreements} == {
        ("graft_td", "grpo"), ("graft_td", "rloo"), ("grpo", "rloo"),
    }  # fmt: skip
    by_name = {row.name: row for row in found.scales}
    assert by_name["grpo"].ratio == pytest.approx(1.0)
    assert next(p for p in found.agreements if p.second == "rloo" and p.first == "grpo").same_sign == 1.0
    np.testing.assert_array_equal(found.credits["rloo"], gc.estimate(batch, "rloo")[batch.order])
    orjson.dumps(found.as_dict())
    if "gae_critic" in gc.estimators():
        assert "value" in found.missing["gae_critic"]


def test_tau_bench_scale(test_data: Path) -> None:
    batch = gc.load(test_data / "tau_bench" / "gpt-4o-airline.json")
    td, grpo = (gc.estimate(batch, name) for name in ("graft_td", "grpo"))
    row = next(r for r in compare(batch, ["grpo", "graft_td"]).scales if r.name == "graft_td")
    assert row.ratio == pytest.approx(math.sqrt((td**2).mean() / (grpo**2).mean()))
    assert "divides the advantage scale by" in row.sentence
