"""What a rule merges, shown as raw texts side by side; merges that say little; how many actions are shared."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from graft_app.views.text import block, count, literal, one_line, visible
from graft_core.graph import TrajectoryGraph
from graft_core.insight.merges import action_table, largest_merges, low_information_merges, merge_warnings


def _text(entry: dict[str, Any]) -> None:
    """One raw text with what differs from the first marked."""
    if len(entry["segments"]) <= 1:
        block(entry["text"], 600)
        return
    marked = "".join(
        literal(piece["text"], 200) if piece["equal"] else f" :orange-background[{literal(piece['text'], 200)}] "
        for piece in entry["segments"][:40]
    )
    st.markdown(marked)


def show(graph: TrajectoryGraph) -> None:
    """The largest merges, those that say little, and the actions."""
    for warning in merge_warnings(graph):
        st.warning(literal(warning.sentence, 500), icon=":material/warning:")
    st.markdown("#### The largest merges")
    for merge in largest_merges(graph, 8):
        title = (
            f"{literal(merge['group_id'], 40)} · {count(merge['steps'], 'step')} of {count(merge['rollouts'], 'rollout')} · "
            f"{count(merge['distinct'], 'raw text')} · {literal(one_line(merge['texts'][0]['text'], 60), 60)}"
        )
        with st.expander(title):
            for entry in merge["texts"]:
                st.caption(count(entry["steps"], "step"))
                _text(entry)
    low = low_information_merges(graph, 12)
    if low:
        st.markdown("#### Merges that say little")
        st.dataframe(
            pd.DataFrame(
                [
                    {
                        "task": one_line(m["group_id"], 40), "text": visible(one_line(m["text"])), "why": m["reason"],
                        "steps": m["steps"], "rollouts": m["rollouts"], "reached from": m["origins"],
                    }
                    for m in low
                ]
            ),
            hide_index=True, alt="merges that say little",
        )
        st.caption("The rule guard keeps these apart by the state and action before them.")
    st.markdown("#### When are two actions the same?")
    table = action_table(graph)
    st.dataframe(
        pd.DataFrame(
            [
                {"rule": r["actions"], "shared by 2+ rollouts": 100 * r["shared"], "distinct actions": r["distinct"]}
                for r in table["rules"]
            ]
        ),
        hide_index=True, alt="action rules",
        column_config={"shared by 2+ rollouts": st.column_config.NumberColumn(format="%.1f %%")},
    )
    st.caption(f"Proposed: {table['proposed']}. Choose it in the Expert drawer of Findings or Graph.")
