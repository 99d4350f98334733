"""Values of the nodes: Bellman iteration on the graph (method.md sec. 3)."""

from graft_core.values.solve import Values, solve_values

__all__ = ["Values", "solve_values"]
