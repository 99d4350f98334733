"""`dr_grpo`: every step gets R_i - mean of the group's outcomes, not divided by a standard deviation.

Source: Dr. GRPO, arXiv 2503.20783. Shapes: outcomes float64[R] -> credit float64[n_steps].
Degenerate cases: all outcomes equal (range rule) -> 0; one known rollout -> `singleton`; unknown outcome -> NaN.
"""

from __future__ import annotations

from graft_core.credit import _segments as seg
from graft_core.credit._episode import known_rollouts, lone, per_step
from graft_core.credit.base import Inputs, estimator
from graft_core.options import SINGLETON
from graft_core.rollouts import FloatArray


@estimator(
    "dr_grpo",
    title="Dr. GRPO",
    meaning="every step of a rollout gets the outcome minus the task's mean outcome",
    source="arXiv 2503.20783",
    options=(SINGLETON,),
    uses="rollouts",
    rank=10,
)
def dr_grpo(inputs: Inputs) -> FloatArray:
    rows, group, outcome = known_rollouts(inputs)
    centred = seg.centre(outcome, group, inputs.batch.n_groups)
    return per_step(inputs, rows, lone(inputs, group, outcome, centred))
