"""Graph: the merged rollouts of one task, values on nodes, credit on edges, and the details of what is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from graft_app import batch as table
from graft_app import cache, controls, urlstate
from graft_app.views import detail, graph_tools, header, judge, takeaway
from graft_app.views.graph import Selection, asked, graph_view, selected, selected_row
from graft_app.views.text import count, number, one_line
from graft_app.views.where import row_at, step_at, task_menu
from graft_core.credit import estimators
from graft_core.insight import Findings
from graft_core.insight.measures import sink_conflicts
from graft_core.insight.moment import edge_rows, node_rows
from graft_core.insight.palette import credit_limit
from graft_core.insight.search import around, matching, rollouts_at
from graft_core.insight.search import step_at as step_from
from graft_core.insight.sketch import Shape
from graft_core.insight.structure import GraphPaint, GraphStructure, mean_per_edge
from graft_core.rollouts import IntArray
from graft_core.settings import Settings
from graft_core.takeaway.drawn import without_texts

VIEWS = {"a": "graph_picture", "b": "graph_picture_b"}
SIZES = (300, 1000, 2000, 20_000)
READABLE = 2000
SAME_UNITS = ("graft_td", "path_gae", "graft")
AT_ONCE, INTERVALS = 1000, "graph_intervals"
"""Moments of a task up to which intervals are made without asking, and where a visit keeps that they were asked for."""

CHOSEN, BROUGHT = "graph_chosen", "graph_brought"
"""Where a visit keeps the place that was clicked among several of one moment, and what was brought into a large picture."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """What the page draws of one task."""

    found: Findings
    group: int
    structure: GraphStructure
    choice: Selection | None
    rows: list[int]
    matches: IntArray


def chosen(found: Findings, group: int) -> Selection | None:
    """The node or edge the address names, if it belongs to this task's graph."""
    word = st.query_params.get("sel", "")
    kind = {"n": "node", "e": "edge"}.get(word[:1])
    graph = found.graph
    chosen_id = urlstate.whole(word[1:], graph.n_nodes if kind == "node" else graph.n_edges)
    if kind is None or chosen_id is None:
        return None
    owner = graph.node_group[chosen_id if kind == "node" else graph.edge_src[chosen_id]]
    return {"kind": kind, "id": chosen_id} if owner == group else None


def set_off(found: Findings, group: int) -> list[int]:
    """Rollout rows whose paths are set off: those the address marks, else that of its step."""
    step = step_at(found)
    row = -1 if step is None else int(found.batch.step_rollout[step])
    return graph_tools.marked(found.graph, group) or ([row] if row >= 0 and found.batch.group[row] == group else [])


def remember(drawing: Drawing, key: str) -> None:
    """Put the reader's choice in the picture into the address; in lanes the step as well."""
    structure = drawing.structure
    choice, row = selected(key, structure), selected_row(key, structure)
    sel = f"{choice['kind'][0]}{choice['id']}" if choice and choice["id"] >= 0 else None
    st.session_state[CHOSEN] = (structure.version, sel, row)
    words: dict[str, str | None] = {"sel": sel}
    if structure.shape == "lanes" and choice and row is not None:
        edges = [row] if choice["kind"] == "edge" else np.flatnonzero(structure.edge_src == structure.node_id[row]).tolist()
        edges = edges or np.flatnonzero(structure.edge_dst == structure.node_id[row]).tolist()
        step = int(structure.step[structure.step_edge == edges[0]][0])
        words["at"] = str(int(drawing.found.batch.order[step]))
    urlstate.write_all(words)


def other_rollout(drawing: Drawing, key: str) -> None:
    """Set off the next rollout that passes the chosen moment, and name its step there."""
    told, graph = asked(key, drawing.structure), drawing.found.graph
    if told is None:
        return
    node, choice = None, drawing.choice
    if choice is not None:
        node = choice["id"] if choice["kind"] == "node" else int(graph.edge_src[choice["id"]])
    rows = rollouts_at(graph, drawing.group, node)
    now = drawing.rows[0] if drawing.rows else -1
    at = rows.index(now) + told["by"] if now in rows else min(told["by"], 0)
    row = rows[at % len(rows)]
    st.session_state.pop(CHOSEN, None)
    step = int(graph.batch.order[step_from(graph, row, node)])
    urlstate.write_all({"mark": str(row), "at": str(step), "sel": f"n{node}" if node is not None else None})


