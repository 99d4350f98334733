"""`rloo`: every step gets R_i minus the mean outcome of the group's other rollouts.

Source: RLOO, arXiv 2402.14740: R_i - mean of the others = n / (n - 1) (R_i - mean).
Shapes: outcomes float64[R] -> credit float64[n_steps].
Degenerate cases: all outcomes equal (range rule) -> 0; one known rollout -> `singleton`; unknown outcome -> NaN.
"""

from __future__ import annotations

import numpy as np

from graft_core.credit import _segments as seg
from graft_core.credit._episode import known_rollouts, lone, per_step
from graft_core.credit.base import Inputs, estimator
from graft_core.options import SINGLETON
from graft_core.rollouts import FloatArray


@estimator(
    "rloo",
    title="RLOO",
    meaning="every step of a rollout gets the outcome minus the mean outcome of the task's other rollouts",
    source="arXiv 2402.14740",
    options=(SINGLETON,),
    uses="rollouts",
    rank=11,
)
def rloo(inputs: Inputs) -> FloatArray:
    rows, group, outcome = known_rollouts(inputs)
    n = seg.counts(group, inputs.batch.n_groups)[group]
    centred = seg.centre(outcome, group, inputs.batch.n_groups) * n / np.maximum(n - 1, 1)
    return per_step(inputs, rows, lone(inputs, group, outcome, centred))
