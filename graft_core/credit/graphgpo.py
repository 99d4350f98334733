"""`graphgpo`: A^E + A^G, the group's outcome credit plus how close to success a step leads, compared within its node.

A^G = 10 omega^d(s') standardised among the known steps leaving the same node; d = fewest hops to success over the steps
that known rollouts took (each success's last step leads to one success node per group; other final states are ordinary
nodes, one of its own where there is no final observation; unreachable = the group's largest finite d + 1).
Source: GraphGPO, arXiv 2605.26684 (omega .1 ALFWorld, .2 WebShop, .8 Sokoban). Shapes: float64[n_steps].
Degenerate cases: no success in the group -> all d equal, A^G = 0; a node with one step, or whose steps lead equally far
(range rule) -> A^G = 0; unknown outcome -> NaN. `invalid_penalty` comes off the invalid step's own 10 omega^d.
"""

from __future__ import annotations

from graft_core.credit import _segments as seg
from graft_core.credit._episode import EPISODE_OPTIONS, episode
from graft_core.credit._hops import hops
from graft_core.credit._penalty import penalised
from graft_core.credit.base import Inputs, estimator
from graft_core.options import INVALID_PENALTY, Option
from graft_core.rollouts import FloatArray

SUCCESS_REWARD = 10.0
SHRINK = Option(
    "omega", 0.8, "how much less a step is worth per hop that remains to success", "worth per hop", low=0.0, high=1.0
)


@estimator(
    "graphgpo",
    title="GraphGPO",
    meaning="GRPO's credit plus how near to success the step leads, compared with other steps from the same moment",
    source="arXiv 2605.26684",
    options=(SHRINK, *EPISODE_OPTIONS, INVALID_PENALTY),
    rank=23,
)
def graphgpo(inputs: Inputs) -> FloatArray:
    graph, known = inputs.graph, inputs.known_steps
    worth = penalised(inputs, SUCCESS_REWARD * inputs["omega"] ** hops(inputs).after(inputs))
    step_part = seg.standardise(worth[known], graph.src[known], graph.n_nodes, inputs["eps"], inputs["ddof"])
    return episode(inputs) + inputs.spread(step_part)
