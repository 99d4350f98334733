"""The Markov chain that a group's values are computed on, and expected passings through it (the adjoint of V)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graft_core.graph import TrajectoryGraph
from graft_core.insight._group import GroupView
from graft_core.rollouts import BoolArray, FloatArray, IntArray
from graft_core.values import Values
from graft_core.values.solve import active_nodes, edge_rewards, edge_weights

DENSE_LIMIT = 120
FACTOR_LIMIT = 2000
"""Largest cycle of states that is factorised sparsely; larger ones are solved by iteration."""


@dataclass(frozen=True, eq=False)
class Chain:
    """V(u) = constant + gamma sum_e weight_e V(dst_e) on a group's own graph.

    weight: float64[E], shrinkage included; active: bool[N]; keep: float64[N], n/(n + c) of the shrinkage.
    """

    graph: TrajectoryGraph
    gamma: float
    weight: FloatArray
    active: BoolArray
    keep: FloatArray

    def unshrunk(self) -> Chain:
        return replace(self, weight=self.weight / self.keep[self.graph.edge_src], keep=np.ones_like(self.keep))

    def passing(self, start: FloatArray) -> FloatArray:
        """Expected discounted passings x = start + gamma x W through the active nodes. float64[K, N] both."""
        places = np.flatnonzero(self.active)
        out = np.zeros_like(start)
        if places.size and start.shape[0]:
            out[:, places] = self._solve(start[:, places], places)
        return out

    def _solve(self, start: FloatArray, places: IntArray) -> FloatArray:
        graph = self.graph
        inner = np.flatnonzero(self.active[graph.edge_dst] & (self.weight > 0))
        place = np.full(graph.n_nodes, -1, dtype=np.int64)
        place[places] = np.arange(places.size)
        into, out_of = place[graph.edge_dst[inner]], place[graph.edge_src[inner]]
        flow = self.gamma * self.weight[inner]
        if places.size <= DENSE_LIMIT:
            matrix = np.eye(places.size)
            np.subtract.at(matrix, (into, out_of), flow)
            return np.asarray(np.linalg.solve(matrix, start.T).T, dtype=np.float64)
        from scipy.sparse import csc_array, eye_array
        from scipy.sparse.linalg import splu

        moves = csc_array((flow, (into, out_of)), shape=(places.size, places.size))
        if self._largest_cycle() <= FACTOR_LIMIT:
            factors = splu((eye_array(places.size, format="csc") - moves).tocsc())
            return np.ascontiguousarray(factors.solve(np.ascontiguousarray(start.T)).T)
        return _iterated(moves.tocsr(), start.T, self.gamma).T

    def _largest_cycle(self) -> int:
        from graft_core.values import _kernels as kernels

        starts = kernels.strong_components(self.graph.indptr, self.graph.edge_dst, self.weight > 0, self.active)[1]
        return int(np.diff(starts).max(initial=0))


def _iterated(moves: Any, start: FloatArray, gamma: float) -> FloatArray:
    """x = start + moves x by repetition; moves' columns sum to gamma at most, so the error is bounded in the 1-norm."""
    x = start
    for _ in range(int(np.log(1e-16) / np.log(gamma)) + 1000):
        following = start + moves @ x
        change = float(np.abs(following - x).sum(axis=0).max())
        x = following
        if change <= 1e-12 * (1.0 - gamma) / gamma:
            break
    return x


def chain(view: GroupView, values: Values) -> Chain:
    """The chain behind a group's values: transition weights of their weighting, shrunk where a prior was used."""
    graph = view.graph
    visits = graph.visits_known.astype(np.float64)
    keep = visits / np.maximum(visits + values.prior, 1.0) if values.prior else np.ones(graph.n_nodes)
    keep = np.where(visits > 0, keep, 1.0)
    if values.weighting == "max":
        weight = _best_edges(graph, values, values.v[view.nodes])
    else:
        weight = edge_weights(graph, values.weighting)
    return Chain(graph, values.gamma, weight * keep[graph.edge_src], active_nodes(graph), keep)


def _best_edges(graph: TrajectoryGraph, values: Values, v: FloatArray) -> FloatArray:
    """1 on the first best known edge of each node, 0 elsewhere. float64[E]."""
    worth = edge_rewards(graph, values.rewards) + values.gamma * v[graph.edge_dst]
    used = np.flatnonzero(graph.count_known > 0)
    order = used[np.lexsort((used, -worth[used], graph.edge_src[used]))]
    first = np.concatenate([[True], np.diff(graph.edge_src[order]) > 0]) if order.size else order.astype(bool)
    weight = np.zeros(graph.n_edges)
    weight[order[first]] = 1.0
    return weight
