"""Chance: how many good steps would be found if outcomes were dealt at random, and which steps are beyond that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graft_core.errors import NotComputableError, UsageError
from graft_core.insight._chance_deal import Progress, deal, distinct_deals
from graft_core.insight.findings import failed_steps, unnormalised
from graft_core.insight.measures import mixed_groups
from graft_core.rollouts import BoolArray, FloatArray, RolloutBatch
from graft_core.settings import LOOK, Settings

LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class Chance:
    """What dealing outcomes anew says. Step arrays are in path order.

    observed: good steps in failures. mean, low, high: the same count over the shuffles, its mean and its 5th and
    95th percentile, rounded.
    p: float64[n_steps], for each good step the share of shuffles in which a step like it, in a failed rollout, gets at
    least its credit; NaN elsewhere. q: float64[n_steps], the least false-discovery rate of a list that holds the step.
    beyond: bool[n_steps], good steps that stay on the list at `level`. too_small: bool[n_groups], groups whose outcomes can
    be dealt in so few ways that no single step can ever be marked.
    """

    observed: int
    mean: float
    low: int
    high: int
    p: FloatArray
    q: FloatArray
    beyond: BoolArray
    too_small: BoolArray
    shuffles: int
    seed: int
    level: float = LEVEL
    counts: tuple[int, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without the step arrays."""
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
    if plain.estimator == "graft_td" and plain.weighting != "max":
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
        shuffles=int(shuffles),
        seed=seed,
        level=level,
        counts=tuple(counts.tolist()),
    )


def too_small(batch: RolloutBatch, shuffles: int, level: float) -> BoolArray:
    """Groups in which no p-value can reach the level: few ways to deal their outcomes, or few shuffles. bool[n_groups].

    Only groups with both outcomes count; the others teach nothing, whatever their size.
    """
    least = np.maximum(np.exp(-distinct_deals(batch)), 1.0 / (shuffles + 1))
    return mixed_groups(batch) & (least > level)
