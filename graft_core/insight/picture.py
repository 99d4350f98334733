"""What to draw of one group: nodes, edges, shapes, sizes, labels, colours, as plain data for any renderer.

`picture` decides once what is drawn and where; `paint` only gives palette numbers for a set of values and credits,
so that a change of estimator, lambda or baseline recolours without moving anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from graft_core.constants import SUCCESS_TOLERANCE
from graft_core.insight.choose import Choice, choose_nodes
from graft_core.insight.labels import LABEL_LENGTH, labels, plain, shorten, tooltip
from graft_core.insight.layout import layered_positions
from graft_core.insight.palette import (
    credit_colours,
    credit_limit,
    credit_numbers,
    value_colours,
    value_numbers,
)

if TYPE_CHECKING:
    from graft_core.graph import TrajectoryGraph

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

ROOT_ID: Final = -1
"""Node id of a drawn task root; its edges are -2, -3, ..."""

THINNEST, WIDEST = 1.0, 6.0
SMALLEST, LARGEST = 3.0, 19.0
FIRST_CODE: Final = 48
"""Palette numbers travel as one character each, number 0 as "0"."""


@dataclass(frozen=True, eq=False)
class GraphStructure:
    """Everything of a drawing that does not depend on values and credit. Rows are drawn nodes and drawn edges.

    `node_id` and `edge_id` are the graph's own numbers (the task root and its edges are negative), `edge_src` and
    `edge_dst` node ids. `node_kind` is start, ordinary, success, failure, unknown or root. `edge_curve` bends an
    edge to the left (> 0) or right (< 0) of its direction, 0 is straight; for a self loop it is its rank.
    `edge_thin`: used by one rollout only. Sizes, widths and positions are pixels.
    """

    group: int
    node_id: IntArray
    node_kind: tuple[str, ...]
    node_label: tuple[str, ...]
    node_tip: tuple[str, ...]
    node_visits: IntArray
    node_size: FloatArray
    x: FloatArray
    y: FloatArray
    layer: IntArray
    edge_id: IntArray
    edge_src: IntArray
    edge_dst: IntArray
    edge_count: IntArray
    edge_width: FloatArray
    edge_curve: FloatArray
    edge_thin: BoolArray
    edge_label: tuple[str, ...]
    edge_tip: tuple[str, ...]
    nodes_total: int
    edges_total: int
    steps_total: int
    steps_drawn: int

    @property
    def nodes_drawn(self) -> int:
        return int((self.node_id >= 0).sum())

    @property
    def edges_drawn(self) -> int:
        return int((self.edge_id >= 0).sum())

    @property
    def caption(self) -> str:
        """How much of the graph is on screen, in words."""
        share = 100 * self.steps_drawn / self.steps_total if self.steps_total else 100.0
        shown = 100 if self.steps_drawn == self.steps_total else min(int(share), 99)
        return f"{self.nodes_drawn:,} of {self.nodes_total:,} nodes, {shown} % of steps"

    @cached_property
    def message(self) -> dict[str, Any]:
        """The structure as JSON-ready columns for a renderer, palettes included."""
        row = {int(node): at for at, node in enumerate(self.node_id)}
        return {
            "node": self.node_id.tolist(),
            "kind": list(self.node_kind),
            "label": list(self.node_label),
            "tip": list(self.node_tip),
            "size": np.round(self.node_size, 1).tolist(),
            "visits": self.node_visits.tolist(),
            "x": np.round(self.x, 1).tolist(),
            "y": np.round(self.y, 1).tolist(),
            "edge": self.edge_id.tolist(),
            "from": [row[int(node)] for node in self.edge_src],
            "to": [row[int(node)] for node in self.edge_dst],
            "width": np.round(self.edge_width, 2).tolist(),
            "curve": np.round(self.edge_curve, 2).tolist(),
            "thin": self.edge_thin.astype(int).tolist(),
            "count": self.edge_count.tolist(),
            "edgeLabel": list(self.edge_label),
            "edgeTip": list(self.edge_tip),
            "caption": self.caption,
            "legend": [list(entry) for entry in legend()],
            "palette": {
                "value": list(value_colours()),
                **{
                    theme: {"firm": list(credit_colours(theme)), "thin": list(credit_colours(theme, True))}
                    for theme in ("light", "dark")
                },
            },
        }

    @cached_property
    def version(self) -> str:
        """Short content hash: the same drawing has the same version."""
        import orjson

        return blake2b(orjson.dumps(self.message), digest_size=8).hexdigest()


@dataclass(frozen=True)
class GraphPaint:
    """Palette numbers of a structure's nodes and edges, one character each, and the scales they stand for."""

    version: str
    nodes: str
    edges: str
    credit_limit: float
    value_limits: tuple[float, float]
    credit_name: str = "credit"
    value_name: str = "chance of success"


