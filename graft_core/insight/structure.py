"""A drawing of one group as plain data for any renderer: what stands where, and its colours as palette numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from graft_core.insight.palette import (
    credit_colours,
    credit_limit,
    credit_numbers,
    value_colours,
    value_numbers,
)
from graft_core.insight.sketch import Shape
from graft_core.rollouts import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from graft_core.graph import TrajectoryGraph

FIRST_CODE: Final = 48
"""Palette numbers travel as one character each, number 0 as "0"."""


@dataclass(frozen=True, eq=False)
class GraphStructure:
    """Everything of a drawing that does not depend on values and credit. Rows are drawn nodes and drawn edges.

    Where every moment is drawn once, `node_id` and `edge_id` are the graph's own numbers (of an edge that stands for several
    steps, the first), else just numbers; the task root and its edges are negative. `edge_src` and `edge_dst` are node ids.
    `node_of` is the graph's node of each row (root: -1). `part`, `part_edge`, `step` and `step_edge` say what the edges stand
    for, as in `Sketch`; `edge_length` how many steps in a row. `node_kind` is start, ordinary, success, failure, unknown or
    root. `edge_curve` bends an edge to the left (> 0) or right (< 0) of its direction, 0 is straight; for a self loop it is
    its rank. `edge_thin`: used by one rollout only. `lane` is the rollout row of each node where each rollout has a row of
    its own, else empty. Sizes, widths and positions are pixels.
    """

    group: int
    shape: Shape
    node_id: IntArray
    node_of: IntArray
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
    edge_length: IntArray
    edge_label: tuple[str, ...]
    edge_tip: tuple[str, ...]
    part: IntArray
    part_edge: IntArray
    step: IntArray
    step_edge: IntArray
    lane: IntArray
    nodes_total: int
    edges_total: int
    rollouts_total: int

    @property
    def nodes_drawn(self) -> int:
        return int((self.node_of >= 0).sum())

    @property
    def edges_drawn(self) -> int:
        """Edges of the graph that are drawn; several in a row may share one line."""
        return int(self.part.size)

    @property
    def steps_total(self) -> int:
        return int(self.step.size)

    @property
    def steps_drawn(self) -> int:
        return int((self.step_edge >= 0).sum())

    @property
    def complete(self) -> bool:
        """Whether every node stands on screen for itself."""
        return self.nodes_drawn == self.nodes_total

    @property
    def caption(self) -> str:
        """How much of the graph is on screen, in words."""
        share = 100 * self.steps_drawn / self.steps_total if self.steps_total else 100.0
        shown = 100 if self.steps_drawn == self.steps_total else min(int(share), 99)
        words = f"{self.nodes_drawn:,} of {self.nodes_total:,} nodes, {shown} % of steps"
        if self.lane.size:
            return f"{np.unique(self.lane).size:,} of {self.rollouts_total:,} rollouts, {words}"
        chains = int((self.edge_length > 1).sum())
        return f"{words}, {chains:,} chain{'s' * (chains != 1)} of steps as one line" if chains else words

    def shows(self, kind: str, number: int) -> bool:
        """Whether a node of the graph is drawn, or an edge as a line or as part of one."""
        return bool((self.node_of == number).any() if kind == "node" else (self.part == number).any())

    def carries(self, steps: npt.ArrayLike) -> bool:
        """Whether all the given steps (path positions) are drawn."""
        return bool(np.isin(steps, self.step[self.step_edge >= 0]).all())

    def rows_of_node(self, node: int) -> IntArray:
        """Rows that show a moment of the graph; none where it is not drawn."""
        return np.flatnonzero(self.node_of == node)

    def rows_of_edge(self, edge: int) -> IntArray:
        """Rows of drawn edges that an edge of the graph is part of."""
        return np.unique(self.part_edge[self.part == edge])

    def first_part(self, row: int) -> int:
        """The graph's edge with which a drawn edge begins, -1 for the edges of the root."""
        at = np.flatnonzero(self.part_edge == row)
        return int(self.part[at[0]]) if at.size else -1

    def parts_with(self, edge: int) -> list[int]:
        """The graph's edges that share a line with an edge, in order, itself included; none where it is not drawn."""
        rows = self.rows_of_edge(edge)
        return [int(part) for part in self.part[self.part_edge == rows[0]]] if rows.size else []

    def path(self, steps: npt.ArrayLike) -> list[int]:
        """Ids of the drawn edges that carry the given steps (path positions), in their order; a chain counts once in a row."""
        wanted = np.asarray(steps, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.step, wanted), max(self.step.size - 1, 0))
        rows = self.step_edge[at][self.step[at] == wanted] if self.step.size else wanted[:0]
        rows = rows[rows >= 0]
        long = self.edge_length[rows] > 1
        new = np.append(True, (np.diff(rows) != 0) | ~long[1:])[: rows.size]
        return [int(edge) for edge in self.edge_id[rows[new]]]

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
            "length": self.edge_length.tolist(),
            "aside": np.flatnonzero(np.isin(self.node_kind, ["start"])).tolist() if self.lane.size else [],
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

        told = orjson.dumps([self.message, self.shape, self.node_of.tolist()])
        return blake2b(told, digest_size=8).hexdigest()

    @cached_property
    def encoded(self) -> bytes:
        """The message and its version as JSON, written once however often it is sent."""
        import orjson

        return orjson.dumps(self.message | {"version": self.version})


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


