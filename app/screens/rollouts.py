"""Rollouts: a transcript with chance and credit along it, ways to the same moment elsewhere, and two rollouts side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from plotly.graph_objects import Figure

from graft_app import batch as table
from graft_app import cache, controls, urlstate
from graft_app.views import check, header, why
from graft_app.views.charts import QUIET, aligned_figure, course_figure
from graft_app.views.text import count, literal, number, one_line
from graft_app.views.transcript import aligned, rollout_name, transcript
from graft_app.views.where import step_at, task_menu
from graft_core.credit import estimators
from graft_core.errors import UsageError
from graft_core.insight import Findings
from graft_core.insight.transcript import Course, same_moment_elsewhere, sibling
from graft_core.rollouts import IntArray

FIGURE = "course"
FEW, MANY = 6, 40  # rows around the chosen step; rows of a page of the whole transcript
TALL = 700
LEAST = 0.005  # a change that two digits show


def named(found: Findings, parameter: str, rows: IntArray) -> int | None:
    """Row of the task's rollout that a parameter of the address names."""
    ids = [found.batch.rollout_ids[r] for r in rows.tolist()]

    def parse(word: str) -> int:
        if word not in ids:
            raise UsageError(f"this task has no rollout {word!r}")
        return int(rows[ids.index(word)])

    chosen = urlstate.read(parameter, parse, None)
    return None if chosen is None else int(chosen)


def rollout_menus(found: Findings, group: int) -> tuple[int, int | None]:
    """The rollout to read and the one beside it; a step in the address decides before the rollout it names."""
    batch = found.batch
    rows = np.flatnonzero(batch.group == group)
    at = step_at(found)
    here = int(batch.step_rollout[at]) if at is not None else -1
    wanted, other = named(found, "rollout", rows), named(found, "beside", rows)
    good = found.good[batch.group[batch.step_rollout[found.good]] == group]
    first = int(batch.step_rollout[good[0]]) if good.size else int(rows[0])
    if here >= 0 and batch.group[here] == group and here != other:
        wanted = here
    row = first if wanted is None else wanted
    ids = batch.rollout_ids
    bound = urlstate.bind("rollout", row, None, lambda r: ids[r])

    def another() -> None:
        urlstate.write("at", None)
        bound["on_change"]()

    left, right = st.columns(2)
    left.selectbox(
        "Rollout", rows.tolist(), format_func=lambda r: rollout_name(batch, r), key=bound["key"], on_change=another
    )
    others = [r for r in rows.tolist() if r != row]
    beside = right.selectbox(
        "Beside it", others, index=None, format_func=lambda r: rollout_name(batch, r), placeholder="no other rollout",
        help="Two rollouts in rows: where both stood in the same moment, they stand side by side.",
        **urlstate.bind("beside", other if other in others else None, None, lambda r: ids[r]),
    )
    return row, beside


def go(position: int | None) -> None:
    """Make a step the chosen one, whatever rollout it belongs to."""
    if position is None:
        return
    batch = found.batch
    rollout = int(batch.step_rollout[position])
    if batch.rollout_ids[rollout] == st.query_params.get("beside"):
        urlstate.write("beside", along.rollout_id)  # the two change places
    urlstate.write("rollout", batch.rollout_ids[rollout])
    urlstate.write("at", str(int(batch.order[position])))


def turn(rollout: int | None) -> None:
    """Read another rollout of the task."""
    if rollout is not None:
        urlstate.write("rollout", found.batch.rollout_ids[rollout])
        urlstate.write("at", None)


def clicked() -> None:
    """A bar or a point of the figure was clicked."""
    points = st.session_state[FIGURE]["selection"]["points"]
    chosen = next((p["customdata"] for p in points if p.get("customdata") is not None), None)
    if chosen is not None:
        go(int(chosen[0] if isinstance(chosen, (list, tuple)) else chosen))


def ways(at: int, rows: IntArray) -> None:
    """Buttons with keys: along the rollout, to others, to the same moment and the other actions there."""
    position = int(along.positions[at]) if along.steps.size else None
    place = int(np.flatnonzero(rows == along.rollout)[0])
    previous = int(rows[place - 1]) if place else None
    following = int(rows[place + 1]) if place + 1 < rows.size else None
    same = None if position is None else same_moment_elsewhere(found.graph, position)
    other = None if position is None else sibling(found.graph, position)
    step = [int(along.positions[t]) if 0 <= t < along.steps.size else None for t in (at - 1, at + 1)]
    buttons = (
        ("Step", ":material/arrow_upward:", "K", go, step[0], "the step before"),
        ("Step", ":material/arrow_downward:", "J", go, step[1], "the step after"),
        ("Rollout", ":material/arrow_back:", "P", turn, previous, "the rollout before, in the file's order"),
        ("Rollout", ":material/arrow_forward:", "N", turn, following, "the rollout after, in the file's order"),
        ("Same moment", ":material/swap_horiz:", "M", go, same, "the next rollout that stood in this same moment (node)"),
        ("Other action", ":material/call_split:", "S", go, other, "a step that did something else in this moment"),
    )
    with st.container(horizontal=True, gap="xsmall"):
        for label, icon, key, act, target, text in buttons:
            st.button(
                label, key=f"way_{key}", icon=icon, shortcut=key, on_click=act, args=(target,), disabled=target is None,
                help=text,
            )
        to_graph = st.button(
            "Graph", key="way_G", icon=":material/hub:", shortcut="G", disabled=position is None,
            help="this step in the graph of its task",
        )
    if to_graph and position is not None:
        keep = {name: st.query_params[name] for name in st.query_params}
        row, edge = int(found.batch.order[position]), int(found.graph.edge[position])
        st.switch_page(
            "screens/graph.py", query_params={**keep, "task": along.group_id, "sel": f"e{edge}", "at": str(row)}
        )


