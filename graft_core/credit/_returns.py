"""Returns to go, as the step-level estimators of method.md sec. 5 define them."""

from __future__ import annotations

import numpy as np

from graft_core.credit.base import Inputs
from graft_core.rollouts import FloatArray
from graft_core.values.solve import require_rewards


def returns_to_go(inputs: Inputs) -> FloatArray:
    """G_t = gamma^(T-1-t) R, under `dense` the discounted remaining step rewards; NaN for unknown outcomes."""
    gamma = inputs["gamma"]
    if inputs.dense:
        from graft_core.credit._kernels import discounted_sums

        require_rewards(inputs.batch)
        total = discounted_sums(inputs.batch.reward, inputs.batch.offsets, gamma)
        return np.where(inputs.known, total, np.nan)
    return gamma ** inputs.batch.remaining.astype(np.float64) * inputs.outcome[inputs.rollout]
