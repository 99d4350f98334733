"""The Python side of the graph component: what it registers, sends and hands back."""

from __future__ import annotations

import re
from importlib import resources

import pytest
from drawn_graphs import graph_of
from streamlit.testing.v1 import AppTest

from graft_app.views import graph as view
from graft_app.views import graph_component
from graft_core.insight.picture import picture
from graft_core.insight.structure import GraphPaint

PAGE = """
import numpy as np
import pyarrow as pa
import streamlit as st
from graft_app.views.graph import graph_view
from graft_core.graph import build_graph
from graft_core.insight.picture import picture
from graft_core.insight.structure import paint
from graft_core.rollouts import ROLLOUT_SCHEMA, STEP_SCHEMA, TEXT_SCHEMA, RolloutBatch

head = {"group_id": "g", "rollout_id": "r", "outcome": 1.0, "n_steps": 2, "final_observation": 2, "group_assumed": False,
        "order_doubtful": False, "source": "made", "metadata": "{}"}
steps = [{"rollout": 0, "step": t, "observation": t, "action": 3} for t in range(2)]
texts = [{"id": i, "text": t} for i, t in enumerate(["hall", "roof", "goal", "walk"])]
batch = RolloutBatch(pa.Table.from_pylist([head], schema=ROLLOUT_SCHEMA), pa.Table.from_pylist(steps, schema=STEP_SCHEMA),
                     pa.Table.from_pylist(texts, schema=TEXT_SCHEMA))
graph = build_graph(batch)
drawn = picture(graph, 0)
inks = paint(drawn, np.ones(graph.n_nodes), np.zeros(graph.n_edges))
st.text(f"selected {graph_view(drawn, inks, key='g')}")
graph_view(drawn, inks, key="h", with_library=False, height=300)
"""


@pytest.mark.parametrize("run", [1, 2])
def test_a_page_mounts_the_library_once_and_each_picture(run: int) -> None:
    page = AppTest.from_string(PAGE, default_timeout=20).run()
    assert not page.exception
    assert len(page.get("bidi_component")) == 5  # one library, two structures, two pictures
    assert page.text[0].value == "selected None"


def test_the_library_brings_no_global_name_and_asks_for_nothing() -> None:
    script = graph_component.library_script()
    assert script.count("vis.Network") >= 1 and "sourceMappingURL" not in script
    own = "".join(graph_component._read(name) for name in graph_component.DRAWING_FILES)
    assert not re.search(r"https?://|fetch\(|XMLHttpRequest|import\(|eval\(|innerHTML|insertAdjacentHTML", own)
    assert not re.search(r"(window|globalThis)\.\w+\s*=[^=]", own)


def test_the_library_is_read_from_pyvis_and_not_kept_here() -> None:
    sizes = [
        len(graph_component._read(entry.name))
        for entry in resources.files(graph_component).iterdir()
        if entry.name.endswith(".js")
    ]
    assert len(sizes) >= 8 and max(sizes) < 20_000


def test_code_that_travels_with_every_colour_is_small() -> None:
    assert len(graph_component._module("view.js")) < 2_000
    assert len(graph_component._module("view.js")) + len(graph_component._read("style.css")) < 6_000


def test_paint_travels_as_one_character_per_node_and_edge() -> None:
    graph = graph_of(("a x b y c", 1.0), ("a x b z d", 0.0))
    drawn = picture(graph, 0)
    inks = GraphPaint(drawn.version, "0" * 300, "1" * 800, 0.5, (0.0, 1.0))
    marks = view.Marks([("r0", drawn.path([0, 1]))], [1])
    message = view.view_message(drawn, inks, {"kind": "edge", "id": 1}, 600, marks)
    assert message["nodes"] == "0" * 300 and message["edges"] == "1" * 800
    assert message["selection"] == {"kind": "edge", "id": 1} and message["twins"] == []
    assert message["paths"] == [{"name": "r0", "edges": graph.edge[:2].tolist()}] and message["found"] == [1]
    assert len(repr(message)) < 1_600


def test_a_moment_drawn_often_is_shown_where_it_was_chosen_or_where_the_step_passes() -> None:
    graph = graph_of(("a x b y c", 1.0), ("a x b z d", 0.0), ("a x b y c", 1.0))
    lanes = picture(graph, 0, shape="lanes")  # r0, r2, r1
    middle: view.Selection = {"kind": "node", "id": int(graph.src[1])}
    assert view.drawn_rows(lanes, middle) == [1, 4, 7]
    assert view.drawn_rows(lanes, middle, chosen=7) == [7, 1, 4]
    assert view.drawn_rows(lanes, middle, near=3)[0] == 7  # r1's step from b
    edge: view.Selection = {"kind": "edge", "id": int(graph.edge[0])}
    assert view.drawn_rows(lanes, edge, near=4)[0] == 2  # r2's first step
    assert view.drawn_rows(picture(graph, 0), middle) == [1]


def test_paint_of_another_structure_is_refused() -> None:
    class Other:
        version = "b"

    with pytest.raises(ValueError, match="paint a belongs to another structure than b"):
        view.graph_view(Other(), GraphPaint("a", "", "", 1.0, (0.0, 1.0)), key="g")  # type: ignore[arg-type]
