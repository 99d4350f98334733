"""`opo`: outcome minus a baseline in which long rollouts weigh more.

R_i - sum_j T_j R_j / sum_j T_j over the group's known rollouts, T = number of steps (the paper: tokens).
Source: OPO, arXiv 2505.23585. Shapes: outcomes float64[R] -> credit float64[n_steps].
Degenerate cases: all outcomes equal (range rule) or one known rollout -> 0; a rollout without steps weighs nothing;
unknown outcome -> NaN.
"""

from __future__ import annotations

import numpy as np

from graft_core.credit import _segments as seg
from graft_core.credit._episode import known_rollouts, per_step
from graft_core.credit.base import Inputs, estimator
from graft_core.rollouts import FloatArray


@estimator(
    "opo",
    title="OPO",
    meaning="the outcome minus the task's mean outcome, in which long rollouts weigh more",
    source="arXiv 2505.23585",
    uses="rollouts",
    rank=13,
)
def opo(inputs: Inputs) -> FloatArray:
    rows, group, outcome = known_rollouts(inputs)
    n_groups = inputs.batch.n_groups
    length = inputs.batch.lengths[rows].astype(np.float64)
    total = np.bincount(group, weights=length, minlength=n_groups)
    weighted = np.bincount(group, weights=length * outcome, minlength=n_groups)
    baseline = np.divide(weighted, total, out=np.zeros(n_groups), where=total > 0)
    still = seg.flat(outcome, group, n_groups)
    return per_step(inputs, rows, np.where(still[group], 0.0, outcome - baseline[group]))
