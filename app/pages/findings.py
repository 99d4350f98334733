"""Findings: the good steps inside failed rollouts, and where failed rollouts were lost."""

from __future__ import annotations

from typing import Any

import streamlit as st

from graft_app import batch as table
from graft_app import controls, urlstate
from graft_app.views import header
from graft_app.views.tables import as_csv, as_jsonl, column_config, steps_table
from graft_app.views.text import count
from graft_core.credit import estimators
from graft_core.insight import Findings
from graft_core.settings import LOOK, Settings

SUPPORT = (1, 2, 3, 5)
LISTS = {"good": "Good steps in failures", "lost": "Where it was lost"}


def headline(found: Findings, settings: Settings) -> None:
    """The page's claim in two sentences and three numbers."""
    facts, known = found.summary, estimators()
    a, b = known[settings.estimator].title, known[settings.baseline].title
    n = facts["good_steps"]
    if known[settings.baseline].uses == "rollouts":
        claim = f"{b} gives every step of {count(facts['failures'], 'failed rollout')} the same blame."
    else:
        claim = f"{count(facts['failures'], 'rollout')} failed."
    st.markdown(f"#### {claim} {'Some of those steps were good.' if n else f'{a} finds no good step in them.'}")
    st.markdown(
        f"**{count(n, 'good step')} in failed rollouts** · "
        f"{facts['good_steps_3_rollouts']} at moments seen by 3 or more rollouts · "
        f"of {count(facts['failed_steps'], 'step')} there",
        help=f"A step of a failed rollout is good when its credit under {a}, not normalised, is above 0 (beyond 1e-9): "
        "it led to a moment from which rollouts of this task did better.",
    )


def chooser(found: Findings) -> tuple[str, str, int]:
    """Which list, what to search for, and the least support: all in one row above the table."""
    which = urlstate.read("list", lambda w: {"good": "good", "lost": "lost"}[w], "good")
    query = urlstate.read("q", str, "")
    least = urlstate.read("seen", int, 1)
    lists, search, support = st.columns([2.2, 1.4, 1], vertical_alignment="bottom")
    lists.segmented_control(
        "List", list(LISTS), format_func=lambda w: f"{LISTS[w]} ({getattr(found, w).size:,})",
        label_visibility="collapsed", required=True, **urlstate.bind("list", which, "good"),
    )
    search.text_input(
        "Search", placeholder="search task, action, text", label_visibility="collapsed", **urlstate.bind("q", query, "")
    )
    support.selectbox(
        "Support", SUPPORT, format_func=lambda n: "any support" if n == 1 else f"seen by {n}+ rollouts",
        label_visibility="collapsed", **urlstate.bind("seen", least if least in SUPPORT else 1, 1),
    )
    return which, query, least


def matching(rows: list[dict[str, Any]], query: str, least: int) -> list[dict[str, Any]]:
    """Rows that the search box and the support filter let through."""
    words = query.lower().split()

    def fits(row: dict[str, Any]) -> bool:
        text = f"{row['group_id']} {row['rollout_id']} {row['action']} {row['observation']}".lower()
        return row["seen_by"] >= least and all(word in text for word in words)

    return [row for row in rows if fits(row)]


def show_list(found: Findings, settings: Settings, opened: table.Opened) -> None:
    """The chosen list as a table; a chosen row leads to its graph."""
    which, query, least = chooser(found)
    positions = getattr(found, which)
    rows = matching(found.merged_rows(positions), query, least)
    if not rows:
        st.info("Nothing in this list matches." if positions.size else "Nothing to list here.")
        return
    shown = steps_table(rows, settings.estimator, settings.baseline, opened.value_word)
    chosen = st.dataframe(
        shown, hide_index=True, on_select="rerun", selection_mode="single-row", key=f"list_{which}", height=500,
        column_config=column_config(settings.estimator, settings.baseline, opened.value_word),
        alt=f"{LISTS[which]}: {len(rows)} rows",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        stands = f"{len(rows):,} rows for {sum(r['count'] for r in rows):,} steps: equal moment and action are one row. "
        st.caption(f"{stands}Choose a row to open it in its graph.")
        st.download_button("CSV", lambda: as_csv(rows), f"{which}.csv", "text/csv", icon=":material/download:")
        st.download_button("JSONL", lambda: as_jsonl(rows), f"{which}.jsonl", icon=":material/download:")
    picked = chosen["selection"]["rows"]
    if picked and picked[0] < len(rows):
        st.switch_page("pages/graph.py", query_params=_towards(rows[picked[0]]))


def _towards(row: dict[str, Any]) -> dict[str, str]:
    """The address of the graph page with this step chosen."""
    keep = {name: st.query_params[name] for name in st.query_params}
    return {**keep, "task": row["group_id"], "sel": f"e{row['edge']}", "at": str(row["row"])}


opened = table.choose()
if header.show(opened):
    with table.sentences():
        settings = controls.current()
        found = opened.findings(settings)
    headline(found, settings)
    show_list(found, settings, opened)
    a, b, c, d = st.columns([1, 1, 1.4, 0.8], vertical_alignment="bottom")
    with a:
        controls.estimator_menu("Credit A", "a", settings.estimator, LOOK.estimator, "The credit that decides what is good.")
    with b:
        controls.estimator_menu("Compare with B", "b", settings.baseline, LOOK.baseline, "The credit shown beside it.")
    with c:
        controls.rule_menu(settings)
    with d:
        controls.expert_drawer(settings)
    controls.lambda_slider(settings)
else:
    with table.sentences():
        opened.batch.require_groups()
