"""`maxrl`: success compared with the group's success rate, in units of that rate.

(s_i - p) / p, s = success (1 or 0), p = the group's success rate over known rollouts.
Source: MaxRL, arXiv 2602.02710. Shapes: success bool[R] -> credit float64[n_steps].
Degenerate cases: no success (p = 0) -> 0; all succeed -> 0; unknown outcome -> NaN. Success is the file's flag, else
outcome >= the batch's success threshold; other outcomes do not count here.
"""

from __future__ import annotations

import numpy as np

from graft_core.credit import _segments as seg
from graft_core.credit._episode import known_rollouts, per_step
from graft_core.credit.base import Inputs, estimator
from graft_core.rollouts import FloatArray


@estimator(
    "maxrl",
    title="MaxRL",
    meaning="success against the task's success rate: rare successes count most",
    source="arXiv 2602.02710",
    uses="rollouts",
    rank=14,
)
def maxrl(inputs: Inputs) -> FloatArray:
    rows, group, _ = known_rollouts(inputs)
    success = inputs.batch.success[rows]
    rate = seg.means(success, group, inputs.batch.n_groups)[group]
    credit = np.divide(success - rate, rate, out=np.zeros(rows.size), where=rate > 0)
    return per_step(inputs, rows, credit)
