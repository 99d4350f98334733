"""Credit estimators: one file each, one float per step (method.md sec. 4 and 5)."""

from graft_core.credit.base import Estimator, Inputs, estimator
from graft_core.credit.estimate import estimate, estimators, unavailable

__all__ = ["Estimator", "Inputs", "estimate", "estimator", "estimators", "unavailable"]
