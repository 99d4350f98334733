"""One group cut out of a trajectory graph, and the same group without one of its rollouts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graft_core.graph import TrajectoryGraph, sorted_factorise
from graft_core.rollouts import BoolArray, FloatArray, IntArray

VIEWS_KEPT = 8


@dataclass(frozen=True, eq=False)
class GroupView:
    """The graph of one group alone, numbered anew, and where its parts stand in the whole.

    rollouts: rows, steps: path positions, nodes and edges: ids of the whole, all ascending.
    """

    graph: TrajectoryGraph
    rollouts: IntArray
    steps: IntArray
    nodes: IntArray
    edges: IntArray

    def node(self, whole: int) -> int:
        return int(np.searchsorted(self.nodes, whole))

    def step(self, position: int) -> int:
        return int(np.searchsorted(self.steps, position))

    def rollout(self, row: int) -> int:
        return int(np.searchsorted(self.rollouts, row))


def group_view(graph: TrajectoryGraph, group: int) -> GroupView:
    """The graph of one group, with a batch of its rollouts only; the last few are remembered on the graph."""
    key = ("view", group)
    if key not in graph.memo:
        kept = [k for k in graph.memo if isinstance(k, tuple) and k[0] == "view"]
        if len(kept) >= VIEWS_KEPT:
            graph.memo.pop(kept[0], None)
        graph.memo[key] = _cut(graph, group)
    view: GroupView = graph.memo[key]
    return view


def _cut(graph: TrajectoryGraph, group: int) -> GroupView:
    batch = graph.batch
    rollouts = np.flatnonzero(batch.group == group)
    steps = np.flatnonzero(batch.group[batch.step_rollout] == group)
    nodes = np.flatnonzero(graph.node_group == group)
    pairs = np.flatnonzero(graph.node_group[graph.pair_node] == group)
    edges = np.flatnonzero(graph.node_group[graph.edge_src] == group)
    step_table = batch.steps.take(pa.array(batch.order[steps]))
    rollout = pa.array(np.searchsorted(rollouts, batch.step_rollout[steps]).astype(np.int32))
    own = replace(
        batch,
        rollouts=batch.rollouts.take(pa.array(rollouts)),
        steps=step_table.set_column(0, step_table.schema.field(0), rollout),
        memo={},
    )
    edge_src = np.searchsorted(nodes, graph.edge_src[edges])
    final = graph.final_node[rollouts]
    cut = replace(
        graph,
        batch=own,
        src=np.searchsorted(nodes, graph.src[steps]),
        dst=np.searchsorted(nodes, graph.dst[steps]),
        pair=np.searchsorted(pairs, graph.pair[steps]),
        edge=np.searchsorted(edges, graph.edge[steps]),
        node_group=np.zeros(nodes.size, dtype=np.int64),
        node_is_sink=graph.node_is_sink[nodes],
        node_text=graph.node_text[nodes],
        sink_value=graph.sink_value[nodes],
        edge_src=edge_src,
        edge_dst=np.searchsorted(nodes, graph.edge_dst[edges]),
        edge_pair=np.searchsorted(pairs, graph.edge_pair[edges]),
        count=graph.count[edges],
        count_known=graph.count_known[edges],
        indptr=_indptr(edge_src, nodes.size),
        pair_node=np.searchsorted(nodes, graph.pair_node[pairs]),
        pair_action=graph.pair_action[pairs],
        pair_text=graph.pair_text[pairs],
        final_node=np.where(final >= 0, np.searchsorted(nodes, final), -1),
        memo={},
    )
    return GroupView(cut, rollouts, steps, nodes, edges)


def _indptr(edge_src: IntArray, n_nodes: int) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.bincount(edge_src, minlength=n_nodes))]).astype(np.int64)


def without(graph: TrajectoryGraph, rollout: int) -> TrajectoryGraph:
    """The graph of one group as if the outcome of one rollout (row of its batch) were unknown.

    An unknown outcome adds nothing to any count, baseline or value (method.md sec. 1), so this is leaving the rollout
    out without renumbering anything; moments stay what they are.
    """
    batch = graph.batch
    left = np.arange(batch.n_rollouts) != rollout
    table = batch.rollouts
    for name in ("outcome", "success"):
        place = table.schema.get_field_index(name)
        kept = pa.array(left).cast(pa.bool_())
        values = pc.if_else(kept, table.column(place), pa.scalar(None, table.schema.field(place).type))
        table = table.set_column(place, table.schema.field(place), values)
    known = batch.known & left
    step_known = known[batch.step_rollout]
    less = replace(
        graph,
        batch=replace(batch, rollouts=table, memo={}),
        count_known=np.bincount(graph.edge[step_known], minlength=graph.n_edges),
        sink_value=_sink_values(graph, known),
        memo={},
    )
    stranded = _stranded(graph, known) if graph.sinks == "bootstrap" else np.zeros(0, dtype=np.int64)
    return _with_sinks(less, stranded) if stranded.size else less


def _sink_values(graph: TrajectoryGraph, known: BoolArray) -> FloatArray:
    """Mean outcome of the known rollouts that end in each sink; NaN elsewhere."""
    ending = np.flatnonzero(known & (graph.end >= 0))
    ending = ending[graph.node_is_sink[graph.end[ending]]]
    count = np.bincount(graph.end[ending], minlength=graph.n_nodes)
    total = np.bincount(graph.end[ending], weights=graph.batch.outcome[ending], minlength=graph.n_nodes)
    mean = np.divide(total, count, out=np.full(graph.n_nodes, np.nan), where=count > 0)
    return np.where(count == 0, np.nan, mean if graph.sinks == "merge" else graph.sink_value)


def _stranded(graph: TrajectoryGraph, known: BoolArray) -> IntArray:
    """`bootstrap`: rollouts that went on to an ordinary node which no other known rollout leaves any more."""
    step_known = known[graph.batch.step_rollout]
    leaving = np.unique(np.stack([graph.src[step_known], graph.batch.step_rollout[step_known]]), axis=1)
    leavers = np.bincount(leaving[0], minlength=graph.n_nodes)
    on = np.flatnonzero((graph.end >= 0) & ~graph.node_is_sink[graph.end])
    own = [bool(np.any((leaving[0] == graph.end[r]) & (leaving[1] == r))) for r in on.tolist()]
    return on[leavers[graph.end[on]] - np.array(own, dtype=np.int64) == 0]


def _with_sinks(graph: TrajectoryGraph, rollouts: IntArray) -> TrajectoryGraph:
    """The graph with the last edges of some rollouts led to sinks of their own instead."""
    batch, n = graph.batch, graph.n_nodes
    dst = graph.dst.copy()
    dst[batch.offsets[1:][rollouts] - 1] = n + np.arange(rollouts.size)
    width = n + rollouts.size
    edge, key = sorted_factorise(graph.pair * width + dst)
    edge_pair = key // width
    edge_src = graph.pair_node[edge_pair]
    return replace(
        graph,
        dst=dst,
        edge=edge,
        node_group=np.zeros(width, dtype=np.int64),
        node_is_sink=np.concatenate([graph.node_is_sink, np.ones(rollouts.size, dtype=bool)]),
        node_text=np.concatenate([graph.node_text, batch.final_observation[rollouts]]),
        sink_value=np.concatenate([graph.sink_value, batch.outcome[rollouts]]),
        edge_src=edge_src,
        edge_dst=key % width,
        edge_pair=edge_pair,
        count=np.bincount(edge, minlength=key.size),
        count_known=np.bincount(edge[batch.step_known], minlength=key.size),
        indptr=_indptr(edge_src, width),
        memo={},
    )