def picture(graph: TrajectoryGraph, group: int, *, max_nodes: int = 300, sweeps: int = 4) -> GraphStructure:
    """Choose, place and label what is drawn of one group.

    At most `max_nodes` nodes, the least visited dropped first; starts, endings and a shortest path to every node
    that is drawn are kept. Every (u, a, v) is an edge of its own, curved where several join the same nodes. A
    task root is added where rollouts do not share their first node. Raises IndexError for an unknown group.
    """
    if not bool((graph.node_group == group).any()):
        raise IndexError(f"group {group} has no nodes; groups are 0 to {int(graph.node_group.max(initial=-1))}")
    choice = choose_nodes(graph, group, max_nodes)
    nodes, edges, n = choice.nodes, choice.edges, int(choice.nodes.size)
    row = np.full(graph.node_group.size, -1, dtype=np.int64)
    row[nodes] = np.arange(n)
    src, dst = row[graph.edge_src[edges]], row[graph.edge_dst[edges]]
    starts, rollouts = row[choice.starts], choice.start_rollouts
    kept = starts >= 0
    starts, rollouts = starts[kept], rollouts[kept]
    rooted = int(choice.starts.size) > 1
    sinks = np.asarray(graph.node_is_sink[nodes], dtype=bool)
    if rooted:  # the root is one more node, in front of all starts
        src, dst = np.append(src, np.full(starts.size, n)), np.append(dst, starts)
        sinks = np.append(sinks, False)
    x, y, layer = layered_positions(n + rooted, src, dst, [n] if rooted else starts, sinks=sinks, sweeps=sweeps)
    count = np.append(graph.count[edges], rollouts) if rooted else graph.count[edges]
    edge_id = np.append(edges, -2 - np.arange(starts.size)) if rooted else edges
    node_id = np.append(nodes, ROOT_ID) if rooted else nodes
    visits = np.append(graph.visits[nodes], rollouts.sum()) if rooted else np.asarray(graph.visits[nodes])
    kinds = _kinds(graph, choice)
    node_label, node_tip = _node_words(graph, choice, kinds)
    edge_label, edge_tip = _edge_words(graph, edges, choice)
    added = starts.size if rooted else 0
    return GraphStructure(
        group=group,
        node_id=node_id,
        node_kind=(*kinds, "root") if rooted else kinds,
        node_label=(*node_label, "task") if rooted else node_label,
        node_tip=(*node_tip, "Task root: the rollouts start in different moments") if rooted else node_tip,
        node_visits=visits,
        node_size=_sizes(visits, x, y, layer),
        x=x,
        y=y,
        layer=layer,
        edge_id=edge_id,
        edge_src=node_id[src],
        edge_dst=node_id[dst],
        edge_count=count,
        edge_width=_widths(count),
        edge_curve=edge_curves(src, dst, x, y, layer),
        edge_thin=np.append(choice.edge_rollouts == 1, np.zeros(added, dtype=bool)),
        edge_label=edge_label + ("",) * added,
        edge_tip=edge_tip + tuple(f"{int(k)} rollouts start here" for k in rollouts[:added]),
        nodes_total=choice.nodes_total,
        edges_total=choice.edges_total,
        steps_total=choice.steps_total,
        steps_drawn=int(graph.count[edges].sum()),
    )


def paint(
    structure: GraphStructure,
    values: npt.ArrayLike,
    edge_credit: npt.ArrayLike,
    *,
    limit: float | None = None,
    value_limits: tuple[float, float] = (0.0, 1.0),
    root_value: float = float("nan"),
    credit_name: str = "credit",
    value_name: str = "chance of success",
) -> GraphPaint:
    """Palette numbers for a drawn structure.

    `values` is V of every node of the graph (float64[N]), `edge_credit` the credit of every edge (float64[E], see
    `mean_per_edge`), undefined = NaN. `limit` is the end of the credit scale (default: 95 % of |credit| of the
    drawn edges); give the same to panels that are to be compared.
    """
    v, a = np.asarray(values, dtype=np.float64), np.asarray(edge_credit, dtype=np.float64)
    node_v = np.where(structure.node_id >= 0, v[np.maximum(structure.node_id, 0)], root_value)
    edge_a = np.where(structure.edge_id >= 0, a[np.maximum(structure.edge_id, 0)], np.nan) if a.size else a
    end = credit_limit(edge_a) if limit is None else limit
    return GraphPaint(
        version=structure.version,
        nodes=_characters(value_numbers(node_v, value_limits)),
        edges=_characters(credit_numbers(edge_a, end)),
        credit_limit=end,
        value_limits=value_limits,
        credit_name=credit_name,
        value_name=value_name,
    )


