"""The second row above the graph: shape, search, and the rollouts to set off; and what they mean for the picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import streamlit as st

from graft_app import urlstate
from graft_app.views.graph import SEARCH, Marks
from graft_app.views.text import count, one_line
from graft_core.graph import TrajectoryGraph
from graft_core.insight import Findings
from graft_core.insight.search import rollouts_at
from graft_core.insight.sketch import Shape
from graft_core.insight.structure import GraphPaint, GraphStructure, carried, ink
from graft_core.rollouts import FloatArray

SHAPES: Final[dict[Shape, str]] = {"merged": "Merged", "tree": "Tree", "lanes": "Lanes"}
MEANING: Final[dict[Shape, str]] = {
    "merged": "Merged: rollouts meet wherever they are in the same moment",
    "tree": "Tree: rollouts stay together only while all they saw and did is the same; values are those of the merged moments",
    "lanes": "Lanes: each rollout in a row of its own, nothing merged; values are those of the merged moments",
}
MARKS: Final = ("mark", "mark2")


def value_limits(graph: TrajectoryGraph, values: FloatArray, group: int, value_word: str) -> tuple[float, float]:
    """Ends of the value scale of a task: 0 and 1 for chances, else its least and its largest value."""
    known = values[(graph.node_group == group) & np.isfinite(values)]
    if not known.size or value_word.startswith("chance"):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    return low, high if high > low else low + 1.0


def inked(
    found: Findings, structure: GraphStructure, credit: FloatArray, limit: float | None, credit_name: str, value_word: str
) -> GraphPaint:
    """A picture's colours for the credit of every step (path order): V on nodes, mean credit on edges."""
    v, group = found.values.v, structure.group
    return ink(
        structure, v, carried(structure, credit), limit=limit, value_limits=value_limits(found.graph, v, group, value_word),
        root_value=found.graph.root_value(group, v), credit_name=credit_name, value_name=value_word,
    )


def shape_now() -> Shape:
    """The shape that the address names."""
    shape: Shape = urlstate.read("shape", lambda word: {name: name for name in SHAPES}[word], "merged")
    return shape


def shape_menu(shape: Shape) -> None:
    """Merged, prefix tree, lanes."""
    st.segmented_control(
        "Draw", list(SHAPES), format_func=lambda s: SHAPES[s], required=True, label_visibility="collapsed",
        **urlstate.bind("shape", shape, "merged"),
    )


def marked(graph: TrajectoryGraph, group: int) -> list[int]:
    """Rollout rows of this task that the address sets off: none, one or two."""
    rows = (urlstate.whole(st.query_params.get(name, ""), graph.batch.n_rollouts) for name in MARKS)
    return [row for row in rows if row is not None and graph.batch.group[row] == group]


def rollout_words(graph: TrajectoryGraph, row: int) -> str:
    """"r5 · failed · 12 steps"."""
    success = float(graph.batch.success[row])
    ended = "?" if success != success else "succeeded" if success == 1 else "failed"
    return f"{one_line(graph.batch.rollout_ids[row], 24)} · {ended} · {count(int(graph.batch.lengths[row]), 'step')}"


def mark_menu(graph: TrajectoryGraph, group: int, rank: int) -> None:
    """Which rollout is set off; a second one (rank 1) beside it."""
    name = MARKS[rank]
    rows = rollouts_at(graph, group, None)
    now = urlstate.whole(st.query_params.get(name, ""), graph.batch.n_rollouts)
    st.selectbox(
        ("Set off a rollout", "and another one")[rank], rows, index=None, format_func=lambda row: rollout_words(graph, row),
        placeholder=("set off a rollout", "and another one")[rank], label_visibility="collapsed",
        **urlstate.bind(name, now if now in rows else None, None),
    )


def search_box(matches: Callable[[], list[int]], chosen: int | None) -> None:
    """A text to look for in observations and actions, and the way from match to match (graph nodes, in order)."""
    words = st.query_params.get("find", "")
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.text_input(
            SEARCH, placeholder="find text ( / )", max_chars=200, icon=":material/search:", label_visibility="collapsed",
            **urlstate.bind("find", words, ""),
        )
        if words:
            for name, by in (("Back", -1), ("Next", 1)):
                st.button(
                    name, key=f"find {by}", help="to the match before, or after", type="tertiary", width="content",
                    on_click=_go, args=(matches, chosen, by),
                )


def _go(matches: Callable[[], list[int]], chosen: int | None, by: int) -> None:
    nodes = matches()
    if nodes:
        at = nodes.index(chosen) + by if chosen in nodes else min(by, 0)
        urlstate.write("sel", f"n{nodes[at % len(nodes)]}")


def chain_menu(graph: TrajectoryGraph, structure: GraphStructure, edge: int) -> None:
    """Where a line stands for several steps: which of them is explained."""
    parts = structure.parts_with(edge)
    if len(parts) < 2:
        return
    actions = [one_line(graph.batch.text(int(graph.edge_text[part])), 60) for part in parts]
    if st.session_state.get("chain_part") != edge:
        st.session_state["chain_part"] = edge
    st.selectbox(
        f"One line for {len(parts)} steps in a row", parts, key="chain_part",
        format_func=lambda part: f"{parts.index(part) + 1}. {actions[parts.index(part)]}",
        on_change=lambda: urlstate.write("sel", f"e{st.session_state['chain_part']}"),
    )


def in_reading_order(structure: GraphStructure, nodes: Any) -> list[int]:
    """Matches from left to right as they are drawn, those that are not drawn last."""
    first: dict[int, int] = {}
    for node, layer in zip(structure.node_of.tolist(), structure.layer.tolist(), strict=True):
        first[node] = min(layer, first.get(node, layer))
    beyond = int(structure.layer.max(initial=0)) + 1
    return sorted(nodes.tolist(), key=lambda node: (first.get(node, beyond), node))


def search_words(structure: GraphStructure, nodes: Any) -> str:
    """"7 moments match, 2 of them not drawn"."""
    hidden = int((~np.isin(nodes, structure.node_of)).sum())
    more = f", {hidden:,} of them not drawn" if hidden else ""
    return f"{count(int(nodes.size), 'moment matches', 'moments match')}{more}" if nodes.size else "no moment matches"


def marks_of(graph: TrajectoryGraph, structure: GraphStructure, rows: list[int], found: Any) -> Marks:
    """Paths of the given rollouts in this picture, and the moments that were found."""
    paths = []
    for row in rows:
        start, end = graph.batch.offsets[row : row + 2].tolist()
        paths.append((rollout_words(graph, row), structure.path(np.arange(start, end))))
    return Marks(paths, found)
