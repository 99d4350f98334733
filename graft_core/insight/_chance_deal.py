"""Outcomes dealt anew, and what an estimator makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from graft_core.rollouts import BoolArray, FloatArray, IntArray, RolloutBatch
from graft_core.states.base import factorise

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Deal:
    """Outcomes as observed (column 0) and dealt anew within each group (S more columns), one row per rollout.

    outcome, success: float64[R, S + 1], NaN = unknown; failed: bool[R, S + 1], known and not a success.
    """

    outcome: FloatArray
    success: FloatArray
    failed: BoolArray

    @property
    def columns(self) -> int:
        return int(self.outcome.shape[1])


@dataclass(frozen=True, eq=False)
class Block:
    """Credit of classes of steps: steps of one class have one and the same credit under every deal.

    credit: float64[C, S + 1]. clear: the step's graph TD in standard errors, same shape; None where there is no graph.
    steps: path positions sorted by class; those of class c are steps[starts[c]:starts[c + 1]]. is_td: credit is graph TD.
    """

    credit: FloatArray
    clear: FloatArray | None
    steps: IntArray
    starts: IntArray
    is_td: bool = False

    def of_steps(self, of_class: FloatArray) -> FloatArray:
        """One row per entry of `steps` from one row per class."""
        return np.repeat(of_class, np.diff(self.starts), axis=0)


def deal(batch: RolloutBatch, shuffles: int, seed: int) -> Deal:
    """Deal (outcome, success) pairs anew among the rollouts of known outcome of each group, `shuffles` times.

    A rollout without steps takes part: its outcome counts in every rollout-level statistic.
    """
    rows = np.flatnonzero(batch.known)
    rows = rows[np.argsort(batch.group[rows], kind="stable")]
    source = np.repeat(np.arange(batch.n_rollouts)[:, None], shuffles + 1, axis=1)
    keys = np.random.default_rng(seed).random((rows.size, shuffles)) + batch.group[rows][:, None]
    source[rows[:, None], np.arange(1, shuffles + 1)] = rows[np.argsort(keys, axis=0, kind="stable")]
    success = batch.success[source]
    return Deal(batch.outcome[source], success, batch.known[:, None] & (success == 0))


def distinct_deals(batch: RolloutBatch) -> FloatArray:
    """In how many different ways the known outcomes of each group can be dealt, as a natural logarithm. float64[n_groups].

    n! / prod m_j! with m_j the number of rollouts that share the j-th (outcome, success).
    """
    from scipy.special import gammaln

    rows = np.flatnonzero(batch.known)
    kinds = factorise(factorise(batch.outcome[rows].view(np.int64))[0] * 2 + (batch.success[rows] == 1))[0]
    pairs, size = np.unique(batch.group[rows] * (rows.size + 1) + kinds, return_counts=True)
    n = np.bincount(batch.group[rows], minlength=batch.n_groups)
    taken = np.bincount(pairs // (rows.size + 1), weights=gammaln(size + 1.0), minlength=batch.n_groups)
    ways: FloatArray = gammaln(n + 1.0) - taken
    return ways
