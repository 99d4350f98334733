"""`graft_td`: how much each step changed the value of where the rollout stands, not normalised.

A_t = [r_t +] gamma V(phi(s_{t+1})) - V(phi(s_t)). Source: GRAFT, arXiv 2609.28963 Eq. 8. Shapes: float64[n_steps].
Degenerate cases: a node seen once has credit 0 up to gamma; all outcomes 0 -> 0; unknown outcome -> NaN; a
self-loop gets (gamma - 1) V. `per=action` averages over all instances of (u, a): Qhat - Vhat.
"""

from __future__ import annotations

from graft_core.credit._td import per_action, residuals
from graft_core.credit.base import Inputs, estimator
from graft_core.options import GAMMA, PER
from graft_core.rollouts import FloatArray


@estimator(
    "graft_td",
    title="graph TD",
    meaning="how much the step changed the chance of success, read off the merged graph",
    source="arXiv 2609.28963 Eq. 8",
    options=(GAMMA, PER),
    menu=True,
    rank=3,
)
def graft_td(inputs: Inputs) -> FloatArray:
    return per_action(inputs, residuals(inputs))