def mean_per_edge(graph: TrajectoryGraph, credit: npt.ArrayLike) -> FloatArray:
    """Mean of the defined credits of each edge's steps (float64[E]); NaN where none is.

    `credit` is one float64 per step in batch order, as estimators return it.
    """
    a = np.asarray(credit, dtype=np.float64)[graph.batch.order]
    defined = np.isfinite(a)
    total = np.bincount(graph.edge[defined], weights=a[defined], minlength=graph.n_edges)
    count = np.bincount(graph.edge[defined], minlength=graph.n_edges)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def legend() -> list[tuple[str, str]]:
    """(symbol, meaning) of everything a drawing can show; symbols are names for the renderer, not characters."""
    return [
        ("start", "first moment of a rollout"),
        ("ordinary", "moment (area = visits)"),
        ("success", "ends in success"),
        ("failure", "ends in failure"),
        ("unknown", "ends, outcome unknown"),
        ("root", "task (rollouts start in different moments)"),
        ("empty", "no value known"),
        ("positive", "better than usual here"),
        ("negative", "worse than usual here (dashed)"),
        ("zero", "no difference"),
        ("undefined", "credit undefined (dotted)"),
        ("thin", "seen by one rollout (faint)"),
        ("path", "path of the chosen rollout"),
    ]


def edge_curves(src: IntArray, dst: IntArray, x: FloatArray, y: FloatArray, layer: IntArray) -> FloatArray:
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
        if span <= 0 or (v, u) in joined:
            bends[at] = 0.22 + 0.13 * rank if span <= 0 else 0.16 + 0.13 * rank
        elif span > 1:
            outward = 1.0 if y[u] + y[v] < 0 else -1.0
            bends[at] = outward * (min(0.1 + 0.02 * span, 0.3) + 0.12 * rank)
        else:
            bends[at] = 0.13 * ((rank + 1) // 2) * (1 if rank % 2 else -1)
    return bends


def _kinds(graph: TrajectoryGraph, choice: Choice) -> tuple[str, ...]:
    starts = set(choice.starts.tolist()) if choice.starts.size == 1 else set()
    kinds = []
    for node in choice.nodes.tolist():
        outcome = float(graph.sink_value[node])
        if not graph.node_is_sink[node]:
            kinds.append("start" if node in starts else "ordinary")
        elif np.isnan(outcome):
            kinds.append("unknown")
        else:
            kinds.append("success" if outcome >= 1 - SUCCESS_TOLERANCE else "failure")
    return tuple(kinds)


def _node_words(graph: TrajectoryGraph, choice: Choice, kinds: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    texts = texts_of(graph, graph.node_text[choice.nodes])
    short = labels(texts)
    endings = {"success": "success", "failure": "failed", "unknown": "outcome unknown"}
    names, tips = [], []
    for at, (node, kind) in enumerate(zip(choice.nodes.tolist(), kinds, strict=True)):
        outcome = float(graph.sink_value[node])
        partial = kind == "failure" and outcome > 0
        names.append(f"score {outcome:.3g}" if partial else endings.get(kind) or short[at] or f"moment {node}")
        seen = int(graph.visits[node])
        head = f"ends {seen:,} rollout{'s' * (seen != 1)}" if kind in endings else f"visited {seen:,} x"
        hidden = int(choice.hidden_edges[at])
        more = f", {hidden:,} edge{'s' * (hidden != 1)} not drawn" if hidden else ""
        tips.append(f"{names[-1] + ': ' if kind in endings else ''}{head}{more}\n{tooltip(texts[at])}".rstrip())
    return tuple(names), tuple(tips)


def _edge_words(graph: TrajectoryGraph, edges: IntArray, choice: Choice) -> tuple[tuple[str, ...], tuple[str, ...]]:
    texts = texts_of(graph, graph.edge_text[edges])
    short = tuple(shorten(plain(text), LABEL_LENGTH) for text in texts)
    counts = zip(graph.count[edges].tolist(), choice.edge_rollouts.tolist(), strict=True)
    tips = tuple(
        f"{count:,} x, by {by:,} rollout{'s' * (by != 1)}\n{tooltip(text)}".rstrip()
        for text, (count, by) in zip(texts, counts, strict=True)
    )
    return short, tips


def texts_of(graph: TrajectoryGraph, ids: IntArray) -> list[str]:
    """The first 2,000 characters of each text; "" where there is no text (id < 0)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(np.where(ids >= 0, ids, 0), mask=np.asarray(ids) < 0)
    column = graph.batch.texts.column("text").take(wanted)
    return [text or "" for text in pc.utf8_slice_codeunits(column, 0, 2000).to_pylist()]


def _sizes(visits: IntArray, x: FloatArray, y: FloatArray, layer: IntArray) -> FloatArray:
    """Radii in pixels: area grows with visits, and no node touches the next."""
    order = np.lexsort((y, layer))
    apart = np.hypot(np.diff(x[order]), np.diff(y[order]))
    room = float(apart.min()) if apart.size else 2 * LARGEST
    largest = float(np.clip(0.42 * room, SMALLEST + 1, LARGEST))
    smallest = max(SMALLEST, 0.42 * largest)
    share = np.sqrt(visits / max(int(visits.max(initial=1)), 1))
    return smallest + (largest - smallest) * share


def _widths(count: IntArray) -> FloatArray:
    most = float(np.log1p(max(int(count.max(initial=1)), 10)))
    return THINNEST + (WIDEST - THINNEST) * (np.log1p(count) - np.log(2)) / (most - np.log(2))


def _characters(numbers: IntArray) -> str:
    return "".join(map(chr, (numbers + FIRST_CODE).tolist()))
