"""Returns to go, as the step-level estimators of method.md sec. 5 define them."""

from __future__ import annotations

import numpy as np

from graft_core.credit.base import Inputs
from graft_core.rollouts import BoolArray, FloatArray
from graft_core.values.solve import require_rewards


def remaining_rewards(inputs: Inputs, discount: float) -> FloatArray:
    """sum_k discount^k r_{t+k} to the end of the rollout; NaN for unknown outcomes. float64[n_steps]."""
    from graft_core.credit._kernels import discounted_sums

    require_rewards(inputs.batch)
    total = discounted_sums(inputs.batch.reward, inputs.batch.offsets, discount)
    return np.where(inputs.known, total, np.nan)


def returns_to_go(inputs: Inputs) -> FloatArray:
    """G_t = gamma^(T-1-t) R, under `dense` the discounted remaining step rewards; NaN for unknown outcomes."""
    gamma = inputs["gamma"]
    if inputs.dense:
        return remaining_rewards(inputs, gamma)
    powers = gamma ** np.arange(int(inputs.batch.lengths.max(initial=0)) + 1, dtype=np.float64)
    returns: FloatArray = powers[inputs.batch.remaining]
    returns *= inputs.outcome[inputs.rollout]
    return returns


def incomplete(inputs: Inputs, column: FloatArray) -> BoolArray:
    """Whether the step's rollout lacks the column on any of its steps. bool[n_steps]."""
    missing = np.bincount(inputs.rollout, weights=np.isnan(column), minlength=inputs.batch.n_rollouts) > 0
    return missing[inputs.rollout]
