"""Chance: how many good steps would be found if outcomes were dealt at random, and which steps are beyond that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from graft_core.constants import SIGN_TOLERANCE
from graft_core.errors import NotComputableError, UsageError
from graft_core.insight._chance_deal import Block, Deal, Progress, deal, distinct_deals
from graft_core.insight.findings import unnormalised
from graft_core.rollouts import BoolArray, FloatArray, IntArray, RolloutBatch
from graft_core.settings import LOOK, Settings

LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class Chance:
    """What dealing outcomes anew says. Step arrays are in path order.

    observed: good steps in failures. mean, low, high: the same count over the shuffles, its mean and its 5th and 95th
    percentile, rounded; counts: all of them. p: float64[n_steps], for each good step the share of shuffles in which the
    same step of a failed rollout gets at least as clear a credit (in standard errors, where these are known); NaN
    elsewhere. q: float64[n_steps], least false-discovery rate of a list with this step. beyond: bool[n_steps], good steps
    with q and p <= level, all or none: none where the deals reach such a list too often themselves.
    unequal: bool[n_groups], groups whose outcomes differ; too_small: those of them whose outcomes can be dealt in so few
    ways that no step of theirs can ever be marked. rollouts: int64[n_groups], rollouts of known outcome.
    """

    observed: int
    mean: float
    low: int
    high: int
    p: FloatArray
    q: FloatArray
    beyond: BoolArray
    too_small: BoolArray
    unequal: BoolArray
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
    from graft_core.insight._chance_decide import Tally, marked

    dealt = deal(batch, int(shuffles), seed)
    found = Tally.empty(dealt.columns)
    for block in _blocks(batch, unnormalised(settings), dealt, progress):
        found.add(batch, block, dealt)
    beyond, q = marked(found, level)
    p = found.per_step(batch, found.p)
    unequal, small = too_small(batch, int(shuffles), level)
    counts = found.count[1:]
    low, high = np.percentile(counts, [5, 95])
    with np.errstate(invalid="ignore"):
        stays = (found.per_step(batch, [beyond.astype(np.float64)]) == 1) & (p <= level)
    return Chance(
        observed=int(found.count[0]),
        mean=float(counts.mean()),
        low=round(float(low)),
        high=round(float(high)),
        p=p,
        q=found.per_step(batch, [q]),
        beyond=stays & ~small[batch.group[batch.step_rollout]],
        too_small=small,
        unequal=unequal,
        rollouts=np.bincount(batch.group[batch.known], minlength=batch.n_groups),
        counts=counts,
        shuffles=int(shuffles),
        seed=seed,
        level=level,
    )


def _blocks(batch: RolloutBatch, settings: Settings, dealt: Deal, progress: Progress | None) -> Iterator[Block]:
    """Credit A under every deal: all deals at once for graph TD, one after the other for the rest."""
    if settings.estimator == "graft_td" and settings.weighting != "max" and settings.solver == "direct":
        from graft_core.insight._chance_td import td_blocks

        yield from td_blocks(batch, settings, dealt)
    else:
        from graft_core.insight._chance_again import block_of, clearness, credit_again

        yield block_of(batch, credit_again(batch, settings, dealt, progress), clearness(batch, settings, dealt))


def shuffled(batch: RolloutBatch, seed: int) -> RolloutBatch:
    """The same rollouts with the known outcomes of each group dealt anew once: what a batch without any effect looks like."""
    from graft_core.insight._chance_again import with_outcomes

    dealt = deal(batch, 1, seed)
    return with_outcomes(batch, dealt.outcome[:, 1], dealt.success[:, 1])


def too_small(batch: RolloutBatch, shuffles: int, level: float) -> tuple[BoolArray, BoolArray]:
    """(groups whose outcomes differ, those of them where no p-value can reach the level). bool[n_groups] each.

    Outcomes that can be dealt in k ways give no p-value below 1/k, s shuffles none below 1/(s + 1). Where all outcomes are
    equal nothing is ever listed, whatever the size.
    """
    ways = distinct_deals(batch)
    unequal: BoolArray = ways > SIGN_TOLERANCE
    least = np.maximum(np.exp(-ways), 1.0 / (shuffles + 1))
    return unequal, unequal & (least > level + SIGN_TOLERANCE)


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
    return f"{steps}; {luck}: {verdict}. {single} at a false-discovery rate of {100 * found.level:g} %."


def too_small_sentence(found: Chance) -> str:
    """Which tasks are too small for any step to be told from luck; empty where none is."""
    n, unequal = int(found.too_small.sum()), int(found.unequal.sum())
    if not n:
        return ""
    fewest = int(np.ceil(1.0 / found.level)) - 1
    if found.shuffles < fewest:
        return f"With {found.shuffles} shuffles no single step can be told from luck; expected at least {fewest}."
    sizes = found.rollouts[found.too_small]
    low, high = int(sizes.min()), int(sizes.max())
    size = f"{low} to {high}" if low < high else f"{high}"
    if n == unequal:
        return f"With {size} rollouts per task no single step can be told from luck."
    return (
        f"In {n} of {unequal} tasks no single step can be told from luck: {size} rollouts, with so few of one outcome, allow "
        "too few ways to deal the outcomes anew."
    )
