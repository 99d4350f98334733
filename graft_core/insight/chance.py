"""Chance: how many good steps would be found if outcomes were dealt at random, and which steps are beyond that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graft_core.errors import NotComputableError, UsageError
from graft_core.insight._chance_deal import Progress, deal, distinct_deals
from graft_core.insight.findings import failed_steps, unnormalised
from graft_core.insight.measures import mixed_groups
from graft_core.rollouts import BoolArray, FloatArray, IntArray, RolloutBatch
from graft_core.settings import LOOK, Settings

LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class Chance:
    """What dealing outcomes anew says. Step arrays are in path order.

    observed: good steps in failures. mean, low, high: the same count over the shuffles, its mean and its 5th and 95th
    percentile, rounded; counts: all of them. p: float64[n_steps], for each good step the share of shuffles in which a
    step like it, in a failed rollout, gets at least its credit; NaN elsewhere. q: float64[n_steps], least
    false-discovery rate at which the step is listed. beyond: bool[n_steps], good steps that stay listed at `level`.
    too_small: bool[n_groups], groups with both outcomes whose outcomes can be dealt in so few ways that no step of theirs
    can ever be marked; mixed: bool[n_groups]; rollouts: int64[n_groups], rollouts of known outcome.
    """

    observed: int
    mean: float
    low: int
    high: int
    p: FloatArray
    q: FloatArray
    beyond: BoolArray
    too_small: BoolArray
    mixed: BoolArray
    rollouts: IntArray
    counts: IntArray
    shuffles: int
    seed: int
    level: float = LEVEL

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without the arrays."""
        return {
            "observed": self.observed,
            "mean": self.mean,
            "low": self.low,
            "high": self.high,
            "beyond_luck": int(self.beyond.sum()),
            "groups_too_small": int(self.too_small.sum()),
            "level": self.level,
            "shuffles": self.shuffles,
            "seed": self.seed,
            "sentence": sentence(self),
        }


def chance(
    batch: RolloutBatch,
    settings: Settings = LOOK,
    shuffles: int = 200,
    seed: int = 0,
    progress: Progress | None = None,
    level: float = LEVEL,
) -> Chance:
    """Count good steps of failed rollouts with outcomes dealt at random, and mark the steps that are beyond that.

    Outcomes (with their success flags) are permuted among each group's rollouts of known outcome; the paths, and so the
    graph, stay. Credit A is used un-normalised, as in `findings`. progress(done, total) is called where an estimator has
    to be run again for every shuffle (all but graph TD). Raises `NotComputableError` under rewards `dense`, `UsageError` for
    fewer than one shuffle or a level outside 0..1, and whatever the estimator raises.
    """
    if shuffles < 1 or shuffles != int(shuffles):
        raise UsageError(f"shuffles: {shuffles!r} is not allowed, expected a whole number of at least 1")
    if not 0.0 < level < 1.0:
        raise UsageError(f"level: {level!r} is not allowed, expected a number between 0 and 1")
    if settings.rewards != "outcome":
        raise NotComputableError(
            f"chance needs rewards 'outcome': outcomes can be dealt anew among rollouts, step rewards (rewards "
            f"{settings.rewards!r}) cannot"
        )
    from graft_core.insight._chance_again import block_of, credit_again
    from graft_core.insight._chance_decide import Tally, marked, tally

    plain = unnormalised(settings)
    dealt = deal(batch, int(shuffles), seed)
    found = Tally(np.zeros(dealt.columns, dtype=np.int64), np.zeros(dealt.columns, dtype=np.int64))
    if plain.estimator == "graft_td" and plain.weighting != "max" and plain.solver == "direct":
        from graft_core.insight._chance_td import td_blocks

        for block in td_blocks(batch, plain, dealt):
            tally(batch, block, dealt, found)
    else:
        tally(batch, block_of(batch, credit_again(batch, plain, dealt, progress)), dealt, found)
    small = too_small(batch, int(shuffles), level)
    beyond, q = marked(found, level)
    steps = np.concatenate([*found.steps, np.zeros(0, dtype=np.int64)])
    sizes = np.concatenate([*found.sizes, np.zeros(0, dtype=np.int64)])
    p = np.concatenate([*found.p, np.zeros(0)])

    def per_step(of_class: FloatArray) -> FloatArray:
        spread = np.full(batch.n_steps, np.nan)
        spread[steps] = np.repeat(of_class, sizes)
        return np.where(good, spread, np.nan)

    good = np.zeros(batch.n_steps, dtype=bool)
    good[steps] = np.repeat(~np.isnan(q), sizes)
    good &= failed_steps(batch)
    p_of_step = per_step(p)
    with np.errstate(invalid="ignore"):
        stays = good & (per_step(beyond.astype(np.float64)) == 1) & (p_of_step <= level)
    counts = found.count[1:]
    low, high = np.percentile(counts, [5, 95])
    return Chance(
        observed=int(found.count[0]),
        mean=float(counts.mean()),
        low=round(float(low)),
        high=round(float(high)),
        p=p_of_step,
        q=per_step(q),
        beyond=stays & ~small[batch.group[batch.step_rollout]],
        too_small=small,
        mixed=mixed_groups(batch),
        rollouts=np.bincount(batch.group[batch.known], minlength=batch.n_groups),
        counts=counts,
        shuffles=int(shuffles),
        seed=seed,
        level=level,
    )


