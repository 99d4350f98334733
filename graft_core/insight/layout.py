"""Positions for a drawn graph: left to right by distance from the start, computed once and never moved."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CROWDED = 22  # nodes in one layer from which the layer is staggered into sub-columns
WIDEST_COLUMN, TALLEST_ROW = 170.0, 104.0  # a small graph is not stretched beyond these gaps (pixels)
TALLEST_LANE = 58.0
NARROWEST_COLUMN, SHORTEST_ROW = 15.0, 13.0  # a large one outgrows the rectangle rather than overlap

THINNEST, WIDEST = 1.0, 6.0
SMALLEST, LARGEST = 3.0, 19.0

def layered_positions(
    n_nodes: int,
    edge_src: ArrayLike,
    edge_dst: ArrayLike,
    starts: ArrayLike,
    *,
    sinks: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    sweeps: int = 4,
    width: float = 1100.0,
    height: float = 520.0,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Place nodes in columns by the fewest steps from any start; returns (x, y, layer).

    A column is a distance, so cycles are harmless: an edge that leads back simply points to the left. `lengths` says how
    many steps in a row each edge stands for (default: one). Nodes marked in `sinks` (bool[n_nodes]) stand one column after
    the last node that leads to them, so that no ending is drawn in the middle of a path; that is the only departure from the
    distance. Nodes that no start reaches share one column of their own behind all others. Within a column the order comes
    from a depth-first walk and a few barycentre sweeps (Sugiyama, Tagawa and Toda 1981, "Methods for Visual Understanding of
    Hierarchical System Structures"), the height from the mean of the neighbours, with a least gap (isotonic regression by
    pooling adjacent violators).

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
    layer = _layers(successors, predecessors, first.tolist(), is_sink.tolist(), _long(src, dst, lengths))
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


def _long(src: IntArray, dst: IntArray, lengths: ArrayLike | None) -> dict[tuple[int, int], int]:
    """Steps between two nodes where every edge that joins them stands for more than one."""
    if lengths is None:
        return {}
    steps: dict[tuple[int, int], int] = {}
    for u, v, length in zip(src.tolist(), dst.tolist(), np.asarray(lengths).tolist(), strict=True):
        steps[u, v] = min(length, steps.get((u, v), length))
    return {pair: length for pair, length in steps.items() if length > 1}


def _layers(
    successors: list[list[int]],
    predecessors: list[list[int]],
    starts: Sequence[int],
    is_sink: Sequence[bool],
    long: dict[tuple[int, int], int],
) -> list[int]:
    layer = [-1] * len(successors)
    ahead = [(0, node) for node in starts]
    while ahead:
        here, node = heappop(ahead)
        if layer[node] < 0:
            layer[node] = here
            for after in successors[node]:
                if layer[after] < 0:
                    heappush(ahead, (here + long.get((node, after), 1), after))
    for node, sink in enumerate(is_sink):
        if sink and layer[node] > 0:
            before = (at for at in predecessors[node] if not is_sink[at])
            layer[node] = max(layer[at] + long.get((at, node), 1) for at in before)
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
    return min(4, 1 + max(len(column) - 1, 0) // CROWDED)


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


def lane_positions(
    lane: IntArray, step: IntArray, width: float = 1100.0, height: float = 520.0
) -> tuple[FloatArray, FloatArray]:
    """x and y of one row per lane (numbered from the top) and one column per step, in the pixels of `layered_positions`."""
    columns, rows = int(step.max(initial=0)), int(lane.max(initial=0))
    x = step * float(np.clip(width / max(columns, 1), NARROWEST_COLUMN, WIDEST_COLUMN))
    y = lane * float(np.clip(height / max(rows, 1), SHORTEST_ROW, TALLEST_LANE))
    return x - (x.max(initial=0) + x.min(initial=0)) / 2, y - (y.max(initial=0) + y.min(initial=0)) / 2


def tree_positions(
    n_nodes: int, src: IntArray, dst: IntArray, first: Sequence[int], lengths: IntArray,
    width: float = 1100.0, height: float = 520.0,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """x, y and layer of a forest with the roots `first`, without a crossing: a row for each leaf, parents amid their children.

    Columns as in `layered_positions`; src[i], dst[i] join parent and child, `lengths` steps apart.
    """
    children: list[list[tuple[int, int]]] = [[] for _ in range(n_nodes)]
    for u, v, length in zip(src.tolist(), dst.tolist(), lengths.tolist(), strict=True):
        children[u].append((v, length))
    layer, row = np.zeros(n_nodes, dtype=np.int64), np.zeros(n_nodes)
    walk, rows = list(reversed(first)), 0
    order: list[int] = []
    while walk:
        node = walk.pop()
        order.append(node)
        for child, length in reversed(children[node]):
            layer[child] = layer[node] + length
            walk.append(child)
        if not children[node]:
            row[node], rows = rows, rows + 1
    for node in reversed(order):
        if children[node]:
            row[node] = (row[children[node][0][0]] + row[children[node][-1][0]]) / 2
    x = layer * float(np.clip(width / max(int(layer.max(initial=0)), 1), NARROWEST_COLUMN, WIDEST_COLUMN))
    y = row * float(np.clip(height / max(rows - 1, 1), SHORTEST_ROW, TALLEST_ROW))
    return x - x.max(initial=0) / 2, y - y.max(initial=0) / 2, layer


def edge_curves(
    src: IntArray, dst: IntArray, x: FloatArray, y: FloatArray, layer: IntArray, lengths: IntArray | None = None
) -> FloatArray:
    """Bend of each edge: 0 straight, > 0 left and < 0 right of its direction; rank among the node's self loops.

    Edges that join the same two nodes fan out; edges that lead back or stay in a column bow below; long edges bow
    away from the middle of the picture, over or under the nodes that they pass.
    """
    bends = np.zeros(src.size)
    seen: dict[tuple[int, int], int] = {}
    joined = set(zip(src.tolist(), dst.tolist(), strict=True))
    for at, (u, v) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
        rank = seen.get((u, v), 0)
        seen[u, v] = rank + 1
        if u == v:
            bends[at] = rank
            continue
        span = int(layer[v] - layer[u])
        if lengths is not None and span > 0:
            span = max(span - int(lengths[at]) + 1, 1)  # a line that stands for three steps may be three columns long
        if span <= 0 or (v, u) in joined:
            bends[at] = 0.22 + 0.13 * rank if span <= 0 else 0.16 + 0.13 * rank
        elif span > 1:
            outward = 1.0 if y[u] + y[v] < 0 else -1.0
            bends[at] = outward * (min(0.1 + 0.02 * span, 0.3) + 0.12 * rank)
        else:
            bends[at] = 0.13 * ((rank + 1) // 2) * (1 if rank % 2 else -1)
    return bends


def node_sizes(visits: IntArray, x: FloatArray, y: FloatArray, layer: IntArray, in_a_row: bool = False) -> FloatArray:
    """Radii in pixels: area grows with visits, and no node touches the next. in_a_row: leave room for the edges between."""
    order = np.lexsort((layer, y)) if in_a_row else np.lexsort((y, layer))
    apart = np.hypot(np.diff(x[order]), np.diff(y[order]))
    room = float(apart.min()) if apart.size else 2 * LARGEST
    largest = float(np.clip((0.22 if in_a_row else 0.42) * room, SMALLEST + 1, LARGEST))
    smallest = max(SMALLEST, 0.42 * largest)
    share = np.sqrt(visits / max(int(visits.max(initial=1)), 1))
    return smallest + (largest - smallest) * share


def edge_widths(count: IntArray) -> FloatArray:
    most = float(np.log1p(max(int(count.max(initial=1)), 10)))
    return THINNEST + (WIDEST - THINNEST) * (np.log1p(count) - np.log(2)) / (most - np.log(2))
