"""Tables of steps: what the columns are called, and how they are taken away."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from graft_app.views.text import one_line
from graft_core.credit import estimators


def step_name(rollout_id: str, step: int) -> str:
    return f"{rollout_id}/{step}"


def _short(value_word: str) -> str:
    return "chance" if value_word.startswith("chance") else "score"


def steps_table(rows: list[dict[str, Any]], a: str, b: str, value_word: str) -> pd.DataFrame:
    """Rows of `Findings.merged_rows` with screen names, texts on one line; a row can stand for several steps."""
    titles, short = estimators(), _short(value_word)
    columns: dict[str, list[Any]] = {
        "task": [one_line(r["group_id"], 40) for r in rows],
        "step": [step_name(one_line(r["rollout_id"], 24), r["step"]) for r in rows],
        "times": [r["count"] for r in rows],
        "what the agent did": [one_line(r["action"]) for r in rows],
        f"{short} before": [r["value_before"] for r in rows],
        f"{short} after": [r["value_after"] for r in rows],
        titles[b].title: [r["baseline"] for r in rows],
        f"{titles[a].title}{' ' if a == b else ''}": [r["credit"] for r in rows],
        "seen by": [f"{r['seen_by']} of {r['of']}" for r in rows],
    }
    if rows and "loop" in rows[0]:
        columns["loop"] = [r["loop"] for r in rows]
    elif rows and "trust" in rows[0]:
        columns["beyond luck"] = [r["trust"] for r in rows]
    return pd.DataFrame(columns)


def column_config(a: str, b: str, value_word: str) -> dict[str, Any]:
    """Number formats and the plain-words tooltips of the columns."""
    titles, short = estimators(), _short(value_word)
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    return {
        "task": text(width=110),
        "step": text(width=70, help="rollout / step; the first of the steps this row stands for"),
        "times": number(width=52, help="how many steps this row stands for: the same action at the same moment"),
        "what the agent did": text(width=250),
        f"{short} before": number(format="%.2f", width=104, help=f"{value_word} from the moment before the step (V)"),
        f"{short} after": number(format="%.2f", width=92, help=f"{value_word} from the moment the step led to (V)"),
        titles[b].title: number(format="%+.2f", width=76, help=f"credit B: {titles[b].meaning}"),
        f"{titles[a].title}{' ' if a == b else ''}": number(
            format="%+.2f", width=84, help=f"credit A, not normalised: {titles[a].meaning}"
        ),
        "seen by": text(width=72, help="rollouts of known outcome that left this moment, of all in the task"),
        "loop": text(width=96, help="the step leads back to an earlier moment: the drop is the cost of that loop"),
        "beyond luck": text(width=96, help="does the credit stand out when outcomes are dealt at random among the rollouts?"),
    }
