"""`rtmc`: how an action did from a node compared with how everything did from there, by Monte Carlo means.

mean G over (u, a) - mean G over u, G_t = gamma^(T-1-t) R (under `dense` the discounted remaining rewards).
Source: RTMC, arXiv 2604.11037. Shapes: float64[n_steps].
Degenerate cases: a node with one step, or with equal returns (range rule) -> 0; unknown outcome -> NaN. On a tree
gamma times this is `graft_td` per action.
"""

from __future__ import annotations

import numpy as np

from graft_core.credit import _segments as seg
from graft_core.credit._returns import returns_to_go
from graft_core.credit.base import Inputs, estimator
from graft_core.options import GAMMA
from graft_core.rollouts import FloatArray


@estimator(
    "rtmc",
    title="RTMC",
    meaning="how tries with this action ended, against how all tries from the same moment ended",
    source="arXiv 2604.11037",
    options=(GAMMA,),
    rank=20,
)
def rtmc(inputs: Inputs) -> FloatArray:
    graph, known = inputs.graph, inputs.known_steps
    returns, node, pair = returns_to_go(inputs)[known], graph.src[known], graph.pair[known]
    of_action = seg.means(returns, pair, graph.n_pairs)[pair]
    of_node = seg.means(returns, node, graph.n_nodes)[node]
    still = seg.flat(returns, node, graph.n_nodes)[node]
    return inputs.spread(np.where(still, 0.0, of_action - of_node))
