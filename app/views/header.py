"""The line above every page: what is loaded, and every warning before the first number."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from graft_app.batch import Opened, group_menu, picker
from graft_app.cache import teaching_at_start
from graft_app.views.text import count, literal
from graft_core.insight.measures import counts
from graft_core.rollouts import Warning_

SERIOUS = ("group_missing", "order_doubtful")


def _warning(warning: Warning_) -> None:
    where = f" (first: {literal(Path(warning.where).name)})" if warning.where else ""
    title = f"{warning.code.replace('_', ' ').capitalize()} · {count(warning.count, 'time')}"
    st.warning(f"{literal(warning.sentence, 600)}{where}", icon=":material/warning:", title=title)


def show(opened: Opened) -> bool:
    """Warnings, then counts. Returns whether credit can be computed: groups are known or were chosen."""
    report, batch = opened.report, opened.batch
    serious = [w for w in report.warnings if w.code in SERIOUS]
    other = [w for w in report.warnings if w.code not in SERIOUS]
    for warning in serious:
        _warning(warning)
    facts = counts(batch)
    silent = 0 if batch.groups_assumed else teaching_at_start(*opened.source).silent
    parts = [
        count(facts["groups"], "task") + (" (assumed)" if batch.groups_assumed else ""),
        count(facts["rollouts"], "rollout"),
        f"{facts['successes']} succeeded",
    ]
    if facts["unknown"]:
        parts.append(f"{facts['unknown']} unknown")
    if silent:
        parts.append(f"{count(silent, 'task teaches', 'tasks teach')} nothing")
    if report.rejected:
        parts.append(f"{report.rejected} of {count(report.read, 'record')} rejected")
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**{literal(batch.name, 60)}** · " + " · ".join(parts), width="content")
        if other or report.rejections:
            with st.popover(count(len(other) + len(report.rejections), "note"), icon=":material/info:"):
                for warning in other:
                    _warning(warning)
                for rejection in report.rejections[:50]:
                    st.text(f"{rejection.where}: {rejection.reason}")
                if len(report.rejections) > 50:
                    st.caption(f"and {len(report.rejections) - 50} more; `graft inspect --json` lists all")
        picker(opened.index)
    if batch.groups_assumed or opened.group_by:
        group_menu(opened)
    return not batch.groups_assumed


def wait_for_groups() -> None:
    """Stop the page here until somebody has said what makes rollouts one task."""
    st.info(
        "Choose above what makes rollouts one task (group). Credit compares rollouts of one task; until then none is computed.",
        icon=":material/group_work:",
    )
    st.stop()
