"""`gae_critic`: ordinary GAE over values that the trainer's own critic recorded.

delta_t = r_t + gamma V_{t+1} - V_t, credit = sum_k (gamma lambda)^k delta_{t+k}; r_t = the outcome on the last step and 0
before (under `dense` the step rewards). Beyond the end V is 0 if the rollout terminated, its `final_value` if it was
truncated, else 0 with a warning. Source: GAE, arXiv 1506.02438. Needs `value`. Shapes: float64[n_steps].
Degenerate cases: a rollout with a missing value -> NaN; unknown outcome -> NaN. Groups play no part.
"""

from __future__ import annotations

import warnings

import numpy as np

from graft_core.credit._returns import incomplete
from graft_core.credit.base import Inputs, estimator
from graft_core.options import GAMMA, LAM
from graft_core.rollouts import FloatArray
from graft_core.values.system import DataWarning, require_rewards


def beyond_the_end(inputs: Inputs) -> FloatArray:
    """V after the last step of each rollout row. float64[R]."""
    batch = inputs.batch
    final = batch.rollouts.column("final_value").to_numpy().astype(np.float64)
    cut = batch.truncated & ~batch.terminated
    unsaid = ~batch.terminated & ~(cut & ~np.isnan(final)) & (batch.lengths > 0) & batch.known
    if unsaid.any():
        warnings.warn(
            f"gae_critic: {int(unsaid.sum())} of {batch.n_rollouts} rollouts say neither that they terminated nor what "
            "value they were cut off at (truncated with final_value); 0 is taken",
            DataWarning,
            stacklevel=2,
        )
    return np.where(cut & ~np.isnan(final), final, 0.0)


@estimator(
    "gae_critic",
    title="GAE with a critic",
    meaning="the trainer's own value estimates, blended with what the rollout earned later",
    source="arXiv 1506.02438",
    options=(GAMMA, LAM),
    needs=("value",),
    uses="columns",
    rank=32,
)
def gae_critic(inputs: Inputs) -> FloatArray:
    from graft_core.credit._kernels import discounted_sums

    batch, gamma = inputs.batch, inputs["gamma"]
    value = batch.step_column("value")
    rows = np.flatnonzero(batch.lengths > 0)
    last = batch.offsets[1:][rows] - 1
    ahead = np.empty_like(value)
    ahead[:-1] = value[1:]
    ahead[last] = beyond_the_end(inputs)[rows]
    if inputs.dense:
        require_rewards(batch)
        reward = batch.reward
    else:
        reward = np.zeros(batch.n_steps)
        reward[last] = batch.outcome[rows]
    credit = discounted_sums(reward + gamma * ahead - value, batch.offsets, gamma * inputs["lam"])
    return np.where(incomplete(inputs, value), np.nan, credit)
