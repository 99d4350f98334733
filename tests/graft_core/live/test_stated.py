"""Stated certainty against continuations: the arithmetic by pencil and tables, and the household game end to end."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, norm, t

import graft_core as gc
from graft_core.errors import InputError
from graft_core.insight import findings
from graft_core.live.probe import Arm, Check, verdict_of
from graft_core.live.stated import Stated, agrees, by_certainty, certainty_table, expected, jeffreys, stated_at

ARM = Arm("walk", 64, 32, 0.5, 0.4, 0.6, 0.5)
QUANTILE = float(t.ppf(0.975, 130))


def check(credit: float, difference: float, noise: float = 0.1) -> Check:
    low, high = difference - QUANTILE * noise, difference + QUANTILE * noise
    return Check("g", "r", 1, "walk", credit, ARM, ARM, (), difference, low, high, verdict_of(credit, low, high))


def test_stated_probability_and_what_to_expect_of_continuations_from_tables() -> None:
    one = Stated(0.2, 0.1, 1e9)  # as good as normal: z = 2
    assert one.sure == pytest.approx(0.97725, abs=1e-5)
    sign, sure = expected(one, check(0.2, 0.2))
    assert sign == pytest.approx(float(norm.cdf(math.sqrt(2))), abs=1e-3)  # 0.2 / sqrt(0.1^2 + 0.1^2)
    assert sure == pytest.approx(float(norm.cdf((0.2 - QUANTILE * 0.1) / math.sqrt(0.02))), abs=1e-3)
    assert expected(Stated(-0.2, 0.1, 1e9), check(-0.2, -0.2)) == pytest.approx((sign, sure), abs=1e-9)
    assert Stated(0.2, 0.1, 3.0).sure == pytest.approx(0.93034, abs=1e-4)  # Student's t with 3 degrees at 2
    assert Stated(0.2, 0.0, 3.0).sure == 1.0


def test_signs_ties_and_the_interval_of_a_share() -> None:
    assert [agrees(check(0.2, d)) for d in (0.1, -0.1, 0.0)] == [1.0, 0.0, 0.5]
    assert agrees(check(-0.2, -0.1)) == 1.0
    assert jeffreys(0, 10) == pytest.approx((0.0, 0.2172), abs=1e-4)
    assert jeffreys(10, 10) == pytest.approx((0.7828, 1.0), abs=1e-4)


def test_bins_are_counted_and_compared() -> None:
    sure, likely = Stated(0.3, 0.1, 1e9), Stated(0.15, 0.1, 1e9)  # 0.9987 and 0.9332
    checks = [check(0.3, 0.3), check(0.3, 0.1), check(0.15, 0.1), check(0.15, -0.3), check(0.15, -0.4), check(0.2, 0.0)]
    rows = by_certainty(checks, [sure, sure, likely, likely, likely, None])
    assert [row["certainty"] for row in rows] == ["90 to 95 %", "99 to 100 %", "not stated", "all"]
    low, high, silent, every = rows
    assert (low["checks"], low["agreed"], low["contradicted"], low["confirmed"]) == (3, 1.0, 2, 0)
    assert low["stated"] == pytest.approx(0.93319, abs=1e-5)
    assert low["expected"] == pytest.approx(float(norm.cdf(0.15 / math.sqrt(0.02))), abs=1e-3)
    assert low["high"] == pytest.approx(0.8234, abs=1e-3) and low["matches"] is False
    assert (high["agreed"], high["confirmed"], high["matches"]) == (2.0, 1, True)
    assert high["credit"] == pytest.approx(0.3) and high["continued"] == pytest.approx(0.2)
    assert silent["matches"] is None and silent["stated"] is None and silent["agreed"] == 0.5
    assert every["checks"] == 5 and every["expected_confirmed"] == pytest.approx(
        low["expected_confirmed"] + high["expected_confirmed"]
    )
    wrong = by_certainty([check(0.3, -0.3)] * 5, [sure] * 5)
    assert len(wrong) == 1 and wrong[0]["matches"] is False
    lines = certainty_table(rows).splitlines()
    assert lines[2].split()[:5] == ["90", "to", "95", "%", "3"] and lines[4].split()[3:6] == ["-", "-", "0.50"]
    assert len({len(line) for line in lines}) == 1
    with pytest.raises(InputError, match="6 checks but 5 statements"):
        by_certainty(checks, [None] * 5)


def test_what_is_expected_happens_where_the_statement_is_true() -> None:
    """Credits drawn around true differences, tried with 64 + 64 coins: the seen share is the expected one."""
    rng = np.random.default_rng(0)
    checks, stated = [], []
    for _ in range(400):
        truth = rng.normal(0.1, 0.15)
        p = np.clip([0.5 + truth / 2, 0.5 - truth / 2], 0.01, 0.99)
        credit = float(np.clip(truth, -0.98, 0.98) + 0.08 * rng.standard_normal())
        # the interval of a Bayesian who knows how true differences are spread
        pull = 0.15**2 / (0.15**2 + 0.08**2)
        middle = 0.1 + pull * (credit - 0.1)
        a, b = binom.rvs(64, p, random_state=rng) / 64
        stated.append(Stated(middle, 0.08 * math.sqrt(pull), 1e9))
        checks.append(check(middle, float(a - b), math.sqrt((a * (1 - a) + b * (1 - b)) / 64)))
    rows = by_certainty(checks, stated)
    assert len(rows) == 6
    assert sum(not row["matches"] for row in rows) <= 1
    assert rows[-1]["share"] == pytest.approx(rows[-1]["expected"], abs=0.03)
    assert rows[-1]["confirmed"] == pytest.approx(rows[-1]["expected_confirmed"], abs=25)


def test_the_statement_is_the_interval_of_the_finding(root: Path) -> None:
    found = findings(gc.load(root / "sample_data" / "household.jsonl"))
    sure = found.certainty
    assert sure is not None
    said = 0
    for p in found.good[:40].tolist():
        edge = int(found.graph.edge[p])
        one = stated_at(sure, edge)
        assert (one is None) == bool(sure.one_witness[edge])
        if one is not None:
            half = one.error * float(t.ppf(0.95, int(sure.support[edge]) + 3))
            assert sure.low[edge] == pytest.approx(one.credit - half, abs=1e-9)
            assert (one.sure > 0.95) == (sure.low[edge] > 0)
            said += 1
    assert said > 5
    assert stated_at(None, 0) is None
