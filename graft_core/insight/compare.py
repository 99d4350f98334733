"""Estimators side by side: bad steps in successes, agreement of signs and ranks, and the scale of advantages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graft_core.constants import SIGN_TOLERANCE
from graft_core.credit import estimators
from graft_core.errors import GraftError
from graft_core.rollouts import FloatArray, IntArray, RolloutBatch
from graft_core.settings import LOOK, Settings

NO_STEP = "{} and {} share no step."
NO_CHANGE = 0.02  # a ratio of RMS this close to 1 is called no change


@dataclass(frozen=True)
class Agreement:
    """How far two credits agree, over the `steps` steps where both are defined.

    spearman: rank correlation, NaN where one of them is constant. same_sign: share of steps with the same sign, zero
    being a sign of its own (tolerance 1e-9); opposite: share with opposite signs. top: path positions of the worst
    disagreements, those with opposite signs first, then by difference of ranks.
    """

    first: str
    second: str
    steps: int
    spearman: float
    same_sign: float
    opposite: float
    top: tuple[int, ...]
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "top": list(self.top)}


@dataclass(frozen=True)
class Scale:
    """The size of one credit over its defined steps. std: ddof 0. zeros: share of steps with |x| <= 1e-9.

    ratio: RMS over the reference's RMS on the steps where both are defined, NaN where the reference is 0.
    """

    name: str
    title: str
    steps: int
    mean: float
    std: float
    largest: float
    zeros: float
    rms: float
    ratio: float
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Comparison:
    """Several estimators on one batch. credits: float64[n_steps] each, path order; missing: why others have none."""

    credits: dict[str, FloatArray]
    missing: dict[str, str]
    agreements: tuple[Agreement, ...]
    scales: tuple[Scale, ...]

    def as_dict(self) -> dict[str, Any]:
        """Everything but the credits themselves."""
        return {
            "missing": self.missing,
            "agreements": [pair.as_dict() for pair in self.agreements],
            "scales": [row.as_dict() for row in self.scales],
        }


def signs(credit: npt.ArrayLike) -> FloatArray:
    """-1, 0 or 1 with the sign tolerance; NaN stays NaN."""
    x = np.asarray(credit, dtype=np.float64)
    return np.where(np.abs(x) <= SIGN_TOLERANCE, 0.0, np.sign(x))


def mirror(batch: RolloutBatch, credit: FloatArray) -> IntArray:
    """Bad steps in successes: positions of successful rollouts' steps with credit < -1e-9, worst first.

    credit: float64[n_steps], path order. Ties stand in path order. `Findings.rows` makes rows of the positions.
    """
    succeeded = ((batch.success == 1) & batch.known)[batch.step_rollout]
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(succeeded & (credit < -SIGN_TOLERANCE))
    return bad[np.argsort(credit[bad], kind="stable")]


def _ranks(x: FloatArray) -> FloatArray:
    from scipy.stats import rankdata

    ranks: FloatArray = rankdata(np.where(np.abs(x) <= SIGN_TOLERANCE, 0.0, x))
    return ranks


def _correlation(a: FloatArray, b: FloatArray) -> float:
    if a.size < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])


def _title(name: str) -> str:
    known = estimators().get(name)
    return known.title if known else name


def agreement(first: str, a: FloatArray, second: str, b: FloatArray, top: int = 20) -> Agreement:
    """Rank correlation and agreement of signs of two credits (float64[n_steps], same order), and where they differ most."""
    both = np.flatnonzero(~np.isnan(a) & ~np.isnan(b))
    names = _title(first), _title(second)
    if not both.size:
        nan = math.nan
        return Agreement(first, second, 0, nan, nan, nan, (), NO_STEP.format(*names))
    rank_a, rank_b = _ranks(a[both]), _ranks(b[both])
    sign_a, sign_b = signs(a[both]), signs(b[both])
    opposite, differ = sign_a * sign_b < 0, sign_a != sign_b
    order = np.lexsort((both, -np.abs(rank_a - rank_b), ~opposite))
    worst = both[order[differ[order]]][:top]
    spearman, same = _correlation(rank_a, rank_b), 1.0 - float(differ.mean())
    rank = "cannot be ranked (one is constant)" if math.isnan(spearman) else f"rank correlation {spearman:.2f}"
    words = f"{names[0]} and {names[1]}: same sign on {100 * same:.0f} % of {both.size} steps, {rank}."
    return Agreement(
        first, second, int(both.size), spearman, same, float(opposite.mean()), tuple(worst.tolist()), words
    )


def _rms(x: FloatArray) -> float:
    return float(np.sqrt(np.mean(x * x))) if x.size else math.nan


def scale(name: str, credit: FloatArray, reference_name: str, reference: FloatArray) -> Scale:
    """The size of a credit, and how it compares with the reference's: a hidden change of the learning rate."""
    x = credit[~np.isnan(credit)]
    both = ~np.isnan(credit) & ~np.isnan(reference)
    own, other = _rms(credit[both]), _rms(reference[both])
    ratio = own / other if other > SIGN_TOLERANCE else math.nan
    return Scale(
        name=name,
        title=_title(name),
        steps=int(x.size),
        mean=float(x.mean()) if x.size else math.nan,
        std=float(x.std()) if x.size else math.nan,
        largest=float(np.abs(x).max()) if x.size else math.nan,
        zeros=float((np.abs(x) <= SIGN_TOLERANCE).mean()) if x.size else math.nan,
        rms=_rms(x),
        ratio=ratio,
        sentence=_switching(name, reference_name, ratio if both.any() else None),
    )


def _switching(name: str, reference_name: str, ratio: float | None) -> str:
    if name == reference_name:
        return "The others are compared with this one."
    old, new = _title(reference_name), _title(name)
    if ratio is None:
        return NO_STEP.format(new, old)
    if math.isnan(ratio):
        return f"{old} is 0 on every step they share, so there is no scale to compare with."
    if ratio <= SIGN_TOLERANCE:
        return f"{new} is 0 on every step that it shares with {old}."
    if abs(ratio - 1.0) <= NO_CHANGE:
        return f"Switching from {old} to {new} keeps the advantage scale."
    verb, factor = ("multiplies", ratio) if ratio > 1 else ("divides", 1.0 / ratio)
    return f"Switching from {old} to {new} {verb} the advantage scale by {factor:.{1 if factor < 100 else 0}f}."


def scales(given: Mapping[str, FloatArray], reference: str = "grpo") -> tuple[Scale, ...]:
    """The scale table: one row per credit, compared with `reference` (one of them)."""
    return tuple(scale(name, credit, reference, given[reference]) for name, credit in given.items())


def compare(
    batch: RolloutBatch, names: Sequence[str], settings: Settings = LOOK, reference: str | None = None, top: int = 20
) -> Comparison:
    """Agreement of all pairs and the scale table of the named estimators under `settings`.

    reference: what scales are compared with (default: the settings' baseline if it is among the names, else the first).
    An estimator that this batch does not allow is listed in `missing` with the reason.
    """
    found: dict[str, FloatArray] = {}
    missing: dict[str, str] = {}
    for name in dict.fromkeys(names):
        try:
            found[name] = settings.credit(batch, name)[batch.order]
        except GraftError as error:
            missing[name] = str(error)
    known = list(found)
    pairs = [(a, b) for i, a in enumerate(known) for b in known[i + 1 :]]
    base = reference if reference in found else settings.baseline if settings.baseline in found else next(iter(found), "")
    return Comparison(
        credits=found,
        missing=missing,
        agreements=tuple(agreement(a, found[a], b, found[b], top) for a, b in pairs),
        scales=scales(found, base) if base else (),
    )
