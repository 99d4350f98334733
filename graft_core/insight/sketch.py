"""What could be drawn of one group, before anything is left out: the merged moments, and chains of steps as one line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from graft_core.rollouts import BoolArray, IntArray

if TYPE_CHECKING:
    from graft_core.graph import TrajectoryGraph

Shape = Literal["merged", "tree", "lanes"]


@dataclass(frozen=True, eq=False)
class Sketch:
    """Nodes and edges of a drawing by row; `node` and `part` are the graph's own numbers, `step` path positions.

    A drawn node belongs to one node of the graph, which may be drawn more than once. A drawn edge stands for one or more
    edges of the graph in a row: part[i] belongs to the drawn edge part_edge[i], ascending and in the order travelled.
    step[i] is carried by the drawn edge step_edge[i], -1 if by none. start: rows in which rollouts begin, and how many do;
    visits and count as in the graph. hidden: edges that leave a row and are not drawn. lane: rollout row of each node
    where every rollout is drawn for itself, else empty.
    """

    shape: Shape
    node: IntArray
    visits: IntArray
    start: IntArray
    start_rollouts: IntArray
    src: IntArray
    dst: IntArray
    count: IntArray
    part: IntArray
    part_edge: IntArray
    step: IntArray
    step_edge: IntArray
    hidden: IntArray
    lane: IntArray
    nodes_total: int
    edges_total: int
    rollouts_total: int
    starts_total: int

    @cached_property
    def length(self) -> IntArray:
        """How many steps in a row each edge stands for."""
        return np.bincount(self.part_edge, minlength=self.src.size)

    @cached_property
    def first_part(self) -> IntArray:
        """The graph's edge with which each drawn edge begins."""
        first = np.zeros(self.src.size, dtype=np.int64)
        first[self.part_edge[::-1]] = self.part[::-1]
        return first


def merged(graph: TrajectoryGraph, group: int) -> Sketch:
    """Every moment once, every (moment, action, next moment) an edge of its own."""
    members = np.flatnonzero(graph.node_group == group)
    inside = np.flatnonzero(graph.node_group[graph.edge_src] == group)
    first = graph.start[(graph.batch.group == group) & (graph.start >= 0)]
    starts, start_rollouts = np.unique(first, return_counts=True)
    steps = np.flatnonzero(graph.node_group[graph.src] == group)
    return Sketch(
        shape="merged",
        node=members,
        visits=np.asarray(graph.visits[members], dtype=np.int64),
        start=np.searchsorted(members, starts),
        start_rollouts=start_rollouts,
        src=np.searchsorted(members, graph.edge_src[inside]),
        dst=np.searchsorted(members, graph.edge_dst[inside]),
        count=np.asarray(graph.count[inside], dtype=np.int64),
        part=inside,
        part_edge=np.arange(inside.size),
        step=steps,
        step_edge=np.searchsorted(inside, graph.edge[steps]),
        hidden=np.zeros(members.size, dtype=np.int64),
        lane=np.zeros(0, dtype=np.int64),
        nodes_total=int(members.size),
        edges_total=int(inside.size),
        rollouts_total=int(first.size),
        starts_total=int(starts.size),
    )


def collapse(sketch: Sketch, most: int, opened: BoolArray | None = None) -> Sketch:
    """The same with chains of moments as one edge each, as many as it takes to have at most `most` nodes.

    A moment is inside a chain where one edge leads to it, one leads away, and the same rollouts pass both (it begins and
    ends none). The least travelled chains go first, of those the longest. `opened` (bool per row) keeps rows out of chains.
    The edge's parts are those of the chain, in order.
    """
    n, m = sketch.node.size, sketch.src.size
    chains = _chains(sketch, opened)
    chains.sort(key=lambda edges: (int(sketch.count[edges[0]]), -len(edges), edges[0]))
    into, place, end = np.arange(m), np.zeros(m, dtype=np.int64), sketch.dst.copy()
    inner = np.zeros(n, dtype=bool)
    left = n
    for edges in chains:
        if left <= most:
            break
        into[edges], place[edges] = edges[0], np.arange(len(edges))
        end[edges[0]] = sketch.dst[edges[-1]]
        inner[sketch.dst[edges[:-1]]] = True
        left -= len(edges) - 1
    keep_edge, keep_node = into == np.arange(m), ~inner
    edge_row, node_row = np.cumsum(keep_edge) - 1, np.cumsum(keep_node) - 1
    carrier = edge_row[into]
    order = np.lexsort((np.arange(sketch.part.size), place[sketch.part_edge], carrier[sketch.part_edge]))
    return replace(
        sketch,
        node=sketch.node[keep_node],
        visits=sketch.visits[keep_node],
        hidden=sketch.hidden[keep_node],
        start=node_row[sketch.start],
        src=node_row[sketch.src[keep_edge]],
        dst=node_row[end[keep_edge]],
        count=sketch.count[keep_edge],
        part=sketch.part[order],
        part_edge=carrier[sketch.part_edge][order],
        step_edge=np.where(sketch.step_edge >= 0, carrier[sketch.step_edge], -1),
    )


def _chains(sketch: Sketch, opened: BoolArray | None) -> list[list[int]]:
    """The edges of each chain, in order; two at least."""
    n = sketch.node.size
    arriving, leaving = np.bincount(sketch.dst, minlength=n), np.bincount(sketch.src, minlength=n)
    count_in = np.bincount(sketch.dst, weights=sketch.count, minlength=n)
    count_out = np.bincount(sketch.src, weights=sketch.count, minlength=n)
    inner = (arriving == 1) & (leaving == 1) & (count_in == count_out)
    inner[sketch.start] = False
    if opened is not None:
        inner &= ~opened
    after = np.full(n, -1, dtype=np.int64)
    after[sketch.src] = np.arange(sketch.src.size)  # of inner rows the one edge that leaves
    chains = []
    for edge in np.flatnonzero(~inner[sketch.src] & inner[sketch.dst]).tolist():
        edges = [edge]
        while inner[at := sketch.dst[edges[-1]]]:  # ends: what no start reaches is no chain, so there is no ring of inner rows
            edges.append(int(after[at]))
        chains.append(edges)
    return chains
