"""Positions for a drawn graph: left to right by distance from the start, computed once and never moved."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CROWDED = 22  # nodes in one layer from which the layer is staggered into sub-columns
WIDEST_COLUMN, TALLEST_ROW = 170.0, 104.0  # a small graph is not stretched beyond these gaps (pixels)
NARROWEST_COLUMN, SHORTEST_ROW = 15.0, 13.0  # a large one outgrows the rectangle rather than overlap


def layered_positions(
    n_nodes: int,
    edge_src: ArrayLike,
    edge_dst: ArrayLike,
    starts: ArrayLike,
    *,
    sinks: ArrayLike | None = None,
    sweeps: int = 4,
    width: float = 1100.0,
    height: float = 520.0,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Place nodes in columns by the fewest steps from any start; returns (x, y, layer).

    A column is a breadth-first layer, so cycles are harmless: an edge that leads back simply points to the
    left. Nodes marked in `sinks` (bool[n_nodes]) stand one column after the last node that leads to them, so
    that no ending is drawn in the middle of a path; that is the only departure from the distance. Nodes that
    no start reaches share one column of their own behind all others. Within a column the order comes from a
    depth-first walk and a few barycentre sweeps (Sugiyama, Tagawa and Toda 1981, "Methods for Visual
    Understanding of Hierarchical System Structures"), the height from the mean of the neighbours, with a
    least gap (isotonic regression by pooling adjacent violators).

    The result depends on the arguments alone: no random numbers, no values, no credit. `x` and `y` are pixels
    of a picture about `width` by `height`; small graphs stay smaller, very large ones grow beyond it.
    Raises ValueError for node numbers outside 0..n_nodes-1.
    """
    src, dst = np.asarray(edge_src, dtype=np.int64), np.asarray(edge_dst, dtype=np.int64)
    first = np.asarray(starts, dtype=np.int64)
    _check_range(n_nodes, edge_src=src, edge_dst=dst, starts=first)
    if n_nodes == 0:
        return np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64)
    is_sink = np.zeros(n_nodes, dtype=bool) if sinks is None else np.asarray(sinks, dtype=bool)
    apart = src != dst
    successors = _adjacency(n_nodes, src[apart], dst[apart])
    predecessors = _adjacency(n_nodes, dst[apart], src[apart])
    layer = _layers(n_nodes, successors, predecessors, first.tolist(), is_sink.tolist())
    columns = _ordered_columns(layer, successors, predecessors, first.tolist(), sweeps)
    row = _heights(columns, layer, successors, predecessors, sweeps)
    x, y = _to_pixels(columns, layer, row, width, height)
    return x, y, np.asarray(layer, dtype=np.int64)


def _check_range(n_nodes: int, **arrays: IntArray) -> None:
    for name, array in arrays.items():
        if array.size and (array.min() < 0 or array.max() >= n_nodes):
            wrong = int(array[(array < 0) | (array >= n_nodes)][0])
            raise ValueError(f"{name} holds node {wrong}; expected 0 to {n_nodes - 1}")


