"""Values of the nodes: Bellman iteration on the graph (method.md sec. 3)."""

from graft_core.values.solve import Values, solve_values
from graft_core.values.sweeps import Sweeps, sweeps

__all__ = ["Sweeps", "Values", "solve_values", "sweeps"]
