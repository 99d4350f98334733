"""Two settings side by side in tables: what differs, steps under both, one step in detail, and the papers' figures."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from graft_app.views.tables import step_name
from graft_app.views.text import DASH, count, literal, number, one_line
from graft_core.insight.align import Pair, moment_numbers, setting_rows
from graft_core.rollouts import IntArray, RolloutBatch

GRAFT, GRAPHGPO = "GRAFT", "GraphGPO"
MEASURES = (
    ("mean_group_size", "steps that share one moment, on average", "4 to 5", GRAFT, "mean group size"),
    ("in_groups", "steps whose moment another step shares", "> 60 %", GRAFT, "share of steps in groups of 2 or more"),
    ("visits_one", "steps that one rollout alone informs", "60 %", f"{GRAFT}, for GiGPO", "degree 1, equal moments only"),
    ("graph_one", "the same, along the graph", "20 %", GRAFT, "propagation degree 1"),
    ("failed_up", "steps of failed rollouts with credit above 0", "22 %", f"{GRAPHGPO}, ALFWorld", "failed steps that advance"),
    (
        "success_flat", "steps of successful rollouts without credit above 0", "65 %", f"{GRAPHGPO}, ALFWorld",
        "successful steps that do not advance",
    ),
    ("merge_rate", "steps saved by merging", "", "", "merge rate, 1 - nodes / steps"),
    ("remerge_index", "moments where different paths meet", "", "", "re-merge index; 0 = a tree"),
)
OWN_DATA = (
    "The papers' figures are from the papers' own data (GRAFT, arXiv 2609.28963, Fig. 5 to 8; GraphGPO on ALFWorld): other "
    "tasks, other models, other group sizes. They say what others saw, not what is right here."
)


def headline(pair: Pair) -> None:
    """What the page found in one line, and the words in which the two sides differ."""
    facts = pair.agreement
    a, b = (literal(name, 40) for name in pair.names)
    if not facts.steps:
        st.markdown(f"#### {literal(facts.sentence, 200)}")
    elif facts.opposite > 0:
        st.markdown(f"#### {a} and {b} call {_share(facts.opposite)} of the steps good and bad the other way round.")
    elif silent := [name for name, scale in zip((a, b), pair.comparison.scales, strict=True) if scale.zeros == 1]:
        why = "both say nothing" if len(silent) == 2 else f"{silent[0]} says nothing"
        st.markdown(f"#### {a} and {b} never contradict each other, since {why}: credit 0 at every step.")
    else:
        st.markdown(f"#### {a} and {b} never contradict each other on what is good and what is bad.")
    rows = [row for row in setting_rows(pair.left, pair.right) if row["name"] != "estimator"]
    said = [
        f"{row['name']} **{literal(row['left'] or 'none', 40)}** against **{literal(row['right'] or 'none', 40)}**"
        for row in rows
    ]
    if said:
        st.markdown("What differs beside the method: " + " · ".join(said))
    elif pair.left.estimator == pair.right.estimator:
        st.caption("Both sides are the same. Change anything on either side to compare.")


def _share(value: float) -> str:
    if value != value:
        return DASH
    return f"{100 * value:.1f} %" if 0 < value < 0.01 else f"{100 * value:.0f} %"


def agreement(pair: Pair) -> None:
    """How far the two credits agree, in four numbers."""
    facts, scale = pair.agreement, pair.comparison.scales[1]
    a, b = (literal(name, 40) for name in pair.names)
    ratio = DASH if scale.ratio != scale.ratio else f"{number(scale.ratio)} ×"
    size = "ratio of RMS: switching changes the learning rate by as much"
    columns = st.columns(4)
    columns[0].metric("same sign", _share(facts.same_sign), help=f"of {count(facts.steps, 'step')}; zero is a sign of its own")
    columns[1].metric("opposite sign", _share(facts.opposite), help=f"{a} calls the step good and {b} bad, or the reverse")
    columns[2].metric("same order", number(facts.spearman), help="Spearman's rank correlation, from -1 to 1")
    columns[3].metric("size of B against A", ratio, help=f"{size}. {literal(scale.sentence, 300)}")


def step_rows(batch: RolloutBatch, pair: Pair, positions: IntArray) -> list[dict[str, Any]]:
    """Steps under both settings as plain rows."""
    rows = []
    for p in positions.tolist():
        rollout = int(batch.step_rollout[p])
        a, b = float(pair.credits[0][p]), float(pair.credits[1][p])
        rows.append(
            {
                "row": int(batch.order[p]), "group_id": batch.group_ids[int(batch.group[rollout])],
                "rollout_id": batch.rollout_ids[rollout], "step": int(batch.step_index[p]),
                "action": batch.text(int(batch.action[p])), "success": float(batch.success[rollout]),
                "credit_a": a, "credit_b": b, "difference": a - b, "rank_gap": float(pair.rank_gap[p]),
            }
        )
    return rows


def step_frame(rows: list[dict[str, Any]], pair: Pair) -> pd.DataFrame:
    """The same with screen names. The last column is a button."""
    ended = {0.0: "failed", 1.0: "succeeded"}
    difference = {"difference": [r["difference"] for r in rows]} if pair.same_units else {}
    return pd.DataFrame(
        {
            "task": [one_line(r["group_id"], 40) for r in rows],
            "step": [step_name(one_line(r["rollout_id"], 24), r["step"]) for r in rows],
            "what the agent did": [one_line(r["action"]) for r in rows],
            "ended": [ended.get(r["success"], "?") for r in rows],
            pair.names[0]: [r["credit_a"] for r in rows],
            pair.names[1]: [r["credit_b"] for r in rows],
            **difference,
            "places apart": [100 * r["rank_gap"] for r in rows],
            "open": [":material/hub: Graph"] * len(rows),
        }
    )


def step_columns(pair: Pair) -> dict[str, Any]:
    """Formats and tooltips of `step_frame`."""
    signed = {name: st.column_config.NumberColumn(format="%+.3f", width=92) for name in pair.names}
    return {
        "task": st.column_config.TextColumn(width=110), "step": st.column_config.TextColumn(width=70, help="rollout / step"),
        "what the agent did": st.column_config.TextColumn(width=210), "ended": st.column_config.TextColumn(width=80), **signed,
        "difference": st.column_config.NumberColumn(format="%+.3f", width=84, help="A minus B"),
        "places apart": st.column_config.NumberColumn(
            format="%+.0f %%", width=96, help="how much higher A ranks this step than B does, in percent of all steps"
        ),
    }


def step_detail(batch: RolloutBatch, pair: Pair, position: int, value_word: str) -> None:
    """One step under both settings: its moment, value before and after, credit."""
    rollout = int(batch.step_rollout[position])
    st.markdown(
        f"**{literal(batch.group_ids[int(batch.group[rollout])], 40)}** · "
        f"{literal(step_name(batch.rollout_ids[rollout], int(batch.step_index[position])), 40)}"
    )
    st.code(one_line(batch.text(int(batch.action[position])), 300), language=None, wrap_lines=True)
    sides = [moment_numbers(batch, settings, position) for settings in (pair.left, pair.right)]
    frame = pd.DataFrame(
        {
            "": list(pair.names),
            "credit": [float(credit[position]) for credit in pair.credits],
            "before": [side["before"] for side in sides],
            "after": [side["after"] for side in sides],
            "here": [side["rollouts"] for side in sides],
        }
    )
    value = st.column_config.NumberColumn(format="%.2f", width=60, help=f"{value_word} under this side's rules (V)")
    st.dataframe(
        frame, hide_index=True, alt="the chosen step under both settings",
        column_config={
            "credit": st.column_config.NumberColumn(format="%+.3f", width=70), "before": value, "after": value,
            "here": st.column_config.NumberColumn(width=50, help="rollouts that stood in this moment under this side's rules"),
        },
    )


def measures(pair: Pair, a: dict[str, float], b: dict[str, float]) -> None:
    """What papers report about their batches, beside what this batch gives under both settings."""

    def shown(name: str, value: float) -> str:
        digits = {"mean_group_size": 1, "remerge_index": 2}.get(name)
        return _share(value) if digits is None else number(value, digits)

    frame = pd.DataFrame(
        [
            {
                "measure": words, pair.names[0]: shown(name, a[name]), pair.names[1]: shown(name, b[name]),
                "papers": figure or DASH, "whose": source or DASH, "term": term,
            }
            for name, words, figure, source, term in MEASURES
        ]
    )
    st.dataframe(
        frame, hide_index=True, alt="measures of this batch beside the papers' figures",
        column_config={
            "measure": st.column_config.TextColumn(width=310), "term": st.column_config.TextColumn(width=220),
            **{name: st.column_config.TextColumn(width=90) for name in (*pair.names, "papers")},
            "whose": st.column_config.TextColumn(width=140),
        },
    )
    st.caption(OWN_DATA)
