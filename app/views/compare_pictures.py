"""Two settings as pictures of one task: beside each other with one choice and one zoom, or what the first says more."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from graft_app import cache
from graft_app.views import graph_tools, takeaway
from graft_app.views.graph import Selection, graph_view, selected
from graft_app.views.where import task_menu
from graft_core.insight import Findings
from graft_core.insight.align import Pair
from graft_core.insight.palette import credit_limit
from graft_core.insight.structure import GraphStructure
from graft_core.rollouts import FloatArray
from graft_core.settings import Settings
from graft_core.takeaway.drawn import without_texts

NODES = 300
LEFT, RIGHT = "compare_left", "compare_right"
Choose = Callable[[int], None]


def show(opened: Any, pair: Pair, at: int | None, which: str, choose: Choose, menu: Any) -> None:
    """Both graphs ("graphs"), or the left one with the difference of the credits on its edges ("difference").

    `at` is the chosen step (path position), `choose` is called with the step that a click in a picture names, `menu` is where
    the menu of tasks goes.
    """
    found = cache.credit_of(*opened.source, pair.left)
    with menu:
        group = task_menu(found)
    names, steps = pair.names, _own(found, group)
    if which == "difference":
        unit = f"{names[0]} − {names[1]}" if pair.same_units else "places apart"
        _picture(opened, pair.left, found, group, pair.difference, unit, LEFT, at, choose, "")
        st.caption(
            f"Blue and solid: {names[0]} gives the step more than {names[1]}; vermilion and dashed: less. "
            + ("" if pair.same_units else "Their units differ, so ranks are compared: by what share of all steps. ")
            + "Moments and positions are those of A."
        )
        return
    limits = [credit_limit(credit[steps]) for credit in pair.credits]
    limits = [max(limits)] * 2 if pair.same_units else limits
    other = cache.credit_of(*opened.source, pair.right)
    each = zip("AB", st.columns(2), (pair.left, pair.right), (found, other), pair.credits, limits, (LEFT, RIGHT), strict=True)
    for side, place, settings, own, credit, limit, key in each:
        with place:
            name = names["AB".index(side)]
            _picture(opened, settings, own, group, credit, name, key, at, choose, f"{side} · {name}", limit)
    if not pair.same_units:
        st.caption("The two have different units: each picture has a scale of its own.")


def _own(found: Findings, group: int) -> Any:
    batch = found.batch
    return np.flatnonzero(batch.group[batch.step_rollout] == group)


def _picture(
    opened: Any, settings: Settings, found: Findings, group: int, credit: FloatArray, name: str, key: str, at: int | None,
    choose: Choose, title: str, limit: float | None = None,
) -> None:
    structure = cache.structure_of(
        opened.source, repr(sorted(settings.graph_words.items())), group, NODES, "merged", (), (), found
    )
    if takeaway.texts_left_out():
        structure = without_texts(structure)
    graph_view(
        structure, graph_tools.inked(found, structure, credit, limit, name, opened.value_word), _chosen(found, group, at),
        key=key, height=480, title=title, with_library=key == LEFT, link="compare" if title else None, near=at,
        on_select=partial(_clicked, found, structure, key, choose),
    )


def _chosen(found: Findings, group: int, at: int | None) -> Selection | None:
    """The edge of the chosen step in this side's graph."""
    if at is None or found.batch.group[found.batch.step_rollout[at]] != group:
        return None
    return {"kind": "edge", "id": int(found.graph.edge[at])}


def _clicked(found: Findings, structure: GraphStructure, key: str, choose: Choose) -> None:
    """A click names a step: the first that takes the edge, or that leaves the moment."""
    choice, graph = selected(key, structure), found.graph
    if choice is None or choice["id"] < 0:
        return
    own = graph.edge if choice["kind"] == "edge" else graph.edge_src[graph.edge]
    steps = np.flatnonzero(own == choice["id"])
    if steps.size:
        choose(int(steps[0]))