def flip() -> None:
    urlstate.write("side", None if st.query_params.get("side") == "b" else "b")


def structure_with(
    found: Findings, group: int, settings: Settings, shape: Shape, choice: Selection | None, rows: list[int]
) -> GraphStructure:
    """The picture, and in a large one whatever the reader asked for that it would leave out: positions change only then."""
    size = urlstate.read("nodes", int, SIZES[0])
    words = repr(sorted(settings.graph_words.items()))
    fixed = opened.source, words, group, size if size in SIZES else SIZES[0], shape
    structure = cache.structure_of(*fixed, (), (), found)
    if structure.complete:
        return structure
    batch = found.batch
    steps = [np.arange(*batch.offsets[row : row + 2]) for row in rows]
    lacking = [row for row, own in zip(rows, steps, strict=True) if not structure.carries(own)]
    of, brought = st.session_state.get(BROUGHT, (None, ()))
    brought = brought if of == fixed else ()
    if brought or lacking:
        structure = cache.structure_of(*fixed, brought, tuple(lacking), found)
    if choice is not None and not structure.shows(choice["kind"], choice["id"]):
        brought = tuple(dict.fromkeys([*around(found.graph, choice["kind"], choice["id"]), *brought]))
        st.session_state[BROUGHT] = (fixed, brought)
        structure = cache.structure_of(*fixed, brought, tuple(lacking), found)
    return structure


def painted(drawing: Drawing, settings: Settings, value_word: str) -> dict[str, GraphPaint]:
    """Colours under A and B. Scales are those of the whole task, whatever is drawn of it, and one where the units are one."""
    found, group, structure = drawing.found, drawing.group, drawing.structure
    names = detail.both(found)
    here = found.graph.node_group == group
    own = here[found.graph.edge_src]
    ends = [mean_per_edge(found.graph, found.batch.to_rows(credit))[own] for credit in names.values()]
    if settings.estimator in SAME_UNITS and settings.baseline in SAME_UNITS:
        limits = [credit_limit(*ends)] * 2
    else:
        limits = [credit_limit(each) for each in ends]
    return {
        side: graph_tools.inked(found, structure, credit, limit, name, value_word)
        for side, (name, credit), limit in zip("ab", names.items(), limits, strict=True)
    }


def draw(drawing: Drawing, settings: Settings, value_word: str) -> None:
    """One picture, or A and B beside each other, with what is not on screen in words."""
    found, structure = drawing.found, drawing.structure
    inks = painted(drawing, settings, value_word)
    two = st.query_params.get("panels") == "2"
    side = "b" if st.query_params.get("side") == "b" else "a"
    note = graph_tools.search_words(structure, drawing.matches) if st.query_params.get("find") else ""
    version, sel, row = st.session_state.get(CHOSEN, (None, None, None))
    here = row if version == structure.version and sel == st.query_params.get("sel") else None
    places = st.columns(2) if two else [st.container()]
    for place, each in zip(places, "ab" if two else side, strict=True):
        key = VIEWS[each] if two else VIEWS["a"]
        with place:
            graph_view(
                structure, inks[each], drawing.choice, key=key, height=560, note=note if each == "a" or not two else "",
                title=f"{each.upper()} · {inks[each].credit_name}" if two else "",
                marks=graph_tools.marks_of(found.graph, structure, drawing.rows, drawing.matches),
                row=None if structure.shape == "lanes" else here, near=step_at(found), with_library=key == VIEWS["a"],
                link="graph" if two else None, on_select=partial(remember, drawing, key), on_flip=flip,
                on_rollout=partial(other_rollout, drawing, key),
            )
    below(drawing, settings, inks[side])


