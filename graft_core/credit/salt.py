"""`salt`: GRPO's credit averaged over identical transitions.

mean of `grpo` over all known steps with the same (u, a, v), v with `split` sinks whatever the graph in use.
Source: SALT, arXiv 2510.20022. Shapes: float64[n_steps].
Degenerate cases: a transition taken once keeps GRPO's credit; equal outcomes -> 0; unknown outcome -> NaN.
"""

from __future__ import annotations

from graft_core.credit import _segments as seg
from graft_core.credit._episode import EPISODE_OPTIONS, episode
from graft_core.credit.base import Inputs, estimator
from graft_core.rollouts import FloatArray


@estimator(
    "salt",
    title="SALT",
    meaning="GRPO's credit, averaged over all rollouts that took the same step",
    source="arXiv 2510.20022",
    options=EPISODE_OPTIONS,
    rank=21,
)
def salt(inputs: Inputs) -> FloatArray:
    known, graph = inputs.known_steps, inputs.split_graph
    mean = seg.means(episode(inputs)[known], graph.edge[known], graph.n_edges)
    return inputs.spread(mean[graph.edge[known]])
