"""What a rule merges, shown as raw texts side by side; what a mask would merge; merges that say little; shared actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from graft_app.views.text import block, count, literal, one_line, visible
from graft_core.graph import TrajectoryGraph
from graft_core.insight.merges import action_table, largest_merges, low_information_merges, merge_warnings

PIECES = 60
"""Pieces of a text that are shown; each alternates between shared and different."""


def _text(entry: dict[str, Any]) -> None:
    """One raw text with what differs from the first marked."""
    if len(entry["segments"]) <= 1:
        block(entry["text"], 600)
        return
    marked = "".join(
        _between(piece["text"]) if piece["equal"] else f" :orange-background[{literal(piece['text'], 200) or '␣'}] "
        for piece in entry["segments"][:PIECES]
    )
    st.markdown(marked + (" …" if len(entry["segments"]) > PIECES else ""))


def _between(text: str) -> str:
    """What both texts share: its ends, which stand beside the differences."""
    return literal(text, 200) if len(text) <= 200 else f"{literal(text[:90], 100)} … {literal(text[-90:], 100)}"


def _side_by_side(merge: dict[str, Any]) -> None:
    """The raw texts of one merge, two in a row."""
    texts = merge["texts"]
    for at in range(0, len(texts), 2):
        for place, entry in zip(st.columns(2) if len(texts) > 1 else [st.container()], texts[at : at + 2]):
            with place:
                st.caption(count(entry["steps"], "step"))
                _text(entry)
    if merge["distinct"] > len(texts):
        st.caption(f"and {count(merge['distinct'] - len(texts), 'more text')}")


def _title(merge: dict[str, Any]) -> str:
    return (
        f"{literal(merge['group_id'], 40)} · {count(merge['steps'], 'step')} of {count(merge['rollouts'], 'rollout')} · "
        f"{count(merge['distinct'], 'raw text')} · {literal(one_line(merge['texts'][0]['text'], 60), 60) or '(empty)'}"
    )


def masks(previews: dict[str, dict[str, Any]], use: Callable[[str], None]) -> None:
    """What each ready mask would merge, looked at before it is used."""
    st.caption(
        "A mask leaves a pattern in the text out of account, such as a clock. No mask is on unless you choose it: where the "
        "number is the state (a counter, a card, a price), it merges what differs. An expression of your own goes into the "
        "field at the top: masked:/EXPRESSION/."
    )
    words = list(previews)
    said = {word: f"{count(p['merged_keys'], 'merge')}, {count(p['steps'], 'step')}" for word, p in previews.items()}
    word = st.selectbox("Mask", words, format_func=lambda w: f"{w.partition(':')[2]}: {said[w]}", key="mask")
    if word is None:
        return
    if not previews[word]["merges"]:
        st.markdown("It would merge nothing here.")
        return
    for merge in previews[word]["merges"][:5]:
        st.markdown(_title(merge))
        _side_by_side(merge)
    if st.button(f"Use {literal(word)}", key="use_mask"):
        use(word)


def show(graph: TrajectoryGraph) -> None:
    """The largest merges, those that say little, and the actions."""
    for warning in merge_warnings(graph):
        st.warning(literal(warning.sentence, 500), icon=":material/warning:")
    st.markdown("#### The largest merges")
    for merge in largest_merges(graph, 8):
        with st.expander(_title(merge)):
            _side_by_side(merge)
    low = low_information_merges(graph, 12)
    if low:
        st.markdown("#### Merges that say little")
        st.dataframe(
            pd.DataFrame(
                [
                    {
                        "task": one_line(m["group_id"], 40), "text": visible(one_line(m["text"])) or "(empty)",
                        "why": m["reason"], "steps": m["steps"], "rollouts": m["rollouts"], "reached from": m["origins"],
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