def below(drawing: Drawing, settings: Settings, paint: GraphPaint) -> None:
    """What is under the picture: how much to draw, and the way to take it away."""
    structure = drawing.structure
    left, right, away = st.columns([2.2, 1, 1.1], vertical_alignment="center")
    with away:
        take_away(drawing, settings, paint)
    words = f"{graph_tools.MEANING[structure.shape]}. Positions depend on the graph alone, never on λ, estimator or baseline."
    if structure.nodes_drawn > READABLE:
        words = f"More than {READABLE:,} nodes are slow to draw and hard to read. {words}"
    left.caption(words)
    size = urlstate.read("nodes", int, SIZES[0])
    if not structure.complete or size != SIZES[0]:
        right.selectbox(
            "Draw at most", SIZES, label_visibility="collapsed",
            format_func=lambda n: f"at most {n:,} nodes" + (" (slow)" if n > READABLE else ""),
            **urlstate.bind("nodes", size if size in SIZES else SIZES[0], SIZES[0]),
        )


@st.fragment
def take_away(drawing: Drawing, settings: Settings, paint: GraphPaint) -> None:
    """The menu; only where texts are left out or come back does the picture change with it."""
    before = takeaway.texts_left_out()
    takeaway.graph_menu(opened, settings, drawing.found, drawing.group, drawing.structure, paint)
    if takeaway.texts_left_out() != before:
        st.rerun()


def sides(settings: Settings) -> None:
    """Which credit colours the edges: A, B, or each in a picture of its own."""
    known = estimators()
    titles = {"a": f"A · {known[settings.estimator].title}", "b": f"B · {known[settings.baseline].title}", "2": "Both"}
    now = "2" if st.query_params.get("panels") == "2" else "b" if st.query_params.get("side") == "b" else "a"
    key = "url_side"
    if st.session_state.get(key) != now:
        st.session_state[key] = now

    def changed() -> None:
        side = st.session_state[key]
        urlstate.write_all({"panels": "2" if side == "2" else None, "side": "b" if side == "b" else None})

    st.segmented_control(
        "Edges show (key x)", list(titles), format_func=lambda s: titles[s], required=True, key=key, on_change=changed,
        help="Both: A and B beside each other, with one choice and one zoom; for wide windows.",
    )


def explained(found: Findings, settings: Settings) -> Findings:
    """The findings with intervals. On graphs on which these take seconds they are made when a reader asks for them."""
    large = int(np.bincount(found.graph.node_group).max(initial=0)) > AT_ONCE
    if large and not st.session_state.get(INTERVALS):
        st.button(
            "How certain is this?", icon=":material/straighten:", help="Intervals of a graph this large take some seconds.",
            on_click=lambda: st.session_state.update({INTERVALS: True}),
        )
        return found
    return opened.findings(settings)


def lambda_line(found: Findings, settings: Settings) -> None:
    """What lambda changes on this data, for the whole batch."""
    with table.sentences():
        rows = cache.lambda_effect(*opened.source, settings)
    counts = [row["good_steps"] for row in rows]
    if len(set(counts)) == 1 and not any(row["sign_changes"] for row in rows):
        st.caption("λ changes no sign on this data: path credit lists the same good steps for every λ from 0 to 1.")
        return
    listed = ", ".join(f"{row['good_steps']} at {row['lam']:g}" for row in rows)
    last = rows[-1]
    st.caption(
        f"What λ changes here: path GAE would list this many good steps in failures: {listed}. From λ 0 to 1, "
        f"{count(last['sign_changes'], 'step')} of {found.batch.n_steps:,} change sign; at λ 1 no step of a failed rollout "
        "can be positive, since credit is then the outcome minus the value."
    )


