"""Stated certainty against continuations: how often a credit's sign should hold when it is tried, and how often it does.

What is stated of a credit is its interval: Student's t around the credit, with the interval's error and degrees of freedom.
Continuations are noisy too, so even a credit that is certain is not always seen again: the share to expect is the stated
distribution with the noise of the continuations added (a posterior predictive share).

Where results are random, a credit per transition also holds the luck of the result, which continuations do not repeat.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graft_core.constants import SIGN_TOLERANCE
from graft_core.errors import InputError
from graft_core.live.policy import Floats
from graft_core.live.probe import CONFIRMED, CONTRADICTED, LEVEL, Check

if TYPE_CHECKING:
    from graft_core.insight.certainty import Certainty

BINS: Final = (0.5, 0.8, 0.9, 0.95, 0.99, 1.0)
POINTS: Final = (np.arange(400) + 0.5) / 400
NOT_STATED: Final = "not stated"


@dataclass(frozen=True)
class Stated:
    """What is stated of a credit: Student's t around it, with this error and these degrees of freedom."""

    credit: float
    error: float
    degrees: float

    @property
    def sure(self) -> float:
        """Stated probability that the sign of the credit is right, 0.5 to 1."""
        from scipy.stats import t

        return float(t.cdf(abs(self.credit) / self.error, self.degrees)) if self.error > 0 else 1.0

    def draws(self) -> Floats:
        """Equally likely values of the true credit."""
        from scipy.stats import t

        return np.asarray(self.credit + self.error * t.ppf(POINTS, self.degrees))


def stated_at(certainty: Certainty | None, edge: int) -> Stated | None:
    """What is stated of the credit of one edge; None where no number is: no interval, or one witness, whose is a hint."""
    from graft_core.insight.certainty import DEGREES

    if certainty is None or bool(certainty.one_witness[edge]) or not math.isfinite(float(certainty.low[edge])):
        return None
    from scipy.stats import t

    credit, degrees = float(certainty.credit[edge]), float(certainty.support[edge]) + DEGREES
    half = max(credit - float(certainty.low[edge]), float(certainty.high[edge]) - credit)  # one side may be cut
    return Stated(credit, half / float(t.ppf((1 + certainty.level) / 2, degrees)), degrees)


def expected(stated: Stated, check: Check) -> tuple[float, float]:
    """Chance that the continuations show the credit's sign, and that they confirm it by themselves (see `Check`).

    The noise of the continuations is read off their own interval, taken as normal.
    """
    from scipy.stats import norm, t

    quantile = float(t.ppf(0.5 + LEVEL / 2, check.usual.tries + check.taken.tries + 2))
    noise = max((check.high - check.low) / 2 / quantile, 1e-12)
    towards = stated.draws() * math.copysign(1.0, stated.credit) / noise
    return float(norm.cdf(towards).mean()), float(norm.cdf(towards - quantile).mean())


def agrees(check: Check) -> float:
    """1 where the continuations show the credit's sign, 0 where the other one, 0.5 where they show no difference."""
    if abs(check.difference) <= SIGN_TOLERANCE:
        return 0.5
    return float((check.difference > 0) == (check.credit > 0))


def jeffreys(hits: float, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Jeffreys' interval of a proportion; hits may be halves."""
    from scipy.stats import beta

    low, high = (float(beta.ppf(0.5 + side * level / 2, hits + 0.5, n - hits + 0.5)) for side in (-1, 1))
    return (0.0 if hits == 0 else low), (1.0 if hits == n else high)


def by_certainty(checks: Sequence[Check], stated: Sequence[Stated | None]) -> list[dict[str, Any]]:
    """One row per bin of stated probability that has checks, those without a statement last, then `all` that have one.

    certainty: the bin's name. checks. stated: mean stated probability of the sign. expected: share that should show the sign.
    agreed, share, low, high: how many do, with Jeffreys' interval. matches: whether it holds what was expected. confirmed,
    expected_confirmed, contradicted: by the verdicts. credit, continued: means. None where nothing was stated.
    """
    if len(checks) != len(stated):
        raise InputError(f"{len(checks)} checks but {len(stated)} statements")
    pairs = list(zip(checks, stated, strict=True))
    rows = []
    for low, high in pairwise(BINS):
        inside = [(c, s) for c, s in pairs if s is not None and (low <= s.sure < high or (high == 1.0 == s.sure))]
        if inside:
            rows.append(_row(f"{100 * low:.0f} to {100 * high:.0f} %", inside))
    silent = [(c, s) for c, s in pairs if s is None]
    if silent:
        rows.append(_row(NOT_STATED, silent))
    if len(rows) - bool(silent) > 1:
        rows.append(_row("all", [(c, s) for c, s in pairs if s is not None]))
    return rows


def _row(name: str, pairs: Sequence[tuple[Check, Stated | None]]) -> dict[str, Any]:
    checks = [check for check, _ in pairs]
    n, agreed = len(checks), sum(map(agrees, checks))
    low, high = jeffreys(agreed, n)
    row: dict[str, Any] = {
        "certainty": name, "checks": n, "stated": None, "expected": None, "agreed": agreed, "share": agreed / n, "low": low,
        "high": high, "matches": None, "confirmed": sum(c.verdict == CONFIRMED for c in checks), "expected_confirmed": None,
        "contradicted": sum(c.verdict == CONTRADICTED for c in checks),
        "credit": sum(c.credit for c in checks) / n, "continued": sum(c.difference for c in checks) / n,
    }  # fmt: skip
    known = [(check, one) for check, one in pairs if one is not None]
    if len(known) == n:
        chances = np.array([expected(one, check) for check, one in known])
        row["stated"] = sum(one.sure for _, one in known) / n
        row["expected"], row["expected_confirmed"] = float(chances[:, 0].mean()), float(chances[:, 1].sum())
        row["matches"] = low <= row["expected"] <= high
    return row


def certainty_table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as lines for a terminal, and what they mean."""
    above = f"{'stated that the':<16} {'':>5} {'same sign in the continuations':>45} {'':>8} {'confirmed':>12} {'mean':>7}"
    head = f"{'sign is right':<16} {'steps':>5} {'stated':>7} {'expected':>9} {'seen':>6} {'95 %':>20} {'matches':>8}"
    lines = [f"{above} {'mean':>9}", f"{head} {'(expected)':>12} {'credit':>7} {'continued':>9}"]
    for row in rows:
        told = ["-" if row[k] is None else f"{row[k]:.2f}" for k in ("stated", "expected")]
        matches = "-" if row["matches"] is None else "yes" if row["matches"] else "no"
        sure = "-" if row["expected_confirmed"] is None else f"{row['expected_confirmed']:.1f}"
        band = f"{row['low']:.2f} to {row['high']:.2f}"
        lines.append(
            f"{row['certainty']:<16} {row['checks']:>5} {told[0]:>7} {told[1]:>9} {row['share']:>6.2f} {band:>20} "
            f"{matches:>8} {row['confirmed']:>5} {f'({sure})':>6} {row['credit']:>+7.3f} {row['continued']:>+9.3f}"
        )
    return "\n".join(lines)
