"""One task's picture made ready to leave: structure and colours from findings, with texts or without."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from graft_core.credit import estimators
from graft_core.errors import UsageError
from graft_core.graph import TrajectoryGraph
from graft_core.insight.findings import Findings
from graft_core.insight.picture import picture
from graft_core.insight.structure import GraphPaint, GraphStructure, mean_per_edge, paint
from graft_core.rollouts import RolloutBatch

ENDINGS = ("success", "failure", "unknown", "root")
LINE = 14.0
LABEL_GAP = 13.0
"""Pixels from the border of a node to the base line of its label."""


def value_word(batch: RolloutBatch) -> str:
    """'chance of success' where outcomes are 0 or 1, else 'expected score'."""
    known = batch.outcome[batch.known]
    return "chance of success" if bool(((known == 0) | (known == 1)).all()) else "expected score"


def group_code(batch: RolloutBatch, group: int | str) -> int:
    """Number of a task given by number or id. Raises `UsageError` for one that is not in the batch."""
    if isinstance(group, str):
        if group not in batch.group_ids:
            raise UsageError(f"there is no task {group!r} in {batch.name!r}; it has {batch.n_groups} tasks")
        return batch.group_ids.index(group)
    if not 0 <= group < batch.n_groups:
        raise UsageError(f"there is no task {group}; tasks are 0 to {batch.n_groups - 1}")
    return int(group)


def painted(
    graph: TrajectoryGraph, structure: GraphStructure, v: npt.ArrayLike, credit: npt.ArrayLike, credit_name: str
) -> GraphPaint:
    """Colours of one task: v is float64[N], credit float64[n_steps] in batch order."""
    values = np.asarray(v, dtype=np.float64)
    word = value_word(graph.batch)
    low, high = 0.0, 1.0
    if not word.startswith("chance"):
        here = values[(graph.node_group == structure.group) & np.isfinite(values)]
        low, high = (float(here.min()), float(here.max())) if here.size else (0.0, 1.0)
    return paint(
        structure, values, mean_per_edge(graph, credit), value_limits=(low, high if high > low else low + 1.0),
        root_value=graph.root_value(structure.group, values), credit_name=credit_name, value_name=word,
    )


def drawn(found: Findings, group: int, max_nodes: int = 300) -> tuple[GraphStructure, GraphPaint]:
    """The picture of a task as the graph page shows it first: credit A, not normalised, on the edges."""
    structure = picture(found.graph, group, max_nodes=max_nodes)
    title = estimators()[found.settings.estimator].title
    return structure, painted(found.graph, structure, found.values.v, found.batch.to_rows(found.credit), title)


def without_texts(structure: GraphStructure) -> GraphStructure:
    """The same picture with numbers for texts: "moment 12", "step 33"; how rollouts end is no text of theirs."""
    labels = tuple(
        label if kind in ENDINGS or (structure.lane.size and kind == "start") else f"moment {node}"
        for node, kind, label in zip(structure.node_of.tolist(), structure.node_kind, structure.node_label, strict=True)
    )
    return replace(
        structure,
        node_label=labels,
        node_tip=tuple(tip.partition("\n")[0] for tip in structure.node_tip),
        edge_label=tuple(step_name(structure, row) for row in range(structure.edge_id.size)),
        edge_tip=tuple(tip.partition("\n")[0] for tip in structure.edge_tip),
    )


def step_name(structure: GraphStructure, row: int) -> str:
    """A drawn edge without its text: "step 33", "5 steps"; nothing for the edges of the root."""
    edge, length = structure.first_part(row), int(structure.edge_length[row])
    return "" if edge < 0 else f"step {edge}" if length == 1 else f"{length} steps"


def placed_labels(structure: GraphStructure, at: Sequence[tuple[float, float]], radius: Sequence[float]) -> list[int]:
    """Rows of the nodes whose label is drawn: the most visited first, as far as no label covers another."""
    taken: defaultdict[int, list[tuple[float, float, float]]] = defaultdict(list)  # by bands of one line's height
    placed = []
    for i in sorted(range(len(at)), key=lambda i: (-int(structure.node_visits[i]), i)):
        x, y, half = at[i][0], at[i][1] + radius[i] + LABEL_GAP, 3.3 * len(structure.node_label[i]) + 4
        band = int(y // LINE)
        near = (label for b in (band - 1, band, band + 1) for label in taken[b])
        if structure.node_label[i] and all(abs(x - tx) > half + other or abs(y - ty) > LINE for tx, ty, other in near):
            taken[band].append((x, y, half))
            placed.append(i)
    return placed


def check_paint(structure: GraphStructure, paint: GraphPaint) -> None:
    """Raise ValueError where the colours were made for another picture."""
    if paint.version != structure.version:
        raise ValueError(f"paint {paint.version} belongs to another structure than {structure.version}")
