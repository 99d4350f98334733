"""Why a step has its credit: sentences, the formula with its numbers, who contributed, and the ways on."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from graft_app.views.text import count, literal, number, one_line
from graft_core.insight import Findings
from graft_core.insight.why import Paths, Sentence, Why, why


def escaped(sentence: Sentence) -> str:
    """A sentence for Markdown; the names in it stand as text."""
    fields = {name: literal(text, 60) for name, text in sentence.fields.items()}
    return literal(sentence.template, 400).replace("\\{", "{").replace("\\}", "}").format(**fields)


def _sentences(said: Why) -> None:
    for sentence in said.sentences:
        st.markdown(escaped(sentence))


def _formula(said: Why) -> None:
    for formula, what in ((said.formula, "A"), (said.shown, "A, normalised"), (said.baseline, "B")):
        if formula is not None:
            st.markdown(f"**{what} · {formula.title}** · {literal(formula.symbols, 200)}")
            st.code(formula.text, language=None, wrap_lines=True)
            if formula.note:
                st.caption(literal(formula.note, 400))


def _contributions(said: Why) -> None:
    rows = [
        {
            "rollout": one_line(c.rollout_id, 24) + (" (this one)" if c.own else ""),
            "ended": "?" if c.succeeded is None else "succeeded" if c.succeeded else "failed",
            "before": c.before, "after": c.after, "to credit": c.to_credit,
        }
        for c in sorted(said.contributions, key=lambda c: -abs(c.to_credit))
    ]
    if not rows:
        st.caption("Contributions by rollout exist for graph values with outcome or step rewards.")
        return
    signed = st.column_config.NumberColumn(format="%+.3f", width=72)
    plain = st.column_config.NumberColumn(format="%.3f", width=66)
    st.dataframe(
        pd.DataFrame(rows), hide_index=True, alt="contribution of each rollout",
        column_config={"before": plain, "after": plain, "to credit": signed},
    )
    st.caption(
        f"Each rollout's part in the value before ({number(said.value_before, 3)}) and after ({number(said.value_after, 3)}); "
        "the parts sum to the values."
    )


def _paths(ways: Paths, title: str) -> None:
    rows = [
        {
            "probability": p.probability, "steps": len(p.edges), "ends at": p.end_value,
            "first actions": " · ".join(one_line(a, 30) for a in p.actions[:3]),
        }
        for p in ways.paths
    ]
    if not rows:
        return
    st.markdown(f"**{title}**")
    st.dataframe(
        pd.DataFrame(rows), hide_index=True, alt=title,
        column_config={
            "probability": st.column_config.NumberColumn(format="%.3f", width=76),
            "steps": st.column_config.NumberColumn(width=48), "ends at": st.column_config.NumberColumn(format="%.2f", width=62),
        },
    )
    st.caption(f"All other ways together: probability {number(ways.remainder, 3)}.")


def show(found: Findings, position: int) -> None:
    """The explanation of one step, the short part open and the rest behind one click."""
    said = why(found, position)
    st.markdown(f"**Why {number(said.credit, 3, sign=True)}** · {literal(said.rollout_id, 24)}/{said.step}")
    _sentences(said)
    taken = sum(action.ended.rollouts for action in said.actions)
    if taken > said.reached.rollouts:
        st.caption("A rollout that came here more than once counts for each kind of action it took.")
    if found.certainty is not None:
        edge = int(found.graph.edge[position])
        row = found.certainty.row(edge)
        span = "" if row["low"] is None else f" · 90 % interval {row['low']:+.2f} to {row['high']:+.2f}"
        rough = " (rough)" if bool(found.certainty.rough[edge]) else ""
        st.markdown(f"Certainty: **{row['word']}{rough}**{span}", help=row["meaning"])
    _more("formula", "Formula, with its own numbers", said)
    _more("contributions", f"Contributions of {count(len(said.contributions), 'rollout')}", said)
    _more("paths", "Where it goes from here", said)


@st.fragment  # opening a part does not send the page again, and a closed one costs nothing
def _more(part: str, title: str, said: Why) -> None:
    with st.expander(title, on_change="rerun", key=f"why_{part}") as box:
        if not box.open:
            return
        if part == "formula":
            _formula(said)
        elif part == "contributions":
            _contributions(said)
        else:
            _paths(said.paths_before, "From the moment before")
            _paths(said.paths_after, "From the moment after")
