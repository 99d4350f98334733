"""Fewest hops to success, on the graph that `graphgpo` and `rewardflow` describe (method.md sec. 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graft_core.credit.base import Inputs
from graft_core.rollouts import FloatArray, IntArray
from graft_core.values._hops import hops_to


@dataclass(frozen=True)
class Hops:
    """Fewest hops to success from where each step stands and from where it leads, -1 = cannot be reached.

    here, ahead: int64[n_steps]. farthest: int64[n_groups], the largest finite distance of the group.
    """

    here: IntArray
    ahead: IntArray
    farthest: IntArray

    def after(self, inputs: Inputs) -> FloatArray:
        """d(s') of each step; unreachable = the group's largest finite distance + 1. float64[n_steps]."""
        beyond = self.farthest[inputs.batch.group[inputs.rollout]] + 1
        return np.where(self.ahead < 0, beyond, self.ahead).astype(np.float64)


def hops(inputs: Inputs) -> Hops:
    """Distances over the steps of known rollouts.

    Each success's last step leads to the group's success node. Other final states are ordinary nodes; one that no step
    leaves, or without a final observation, leads nowhere.
    """
    batch, graph = inputs.batch, inputs.graph
    n = graph.n_ordinary
    to = graph.dst.copy()
    rows = np.flatnonzero(batch.lengths > 0)
    last = batch.offsets[1:][rows] - 1
    succeeded = batch.success[rows] == 1
    to[last] = np.where(succeeded, n + batch.group[rows], graph.final_node[rows])
    goal = np.arange(n + batch.n_groups) >= n
    use = inputs.known & (to >= 0)
    distance = hops_to(graph.src, np.where(use, to, 0), use, goal)
    group = np.concatenate([graph.node_group[:n], np.arange(batch.n_groups)])
    farthest = np.zeros(batch.n_groups, dtype=np.int64)
    np.maximum.at(farthest, group, distance)
    ahead = np.where(to >= 0, distance[np.maximum(to, 0)], -1)
    return Hops(distance[graph.src], ahead, farthest)
