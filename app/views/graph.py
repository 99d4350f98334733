"""The graph on a page: positions and colours come from Python, clicks and keys go back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import numpy as np
import streamlit as st

from graft_app.views.graph_component import components
from graft_core.insight.structure import GraphPaint, GraphStructure

SEARCH = "Find in the graph"
"""Label of the search box that `/` goes to."""


class Selection(TypedDict):
    """What is selected in a picture: a node or an edge, by the graph's own number (task root: -1)."""

    kind: Literal["node", "edge"]
    id: int


@dataclass(frozen=True)
class Marks:
    """What a picture sets off: paths (name, ids of drawn edges; at most two), and the moments that a search found."""

    paths: Sequence[tuple[str, Sequence[int]]] = ()
    found: Sequence[int] = ()


class Asked(TypedDict):
    """What `n` and `p` ask for: the same moment in the next (1) or previous (-1) rollout; `row` as in `selected_row`."""

    by: int
    row: int | None


def graph_view(
    structure: GraphStructure,
    paint: GraphPaint,
    selection: Selection | None = None,
    *,
    key: str,
    marks: Marks | None = None,
    row: int | None = None,
    near: int | None = None,
    title: str = "",
    note: str = "",
    height: int = 620,
    with_library: bool = True,
    link: str | None = None,
    on_select: Callable[[], None] | None = None,
    on_flip: Callable[[], None] | None = None,
    on_rollout: Callable[[], None] | None = None,
) -> Selection | None:
    """Draw a graph and return what is selected in it, None for nothing.

    `selection` is what the page wants selected. A change of it is followed, and the node or edge brought into view;
    passing the same value again, or None all the time, leaves the reader's own choice alone. A moment that is drawn several
    times is selected in `row`, else where the step `near` (path position) passes. `title` stands before the caption, `note`
    after it. `on_select` runs before the page when the reader chooses something (then `selected(key, structure)` has it),
    `on_flip` when `x` is pressed in the picture, `on_rollout` when another rollout is asked for (`asked`). Pictures with the
    same `link` move together. A page with several pictures mounts the library once: `with_library=False` for the others.
    Raises ValueError if `paint` was made for another structure.
    """
    if paint.version != structure.version:
        raise ValueError(f"paint {paint.version} belongs to another structure than {structure.version}")
    mounts = components()
    with st.container(gap=None):
        if with_library:
            mounts.library(key=f"{key}_library")
        mounts.store(key=f"{key}_store", data=structure.encoded)
        mounts.view(
            key=key,
            data=view_message(structure, paint, selection, height, marks or Marks(), row, near)
            | {"link": link, "title": title, "note": note},
            on_selection_change=on_select or _nothing,
            on_flip_change=on_flip or _nothing,
            on_rollout_change=on_rollout or _nothing,
        )
    return selected(key, structure)


def selected(key: str, structure: GraphStructure) -> Selection | None:
    """Selection of the picture with this key, as far as it belongs to this structure."""
    chosen = _told(key, "selection", structure)
    row = _row(chosen, structure)
    if chosen is None or row is None:
        return None
    number = int(structure.node_of[row]) if chosen["kind"] == "node" else structure.first_part(row)
    return {"kind": chosen["kind"], "id": number}


def selected_row(key: str, structure: GraphStructure) -> int | None:
    """Row of the drawn node or edge that was chosen in the picture."""
    return _row(_told(key, "selection", structure), structure)


def asked(key: str, structure: GraphStructure) -> Asked | None:
    """What `n` or `p` asked for just now."""
    told = _told(key, "rollout", structure)
    return None if told is None else {"by": 1 if told.get("by") == 1 else -1, "row": _row(told, structure)}


def _told(key: str, name: str, structure: GraphStructure) -> Any:
    state: Any = st.session_state.get(key)
    told: Any = state.get(name) if state else None
    return told if told and told.get("version") == structure.version else None


def _row(told: Any, structure: GraphStructure) -> int | None:
    if not told or told.get("kind") not in ("node", "edge"):
        return None
    rows = np.flatnonzero((structure.node_id if told["kind"] == "node" else structure.edge_id) == int(told["id"]))
    return int(rows[0]) if rows.size else None


def drawn_rows(
    structure: GraphStructure, selection: Selection, chosen: int | None = None, near: int | None = None
) -> list[int]:
    """Rows that show a selection: first the one the reader chose, or the one at the step `near`."""
    is_node = selection["kind"] == "node"
    rows = (structure.rows_of_node if is_node else structure.rows_of_edge)(selection["id"]).tolist()
    beside = -1
    if near is not None and structure.step.size:
        at = min(int(np.searchsorted(structure.step, near)), structure.step.size - 1)
        edge = int(structure.step_edge[at]) if structure.step[at] == near else -1
        if edge >= 0:
            ends = (structure.edge_src[edge], structure.edge_dst[edge])
            beside = next((r for r in rows if structure.node_id[r] in ends), -1) if is_node else edge
    return sorted(rows, key=lambda row: (row != chosen, row != beside, row))


def view_message(
    structure: GraphStructure,
    paint: GraphPaint,
    selection: Selection | None,
    height: int,
    marks: Marks,
    chosen: int | None = None,
    near: int | None = None,
) -> dict[str, Any]:
    """What travels with every change of colour: about one byte per node and edge."""
    ids = structure.node_id if selection and selection["kind"] == "node" else structure.edge_id
    rows = drawn_rows(structure, selection, chosen, near) if selection else []
    found = np.flatnonzero(np.isin(structure.node_of, np.asarray(marks.found, dtype=np.int64)))
    return {
        "version": paint.version,
        "nodes": paint.nodes,
        "edges": paint.edges,
        "scales": {
            "credit": paint.credit_limit,
            "creditName": paint.credit_name,
            "value": list(paint.value_limits),
            "valueName": paint.value_name,
        },
        "selection": {"kind": selection["kind"], "id": int(ids[rows[0]])} if selection and rows else None,
        "twins": [int(ids[row]) for row in rows[1:]],
        "paths": [{"name": name, "edges": [int(edge) for edge in edges]} for name, edges in marks.paths],
        "found": [int(node) for node in structure.node_id[found]],
        "search": SEARCH,
        "height": height,
    }


def _nothing() -> None:
    """Streamlit lists a state or trigger in the result only where a callback is given."""