def _adjacency(n_nodes: int, src: IntArray, dst: IntArray) -> list[list[int]]:
    """Distinct neighbours of every node, ascending (parallel edges pull no harder than single ones)."""
    pairs = np.unique(src * n_nodes + dst)
    bounds = np.searchsorted(pairs // n_nodes, np.arange(n_nodes + 1)).tolist()
    ends = (pairs % n_nodes).tolist()
    return [ends[bounds[u] : bounds[u + 1]] for u in range(n_nodes)]


def _layers(
    n_nodes: int,
    successors: list[list[int]],
    predecessors: list[list[int]],
    starts: Sequence[int],
    is_sink: Sequence[bool],
) -> list[int]:
    layer = [-1] * n_nodes
    queue: deque[int] = deque()
    for node in starts:
        if layer[node] < 0:
            layer[node] = 0
            queue.append(node)
    while queue:
        node = queue.popleft()
        for after in successors[node]:
            if layer[after] < 0:
                layer[after] = layer[node] + 1
                queue.append(after)
    for node in range(n_nodes):
        if is_sink[node] and layer[node] > 0:
            layer[node] = 1 + max(layer[before] for before in predecessors[node] if not is_sink[before])
    beyond = max(layer) + 1
    return [beyond if at < 0 else at for at in layer]


def _ordered_columns(
    layer: list[int],
    successors: list[list[int]],
    predecessors: list[list[int]],
    starts: Sequence[int],
    sweeps: int,
) -> list[list[int]]:
    """Nodes of each column from top to bottom."""
    columns: list[list[int]] = [[] for _ in range(max(layer) + 1)]
    for node in _depth_first(len(layer), successors, starts):
        columns[layer[node]].append(node)
    place = [0.0] * len(layer)
    for column in columns:
        _spread(column, place)
    for sweep in range(sweeps):
        forward = sweep % 2 == 0
        neighbours = predecessors if forward else successors
        for column in columns if forward else reversed(columns):
            if len(column) > 1:
                pull = {node: _pull(node, neighbours[node], layer, place, forward) for node in column}
                column.sort(key=pull.__getitem__)  # stable: equal pulls keep their order
                _spread(column, place)
    return columns


def _depth_first(n_nodes: int, successors: list[list[int]], starts: Sequence[int]) -> list[int]:
    """Every node once, in preorder: a tree drawn in this order has no crossing."""
    seen = [False] * n_nodes
    order: list[int] = []
    for root in [*starts, *range(n_nodes)]:
        stack = [root]
        while stack:
            node = stack.pop()
            if not seen[node]:
                seen[node] = True
                order.append(node)
                stack.extend(reversed(successors[node]))
    return order


def _spread(column: list[int], place: list[float]) -> None:
    top = (len(column) - 1) / 2
    for rank, node in enumerate(column):
        place[node] = rank - top


def _pull(node: int, neighbours: list[int], layer: list[int], place: list[float], forward: bool) -> float:
    """Mean height of the neighbours on one side; the node's own height where there is none."""
    here = layer[node]
    total, count = 0.0, 0
    for other in neighbours:
        if (layer[other] < here) if forward else (layer[other] > here):
            total += place[other]
            count += 1
    return total / count if count else place[node]


def _heights(
    columns: list[list[int]],
    layer: list[int],
    successors: list[list[int]],
    predecessors: list[list[int]],
    sweeps: int,
) -> list[float]:
    """Heights in units of the row gap: near the neighbours' mean, order and least gaps kept."""
    place = [0.0] * len(layer)
    for column in columns:
        gap, top = 1.0 / _substreams(column), (len(column) - 1) / 2
        for rank, node in enumerate(column):
            place[node] = (rank - top) * gap
    for sweep in range(sweeps + 1):
        forward = sweep % 2 == 0
        neighbours = predecessors if forward else successors
        for column in columns if forward else reversed(columns):
            wish = [_pull(node, neighbours[node], layer, place, forward) for node in column]
            for node, at in zip(column, _with_gaps(wish, 1.0 / _substreams(column)), strict=True):
                place[node] = at
    return place


def _with_gaps(wish: list[float], gap: float) -> list[float]:
    """Closest heights (least squares) to `wish` that rise by at least `gap`: pool adjacent violators."""
    sums: list[float] = []
    sizes: list[int] = []
    for rank, value in enumerate(wish):
        total, size = value - rank * gap, 1
        while sums and sums[-1] * size >= total * sizes[-1]:
            total += sums.pop()
            size += sizes.pop()
        sums.append(total)
        sizes.append(size)
    levels = [total / size for total, size in zip(sums, sizes, strict=True) for _ in range(size)]
    return [level + rank * gap for rank, level in enumerate(levels)]


def _substreams(column: list[int]) -> int:
    """Into how many sub-columns a crowded column is staggered (1 to 4)."""
    return min(4, 1 + (len(column) - 1) // CROWDED)


def _to_pixels(
    columns: list[list[int]], layer: list[int], row: list[float], width: float, height: float
) -> tuple[FloatArray, FloatArray]:
    y = np.asarray(row)
    y = y - (y.max() + y.min()) / 2
    rows = max(float(y.max() - y.min()), 1e-9)
    column_gap = float(np.clip(width / max(len(columns) - 1, 1), NARROWEST_COLUMN, WIDEST_COLUMN))
    row_gap = float(np.clip(height / rows, SHORTEST_ROW, TALLEST_ROW))
    x = np.asarray(layer, dtype=np.float64) * column_gap
    for column in columns:
        streams = _substreams(column)
        if streams > 1:  # neighbours in a crowded column step aside instead of standing on each other
            aside = (np.arange(len(column)) % streams) / streams - (streams - 1) / (2 * streams)
            x[column] += aside * 0.7 * column_gap
    return x - (x.max() + x.min()) / 2, y * row_gap
