"""The merged picture taken apart: a tree of whole histories, or one lane for each rollout with nothing merged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graft_core.insight.sketch import Sketch
from graft_core.rollouts import IntArray

if TYPE_CHECKING:
    from graft_core.graph import TrajectoryGraph
    from graft_core.rollouts import RolloutBatch

_DIGITS = re.compile(r"(\d{1,18})")


def prefix_tree(graph: TrajectoryGraph, group: int) -> Sketch:
    """Rollouts share a node for as long as everything they met and did up to it is the same.

    A node is a history (start, action, moment, action, ...); its moment is the last one. So each node has one way in.
    """
    batch = graph.batch
    rows = np.flatnonzero((batch.group == group) & (batch.lengths > 0))
    begin, lengths = batch.offsets[:-1][rows], batch.lengths[rows]
    moments, here, start_rollouts = np.unique(graph.start[rows], return_inverse=True, return_counts=True)
    node, visits = [moments], [start_rollouts]
    src, part, count = [], [], []
    position = _positions(batch, rows)
    carrier = np.full(int(position.max(initial=-1)) + 1, -1, dtype=np.int64)
    here, total = here.astype(np.int64), int(moments.size)
    for t in range(int(lengths.max(initial=0))):
        on = np.flatnonzero(lengths > t)
        steps = begin[on] + t
        keys = here[on] * graph.n_edges + graph.edge[steps]
        distinct, which, passed = np.unique(keys, return_inverse=True, return_counts=True)
        edges = distinct % graph.n_edges
        src.append(distinct // graph.n_edges)
        part.append(edges)
        count.append(passed)
        node.append(graph.edge_dst[edges])
        visits.append(passed)
        carrier[steps] = total - moments.size + which
        here[on] = total + which
        total += int(distinct.size)
    nothing = np.zeros(0, dtype=np.int64)
    parts = np.concatenate([nothing, *part])
    return Sketch(
        shape="tree",
        node=np.concatenate(node),
        visits=np.concatenate(visits),
        start=np.arange(moments.size),
        start_rollouts=start_rollouts,
        src=np.concatenate([nothing, *src]),
        dst=np.arange(moments.size, total),
        count=np.concatenate([nothing, *count]),
        part=parts,
        part_edge=np.arange(parts.size),
        step=position,
        step_edge=carrier[position],
        hidden=np.zeros(total, dtype=np.int64),
        lane=nothing,
        nodes_total=total,
        edges_total=int(parts.size),
        rollouts_total=int(rows.size),
        starts_total=int(moments.size),
    )


def lanes(graph: TrajectoryGraph, group: int, max_nodes: int, first: Sequence[int] = ()) -> Sketch:
    """One row of nodes for each rollout, one node for each moment it passed, nothing merged.

    Lanes stand in the order succeeded, failed, unknown, then by id. Where they have more than `max_nodes` nodes together,
    as many are drawn as fit, taken in turn from each outcome; those of the rollout rows in `first` before all others.
    """
    batch = graph.batch
    rows = np.flatnonzero((batch.group == group) & (batch.lengths > 0))
    ordered = lane_order(batch, rows)
    chosen = set(_that_fit(batch, ordered, max_nodes, first))
    drawn = np.asarray([row for row in ordered if row in chosen], dtype=np.int64)
    lengths = batch.lengths[drawn]
    moments = lengths + 1
    ends = np.cumsum(moments)
    position = _positions(batch, drawn)
    src = np.arange(position.size) + np.repeat(np.arange(drawn.size), lengths)
    node = np.zeros(int(moments.sum()), dtype=np.int64)
    node[src], node[ends - 1] = graph.src[position], graph.end[drawn]
    everything = np.flatnonzero(graph.node_group[graph.src] == group)
    carrier = np.full(int(everything.max(initial=-1)) + 1, -1, dtype=np.int64)
    carrier[position] = np.arange(position.size)
    return Sketch(
        shape="lanes",
        node=node,
        visits=np.ones(node.size, dtype=np.int64),
        start=ends - moments,
        start_rollouts=np.ones(drawn.size, dtype=np.int64),
        src=src,
        dst=src + 1,
        count=np.ones(position.size, dtype=np.int64),
        part=graph.edge[position],
        part_edge=np.arange(position.size),
        step=everything,
        step_edge=carrier[everything],
        hidden=np.zeros(node.size, dtype=np.int64),
        lane=np.repeat(drawn, moments),
        nodes_total=int((batch.lengths[rows] + 1).sum()),
        edges_total=int(everything.size),
        rollouts_total=int(rows.size),
        starts_total=int(rows.size),
    )


def _positions(batch: RolloutBatch, rows: IntArray) -> IntArray:
    """Path positions of the steps of the given rollouts, in their order."""
    begin, end = batch.offsets[:-1][rows].tolist(), batch.offsets[1:][rows].tolist()
    return np.concatenate([np.zeros(0, dtype=np.int64), *(np.arange(b, e) for b, e in zip(begin, end, strict=True))])


def lane_order(batch: RolloutBatch, rows: IntArray) -> list[int]:
    """Rollout rows: succeeded, failed, unknown; the better outcome first; then by id, numbers in it as numbers."""

    def key(row: int) -> tuple[int, float, list[tuple[int, int, str]]]:
        success, outcome = float(batch.success[row]), float(batch.outcome[row])
        return 2 if success != success else int(success != 1), -np.nan_to_num(outcome), _natural(batch.rollout_ids[row])

    return sorted(rows.tolist(), key=key)


def _natural(name: str) -> list[tuple[int, int, str]]:
    pieces = _DIGITS.split(name)
    return [(1, int(piece), "") if at % 2 else (0, 0, piece) for at, piece in enumerate(pieces)]


def _that_fit(batch: RolloutBatch, ordered: list[int], max_nodes: int, first: Sequence[int]) -> list[int]:
    """Rows whose lanes fit in `max_nodes` nodes, at least one."""
    by_outcome: dict[str, list[int]] = {}
    for row in ordered:
        by_outcome.setdefault(str(batch.success[row]), []).append(row)
    turns = sorted((rank, k, row) for k, rows in enumerate(by_outcome.values()) for rank, row in enumerate(rows))
    wanted = [row for row in first if row in ordered]
    taken: list[int] = []
    nodes = 0
    for row in dict.fromkeys([*wanted, *(row for _, _, row in turns)]):
        size = int(batch.lengths[row]) + 1
        if not taken or nodes + size <= max_nodes:
            taken.append(row)
            nodes += size
    return taken
