"""Which good steps are beyond luck: a false-discovery rate for the list, estimated from the deals themselves.

Every class of steps that is listed (credit > 1e-9, taken by a failed rollout) has a score under every deal: how far its
credit lies from what the deals make of it, or how clear its graph TD is, whichever is less. With
N_s(x) = listed classes of deal s that score x or more, N_0 of the observed outcomes and the mean over all deals:

    q(x) = pi0 * mean_s N_s(x) / N_0(x)        a class is marked where the least q(y), y <= its score, is <= level

as in Tusher et al. (2001, PNAS 98:5116) and Storey and Tibshirani (2003, PNAS 100:9440). pi0 is the share of classes
without any effect, from those whose score is near 0. That alone can err often when nothing is there at all, so a gate
stands before it: the best mean N / N_0 must be among the best `level` of what the deals themselves reach. If outcomes do
not depend on the paths, the observed ones are a deal like any other, and the list is empty with chance 1 - level or more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from graft_core.constants import SIGN_TOLERANCE
from graft_core.insight._chance_deal import Block, Deal
from graft_core.insight.findings import failed_steps
from graft_core.rollouts import BoolArray, FloatArray, IntArray, RolloutBatch

LEAST_SCORE = 1.0  # one standard error is never beyond luck
NEAR_ZERO = 0.5  # standard errors
LEAST_NULL = 0.25  # pi0 is not believed below this


@dataclass(eq=False)
class Tally:
    """What is kept of all blocks: counts per deal, high scores of all deals, and the observed ones with their steps."""

    count: IntArray
    near: IntArray
    columns: list[IntArray] = field(default_factory=list)
    scores: list[FloatArray] = field(default_factory=list)
    observed: list[FloatArray] = field(default_factory=list)
    p: list[FloatArray] = field(default_factory=list)
    sizes: list[IntArray] = field(default_factory=list)
    steps: list[IntArray] = field(default_factory=list)

    @classmethod
    def empty(cls, columns: int) -> Tally:
        return cls(np.zeros(columns, dtype=np.int64), np.zeros(columns, dtype=np.int64))

    def add(self, batch: RolloutBatch, block: Block, dealt: Deal) -> None:
        """Add one block's counts, scores and p-values."""
        from graft_core.insight import _chance_kernels as kernels

        credit = block.credit
        taken = np.empty(credit.shape, dtype=bool)
        rollout = batch.step_rollout[block.steps]
        kernels.tally(credit, block.starts, rollout, dealt.failed, SIGN_TOLERANCE, self.count, taken)
        score, near = scores(block)
        self.near += near
        listed = taken & (credit > SIGN_TOLERANCE)
        row, column = np.nonzero(listed & (score > LEAST_SCORE))
        self.columns.append(column)
        self.scores.append(score[row, column])
        self.observed.append(np.where(listed[:, 0], score[:, 0], np.nan))
        as_good = (taken & (score >= score[:, :1] - SIGN_TOLERANCE))[:, 1:].sum(axis=1)
        self.p.append((1.0 + as_good) / (1.0 + taken[:, 1:].sum(axis=1)))
        self.sizes.append(np.diff(block.starts))
        self.steps.append(block.steps)

    def per_step(self, batch: RolloutBatch, of_class: list[FloatArray]) -> FloatArray:
        """A number of each class on its listed steps, NaN on all other steps. float64[n_steps], path order."""
        found = np.full(batch.n_steps, np.nan)
        if not self.steps:
            return found
        steps = np.concatenate(self.steps)
        listed = np.where(np.isnan(np.concatenate(self.observed)), np.nan, np.concatenate(of_class))
        found[steps] = np.repeat(listed, np.concatenate(self.sizes))
        return np.where(failed_steps(batch), found, np.nan)


def scores(block: Block) -> tuple[FloatArray, IntArray]:
    """(score of each class under each deal, how many classes are near 0 under each deal).

    The score says how far the credit lies from what the deals make of it (in their standard deviations) and how clear
    the step's graph TD is (in standard errors): the smaller of the two. Graph TD itself is compared with the deals in
    standard errors. Classes that no deal moves score 0.
    """
    x = block.credit if block.clear is None or not block.is_td else block.clear
    spread = x.std(axis=1, keepdims=True)
    moved = (spread > SIGN_TOLERANCE) & (np.ptp(block.credit, axis=1, keepdims=True) > SIGN_TOLERANCE)
    score = np.divide(x - x.mean(axis=1, keepdims=True), spread, out=np.zeros_like(x), where=moved)
    if block.clear is not None:
        score = np.where(moved, np.minimum(score, block.clear), 0.0)
    near = ((np.abs(score) <= NEAR_ZERO) & moved).sum(axis=0)
    return score, near


def marked(found: Tally, level: float) -> tuple[BoolArray, FloatArray]:
    """(whether each class is beyond luck at the level, its q-value, NaN where not listed). Order of the blocks."""
    observed = np.concatenate([*found.observed, np.zeros(0)])
    q = np.full(observed.size, np.nan)
    q[~np.isnan(observed)] = 1.0
    column = np.concatenate([*found.columns, np.zeros(0, dtype=np.int64)])
    score = np.concatenate([*found.scores, np.zeros(0)])
    if not (column == 0).any():
        return np.zeros(observed.size, dtype=bool), q
    n = found.count.size
    order = np.lexsort((-score, column))
    column, score = column[order], score[order]
    pool = np.sort(score)
    expected = (pool.size - np.searchsorted(pool, score - SIGN_TOLERANCE)) / n
    first = np.searchsorted(column, np.arange(n))
    ratio = expected / (np.arange(column.size) - first[column] + 1)
    best = np.full(n, np.inf)
    np.minimum.at(best, column, ratio)
    own = column == 0
    stepped = np.minimum.accumulate(ratio[own][::-1])[::-1]
    null = min(1.0, max(LEAST_NULL, (found.near[0] + 1.0) / max(found.near.mean(), 1.0)))
    listed = np.flatnonzero(observed > LEAST_SCORE)
    q[listed[np.argsort(-observed[listed], kind="stable")]] = np.minimum(1.0, null * stepped)
    gate = float(np.mean(best <= best[0] + SIGN_TOLERANCE)) <= level
    with np.errstate(invalid="ignore"):
        return gate & (q <= level), q
