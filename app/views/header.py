"""The line above every page: what is loaded, and every warning before the first number."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from graft_app import cache, controls, follow
from graft_app.batch import Opened, choose, group_menu, picker
from graft_app.views import saved
from graft_app.views.text import count, literal
from graft_core.errors import GraftError
from graft_core.formats.codes import WARNINGS
from graft_core.insight.measures import counts
from graft_core.rollouts import LoadReport, Warning_

SERIOUS = ("group_missing", "order_doubtful")
MOST_REJECTIONS = 50


OF_THE_GRAPH = {
    "low_information_merges": "Such moments look alike and are not, so credit can leak between them. The States page shows "
    "which, and what the rule guard changes.",
    "actions_unshared": "Graph credit of moments does not need it. For numbers per action choose in the Expert drawer when two "
    "actions are the same.",
}
"""What a warning about the merged graph means and what to do, by its code; those of the readers have theirs."""

HERE = {
    "group_missing": "The file does not say which rollouts belong to one task (group). Choose that below: until then rollouts "
    "are not compared and no credit is computed.",
}
"""Warnings whose own sentence speaks of the command line."""


def _warning(warning: Warning_) -> None:
    """What happened, and what it means."""
    where = f" (first: {literal(Path(warning.where).name)})" if warning.where else ""
    title = f"{warning.code.replace('_', ' ').capitalize()} · {count(warning.count, 'time')}"
    meaning = {**WARNINGS, **OF_THE_GRAPH}.get(warning.code, "")
    sentence = literal(f"{warning.sentence[:1].upper()}{warning.sentence[1:]}", 600)
    said = HERE.get(warning.code) or f"{sentence}{where}. {literal(meaning, 600)}"
    st.warning(said, icon=":material/warning:", title=title)


def _of_the_graph(opened: Opened) -> tuple[int, list[Warning_]]:
    """Tasks that teach nothing (the same number as on the Findings page) and warnings, under the settings in force."""
    if opened.batch.groups_assumed:
        return 0, []
    settings = controls.current()
    try:
        silent = cache.teaching_of(*opened.source, settings).silent
        if silent == opened.batch.n_groups:  # where nothing can be compared it does not matter what merges
            return silent, []
        return silent, cache.merge_warnings_of(*opened.source, settings)
    except GraftError:  # the page itself says what is wrong with the settings
        return cache.teaching_at_start(*opened.source).silent, []


def _counts(opened: Opened, silent: int) -> str:
    """What is loaded, in one line of Markdown."""
    report, batch = opened.report, opened.batch
    facts = counts(batch)
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
    return f"**{literal(batch.name, 60)}** · " + " · ".join(parts)


def _notes(report: LoadReport, warnings: list[Warning_]) -> None:
    """A menu of what is doubtful or was left out, where there is any."""
    if not warnings and not report.rejections:
        return
    with st.popover(count(len(warnings), "warning") if warnings else "Rejected", icon=":material/warning:"):
        for warning in warnings:
            _warning(warning)
        for rejection in report.rejections[:MOST_REJECTIONS]:
            st.text(f"{rejection.where}: {rejection.reason}")
        if len(report.rejections) > MOST_REJECTIONS:
            st.caption(f"and {len(report.rejections) - MOST_REJECTIONS} more; `graft inspect --json` lists all")


def show(opened: Opened) -> bool:
    """Warnings, then counts. Returns whether credit can be computed: groups are known or were chosen."""
    report, batch = opened.report, opened.batch
    follow.keep_chosen(opened, controls.current())
    with st.container():  # one place whatever it holds: what stands below keeps its number while a run adds warnings
        for warning in report.warnings:
            if warning.code in SERIOUS:
                _warning(warning)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        line = st.container(width="content").empty()
        line.markdown(_counts(opened, 0), width="content")  # at once: the rest has to wait for the graph
        silent, of_the_graph = _of_the_graph(opened)
        line.markdown(_counts(opened, silent), width="content")
        with st.container(width="content"):
            _notes(report, [*(w for w in report.warnings if w.code not in SERIOUS), *of_the_graph])
        with st.container(width="content"):  # a place of its own: what comes after must not depend on a part that runs alone
            follow.chip(opened)
        with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center", width="content"):
            saved.menu(opened)
            picker(opened.index)
    if batch.groups_assumed or opened.group_by:
        group_menu(opened)
    return not batch.groups_assumed


def start() -> Opened:
    """The head of a page: the batch that the address names, and the line above. It stops the page where groups are unknown."""
    opened = choose()
    if not show(opened):
        wait_for_groups()
    return opened


def wait_for_groups() -> None:
    """Stop the page here until somebody has said what makes rollouts one task."""
    st.info(
        "Choose above what makes rollouts one task (group). Credit compares rollouts of one task; until then none is computed.",
        icon=":material/group_work:",
    )
    st.stop()
