"""`gigpo`: A^E + omega A^S, the group's outcome credit plus a comparison of returns inside each node.

A^E = `grpo`; A^S = (G_t - mean) / (std + eps) among all steps of the group in the same node, G_t = gamma^(T-1-t) R
(under `dense` the remaining rewards). Source: GiGPO, arXiv 2505.10978. Shapes: float64[n_steps].
Degenerate cases: a node with one step, or with equal returns (range rule) -> A^S = 0; one known rollout -> `singleton`
for A^E; unknown outcome -> NaN. The public program takes mean and std over steps: `statistics=steps`.
`invalid_penalty` comes off an invalid step's own G_t, and over steps off its copy of R.
"""

from __future__ import annotations

from graft_core.credit import _segments as seg
from graft_core.credit._episode import EPISODE_OPTIONS, episode
from graft_core.credit._penalty import penalised
from graft_core.credit._returns import returns_to_go
from graft_core.credit.base import Inputs, estimator
from graft_core.options import GAMMA, INVALID_PENALTY, OMEGA
from graft_core.rollouts import FloatArray


@estimator(
    "gigpo",
    title="GiGPO",
    meaning="GRPO's credit plus how this try ended compared with other tries from the same moment",
    source="arXiv 2505.10978",
    options=(GAMMA.with_default(0.95), OMEGA, *EPISODE_OPTIONS, INVALID_PENALTY),
    menu=True,
    rank=2,
)
def gigpo(inputs: Inputs) -> FloatArray:
    known, node = inputs.known_steps, inputs.graph.src
    returns = penalised(inputs, returns_to_go(inputs))
    step_part = seg.standardise(returns[known], node[known], inputs.graph.n_nodes, inputs["eps"], inputs["ddof"])
    step_part *= inputs["omega"]
    return episode(inputs) + inputs.spread(step_part)
