"""`bepo_gated`: path GAE where the graph has something to compare, outcome credit elsewhere.

`path_gae` where the step's node has two or more distinct successor nodes in the graph in use, else `dr_grpo`.
Source: Gated-BEPO, arXiv 2608.06861; the gate is our reading, the paper's is not public. Shapes: float64[n_steps].
Degenerate cases: as `path_gae` and `dr_grpo`; only steps of known rollouts open the gate; unknown outcome -> NaN.
"""

from __future__ import annotations

import numpy as np

from graft_core.credit.base import Inputs, estimator
from graft_core.credit.dr_grpo import dr_grpo
from graft_core.credit.path_gae import path_gae
from graft_core.options import GAMMA, LAM, PER, SINGLETON
from graft_core.rollouts import BoolArray, FloatArray
from graft_core.states.base import factorise


def branching(inputs: Inputs) -> BoolArray:
    """Whether each node has two or more distinct successor nodes among the steps of known rollouts. bool[N]."""
    graph = inputs.graph
    used = graph.count_known > 0
    width = max(graph.n_nodes, 1)
    distinct = factorise(graph.edge_src[used] * width + graph.edge_dst[used])[1]
    return np.bincount(distinct // width, minlength=graph.n_nodes) > 1


@estimator(
    "bepo_gated",
    title="Gated BEPO",
    meaning="path GAE where the same moment led to different ones, the outcome minus the task's mean elsewhere",
    source="arXiv 2608.06861",
    options=(GAMMA, LAM, PER, SINGLETON),
    rank=25,
)
def bepo_gated(inputs: Inputs) -> FloatArray:
    return np.where(branching(inputs)[inputs.graph.src], path_gae(inputs), dr_grpo(inputs))
