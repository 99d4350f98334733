"""Findings: the good steps inside failed rollouts, where failed rollouts were lost, and whether that is luck."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import streamlit as st

from graft_app import batch as table
from graft_app import cache, controls, urlstate
from graft_app.views import chosen, header, lists, takeaway
from graft_app.views.tables import column_config, steps_table
from graft_app.views.text import count
from graft_core.credit import estimators
from graft_core.insight import Findings
from graft_core.insight.chance import sentence, too_small_sentence
from graft_core.insight.compare import mirror
from graft_core.insight.lost import loop_starts
from graft_core.insight.why import position_of_row
from graft_core.settings import Settings

MOST_ROWS = 5000
ROWS_SEEN, ROW = 8, 35  # rows of a list that show at once; pixels of one
SUPPORT = (1, 2, 3, 5)
LISTS = {
    "good": "Good steps", "lost": "Where it was lost", "nothing": "Nothing to learn", "bad": "Bad steps in successes",
}


def _verdict(found: Findings, title: str) -> str:
    """What the list is worth, said as loudly as the claim itself."""
    n, luck = found.good.size, found.chance
    if not found.summary["failures"]:
        return ""
    if not n:
        return f"{title} finds no good step in {'it' if found.summary['failures'] == 1 else 'them'}."
    if luck is None:
        return "Some of those steps look good."
    if luck.beyond.any() or luck.observed > luck.high:
        return "Some of those steps were good."
    return "Some may have been good, but no more are found than luck gives."


def _nothing_to_tell(found: Findings) -> str:
    """Why no step can stand out at all, in one sentence; empty where some can."""
    facts = found.summary
    if not facts["rollouts"]:
        return "There is no rollout in this file."
    if not facts["steps"]:
        return "These rollouts have no steps, so there is no step that could have earned the outcome."
    if not facts["failures"] and not facts["successes"]:
        return "No rollout has a known outcome, so nothing says which step was good."
    if not facts["failures"]:
        return "No rollout failed, so there is no blame to look into."
    if not facts["successes"]:
        return f"{count(facts['failures'], 'rollout')} failed and none succeeded: no step made a difference that can be seen."
    return ""


def headline(found: Findings, settings: Settings) -> None:
    """The page's claim, and beside it what luck would give."""
    facts, known = found.summary, estimators()
    a, b = known[settings.estimator].title, known[settings.baseline].title
    n = facts["good_steps"]
    none = _nothing_to_tell(found)
    if none:
        st.markdown(f"#### {none}")
        if not n:
            return
    else:
        claim = f"{count(facts['failures'], 'rollout')} failed."
        if known[settings.baseline].uses == "rollouts":
            claim = f"{b} gives every step of {count(facts['failures'], 'failed rollout')} the same blame."
        st.markdown(f"#### {claim} {_verdict(found, a)}")
    luck = ""
    if found.chance is not None and n:
        luck = f" · {int(found.chance.beyond.sum())} beyond luck"
    st.markdown(
        f"**{count(n, 'good step')} in failed rollouts**{luck} · "
        f"{facts['good_steps_3_rollouts']} at moments seen by 3 or more rollouts · "
        f"of {count(facts['failed_steps'], 'step')} there",
        help=f"A step of a failed rollout is good when its credit under {a}, not normalised, is above 0 (beyond 1e-9): "
        "it led to a moment from which rollouts of this task did better.",
    )
    if found.chance is not None:
        small = too_small_sentence(found.chance)
        st.caption(sentence(found.chance) + (f" {small}" if small else ""))
    if facts.get("reward_sums_differ"):
        st.warning(
            f"The step rewards of {count(facts['reward_sums_differ'], 'rollout')} do not sum to the outcome; with rewards = "
            "dense only the step rewards count.",
            icon=":material/warning:",
        )
    for key in ("chance_missing", "certainty_missing"):
        if key in facts:
            st.caption(facts[key])


def with_luck(settings: Settings) -> Findings:
    """The findings with chance: at once for graph TD, on request with progress for the others."""
    found = opened.findings(settings)
    if settings.estimator == "graft_td":
        return cache.chance_of(*opened.source, settings)
    if not found.good.size:
        return found
    place = st.empty()
    wanted: set[Settings] = st.session_state.setdefault("chance_wanted", set())
    if settings not in wanted:
        if place.button(
            "Is this more than luck? (200 shuffles)", icon=":material/casino:",
            help="This estimator has to run again for every shuffle of the outcomes; graph TD needs no second run.",
        ):
            wanted.add(settings)
        else:
            return found
    with place.container(horizontal=True, vertical_alignment="bottom"):
        bar = st.progress(0.0, "Dealing outcomes at random ...")
        # a click ends this run of the page at the bar's next drawing
        st.button("Stop", icon=":material/stop:", on_click=wanted.discard, args=(settings,), key="stop_chance")
    found = cache.chance_of(
        *opened.source, settings, lambda done, total: bar.progress(done / total, f"Shuffle {done} of {total} ...")
    )
    place.empty()
    return found


def positions_of(found: Findings, which: str) -> Any:
    """Step positions of a list."""
    if which == "bad":
        return mirror(found.batch, found.credit)
    return {"good": found.good, "lost": found.lost, "nothing": np.zeros(0, dtype=np.int64)}[which]


