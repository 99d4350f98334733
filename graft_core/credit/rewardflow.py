"""`rewardflow`: A^E + how much closer to success the step led, compared within its node.

V(s') - V(s) (no gamma in the difference) standardised among the known steps leaving the same node; V by max backup on
the graph of `graphgpo`: V(u) = gamma max V(v), 1 on success, 0 on other ends, that is gamma^(fewest hops to success), 0
where there is no way. Source: RewardFlow, arXiv 2603.18859. Shapes: float64[n_steps].
Degenerate cases: no success in the group -> V = 0, step part 0; a node with one step, or with equal differences (range
rule) -> step part 0; unknown outcome -> NaN.
"""

from __future__ import annotations

import numpy as np

from graft_core.credit import _segments as seg
from graft_core.credit._episode import EPISODE_OPTIONS, episode
from graft_core.credit._hops import hops
from graft_core.credit.base import Inputs, estimator
from graft_core.options import GAMMA
from graft_core.rollouts import FloatArray, IntArray


@estimator(
    "rewardflow",
    title="RewardFlow",
    meaning="GRPO's credit plus how much nearer to success the step led, compared with other steps from the same moment",
    source="arXiv 2603.18859",
    options=(GAMMA, *EPISODE_OPTIONS),
    rank=24,
)
def rewardflow(inputs: Inputs) -> FloatArray:
    graph, known, gamma = inputs.graph, inputs.known_steps, inputs["gamma"]

    def value(distance: IntArray) -> FloatArray:
        return np.where(distance < 0, 0.0, gamma ** np.maximum(distance, 0).astype(np.float64))

    found = hops(inputs)
    gain = value(found.ahead) - value(found.here)
    step_part = seg.standardise(gain[known], graph.src[known], graph.n_nodes, inputs["eps"], inputs["ddof"])
    return episode(inputs) + inputs.spread(step_part)
