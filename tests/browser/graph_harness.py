"""A page that draws made-up graphs, for the browser tests: `streamlit run graph_harness.py`, then `?n=300`.

Parameters: n (nodes), max (drawn nodes), hostile=1 (texts that would run if they were read as HTML), tab=1 (the
graph in a tab that is hidden at first), panels=2 (two pictures of one structure), roots=1 (several starts),
rollout=K (set off the path of a rollout; twice for two), found=N (ring a node), link=1 (the panels move together),
shape=tree or lanes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

sys.path.append(str(Path(__file__).parent / "support"))
from wandering import random_batch

from graft_app.views.graph import Marks, graph_view, selected
from graft_core.graph import TrajectoryGraph, build_graph
from graft_core.insight.picture import picture
from graft_core.insight.structure import GraphStructure, paint


@st.cache_resource(max_entries=8)
def made(n_nodes: int, hostile: bool, roots: bool, max_nodes: int, shape: Any) -> tuple[TrajectoryGraph, GraphStructure]:
    graph = build_graph(random_batch(n_nodes, hostile, roots))
    return graph, picture(graph, 0, max_nodes=max_nodes, shape=shape)


def colours(graph: TrajectoryGraph, amount: float) -> tuple[Any, Any]:
    """Made-up values and credits that all change with `amount`."""
    at = np.arange(graph.n_nodes)
    v = np.where(np.isnan(graph.sink_value), 0.5 + 0.45 * np.sin(at * 0.7 + 6 * amount), graph.sink_value)
    v = np.where(at % 23 == 7, np.nan, v)
    edge = np.arange(graph.n_edges)
    a = np.sin(edge * 1.3 + 9 * amount) * (0.3 + 0.7 * amount)
    return v, np.where(edge % 19 == 3, np.nan, np.where(edge % 5 == 0, 0.0, a))


def flipped() -> None:
    st.session_state["flips"] = st.session_state.get("flips", 0) + 1


def main() -> None:
    st.set_page_config(layout="wide", page_title="graph harness")
    asked = st.query_params
    left, middle, right, far, last = st.columns(5, vertical_alignment="bottom")
    n_nodes = int(asked.get("n", 300)) // (4 if right.checkbox("smaller") else 1)
    hostile, roots, most = asked.get("hostile") == "1", asked.get("roots") == "1", int(asked.get("max", 300))
    graph, structure = made(n_nodes, hostile, roots, most, asked.get("shape", "merged"))
    amount = left.slider("lambda", 0.0, 1.0, 0.3, 0.1, key="lambda")
    wanted = middle.number_input("select node", min_value=-9, value=-9, key="wanted")
    far.button("unrelated")
    if last.checkbox("away"):
        return
    v, a = colours(graph, amount)
    inks = paint(structure, v, a, limit=1.0, root_value=0.5)
    pick: Any = {"kind": "node", "id": int(wanted)} if wanted > -9 else None
    room = st.tabs(["other", "graph"])[1] if asked.get("tab") == "1" else st.container()
    with room:
        paths = [(f"r{row}", structure.path(np.flatnonzero(graph.batch.step_rollout == row)))
                 for row in map(int, asked.get_all("rollout"))]  # fmt: skip
        marks, size = Marks(paths, [int(node) for node in asked.get_all("found")]), int(asked.get("height", 640))
        link = "both" if asked.get("link") == "1" else None
        graph_view(structure, inks, pick, key="g", marks=marks, height=size, on_flip=flipped, link=link)
        if asked.get("panels") == "2":
            other = paint(structure, 1 - v, -a, limit=1.0)
            graph_view(structure, other, selected("g", structure), key="h", height=size, with_library=False, link=link)
    chosen = selected("g", structure)
    st.text(f"selected: {chosen['kind']} {chosen['id']}" if chosen else "selected: nothing")
    st.text(f"flips: {st.session_state.get('flips', 0)}")
    st.text(f"drawn: {structure.caption}")


if __name__ == "__main__":
    main()
