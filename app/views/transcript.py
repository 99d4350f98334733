"""The steps of a rollout as text: what the agent saw, what it did, and what that was worth."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from graft_app.views.text import count, literal, number, one_line, visible
from graft_core.constants import SIGN_TOLERANCE
from graft_core.insight import Findings
from graft_core.insight.align import AlignedRow
from graft_core.insight.transcript import Course, call_text, media, readable, tool_calls
from graft_core.rollouts import RolloutBatch

SHOWN = 420  # characters of a text before "show all"
LINES = 8  # of spread JSON, which else stays as it is until then
MOST = 100_000  # and after it: more than this no page has to carry
Choose = Callable[[int], None]


def _flip(key: str) -> None:
    opened: set[str] = st.session_state.setdefault("opened_texts", set())
    opened.symmetric_difference_update({key})


def long_text(text: str, key: str, code: bool = False, shown: int = SHOWN) -> None:
    """A text, cut on screen with a button for the rest, which also spreads JSON; pictures stand as placeholders."""
    wide = key in st.session_state.get("opened_texts", ())
    spread = visible(readable(text))
    everything = spread if wide or spread.count("\n") < LINES else visible(text)
    part = everything[: MOST if wide else shown]
    cut = len(everything) > len(part)
    part = part + " …" if cut else part
    if code:
        st.code(part or "(empty)", language=None, wrap_lines=True)
    else:
        st.text(part or "(empty)")
    for kind, fingerprint in media(text):
        st.caption(f":material/image: {kind} {fingerprint}: the file keeps its fingerprint, not the {kind} itself")
    if wide and cut:
        st.caption(f"the first {MOST:,} of {len(everything):,} characters")
    elif wide or cut:
        label = "show less" if wide else f"show all {len(everything):,} characters"
        st.button(label, key=f"wide_{key}", type="tertiary", on_click=_flip, args=(key,))


def action_text(batch: RolloutBatch, position: int) -> str:
    """The executed action for reading: tool calls with their arguments, anything else as it is."""
    action = batch.text(int(batch.action[position]))
    calls = tool_calls(action)
    return "\n".join(call_text(name, arguments) for name, arguments in calls) if calls else action


def credit_badge(name: str, value: float) -> str:
    """A credit as a badge whose sign reads without colour."""
    if value != value:
        return f":gray-badge[{literal(name, 20)} –]"
    if abs(value) <= SIGN_TOLERANCE:
        return f":gray-badge[{literal(name, 20)} 0]"
    sign, colour = ("▲", "blue") if value > 0 else ("▼", "orange")
    return f":{colour}-badge[{sign} {literal(name, 20)} {literal(number(value, 2 if abs(value) >= 0.01 else 4, sign=True))}]"


def badges(found: Findings, position: int, names: tuple[str, str]) -> str:
    """Value before and after, and both credits of one step."""
    v, graph = found.values.v, found.graph
    change = f"{number(float(v[graph.src[position]]))} → {number(float(v[graph.dst[position]]))}"
    a, b = float(found.credit[position]), float(found.baseline[position])
    return f"{change} &nbsp;{credit_badge(names[0], a)} {credit_badge(names[1], b)}"


def step_card(
    found: Findings, position: int, names: tuple[str, str], chosen: bool, choose: Choose, again: int | None = None,
    side: str = "", tag: str = "",
) -> None:
    """One step of a transcript. again: the step number at which the rollout stood in this moment before."""
    batch = found.batch
    row = int(batch.order[position])
    with st.container(border=chosen, gap="xxsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button(
                f"Step {int(batch.step_index[position])}", key=f"step_{side}{row}", on_click=choose, args=(position,),
                type="primary" if chosen else "tertiary",
            )
            st.markdown(badges(found, position, names) + tag, width="content")
            if again is not None:
                st.markdown(f":gray-badge[same moment as before step {again}]", width="content")
        long_text(batch.text(int(batch.observation[position])), f"o{side}{row}")
        long_text(action_text(batch, position), f"a{side}{row}", code=True)
        said = batch.text(int(batch.action_text[position]))
        if said != batch.text(int(batch.action[position])):
            with st.expander("What the model said"):
                long_text(said, f"s{side}{row}", shown=4000)


def transcript(found: Findings, along: Course, names: tuple[str, str], at: int, shown: range, choose: Choose) -> None:
    """The steps in `shown`, the chosen one framed, and after the last one how the rollout ended."""
    for t in shown:
        before = int(along.again[t])
        again = int(along.steps[before]) if before >= 0 else None
        step_card(found, int(along.positions[t]), names, t == at, choose, again)
    if shown and shown[-1] == along.steps.size - 1:
        the_end(found, along)


def the_end(found: Findings, along: Course, side: str = "") -> None:
    """How a rollout ended, with its last observation."""
    outcome = "unknown" if along.outcome != along.outcome else f"{along.outcome:g}"
    st.markdown(f"**The end: {along.ended}** · outcome {literal(outcome)}")
    last = int(found.batch.final_observation[along.rollout])
    if last >= 0:
        long_text(found.batch.text(last), f"end{side}{along.rollout}")


def aligned(
    found: Findings, rows: tuple[AlignedRow, ...], shown: range, names: tuple[str, str], at: int, choose: Choose
) -> None:
    """Two rollouts in rows; where both stood in the same moment one line says so, and what each did there."""
    for row in (rows[i] for i in shown):
        if row.shared:
            same = ":gray-badge[:material/link: same moment, same action]"
            differ = ":violet-badge[:material/call_split: same moment, different action]"
            st.markdown(same if row.same_action else differ)
        for column, position, side in zip(st.columns(2), (row.left, row.right), ("l", "r"), strict=True):
            if position is not None:
                with column:
                    step_card(found, position, names, position == at, choose, side=side)


def rollout_name(batch: RolloutBatch, rollout: int) -> str:
    """A rollout in a menu: its id, how it ended, how long it is."""
    success = batch.success[rollout]
    ended = "?" if success != success else "succeeded" if success == 1 else "failed"
    return f"{one_line(batch.rollout_ids[rollout], 30)} · {ended} · {count(int(batch.lengths[rollout]), 'step')}"
