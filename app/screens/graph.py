"""Graph: the merged rollouts of one task, values on nodes, credit on edges, and the details of what is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from graft_app import batch as table
from graft_app import cache, controls, urlstate
from graft_app.views import detail, header, judge, takeaway
from graft_app.views.graph import Selection, graph_view, selected
from graft_app.views.text import count, number, one_line
from graft_app.views.where import row_at, task_menu
from graft_core.credit import estimators
from graft_core.insight import Findings
from graft_core.insight.measures import sink_conflicts
from graft_core.insight.moment import edge_rows, node_rows
from graft_core.insight.palette import credit_limit
from graft_core.insight.picture import GraphStructure, mean_per_edge, paint, picture
from graft_core.settings import LOOK, Settings
from graft_core.takeaway.drawn import without_texts

VIEW = "graph_picture"
SIZES = (300, 1000, 2000)
SAME_UNITS = ("graft_td", "path_gae", "graft")


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


def path_of(found: Findings, group: int) -> list[int]:
    """Edges of the rollout whose step the address names."""
    step = row_at(found)
    row = -1 if step is None else int(found.batch.step_rollout_rows[step])
    if row < 0 or found.batch.group[row] != group:
        return []
    start, end = found.batch.offsets[row : row + 2].tolist()
    return [int(e) for e in found.graph.edge[start:end]]


def remember(structure: GraphStructure) -> None:
    """Put the reader's choice in the picture into the address."""
    choice = selected(VIEW, structure)
    urlstate.write("sel", f"{choice['kind'][0]}{choice['id']}" if choice and choice["id"] >= 0 else None)


def flip() -> None:
    urlstate.write("side", None if st.query_params.get("side") == "b" else "b")


@st.cache_resource(max_entries=32, show_spinner="Placing the graph ...")
def structure_of(source: Any, graph_words: str, group: int, size: int, _found: Findings) -> GraphStructure:
    return picture(_found.graph, group, max_nodes=size)


def draw(found: Findings, group: int, settings: Settings, value_word: str) -> None:
    """The picture with its captions."""
    words = repr(sorted(settings.graph_words.items()))
    size = urlstate.read("nodes", int, SIZES[0])
    structure = structure_of(opened.source, words, group, size if size in SIZES else SIZES[0], found)
    if takeaway.texts_left_out():  # the picture's own PNG button must not carry them either
        structure = without_texts(structure)
    names = detail.both(found)
    edge_credit = {name: mean_per_edge(found.graph, found.batch.to_rows(x)) for name, x in names.items()}
    side = "b" if st.query_params.get("side") == "b" else "a"
    a, b = names
    name = b if side == "b" else a
    mine = edge_credit[name][structure.edge_id[structure.edge_id >= 0]]
    both = settings.estimator in SAME_UNITS and settings.baseline in SAME_UNITS
    limit = credit_limit(*(edge_credit[n][structure.edge_id[structure.edge_id >= 0]] for n in names)) if both else None
    v = found.values.v
    here = found.graph.node_group == group
    low, high = (0.0, 1.0) if value_word.startswith("chance") else (float(np.nanmin(v[here])), float(np.nanmax(v[here])))
    painted = paint(
        structure, v, edge_credit[name], limit=credit_limit(mine) if limit is None else limit,
        value_limits=(low, high if high > low else low + 1.0), root_value=found.graph.root_value(group, v),
        credit_name=name, value_name=value_word,
    )
    graph_view(
        structure, painted, chosen(found, group), key=VIEW, path=path_of(found, group), height=560,
        on_select=lambda: remember(structure), on_flip=flip,
    )
    left, right, away = st.columns([2.2, 1, 1.1], vertical_alignment="center")
    with away:
        takeaway.graph_menu(opened, settings, found, group, structure, painted)
    left.caption(structure.caption + " · positions depend on the graph alone, never on λ, estimator or baseline")
    if structure.nodes_drawn < structure.nodes_total or size != SIZES[0]:
        right.selectbox(
            "Draw", SIZES, format_func=lambda n: f"at most {n:,} nodes", label_visibility="collapsed",
            **urlstate.bind("nodes", size, SIZES[0]),
        )


def sides(settings: Settings) -> None:
    """Which credit colours the edges: A or B."""
    known = estimators()
    titles = {"a": f"A · {known[settings.estimator].title}", "b": f"B · {known[settings.baseline].title}"}
    st.segmented_control(
        "Edges show (key x)", ["a", "b"], format_func=lambda s: titles[s], required=True,
        **urlstate.bind("side", "b" if st.query_params.get("side") == "b" else "a", "a"),
    )


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


opened = table.choose()
if not header.show(opened):
    header.wait_for_groups()
with table.sentences():
    settings = controls.current()
    found = opened.findings(settings)
if found.batch.n_steps == 0:
    st.info("These rollouts have no steps, so there is no graph to draw.")
    st.stop()
top = st.columns([1.3, 1.5, 1.2, 0.8], vertical_alignment="bottom")
with top[0]:
    group = task_menu(found)
with top[1]:
    sides(settings)
with top[2]:
    controls.lambda_slider(settings)
with top[3]:
    controls.expert_drawer(settings)
main, side = st.columns([1.9, 1])
with main:
    draw(found, group, settings, opened.value_word)
with side:
    choice = chosen(found, group)
    if choice is None:
        detail.nothing(found, group)
    elif choice["kind"] == "node":
        detail.moment(found, choice["id"], opened.value_word)
    else:
        step = detail.step(found, choice["id"], opened.value_word, row_at(found), lambda row: urlstate.write("at", str(row)))
        judge.show(opened, settings, step)
lambda_line(found, settings)
low = st.columns([1, 1, 1.4], vertical_alignment="bottom")
with low[0]:
    controls.estimator_menu("Credit A", "a", settings.estimator, LOOK.estimator, "The credit that decides what is good.")
with low[1]:
    controls.estimator_menu("Compare with B", "b", settings.baseline, LOOK.baseline, "The credit shown beside it.")
with low[2]:
    controls.rule_menu(settings)
conflicts(found)
twin(found, group)
