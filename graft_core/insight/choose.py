"""Which nodes of a large drawing stay: the most visited ones, with a path to each of them."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from graft_core.insight.sketch import Sketch
from graft_core.rollouts import BoolArray, IntArray

if TYPE_CHECKING:
    from graft_core.graph import TrajectoryGraph


def cut(sketch: Sketch, max_nodes: int, sinks: BoolArray, wanted: BoolArray | None = None) -> Sketch:
    """At most `max_nodes` nodes of a drawing and the edges between them.

    `wanted` rows (bool per row) come first, then starts, then `sinks`, then the other rows, each by visits (ties: lower
    row). A node is taken together with a shortest path from a start, or not at all where the path no longer fits; so what
    is drawn always hangs together. Raises ValueError if `max_nodes` is not positive.
    """
    if max_nodes < 1:
        raise ValueError(f"max_nodes is {max_nodes}; expected 1 or more")
    n = sketch.node.size
    if n <= max_nodes:
        return sketch
    rank = np.where(sinks, 2, 3)
    rank[sketch.start] = 1
    if wanted is not None:
        rank[wanted] = 0
    rows = _most_visited(sketch, rank, max_nodes)
    drawn = np.zeros(n, dtype=bool)
    drawn[rows] = True
    keep = drawn[sketch.src] & drawn[sketch.dst]
    row, edge = np.cumsum(drawn) - 1, np.cumsum(keep) - 1
    kept_start, parts = drawn[sketch.start], keep[sketch.part_edge]
    carried = (sketch.step_edge >= 0) & keep[sketch.step_edge]
    lost = np.bincount(sketch.src[~keep], minlength=n)
    return replace(
        sketch,
        node=sketch.node[rows],
        visits=sketch.visits[rows],
        hidden=(sketch.hidden + lost)[rows],
        start=row[sketch.start[kept_start]],
        start_rollouts=sketch.start_rollouts[kept_start],
        src=row[sketch.src[keep]],
        dst=row[sketch.dst[keep]],
        count=sketch.count[keep],
        part=sketch.part[parts],
        part_edge=edge[sketch.part_edge[parts]],
        step_edge=np.where(carried, edge[sketch.step_edge], -1),
    )


def _most_visited(sketch: Sketch, rank: IntArray, max_nodes: int) -> IntArray:
    before = _shortest_path_tree(sketch)
    order = np.lexsort((np.arange(rank.size), -sketch.visits, rank))
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


def _shortest_path_tree(sketch: Sketch) -> dict[int, int]:
    """Predecessor of every reachable row on a shortest path from a start; -1 for starts. Busier edges first."""
    busiest = np.lexsort((np.arange(sketch.src.size), -sketch.count, sketch.src))
    after: dict[int, list[int]] = {}
    for u, v in zip(sketch.src[busiest].tolist(), sketch.dst[busiest].tolist(), strict=True):
        after.setdefault(u, []).append(v)
    before = {int(start): -1 for start in sketch.start}
    queue = deque(before)
    while queue:
        u = queue.popleft()
        for v in after.get(u, ()):
            if v not in before:
                before[v] = u
                queue.append(v)
    return before


def edge_rollouts(graph: TrajectoryGraph, step: IntArray, edge: IntArray, n_edges: int) -> IntArray:
    """Distinct rollouts among the steps (path positions) of each of `n_edges` edges; `edge` says which, -1 = none."""
    mine = edge >= 0
    rollout = np.asarray(graph.batch.step_rollout, dtype=np.int64)[step[mine]]
    width = int(rollout.max(initial=0)) + 1
    pairs = np.unique(edge[mine] * width + rollout)
    return np.bincount(pairs // width, minlength=n_edges)