def done(of: Course) -> list[str]:
    """What was done at each step of a rollout."""
    return [found.batch.text(int(a)) for a in found.batch.action[of.positions]]


def picture(figure: Figure) -> None:
    """The figure above the transcript; a click on a bar chooses its step."""
    what = f"{opened.value_word} and credit along the {along.steps.size} steps of {one_line(along.rollout_id, 30)}"
    st.plotly_chart(figure, key=FIGURE, on_select=clicked, selection_mode="points", config=QUIET, alt=what)


def twin() -> None:
    """The figure as a table."""
    with st.expander("The same as a table", on_change="rerun", key="course_twin") as box:
        if not box.open:
            return
        short = opened.value_word.split()[0]
        frame = pd.DataFrame(
            {
                "step": along.steps, "what the agent did": [one_line(a) for a in done(along)],
                f"{short} before": along.value[:-1], f"{short} after": along.value[1:],
                names[0]: along.credit, names[1]: along.baseline,
            }
        )
        value, credit = st.column_config.NumberColumn(format="%.3f"), st.column_config.NumberColumn(format="%+.3f")
        formats = {f"{short} {when}": value for when in ("before", "after")} | dict.fromkeys(names, credit)
        st.dataframe(frame, hide_index=True, alt=f"steps of {one_line(along.rollout_id, 30)}", column_config=formats)


def part(n: int, at: int, what: str) -> range:
    """Which of n rows are shown: those around the chosen one, or, asked for everything, pages of the whole."""
    if n <= FEW:
        return range(n)
    whole = urlstate.read("whole", lambda word: word == "1", False)
    left, right = st.columns([1, 1.6], vertical_alignment="center")
    with right:
        st.toggle("the whole transcript", **urlstate.bind("whole", whole, False, lambda on: "1" if on else "0"))
    if whole:
        pages = -(-n // MANY)
        turned = st.pagination(pages, default=at // MANY + 1, key=f"page {what} {at}") if pages > 1 else 1
        shown = range((turned - 1) * MANY, min(turned * MANY, n))
    else:
        first = max(0, at - 1)
        shown = range(first, min(first + FEW, n))
    left.caption(f"{shown.start + 1} to {shown.stop} of {n:,}")
    return shown


def facts(at: int) -> None:
    """The chosen step beside the transcript: numbers, and why."""
    position = int(along.positions[at])
    node = int(found.graph.src[position])
    before, after = float(along.value[at]), float(along.value[at + 1])
    left, right = st.columns(2)
    left.metric(
        f"{opened.value_word} before", number(before), help="V of the moment: how rollouts of this task did from here on"
    )
    change = after - before
    right.metric("after", number(after), number(change, sign=True) if abs(change) >= LEAST else None)
    st.caption(
        f"{count(int(found.graph.node_rollouts[node]), 'rollout')} stood in this moment, "
        f"{count(int(found.graph.count[found.graph.edge[position]]), 'step')} went the same way."
    )
    why.show(found, position)
    check.show(opened, settings, position)


opened = header.start()
with table.sentences():
    settings = controls.current()
    found = opened.findings(settings)
if found.batch.n_rollouts == 0:
    st.info("There is no rollout in this file.")
    st.stop()
menus = st.columns([1, 2])
with menus[0]:
    group = task_menu(found)
with menus[1]:
    row, beside = rollout_menus(found, group)
along: Course = cache.course_of(*opened.source, settings, row)
titles = [estimators()[n].title for n in (settings.estimator, settings.baseline)]
names = (titles[0], titles[1]) if titles[0] != titles[1] else (f"A: {titles[0]}", f"B: {titles[1]}")
now = step_at(found)
at = int(now - along.positions[0]) if now is not None and now in along.positions else along.telling()
ways(at, np.flatnonzero(found.batch.group == group))
if along.steps.size == 0:
    st.info(f"This rollout has no steps. It ended: {along.ended}.")
    st.stop()
if beside is None:
    picture(course_figure(along, at, done(along), names, opened.value_word))
    st.caption(
        f"Above the {opened.value_word} at each moment, below what each step earned: blue is better than usual here, vermilion "
        "and hatched is worse. Click a bar to read its step."
    )
    main, side = st.columns([1.6, 1])
    with main:
        shown = part(along.steps.size, at, f"{row}")
        with st.container(height=TALL if FEW >= len(shown) > 3 else "content", border=False):
            transcript(found, along, names, at, shown, go)
    with side:
        facts(at)
else:
    other: Course = cache.course_of(*opened.source, settings, beside)
    rows = cache.aligned_of(*opened.source, settings, row, beside)
    place = next((i for i, r in enumerate(rows) if r.left == int(along.positions[at])), 0)
    picture(aligned_figure((along, other), rows, place, (done(along), done(other)), names[0], opened.value_word))
    st.caption(
        f"Solid: {opened.value_word} along {literal(along.rollout_id, 30)} ({along.ended}), dashed: along "
        f"{literal(other.rollout_id, 30)} ({other.ended}). Violet: both stand in the same moment."
    )
    shared, same = sum(r.shared for r in rows), sum(r.same_action for r in rows)
    st.markdown(
        f"**{literal(along.rollout_id, 30)}** and **{literal(other.rollout_id, 30)}** share {count(shared, 'moment')}, and "
        f"take the same action in {same} of them."
    )
    aligned(found, rows, part(len(rows), place, f"{row} {beside}"), names, int(along.positions[at]), go)
twin()
controls.credit_row(settings, "The credit in the upper bars.", "The credit in the lower bars.")
controls.lambda_slider(settings)
