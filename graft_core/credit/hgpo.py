"""`hgpo`: returns compared among steps that share ever longer histories, long ones weighing more.

Level k = 1..K+1 compares the known steps whose last k nodes, the present one included, are the same (a step joins level k
only if t + 1 >= k): a_k = (G - mean) / (std + eps) in groups of two or more, ddof 0. Credit = sum w_k a_k / (sum w_k +
eps) over the levels with |a_k| > 1e-7, w_k = (k + 1)^alpha. G_t = gamma^(T-1-t) R (under `dense` the remaining rewards).
Source: HGPO, arXiv 2602.22817. Shapes: float64[n_steps].
Degenerate cases: alone on every level, or equal returns (range rule) -> 0; unknown outcome -> NaN.
"""

from __future__ import annotations

import numpy as np

from graft_core.credit import _segments as seg
from graft_core.credit._penalty import penalised
from graft_core.credit._returns import returns_to_go
from graft_core.credit.base import Inputs, estimator
from graft_core.options import DDOF, EPS, GAMMA, INVALID_PENALTY, Option
from graft_core.rollouts import FloatArray
from graft_core.states.base import sorted_pairs

COUNTS = 1e-7
"""An item smaller than this is left out together with its weight."""

K = Option("k", 2, "how many earlier moments the longest history holds", "longest history", "int", low=0, high=50)
ALPHA = Option("alpha", 1.0, "long histories weigh (k + 1)^alpha", "weight of long histories", low=0.0, high=20.0)


@estimator(
    "hgpo",
    title="HGPO",
    meaning="how this try ended compared with tries that share the last moments, longer histories weighing more",
    source="arXiv 2602.22817",
    options=(GAMMA.with_default(0.95), K, ALPHA, EPS, DDOF.with_default(0), INVALID_PENALTY),
    rank=22,
)
def hgpo(inputs: Inputs) -> FloatArray:
    from graft_core.credit._kernels import add_items, one_further_back

    batch, node = inputs.batch, inputs.graph.src
    returns = penalised(inputs, returns_to_go(inputs))
    at = np.flatnonzero(inputs.known)
    history, n_codes = node[at], inputs.graph.n_nodes
    total, weights = np.zeros(batch.n_steps), np.zeros(batch.n_steps)
    for level in range(1, inputs["k"] + 2):
        if level > 1:
            at, history, further = one_further_back(at, history, batch.rank, node, level)
            history, lefts, _ = sorted_pairs(history, further, n_codes, inputs.graph.n_nodes)
            n_codes = lefts.size
        if not at.size:
            break
        item = seg.standardise(returns[at], history, n_codes, inputs["eps"], inputs["ddof"])
        add_items(at, item, COUNTS, (level + 1.0) ** inputs["alpha"], total, weights)
    credit = np.divide(total, weights + inputs["eps"], out=total, where=weights > 0)
    return np.where(inputs.known, credit, np.nan)
