"""`graft`: Graph GAE, the step's residual plus later residuals at (gamma lambda)^k, normalised per node.

A_t + sum_{k=1}^{T-1-t} (gamma lambda)^k Abar_k, then (A - mean) / (std + eps) over the steps that leave the node.
Source: GRAFT, arXiv 2609.28963 Eq. 9-11. `reach` settles what Abar_k averages (method.md sec. 4): `path` (the rollout's
own residuals, default), `instances` (Eq. 10 literally, which equals TD with visit counts), `distinct`, `expectation`.
Shapes: float64[n_steps]. Degenerate cases: a node with one step -> A/(|A| + eps), 0 where |A| <= 1e-9; equal credits in
a node (range rule) -> 0; unknown outcome -> NaN.
"""

from __future__ import annotations

from graft_core.credit._td import graph_gae, normalised, per_action
from graft_core.credit.base import Inputs, estimator
from graft_core.options import DDOF, EPS, GAMMA, LAM, NORMALISE, PER, REACH
from graft_core.rollouts import FloatArray


@estimator(
    "graft",
    title="Graph GAE",
    meaning="graph TD blended with what this rollout earned later, put on one scale per moment: for training",
    source="arXiv 2609.28963 Eq. 9-11",
    options=(GAMMA, LAM, REACH, PER, NORMALISE.with_default("mean_std"), EPS, DDOF),
    rank=5,
)
def graft(inputs: Inputs) -> FloatArray:
    return normalised(inputs, per_action(inputs, graph_gae(inputs)))
