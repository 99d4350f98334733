"""The chosen finding beneath its list: one rollout's line with the step in it, why the step is good, and the ways on."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from graft_app import cache, urlstate
from graft_app.batch import Opened
from graft_app.views.tables import step_name
from graft_app.views.text import DASH, literal, number, one_line
from graft_app.views.why import escaped
from graft_core.constants import SIGN_TOLERANCE
from graft_core.credit import estimators
from graft_core.insight import Findings
from graft_core.insight.transcript import Course
from graft_core.insight.why import Why, position_of_row
from graft_core.settings import Settings

REASON = {"good": "Why good", "lost": "Why lost", "bad": "Why bad"}
AROUND = 6  # steps shown on each side of a step that has words; longer stretches are counted
LEGEND = (
    "The rollout from left to right, one sign a step. ▲ blue: better than usual here, ▼ vermilion: worse, · neither. "
    "“lost here” is its largest drop."
)
Row = dict[str, Any]


def show(opened: Opened, settings: Settings, found: Findings, row: Row, which: str) -> Why:
    """One finding in two lines: its rollout, and its reason."""
    position = position_of_row(found.batch, row["row"])
    along = cache.course_of(*opened.source, settings, int(found.batch.step_rollout[position]))
    said = cache.why_of(*opened.source, settings, position)
    st.markdown(line(found, along, position), help=LEGEND)
    st.markdown(f"**{REASON[which]}:** {' '.join(escaped(sentence) for sentence in said.sentences)}")
    return said


def line(found: Findings, along: Course, position: int) -> str:
    """The rollout as one line of Markdown: a sign for each step, words for the chosen one and for the largest drop."""
    batch, credit = found.batch, along.credit
    chosen = int(position - along.positions[0])
    drop = np.flatnonzero(np.isin(along.positions, found.lost))
    lost = int(drop[0]) if drop.size else -1

    def words(t: int) -> str:
        action = literal(batch.text(int(batch.action[along.positions[t]])), 36)
        value = literal(number(float(credit[t]), sign=True))
        colour = "gray" if not abs(credit[t]) > SIGN_TOLERANCE else "blue" if credit[t] > 0 else "orange"
        mark = "lost here: " if t == lost else ""
        return f":{colour}-badge[{value} {mark}{action}]" if t != chosen else f"**:{colour}-badge[{value} {mark}{action}]**"

    named = sorted({chosen, lost} - {-1})
    parts, end = [], 0
    for t in [*named, along.steps.size]:
        parts += _signs(credit, end, t, end > 0, t < along.steps.size)
        parts += [words(t)] if t < along.steps.size else []
        end = t + 1
    name = f"{literal(along.group_id, 30)} · {literal(along.rollout_id, 24)}"
    return f"**{name}** &nbsp;{' '.join(parts)} **{literal(along.ended.upper())}**"


def _signs(credit: Any, start: int, end: int, after: bool, before: bool) -> list[str]:
    """Signs of the steps from start to end; of a long stretch only those next to a step with words."""
    keep = range(start, end)
    if end - start <= 2 * AROUND + 1:
        return [_sign(float(credit[t])) for t in keep]
    head, tail = (AROUND if after else 2), (AROUND if before else 2)
    hidden = end - start - head - tail
    left, right = ([_sign(float(credit[t])) for t in part] for part in (keep[:head], keep[end - start - tail :]))
    return [*left, f":gray[… {hidden} more …]", *right]


def _sign(value: float) -> str:
    if value != value:
        return f":gray[{DASH}]"
    return ":gray[·]" if abs(value) <= SIGN_TOLERANCE else ":blue[▲]" if value > 0 else ":orange[▼]"


def ways(opened: Opened, settings: Settings, said: Why, row: Row) -> None:
    """Buttons: this step in its graph and in its rollout, and the finding as text."""
    keep = {name: st.query_params[name] for name in st.query_params}
    step = {"task": row["group_id"], "at": str(row["row"])}
    if st.button("Graph", icon=":material/hub:", shortcut="G", help="this step in the graph of its task"):
        st.switch_page("screens/graph.py", query_params={**keep, **step, "sel": f"e{row['edge']}"})
    if st.button("Transcript", icon=":material/article:", shortcut="T", help="this step in its rollout"):
        st.switch_page("screens/rollouts.py", query_params={**keep, **step, "rollout": row["rollout_id"]})
    with st.container(width="content"):
        _copy(opened, settings, said, row)


@st.fragment
def _copy(opened: Opened, settings: Settings, said: Why, row: Row) -> None:
    with st.popover("Copy finding", icon=":material/content_copy:", on_change="rerun", key="copy_finding") as box:
        if box.open:
            st.caption("The button at the right of the text copies it.")
            st.code(as_text(opened, settings, said, row), language=None, wrap_lines=True)


def as_text(opened: Opened, settings: Settings, said: Why, row: Row) -> str:
    """A finding as plain text for a message or an issue: what, numbers, why, and from which data."""
    known, word = estimators(), opened.value_word
    numbers = (
        f"{word} {number(said.value_before)} → {number(said.value_after)}; "
        f"{known[settings.estimator].title} {number(said.credit, sign=True)}, "
        f"{known[settings.baseline].title} {number(row['baseline'], sign=True)}"
    )
    where = f"{one_line(said.group_id, 60)} · {step_name(one_line(said.rollout_id, 40), said.step)}"
    reasons = " ".join(one_line(sentence.text, 400) for sentence in said.sentences)
    data = st.session_state.get(urlstate.OF_DATA)
    source = one_line(opened.batch.name, 60) + (f", SHA-256 {data}…" if data else "")
    return f"{where}: {one_line(said.action, 200)}\n{numbers}\n{reasons}\n({source})"