def paint(structure: GraphStructure, values: npt.ArrayLike, edge_credit: npt.ArrayLike, **scales: Any) -> GraphPaint:
    """Palette numbers from the credit of every edge of the graph (float64[E], see `mean_per_edge`).

    A line that stands for several edges shows their mean. `values` and scales: see `ink`.
    """
    a = np.asarray(edge_credit, dtype=np.float64)
    return ink(structure, values, _means(a[structure.part], structure.part_edge, structure.edge_id.size), **scales)


def ink(
    structure: GraphStructure,
    values: npt.ArrayLike,
    drawn_credit: npt.ArrayLike,
    *,
    limit: float | None = None,
    value_limits: tuple[float, float] = (0.0, 1.0),
    root_value: float = float("nan"),
    credit_name: str = "credit",
    value_name: str = "chance of success",
) -> GraphPaint:
    """Palette numbers for a drawn structure.

    `values` is V of every node of the graph (float64[N]), `drawn_credit` the credit of every drawn edge (`carried`),
    undefined = NaN. `limit` is the end of the credit scale (default: 95 % of |credit| of the drawn edges); give the same to
    panels that are to be compared.
    """
    v, edge_a = np.asarray(values, dtype=np.float64), np.asarray(drawn_credit, dtype=np.float64)
    node_v = np.where(structure.node_of >= 0, v[np.maximum(structure.node_of, 0)], root_value)
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


def carried(structure: GraphStructure, credit: npt.ArrayLike) -> FloatArray:
    """Mean of the defined credits of the steps that each drawn edge carries (one float64 per row); NaN where none is.

    `credit` is one float64 per step in path order.
    """
    return _means(np.asarray(credit, dtype=np.float64)[structure.step], structure.step_edge, structure.edge_id.size)


def mean_per_edge(graph: TrajectoryGraph, credit: npt.ArrayLike) -> FloatArray:
    """Mean of the defined credits of each edge's steps (float64[E]); NaN where none is.

    `credit` is one float64 per step in batch order, as estimators return it.
    """
    return _means(np.asarray(credit, dtype=np.float64)[graph.batch.order], graph.edge, graph.n_edges)


def _means(values: FloatArray, owner: IntArray, size: int) -> FloatArray:
    """Mean of the defined values of each owner (0 to size - 1; -1 = nobody's)."""
    told = np.isfinite(values) & (owner >= 0)
    total = np.bincount(owner[told], weights=values[told], minlength=size)
    count = np.bincount(owner[told], minlength=size)
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
        ("chain", "several steps in a row, by the same rollouts"),
        ("path", "path of the chosen rollout"),
        ("path2", "path of the second rollout"),
        ("found", "matches the search"),
    ]


def _characters(numbers: IntArray) -> str:
    return "".join(map(chr, (numbers + FIRST_CODE).tolist()))
