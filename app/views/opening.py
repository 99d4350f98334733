"""What is shown of rollouts before they are used: format, report, first rollout, and the choices of task and success."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import streamlit as st

from graft_app import paths
from graft_app.views.text import count, literal, number, one_line, visible
from graft_app.views.transcript import action_text, long_text
from graft_core.errors import GraftError
from graft_core.formats import formats
from graft_core.formats.candidates import Candidate
from graft_core.formats.success import rule_values
from graft_core.rollouts import LoadReport, RolloutBatch
from graft_core.sizes import size_words

SIZES_SHOWN = 4
REJECTIONS_SHOWN = 500
STEPS_SHOWN = 3
MOST_STEPS = 20
MOST_VALUES = 20
LOOKED_AT = 200
OTHER = "other"
OPERATORS = (">=", ">", "<=", "<", "==", "!=")


class Progress:
    """A bar that says how much of a file was read, and about how long the rest will take."""

    def __init__(self, place: st.delta_generator.DeltaGenerator) -> None:
        self.place, self.start, self.shown = place, time.monotonic(), -1

    def __call__(self, done: int, total: int) -> None:
        percent = 100 * done // max(total, 1)
        if percent == self.shown:
            return
        self.shown, passed = percent, time.monotonic() - self.start
        words = f"Reading {size_words(done)} of {size_words(total)}"
        if percent >= 100:
            words = f"Read {size_words(total)}; putting the rollouts together"
        elif percent >= 5 and passed >= 1:
            words += f", about {max(1.0, passed * (total - done) / done):.0f} s left"
        self.place.progress(min(percent, 100) / 100, f"{words} …")


def said(error: Exception | str, limit: int = 600) -> str:
    """An error for the screen: one line, no markup, no folder names. It may quote a hostile file or address."""
    return literal(paths.shorten(str(error)), limit)


def sizes_words(sizes: dict[int, int]) -> str:
    """Group sizes: "8 tasks × 8 rollouts", or the range and the most frequent ones."""
    total = sum(sizes.values())
    if len(sizes) == 1:
        return f"{count(total, 'task')} × {count(next(iter(sizes)), 'rollout')}"
    ranked = sorted(sizes.items(), key=lambda item: (-item[1], -item[0]))
    named = ", ".join(f"{n:,} × {size:,}" for size, n in ranked[:SIZES_SHOWN])
    more = ", …" if len(ranked) > SIZES_SHOWN else ""
    return f"{count(total, 'task')} of {min(sizes):,} to {max(sizes):,} rollouts ({named}{more})"


def batch_words(batch: RolloutBatch) -> str:
    """What a batch amounts to, in one line: tasks with their sizes, outcomes, tasks with both."""
    sizes: dict[int, int] = {}
    for size in np.bincount(batch.group, minlength=batch.n_groups).tolist():
        sizes[size] = sizes.get(size, 0) + 1
    won, lost = int((batch.success == 1).sum()), int((batch.success == 0).sum())
    unknown = batch.n_rollouts - won - lost
    with_success, with_failure = (np.bincount(batch.group[batch.success == x], minlength=batch.n_groups) > 0 for x in (1, 0))
    both = int((with_success & with_failure).sum())
    parts = [sizes_words(sizes) if sizes else "no rollouts", count(batch.n_steps, "step")]
    parts.append(f"{won:,} succeeded, {lost:,} failed")
    parts += [f"{unknown:,} unknown"] if unknown else []
    return " · ".join([*parts, f"{count(both, 'task')} with both outcomes"])


def format_view(report: LoadReport) -> None:
    """Each detected format with its files; what tells it stands in the tooltip."""
    known = formats()
    for name in dict.fromkeys(report.formats):
        reader, files = known[name], report.formats.count(name)
        line = f"**{literal(name)}** · {literal(reader.meaning, 300)} · {count(files, 'file')}"
        st.markdown(line, help=f"Told by its content: {literal(reader.detected_by, 400)}")


def report_view(report: LoadReport) -> None:
    """What became of every record: counts, warnings, rejected records with place and reason, notes."""
    repaired = f" ({report.repaired:,} of these repaired)" if report.repaired else ""
    st.markdown(
        f"**{count(report.read, 'record')} read** · {report.accepted:,} accepted{repaired} · {report.rejected:,} rejected"
    )
    for warning in report.warnings:
        where = f" First: {said(warning.where, 160)}." if warning.where else ""
        title = f"{warning.code.replace('_', ' ').capitalize()} · {count(warning.count, 'time')}"
        st.warning(f"{said(warning.sentence)}.{where}", icon=":material/warning:", title=title)
    if report.rejections:
        rows = [
            {
                "where": one_line(paths.shorten(r.where), 200),
                "why": one_line(paths.shorten(r.reason), 300),
                "records": r.records,
            }
            for r in report.rejections[:REJECTIONS_SHOWN]
        ]
        st.dataframe(pd.DataFrame(rows), hide_index=True, alt="rejected records", key="rejections")
        if len(report.rejections) > REJECTIONS_SHOWN:
            st.caption(f"the first {REJECTIONS_SHOWN} of {len(report.rejections):,}; `graft inspect --json` lists all")
    for note in report.notes:
        st.text(visible(paths.shorten(note)))
    if not (report.warnings or report.rejections or report.notes):
        st.caption("Nothing to remark.")


def first_rollout(batch: RolloutBatch) -> None:
    """The first rollout that has steps, as the tool understands it: text only."""
    rows = np.flatnonzero(batch.lengths > 0)
    if not rows.size:
        st.caption("No rollout has steps.")
        return
    row = int(rows[0])
    start, end = batch.offsets[row : row + 2].tolist()
    names = f"{literal(batch.rollout_ids[row], 60)} of task {literal(batch.group_ids[int(batch.group[row])], 80)}"
    st.markdown(f"Rollout {names} · {count(end - start, 'step')}")
    shown = st.toggle(f"show {min(MOST_STEPS, end - start)} steps", key="all_steps") if end - start > STEPS_SHOWN else False
    most = MOST_STEPS if shown else STEPS_SHOWN
    for position in range(start, min(end, start + most)):
        _step(batch, position)
    if end - start > most:
        st.caption(f"… {count(end - start - most, 'more step')}")
    last = int(batch.final_observation[row])
    if last >= 0:
        st.caption("Last observation")
        long_text(batch.text(last), "open_end")
    success = batch.success[row]
    ended = "unknown" if success != success else "success" if success == 1 else "failure"
    st.markdown(f"**Outcome {literal(number(float(batch.outcome[row])))}**: {ended}")


def _step(batch: RolloutBatch, position: int) -> None:
    step, reward = int(batch.step_index[position]), float(batch.step_column("reward")[position])
    st.caption(f"Step {step}: what it saw")
    long_text(batch.text(int(batch.observation[position])), f"open_o{position}")
    st.caption("what it did" + ("" if reward != reward else f", reward {reward:g}"))
    long_text(action_text(batch, position), f"open_a{position}", code=True)
    spoken = batch.text(int(batch.action_text[position]))
    if spoken != batch.text(int(batch.action[position])):
        with st.expander("What the model said"):
            long_text(spoken, f"open_s{position}", shown=4000)


def grouping(ways: Sequence[Candidate], now: str | None, assumed: bool, key: str) -> str | None:
    """Menu of what makes rollouts one task, each way with the sizes it would give; returns the word for `group_by`.

    assumed: the file itself names no task, so its own grouping is not offered, and without a choice the word is None.
    """
    usable = {way.group_by: way for way in ways if way.usable}
    options: list[str | None] = [*([] if assumed else [None]), *usable, *([now] if now and now not in usable else []), OTHER]
    labels = {None: "as the file says", OTHER: "something else", now or "": literal(now or "", 100)}
    captions = []
    for word in options:
        way = usable.get(word or "")
        if way:
            labels[word] = f"{literal(way.meaning)} · {sizes_words(way.sizes)}"
        captions.append(f"{way.mixed:,} with both outcomes · the largest: {literal(way.example, 60)}" if way else "")
    chosen = st.radio(
        "What makes rollouts one task?", options, format_func=lambda word: labels[word], captions=captions,
        index=options.index(now) if now in options else None, key=f"grouping_{key}",
        help="Credit compares rollouts of one task; a wrong grouping invents credit. Groups of the size at which a trainer "
        "samples (all of 8, say) speak for a choice; one task of everything, or tasks of one, against it.",
    )
    unusable = [way for way in ways if not way.usable]
    if unusable:
        words = "; ".join(f"{literal(way.meaning, 60)} ({count(way.without, 'rollout')} without)" for way in unusable)
        st.caption(f"Not possible here: {words}.")
    if chosen != OTHER:
        return chosen
    word = st.text_input(
        "A column or a pattern", placeholder="column:user_id   or   regex:task_(\\d+)", max_chars=500,
        key=f"grouping_word_{key}",
        help="column:NAME takes a column or metadata key (a.b reaches inside); regex:PATTERN takes the first ( ) found in the "
        "file's name, else in the first observation.",
    )
    return word.strip() or now


def value_names(batch: RolloutBatch) -> list[str]:
    """Values that a success rule can ask for: the outcome, the steps, and numbers or flags in the metadata of rollouts and
    of their first steps."""
    names = {"outcome": None, "steps": None}
    first = batch.order[batch.offsets[:-1][batch.lengths > 0]][:LOOKED_AT]
    of_steps = batch.steps.column("metadata").take(pa.array(first))
    for text in [*batch.rollouts.column("metadata").slice(0, LOOKED_AT).to_pylist(), *of_steps.to_pylist()]:
        value = json.loads(text) if text else {}
        for key, inside in value.items() if isinstance(value, dict) else ():
            if isinstance(inside, (int, float)):
                names[str(key)] = None
            elif isinstance(inside, dict):
                names.update({f"{key}.{k}": None for k, v in inside.items() if isinstance(v, (int, float))})
    return [name for name in names if name and not any(sign.isspace() or sign in "<>=!" for sign in name)][:MOST_VALUES]


def success(batch: RolloutBatch, now: str | None, key: str) -> str | None:
    """Menu of which rollouts succeeded; returns the rule for `success_when`, None for what the file says."""
    won = int((batch.success == 1).sum())
    own = "as the file says" if batch.rollouts.column("success").null_count < batch.n_rollouts else "outcome at least 1"
    options = [None, *([now] if now else []), OTHER]
    labels = {None: f"{own} · {won:,} of {count(batch.n_rollouts, 'rollout')}", OTHER: "a rule of mine"}
    chosen = st.radio(
        "Which rollouts succeeded?", options, index=options.index(now), key=f"success_{key}",
        format_func=lambda word: labels.get(word) or literal(word or "", 200),
    )
    if chosen != OTHER:
        return chosen
    names = value_names(batch)
    left, middle, right = st.columns([2, 1, 1], vertical_alignment="bottom")
    name = left.selectbox("Value", names, key=f"success_name_{key}", help="the outcome, or a number of the rollout's metadata")
    sign = middle.selectbox("is", OPERATORS, key=f"success_sign_{key}")
    least = right.number_input("Number", value=1.0, step=0.1, format="%g", key=f"success_number_{key}")
    try:
        found = rule_values(batch, name)
    except GraftError as error:
        st.error(said(error))
        return None
    known = found[np.isfinite(found)]
    if known.size:
        low, middle_value, high = (number(float(x)) for x in (known.min(), np.median(known), known.max()))
        have = count(known.size, "rollout has", "rollouts have")
        st.caption(f"{have} it: from {low} to {high}, half of them up to {middle_value}.")
    else:
        st.caption("No rollout has this value.")
    return f"{name} {sign} {float(least)!r}"
