"""Propagation degree: how many rollouts' outcomes inform a node (method.md sec. 7; GRAFT, arXiv 2609.28963, Fig. 5-8)."""

from __future__ import annotations

import numpy as np

from graft_core.graph import TrajectoryGraph
from graft_core.rollouts import FloatArray, IntArray


def propagation_graph(graph: TrajectoryGraph) -> IntArray:
    """Per node: distinct rollouts whose last step leaves a node reachable from it, itself included. int64[n_nodes].

    Rollouts of unknown outcome add nothing: neither their ends nor edges that only they took. 0 for sinks.
    """
    key = "propagation_graph"
    if key in graph.memo:
        return np.asarray(graph.memo[key])
    from graft_core.insight._propagation_kernels import reached
    from graft_core.values._kernels import strong_components

    batch = graph.batch
    use = graph.count_known > 0
    nodes, starts = strong_components(graph.indptr, graph.edge_dst, use, ~graph.node_is_sink)
    some = (batch.lengths > 0) & batch.known
    last = np.full(batch.n_rollouts, -1, dtype=np.int64)
    last[some] = graph.src[batch.offsets[1:][some] - 1]
    by_group = np.argsort(batch.group, kind="stable")
    sizes = np.bincount(batch.group, minlength=batch.n_groups)
    slot = np.empty(batch.n_rollouts, dtype=np.int64)
    slot[by_group] = np.arange(batch.n_rollouts) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    words = (-(-sizes // 64))[graph.node_group]
    count: IntArray = reached(nodes, starts, graph.indptr, graph.edge_dst, use, graph.n_nodes, words, last, slot)
    count.setflags(write=False)
    graph.memo[key] = count
    return count


def propagation_visits(graph: TrajectoryGraph) -> IntArray:
    """Per node: distinct rollouts of known outcome that leave it, what a group of equal states shares. int64[n_nodes]."""
    return np.where(graph.node_is_sink, 0, graph.node_rollouts_known)


def per_step(graph: TrajectoryGraph, degree: IntArray) -> FloatArray:
    """The degree of each step's node in batch order; NaN for rollouts of unknown outcome. float64[n_steps]."""
    return graph.batch.to_rows(np.where(graph.known, degree[graph.src], np.nan))
