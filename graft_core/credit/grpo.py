"""`grpo`: every step of a rollout gets (R_i - mean) / (std + eps) over the group's rollouts.

Source: GRPO, arXiv 2402.03300. Shapes: outcomes float64[R] -> credit float64[n_steps].
Degenerate cases: all outcomes equal (range rule) -> 0; one known rollout -> `singleton`; unknown outcome -> NaN.
`statistics=steps` takes mean and std over the group's steps, as public GiGPO code does.
"""

from __future__ import annotations

from graft_core.credit._episode import EPISODE_OPTIONS, episode
from graft_core.credit.base import Inputs, estimator
from graft_core.rollouts import FloatArray


@estimator(
    "grpo",
    title="GRPO",
    meaning="every step of a rollout gets the rollout's outcome, compared with the other rollouts of the task",
    source="arXiv 2402.03300",
    options=EPISODE_OPTIONS,
    uses="rollouts",
    menu=True,
    rank=1,
)
def grpo(inputs: Inputs) -> FloatArray:
    return episode(inputs)
