"""`grpo_step_index`: outcomes compared among the steps with the same number, whatever state they stand in.

(R_i - mean) / (std + eps) among all known steps of the group with the same rank t; under `dense` the rewards that remain
(not discounted) stand for R_i. Source: GRPO, arXiv 2402.03300, per step index: GRAFT's example of bias (arXiv
2609.28963 sec. 2), since it compares steps that have nothing in common. Shapes: float64[n_steps].
Degenerate cases: a rank that one rollout reaches, or equal outcomes there (range rule) -> 0; unknown outcome -> NaN.
"""

from __future__ import annotations

from graft_core.credit import _segments as seg
from graft_core.credit._returns import remaining_rewards
from graft_core.credit.base import Inputs, estimator
from graft_core.options import DDOF, EPS
from graft_core.rollouts import FloatArray


@estimator(
    "grpo_step_index",
    title="GRPO per step number",
    meaning="the outcome compared with those of the task's steps of the same number, wherever they stand",
    source="arXiv 2402.03300",
    options=(EPS, DDOF),
    uses="rollouts",
    rank=15,
)
def grpo_step_index(inputs: Inputs) -> FloatArray:
    batch, known = inputs.batch, inputs.known_steps
    earned = remaining_rewards(inputs, 1.0) if inputs.dense else inputs.outcome[inputs.rollout]
    width = int(batch.lengths.max(initial=0)) + 1
    peers = (batch.group[inputs.rollout] * width + batch.rank)[known]
    return inputs.spread(seg.standardise(earned[known], peers, batch.n_groups * width, inputs["eps"], inputs["ddof"]))
