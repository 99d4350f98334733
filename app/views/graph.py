"""The graph on a page: positions and colours come from Python, clicks and keys go back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict

import streamlit as st

from graft_app.views.graph_component import components
from graft_core.insight.picture import GraphPaint, GraphStructure


class Selection(TypedDict):
    """What is selected in a picture: a node or an edge, by the graph's own number (task root: -1)."""

    kind: Literal["node", "edge"]
    id: int


def graph_view(
    structure: GraphStructure,
    paint: GraphPaint,
    selection: Selection | None = None,
    *,
    key: str,
    path: Sequence[int] = (),
    height: int = 620,
    with_library: bool = True,
    on_select: Callable[[], None] | None = None,
    on_flip: Callable[[], None] | None = None,
) -> Selection | None:
    """Draw a graph and return what is selected in it, None for nothing.

    `selection` is what the page wants selected. A change of it is followed, and the node or edge brought into view;
    passing the same value again, or None all the time, leaves the reader's own choice alone. `path` holds the edges
    of a rollout to set off with a band. `on_select` runs before the page when the reader chooses something (then
    `selected(key, structure)` has it), `on_flip` when `x` is pressed in the picture. A page with several pictures
    mounts the library once: `with_library=False` for the others.
    Raises ValueError if `paint` was made for another structure.
    """
    if paint.version != structure.version:
        raise ValueError(f"paint {paint.version} belongs to another structure than {structure.version}")
    mounts = components()
    with st.container(gap=None):
        if with_library:
            mounts.library(key=f"{key}_library")
        mounts.store(key=f"{key}_store", data=structure.message | {"version": structure.version})
        mounts.view(
            key=key,
            data=view_message(paint, selection, height, path),
            on_selection_change=on_select or _nothing,
            on_flip_change=on_flip or _nothing,
        )
    return selected(key, structure)


def selected(key: str, structure: GraphStructure) -> Selection | None:
    """Selection of the picture with this key, as far as it belongs to this structure."""
    state: Any = st.session_state.get(key)
    chosen: Any = state.get("selection") if state else None
    if not chosen or chosen.get("version") != structure.version or chosen.get("kind") not in ("node", "edge"):
        return None
    return {"kind": chosen["kind"], "id": int(chosen["id"])}


def view_message(paint: GraphPaint, selection: Selection | None, height: int, path: Sequence[int] = ()) -> dict[str, Any]:
    """What travels with every change of colour: about one byte per node and edge."""
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
        "selection": dict(selection) if selection else None,
        "path": [int(edge) for edge in path],
        "height": height,
    }


def _nothing() -> None:
    """Streamlit lists a state or trigger in the result only where a callback is given."""
