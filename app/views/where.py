"""Which task and which step the address names: the same on every page."""

from __future__ import annotations

import numpy as np
import streamlit as st

from graft_app import urlstate
from graft_app.views.text import one_line
from graft_core.errors import UsageError
from graft_core.insight import Findings
from graft_core.insight.why import position_of_row


def row_at(found: Findings) -> int | None:
    """The batch row of the step that the address names (`at`)."""
    return urlstate.whole(st.query_params.get("at", ""), found.batch.n_steps)


def step_at(found: Findings) -> int | None:
    """Its path position."""
    row = row_at(found)
    return None if row is None else position_of_row(found.batch, row)


def task_menu(found: Findings) -> int:
    """The task the address names, else that of its step, else the first one with good steps, else one with both outcomes."""
    batch, at = found.batch, step_at(found)
    ids = batch.group_ids
    first = at if at is not None else int(found.good[0]) if found.good.size else None

    def parse(word: str) -> int:
        if word not in ids:
            raise UsageError(f"there is no task {word!r} in this batch")
        return ids.index(word)

    if first is not None:
        usual = int(batch.group[batch.step_rollout[first]])
    else:
        usual = int(next(iter(np.intersect1d(batch.group[batch.success == 1], batch.group[batch.success == 0])), 0))
    group = urlstate.read("task", parse, usual)
    bound = urlstate.bind("task", group, None, lambda g: ids[g])

    def another() -> None:
        for name in urlstate.OF_A_TASK:
            urlstate.write(name, None)
        bound["on_change"]()

    st.selectbox("Task", range(len(ids)), format_func=lambda g: one_line(ids[g], 60), key=bound["key"], on_change=another)
    return int(group)
