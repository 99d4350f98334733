"""Fewest hops to a set of nodes, walking edges backwards."""

from __future__ import annotations

from graft_core.rollouts import BoolArray, IntArray


def hops_to(src: IntArray, dst: IntArray, use: BoolArray, goal: BoolArray) -> IntArray:
    """Fewest used edges from each node to a node of `goal` (0 there), -1 where there is no way. int64[goal.size]."""
    from graft_core.values._kernels import backward_hops

    found: IntArray = backward_hops(src, dst, use, goal)
    return found
