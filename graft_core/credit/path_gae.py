"""`path_gae`: ordinary GAE along the rollout's own path with graph values, not normalised.

sum_k (gamma lambda)^k A_{t+k}. Source: Gated-BEPO's step credit, arXiv 2608.06861; method.md sec. 4 `path`.
Shapes: float64[n_steps]. At lambda 0 it is `graft_td`, at lambda 1 gamma^(T-t) R - V under `split`.
Degenerate cases: as `graft_td`; unknown outcome -> NaN.
"""

from __future__ import annotations

from graft_core.credit._td import path_gae as along_the_path
from graft_core.credit._td import per_action
from graft_core.credit.base import Inputs, estimator
from graft_core.options import GAMMA, LAM, PER
from graft_core.rollouts import FloatArray


@estimator(
    "path_gae",
    title="path GAE",
    meaning="graph TD blended with what this rollout earned later; lambda says how far one distrusts the map",
    source="arXiv 2608.06861",
    options=(GAMMA, LAM, PER),
    menu=True,
    rank=4,
)
def path_gae(inputs: Inputs) -> FloatArray:
    return per_action(inputs, along_the_path(inputs))
