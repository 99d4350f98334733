"""`reinforce_pp_baseline`: outcome minus the group's mean, then one scale for the whole batch.

x_i = R_i - group mean; credit = (x_i - mean(x)) / (std(x) + eps) over the batch's known rollouts that stand in groups of
two or more. Source: REINFORCE++ with baseline, arXiv 2501.03262. Shapes: outcomes float64[R] -> credit float64[n_steps].
Degenerate cases: one known rollout in the group -> 0; a group of equal outcomes (range rule) has x = 0; all x equal ->
0; unknown outcome -> NaN. The only estimator here whose credit depends on which other groups are in the batch.
"""

from __future__ import annotations

import numpy as np

from graft_core.credit import _segments as seg
from graft_core.credit._episode import known_rollouts, per_step
from graft_core.credit.base import Inputs, estimator
from graft_core.options import DDOF, EPS
from graft_core.rollouts import FloatArray


@estimator(
    "reinforce_pp_baseline",
    title="REINFORCE++ baseline",
    meaning="the outcome minus the task's mean outcome, put on one scale for the whole batch",
    source="arXiv 2501.03262",
    options=(EPS, DDOF),
    uses="rollouts",
    rank=12,
)
def reinforce_pp_baseline(inputs: Inputs) -> FloatArray:
    rows, group, outcome = known_rollouts(inputs)
    n_groups = inputs.batch.n_groups
    x = seg.centre(outcome, group, n_groups)
    compared = seg.counts(group, n_groups)[group] > 1
    credit = np.zeros(rows.size)
    batch = np.zeros(int(compared.sum()), dtype=np.int64)
    credit[compared] = seg.standardise(x[compared], batch, 1, inputs["eps"], inputs["ddof"])
    return per_step(inputs, rows, credit)
