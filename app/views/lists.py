"""The lists of the Findings page beside the steps: tasks that teach nothing, what drops share, how methods compare."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from graft_app.views.text import count, literal, one_line
from graft_core.insight.compare import Comparison
from graft_core.insight.lost import Lost
from graft_core.insight.teach import Teaching

KINDS = {"verb": "what was done", "error": "after the error", "situation": "situation"}


def nothing_to_learn(teaching: Teaching) -> None:
    """Tasks that teach nothing, by cause, with what would change it."""
    st.markdown(literal(teaching.sentence, 400))
    if not teaching.tasks:
        return
    st.dataframe(
        pd.DataFrame(
            [
                {
                    "task": one_line(t.group_id, 40), "rollouts": t.rollouts, "succeeded": t.succeeded, "failed": t.failed,
                    "unknown": t.unknown, "why": t.cause.sentence, "what would change it": t.cause.change,
                }
                for t in teaching.tasks
            ]
        ),
        hide_index=True, alt="tasks that teach nothing",
        column_config={n: st.column_config.NumberColumn(width=78) for n in ("rollouts", "succeeded", "failed", "unknown")},
    )


def lost_groups(lost: Lost) -> None:
    """What the largest drops of failed rollouts have in common, over all tasks."""
    if not lost.groups:
        return
    st.markdown(
        f"**What the drops share** · {count(lost.with_drop, 'failed rollout')} with a drop, {lost.in_loops} of them by walking "
        "a loop"
    )
    st.dataframe(
        pd.DataFrame(
            [
                {
                    "": KINDS.get(g.kind, g.kind), "what": one_line(g.label, 80), "rollouts": g.rollouts, "tasks": g.tasks,
                    "mean credit": g.mean,
                }
                for g in lost.groups
            ]
        ),
        hide_index=True, alt="what the drops share",
        column_config={"mean credit": st.column_config.NumberColumn(format="%+.2f")},
    )


def comparison(compared: Comparison) -> None:
    """Agreement of each pair of methods and the scale of each."""
    st.dataframe(
        pd.DataFrame(
            [
                {
                    "A": a.first, "B": a.second, "rank agreement (Spearman)": a.spearman, "same sign": 100 * a.same_sign,
                    "opposite sign": 100 * a.opposite, "steps": a.steps,
                }
                for a in compared.agreements
            ]
        ),
        hide_index=True, alt="agreement of methods",
        column_config={
            "rank agreement (Spearman)": st.column_config.NumberColumn(format="%.2f"),
            "same sign": st.column_config.NumberColumn(format="%.0f %%"),
            "opposite sign": st.column_config.NumberColumn(format="%.0f %%"),
        },
    )
    st.dataframe(
        pd.DataFrame(
            [
                {
                    "method": s.title, "mean": s.mean, "std": s.std, "largest": s.largest, "zero": 100 * s.zeros,
                    "RMS ratio": s.ratio, "in words": s.sentence,
                }
                for s in compared.scales
            ]
        ),
        hide_index=True, alt="scale of methods",
        column_config={
            **{n: st.column_config.NumberColumn(format="%.3f", width=72) for n in ("mean", "std", "largest", "RMS ratio")},
            "zero": st.column_config.NumberColumn(format="%.0f %%", width=60),
        },
    )
    for name, reason in compared.missing.items():
        st.caption(f"{name}: {literal(reason, 300)}")