def shuffled(batch: RolloutBatch, seed: int) -> RolloutBatch:
    """The same rollouts with the known outcomes of each group dealt anew once: what a batch without any effect looks like."""
    from graft_core.insight._chance_again import with_outcomes

    dealt = deal(batch, 1, seed)
    return with_outcomes(batch, dealt.outcome[:, 1], dealt.success[:, 1])


def too_small(batch: RolloutBatch, shuffles: int, level: float) -> BoolArray:
    """Groups in which no p-value can reach the level: few ways to deal their outcomes, or few shuffles. bool[n_groups].

    Only groups with both outcomes count; the others teach nothing, whatever their size.
    """
    least = np.maximum(np.exp(-distinct_deals(batch)), 1.0 / (shuffles + 1))
    return mixed_groups(batch) & (least > level)


def sentence(found: Chance) -> str:
    """The count beside what luck gives, and how many single steps are beyond it, in plain words."""
    steps = f"{found.observed} good step{'' if found.observed == 1 else 's'} found"
    if found.high == 0:
        luck = "none would be found if outcomes were dealt at random"
    else:
        span = f"{found.low} to {found.high}" if found.low < found.high else f"{found.high}"
        luck = f"{span} would be found if outcomes were dealt at random"
    if found.observed > found.high:
        verdict = "more than luck gives"
    elif found.observed < found.low:
        verdict = "fewer than luck gives"
    else:
        verdict = "no more than luck gives"
    if found.observed == 0:
        return f"{steps}; {luck}."
    n = int(found.beyond.sum())
    single = f"{n} of them {'is' if n == 1 else 'are'} beyond luck" if n else "No single one is beyond luck"
    return f"{steps}; {luck}: {verdict}. {single} (at most {100 * found.level:g} % false marks expected)."


def too_small_sentence(found: Chance) -> str:
    """Which tasks are too small for any step to be told from luck; empty where none is."""
    n, mixed = int(found.too_small.sum()), int(found.mixed.sum())
    if not n:
        return ""
    fewest = int(np.ceil(1.0 / found.level)) - 1
    if found.shuffles < fewest:
        return f"With {found.shuffles} shuffles no single step can be told from luck; expected at least {fewest}."
    sizes = found.rollouts[found.too_small]
    low, high = int(sizes.min()), int(sizes.max())
    size = f"{low} to {high}" if low < high else f"{high}"
    if n == mixed and low == high:
        return f"With {size} rollouts per task no single step can be told from luck."
    tasks = f"{n} of {mixed} tasks with both outcomes" if mixed > 1 else "the one task with both outcomes"
    return (
        f"In {tasks} no single step can be told from luck: {size} rollouts, or too few of one outcome among them, can be dealt "
        "in too few ways."
    )