def conflicts(found: Findings) -> None:
    """Final states that do not behave like ends."""
    facts = sink_conflicts(found.graph)
    if not facts["states"]:
        return
    title = (
        f"Ends: {count(facts['left_again_states'], 'final state')} that another rollout leaves again "
        f"({count(facts['left_again_rollouts'], 'rollout')}), {facts['outcomes_states']} with different outcomes "
        f"({count(facts['outcomes_rollouts'], 'rollout')})"
    )
    with st.expander(title):
        st.caption(
            "With sinks = split (the default) each end is a node of its own per outcome, and neither conflict touches a value; "
            "merge and bootstrap treat them differently (Expert)."
        )
        st.dataframe(
            pd.DataFrame(
                [
                    {
                        "task": one_line(s["group_id"], 40), "final text": one_line(s["final_observation"]),
                        "rollouts": one_line(", ".join(s["rollouts"])), "outcomes": ", ".join(number(o) for o in s["outcomes"]),
                        "left again": s["left_again"], "different outcomes": s["different_outcomes"],
                    }
                    for s in facts["states"]
                ]
            ),
            hide_index=True, alt="final states with conflicts",
        )


@st.fragment
def drawer(settings: Settings) -> None:
    """The expert options; to open or close them moves nothing else."""
    controls.expert_drawer(settings)
    if controls.current() != settings:
        st.rerun()


@st.fragment
def twin(found: Findings, group: int) -> None:
    """The same as tables: every moment and every step of the task."""
    with st.expander("The same as tables", on_change="rerun", key="twin") as box:
        if not box.open:
            return
        per_edge = {n: mean_per_edge(found.graph, found.batch.to_rows(x)) for n, x in detail.both(found).items()}
        nodes = pd.DataFrame(node_rows(found.graph, found.values.v, group))
        nodes["text"] = [one_line(t) for t in nodes["text"]]
        edges = pd.DataFrame(edge_rows(found.graph, group, **per_edge))
        edges["action"] = [one_line(t) for t in edges["action"]]
        values = {"value": st.column_config.NumberColumn(format="%.3f")}
        st.dataframe(nodes, hide_index=True, alt="moments", column_config=values)
        signed = {n: st.column_config.NumberColumn(format="%+.3f") for n in per_edge}
        st.dataframe(edges, hide_index=True, alt="steps", column_config=signed)


opened = header.start()
with table.sentences():
    settings = controls.current()
    found = cache.credit_of(*opened.source, settings)
if found.batch.n_steps == 0:
    st.info("These rollouts have no steps, so there is no graph to draw.")
    st.stop()
top = st.columns([1.2, 1.7, 1.2, 0.8], vertical_alignment="bottom")
with top[0]:
    group = task_menu(found)
with top[1]:
    sides(settings)
with top[2]:
    controls.lambda_slider(settings)
with top[3]:
    drawer(settings)
shape = graph_tools.shape_now()
choice, rows = chosen(found, group), set_off(found, group)
structure = structure_with(found, group, settings, shape, choice, rows)
if takeaway.texts_left_out():  # the picture's own PNG button must not carry them either
    structure = without_texts(structure)
matches = matching(found.graph, group, st.query_params.get("find", ""))
second = st.columns([1.1, 1.3, 1.25, 1.25], vertical_alignment="center")
with second[0]:
    graph_tools.shape_menu(shape)
with second[1]:
    graph_tools.search_box(
        lambda: graph_tools.in_reading_order(structure, matches), choice["id"] if choice and choice["kind"] == "node" else None
    )
with second[2]:
    graph_tools.mark_menu(found.graph, group, 0)
with second[3]:
    if st.query_params.get("mark"):
        graph_tools.mark_menu(found.graph, group, 1)
drawing = Drawing(found, group, structure, choice, rows, matches)
beside = st.query_params.get("panels") == "2"
main, side = (st.container(), st.columns([1, 1])[0]) if beside else st.columns([1.9, 1])
with main:
    draw(drawing, settings, opened.value_word)
with side:
    if choice is None:
        detail.nothing(found, group)
    elif choice["kind"] == "node":
        detail.moment(found, choice["id"], opened.value_word)
    else:
        graph_tools.chain_menu(found.graph, structure, choice["id"])
        step = detail.step(
            found, choice["id"], opened.value_word, row_at(found), lambda row: urlstate.write("at", str(row)),
            partial(explained, found, settings),
        )
        judge.show(opened, settings, step)
lambda_line(found, settings)
controls.credit_row(settings, "The credit that decides what is good.", "The credit shown beside it.", drawer=False)
conflicts(found)
twin(found, group)
