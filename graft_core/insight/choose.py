"""Which nodes of a large group are drawn: the most visited ones, with a path to each of them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from graft_core.graph import TrajectoryGraph

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Choice:
    """The drawn part of one group, in the graph's own node and edge numbers, ascending.

    `starts` are all first nodes of the group with the rollouts that begin there, drawn or not; `edge_rollouts`
    counts distinct rollouts per drawn edge, `hidden_edges` the outgoing edges of each drawn node that are not drawn.
    """

    nodes: IntArray
    edges: IntArray
    starts: IntArray
    start_rollouts: IntArray
    edge_rollouts: IntArray
    hidden_edges: IntArray
    nodes_total: int
    edges_total: int
    steps_total: int


def choose_nodes(graph: TrajectoryGraph, group: int, max_nodes: int) -> Choice:
    """At most `max_nodes` nodes of a group and the edges between them.

    Starts come first, then endings, then the other nodes, each list by visits (ties: lower number). A node is
    taken together with a shortest path from a start, or not at all where the path no longer fits; so what is
    drawn always hangs together. Raises ValueError if `max_nodes` is not positive.
    """
    if max_nodes < 1:
        raise ValueError(f"max_nodes is {max_nodes}; expected 1 or more")
    members = np.flatnonzero(graph.node_group == group)
    inside = np.flatnonzero(graph.node_group[graph.edge_src] == group)
    first = graph.start[(graph.batch.group == group) & (graph.start >= 0)]
    starts, start_rollouts = np.unique(first, return_counts=True)
    nodes = members if members.size <= max_nodes else _most_visited(graph, members, inside, starts, max_nodes)
    drawn = np.zeros(graph.node_group.size, dtype=bool)
    drawn[nodes] = True
    edges = inside[drawn[graph.edge_src[inside]] & drawn[graph.edge_dst[inside]]]
    leaving = np.bincount(graph.edge_src[inside], minlength=drawn.size)
    shown = np.bincount(graph.edge_src[edges], minlength=drawn.size)
    return Choice(
        nodes=nodes,
        edges=edges,
        starts=starts,
        start_rollouts=start_rollouts,
        edge_rollouts=_rollouts_per_edge(graph, edges),
        hidden_edges=(leaving - shown)[nodes],
        nodes_total=int(members.size),
        edges_total=int(inside.size),
        steps_total=int(graph.count[inside].sum()),
    )


def _most_visited(graph: TrajectoryGraph, members: IntArray, inside: IntArray, starts: IntArray, max_nodes: int) -> IntArray:
    before = _shortest_path_tree(graph, inside, starts)
    rank = np.where(np.isin(members, starts), 0, np.where(graph.node_is_sink[members], 1, 2))
    order = members[np.lexsort((members, -graph.visits[members], rank))]
    taken: set[int] = set()
    for node in order.tolist():
        path: list[int] = []
        at = node if node in before else -1
        while at >= 0 and at not in taken:
            path.append(at)
            at = before[at]
        if len(taken) + len(path) <= max_nodes:
            taken.update(path)
    return np.asarray(sorted(taken), dtype=np.int64)


def _shortest_path_tree(graph: TrajectoryGraph, inside: IntArray, starts: IntArray) -> dict[int, int]:
    """Predecessor of every reachable node on a shortest path from a start; -1 for starts. Busier edges first."""
    busiest = inside[np.lexsort((inside, -graph.count[inside], graph.edge_src[inside]))]
    after: dict[int, list[int]] = {}
    for u, v in zip(graph.edge_src[busiest].tolist(), graph.edge_dst[busiest].tolist(), strict=True):
        after.setdefault(u, []).append(v)
    before = {int(start): -1 for start in starts}
    queue = deque(before)
    while queue:
        u = queue.popleft()
        for v in after.get(u, ()):
            if v not in before:
                before[v] = u
                queue.append(v)
    return before


def _rollouts_per_edge(graph: TrajectoryGraph, edges: IntArray) -> IntArray:
    """Distinct rollouts that took each of the given edges (ascending)."""
    if edges.size == 0:
        return np.zeros(0, dtype=np.int64)
    at = np.searchsorted(edges, graph.edge)
    mine = edges[np.minimum(at, edges.size - 1)] == graph.edge
    rollout = np.asarray(graph.batch.step_rollout, dtype=np.int64)[mine]
    width = int(rollout.max(initial=0)) + 1
    pairs = np.unique(at[mine] * width + rollout)
    return np.bincount(pairs // width, minlength=edges.size)
