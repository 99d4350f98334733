"""`sas`: GRPO's credit, taken off the steps whose certainty does not fit how the rollout ended.

`grpo`, then 0 on the floor(.3 T) steps of lowest mean token log-prob in successes, of highest in failures; ties to the
earlier step. Source: SAS, arXiv 2604.24003. Needs `logprob`, the step's mean token log-prob. Shapes: float64[n_steps].
Degenerate cases: fewer than four steps -> nothing is taken off; a rollout with a missing log-prob -> NaN (its outcome
still counts for the others); else as `grpo`.
"""

from __future__ import annotations

import numpy as np

from graft_core.credit._episode import EPISODE_OPTIONS, episode
from graft_core.credit._returns import incomplete
from graft_core.credit.base import Inputs, estimator
from graft_core.rollouts import FloatArray


@estimator(
    "sas",
    title="SAS",
    meaning="GRPO's credit, but none for the least certain steps of successes and the most certain ones of failures",
    source="arXiv 2604.24003",
    options=EPISODE_OPTIONS,
    needs=("logprob",),
    uses="rollouts",
    rank=30,
)
def sas(inputs: Inputs) -> FloatArray:
    from graft_core.credit._kernels import lowest_in_rollout

    batch = inputs.batch
    logprob = batch.step_column("logprob")
    failed = batch.success[inputs.rollout] == 0
    taken = lowest_in_rollout(np.where(failed, -logprob, logprob), batch.offsets, 3, 10)
    return np.where(incomplete(inputs, logprob), np.nan, np.where(taken, 0.0, episode(inputs)))