def chooser(found: Findings, settings: Settings) -> tuple[str, str, int]:
    """Which list, what to search for, and the least support: all in one row above the table."""
    which = urlstate.read("list", lambda w: {name: name for name in LISTS}[w], "good")
    query = urlstate.read("q", str, "")
    least = urlstate.read("seen", lambda w: {str(n): n for n in SUPPORT}[w], 1)
    silent = cache.teaching_of(*opened.source, settings).silent
    sizes = {name: silent if name == "nothing" else positions_of(found, name).size for name in LISTS}
    names, search, support = st.columns([3.9, 1.1, 0.8], vertical_alignment="bottom")
    names.segmented_control(
        "List", list(LISTS), format_func=lambda w: f"{LISTS[w]} ({sizes[w]:,})", label_visibility="collapsed", required=True,
        **urlstate.bind("list", which, "good"),
    )
    search.text_input(
        "Search", placeholder="search task, action, text", label_visibility="collapsed", **urlstate.bind("q", query, "")
    )
    support.selectbox(
        "Support", SUPPORT, format_func=lambda n: "any support" if n == 1 else f"seen by {n}+",
        label_visibility="collapsed", **urlstate.bind("seen", least, 1),
    )
    return which, query, least


def matching(rows: list[dict[str, Any]], query: str, least: int) -> list[dict[str, Any]]:
    """Rows that the search box and the support filter let through."""
    words = query.lower().split()

    def fits(row: dict[str, Any]) -> bool:
        text = f"{row['group_id']} {row['rollout_id']} {row['action']} {row['observation']}".lower()
        return row["seen_by"] >= least and all(word in text for word in words)

    return [row for row in rows if fits(row)]


def show_list(found: Findings, settings: Settings) -> None:
    """The chosen list as a table, and beneath it the chosen finding."""
    which, query, least = chooser(found, settings)
    if which == "nothing":
        lists.nothing_to_learn(cache.teaching_of(*opened.source, settings))
        return
    positions = positions_of(found, which)
    rows = matching(found.merged_rows(positions, MOST_ROWS), query, least)
    if which == "lost":
        loops = loop_starts(found.graph)
        closes = {row["row"]: loops[position_of_row(found.batch, row["row"])] >= 0 for row in rows}
        rows = [{**row, "loop": "closes a loop" if closes[row["row"]] else ""} for row in rows]
    if not rows:
        why = cache.teaching_of(*opened.source, settings).sentence
        why = f"{why[:1].upper()}{why[1:]}. “{LISTS['nothing']}” says what would change that."
        st.info("Nothing in this list matches." if positions.size else f"Nothing to list here. {why}")
        return
    row = table_of(rows, settings, which)
    with st.container(gap="xsmall"):
        said = chosen.show(opened, settings, found, row, which)
        with st.container(horizontal=True, vertical_alignment="center"):
            chosen.ways(opened, settings, said, row)
            takeaway.findings_menu(opened, settings, found, which, rows)
            stands = f"{count(len(rows), 'row')} for {count(sum(r['count'] for r in rows), 'step')}"
            st.caption(f"{stands}; Shift + Space chooses a row", help="Equal moment and action are one row of the list.")
    if which == "lost":
        lists.lost_groups(cache.lost_of(*opened.source, settings))


def table_of(rows: list[dict[str, Any]], settings: Settings, which: str) -> dict[str, Any]:
    """The list as a table; returns the row that the address names (`at`), else the first one."""
    steps = [row["row"] for row in rows]
    named = urlstate.whole(st.query_params.get("at", ""), opened.batch.n_steps)
    at = steps.index(named) if named in steps else None
    key = f"list_{which}_{zlib.crc32(np.array(steps).tobytes())}"  # another order is another table: a choice is by position

    def picked() -> None:
        chosen_rows = st.session_state[key]["selection"]["rows"]
        urlstate.write("at", str(steps[chosen_rows[0]]) if chosen_rows and chosen_rows[0] < len(steps) else None)

    st.dataframe(
        steps_table(rows, settings.estimator, settings.baseline, opened.value_word), hide_index=True, on_select=picked,
        selection_mode="single-row", key=key, height=ROW * (min(len(rows), ROWS_SEEN) + 1) + 2,
        selection_default={"selection": {"rows": [] if at is None else [at]}},
        column_config=column_config(settings.estimator, settings.baseline, opened.value_word),
        alt=f"{LISTS[which]}: {len(rows)} rows",
    )
    return rows[at or 0]


def compare_methods(settings: Settings) -> None:
    """How far the methods on the first menu agree, and what switching does to the scale."""
    with st.expander("Do the methods agree? What does switching do to the scale?", on_change="rerun", key="compare") as box:
        if box.open:
            names = dict.fromkeys([settings.baseline, settings.estimator, *(n for n, e in estimators().items() if e.menu)])
            lists.comparison(cache.comparison_of(*opened.source, settings, tuple(names)))


opened = header.start()
with table.sentences():
    settings = controls.current()
    top = st.container()
    found = with_luck(settings)
with top, st.container(gap="xsmall"):
    headline(found, settings)
show_list(found, settings)
controls.credit_row(settings, "The credit that decides what is good.", "The credit shown beside it.")
controls.lambda_slider(settings)
with table.sentences():
    compare_methods(settings)
