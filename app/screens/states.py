"""States: when are two moments the same? What each rule merges, which merges are suspect, and edits by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from graft_app import batch as table
from graft_app import cache, controls, urlstate
from graft_app.views import header, merges
from graft_app.views.text import count, literal, one_line
from graft_core.errors import GraftError, UsageError
from graft_core.graph import TrajectoryGraph
from graft_core.insight.suspect import (
    MEMORY,
    POWER,
    GroupSuspicion,
    Pair,
    Suspects,
    node_sentence,
    pair,
    sentence,
    summary,
)
from graft_core.insight.suspect import name as moment_name
from graft_core.settings import LOOK, Settings
from graft_core.states import join_rules, split_rules
from graft_core.states.edit_file import Edit, Edits, names_at, plain_rules, read_edits, write_edits
from graft_core.states.preview import with_mask

MOST, OPEN, NODES = 20, 2, 5
"""Tasks with suspect moments that are listed, how many of them stand open, and moments of each."""

NUMBERS = {
    "nodes": ("moments", None), "merge_rate": ("merge rate", 100), "group_size_2": ("of 2+ steps", 100),
    "shared": ("of 2+ rollouts", 100), "remerge_index": ("paths meet again", 100),
}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """One rule's measures under screen names."""
    made: dict[str, Any] = {"rule": row["rules"]}
    words = {"two moments are the same when": _words(row["rules"])}
    if "error" in row:
        return {**made, **words, "note": row["error"]}
    for name, (title, scale) in NUMBERS.items():
        made[title] = row[name] * scale if scale else row[name]
    made["outcomes per step"] = row["propagation"]["graph"]
    made["good steps"] = row["good_steps"]
    if row.get("chance"):
        made["by luck"] = f"{row['chance']['low']} to {row['chance']['high']}"
        made["beyond luck"] = row["chance"]["beyond_luck"]
    return {**made, **words}


def _words(rules: str) -> str:
    return " + ".join(controls.rule_words(spec) for spec in split_rules(rules))


def _columns() -> dict[str, Any]:
    percent = {title: st.column_config.NumberColumn(format="%.1f %%") for title, scale in NUMBERS.values() if scale}
    return {
        **percent,
        "outcomes per step": st.column_config.NumberColumn(
            format="%.1f", help="propagation degree: rollouts whose ending can be reached from the step's moment, on average"
        ),
    }


def compose(settings: Settings) -> None:
    """Any composition of rules, as words; a wrong one is a sentence and the previous rule stays."""
    left, right = st.columns([1.4, 1], vertical_alignment="bottom")
    with left:
        controls.rule_menu(settings)
    with right:
        word = st.text_input(
            "or any composition", placeholder="masked:number+history:1", key="composition",
            help="Rules in the words of the command line, joined by +; applied left to right, text rules first. A + of a "
            "rule's own, as in an expression, is written ++.",
        )
    if word and word != st.session_state.get("composition_taken"):
        st.session_state["composition_taken"] = word
        try:
            rules = controls.rules_of(word)
            opened.findings(settings.with_options(rules=rules))
        except GraftError as error:
            doubled = "/" in word and "+" in word.replace("++", "")
            said = f"{error}{'; a + inside an expression is written ++' if doubled else ''}".rstrip(".")
            st.error(f"{literal(said, 500)}. The rule stays as it was.")
        else:
            urlstate.write("rules", join_rules(rules))
            st.rerun()


def alternatives(settings: Settings) -> None:
    """The chosen rule and each alternative in one table; a row chooses its rule."""
    st.markdown("#### What each rule merges")
    chance = st.toggle("with chance (200 shuffles for each rule)", key="rules_chance")
    rows = cache.rule_table_of(*opened.source, settings, chance)
    chosen = st.dataframe(
        pd.DataFrame([_row(row) for row in rows]), hide_index=True, on_select="rerun", selection_mode="single-row",
        key="rule_table", column_config=_columns(), alt="measures of each rule",
    )
    picked = chosen["selection"]["rows"]
    word = rows[picked[0]]["rules"] if picked and "error" not in rows[picked[0]] else join_rules(settings.rules)
    if word != join_rules(settings.rules) and st.button(f"Use {literal(word)}", type="primary"):
        urlstate.write("rules", None if split_rules(word) == LOOK.rules else word)
        st.rerun()


def strict(settings: Settings) -> None:
    """How strict is the key? The last 0..4 observations or actions."""
    st.markdown("#### How strict is the key?")
    of = st.segmented_control(
        "Add the last", ["observations", "actions"], default="observations", required=True, key="strict_of",
        help="A stricter key merges less: fewer wrong merges, fewer findings.",
    )
    rows = cache.strictness_of(*opened.source, settings, of, bool(st.session_state.get("rules_chance")))
    k = st.slider(f"How many of the last {of} belong to the moment?", 0, len(rows) - 1, 0, key="strict_k")
    row, loose = rows[k], rows[0]
    merge, shared, good = st.columns(3)
    for place, title, name in ((merge, "merge rate", "merge_rate"), (shared, "shared by 2+ rollouts", "shared")):
        change = f"{100 * (row[name] - loose[name]):+.1f} points" if k else None
        place.metric(title, f"{100 * row[name]:.1f} %", change)
    luck = f"{row['chance']['low']} to {row['chance']['high']} by luck" if row.get("chance") else None
    good.metric("good steps", row["good_steps"], luck, delta_color="off", delta_arrow="off")
    if row["rules"] != join_rules(settings.rules) and st.button(f"Use {literal(row['rules'])}", key="use_strict"):
        urlstate.write("rules", None if split_rules(row["rules"]) == LOOK.rules else row["rules"])
        st.rerun()
    frame = pd.DataFrame([{f"last {of}": row["k"], **_row(row)} for row in rows])
    st.dataframe(
        frame.drop(columns=["two moments are the same when"]), hide_index=True, column_config=_columns(), alt="strictness"
    )


def masked(settings: Settings) -> None:
    """What a mask would merge; worked out when it is asked for."""
    with st.expander("What would a mask merge?", on_change="rerun", key="masks") as box:
        if box.open:
            merges.masks(cache.masks_of(*opened.source, settings.rules), lambda word: _use_mask(settings, word))


def _use_mask(settings: Settings, word: str) -> None:
    urlstate.write("rules", join_rules(with_mask(settings.rules, word)))
    st.rerun()


def doubtful(settings: Settings) -> None:
    """Suspect merges, tested after the page is drawn."""
    st.markdown("#### Suspect merges: probably two different moments")
    found = cache.suspects_of(*opened.source, settings)
    st.markdown(literal(summary(found), 600))
    speak = sorted((said for said in found.groups if said.word in ("alarm", "nodes")), key=lambda said: not said.alarm)
    for place, said in enumerate(speak[:MOST]):
        task = literal(found.graph.batch.group_ids[said.group], 60)
        icon = ":material/warning:" if said.alarm else ":material/help:"
        with st.expander(f"{task}: {HEADLINES[said.word]}", icon=icon, expanded=said.alarm and place < OPEN):
            st.markdown(literal(sentence(found, said.group), 1000))
            if said.alarm:
                st.caption(literal(MEMORY, 600))
            if said.rule:
                _offer(settings, said.group, said.rule, said.effects)
            for node in said.nodes[:NODES]:
                _suspect(found, node)
            if len(said.nodes) > NODES:
                st.caption(f"and {count(len(said.nodes) - NODES, 'more suspect moment')}")
    if len(speak) > MOST:
        st.caption(f"and {count(len(speak) - MOST, 'more task')} with suspect moments")
    _others(found, [said for said in found.groups if said.word not in ("alarm", "nodes")])


def _others(found: Suspects, quiet: list[GroupSuspicion]) -> None:
    """The tasks without a suspect, and why nothing is said of them."""
    if not quiet:
        return
    why = Counter(HEADLINES[said.word] for said in quiet)
    title = "; ".join(f"{count(n, 'task')}: {words}" for words, n in why.most_common())
    with st.expander(title, on_change="rerun", key="quiet_tasks") as box:
        if box.open:
            rows = [(one_line(found.graph.batch.group_ids[said.group], 60), sentence(found, said.group)) for said in quiet]
            st.dataframe(pd.DataFrame(rows, columns=["task", "what is said"]), hide_index=True, alt="tasks without a suspect")


def power() -> None:
    """What the tests find at each group size, measured on known worlds."""
    with st.expander("What do these tests find, and what do they miss?"):
        st.dataframe(
            pd.DataFrame(
                [
                    {
                        "rollouts per task": p.rollouts, "hidden key: alarm": p.alarms, "its moments found": p.merges,
                        "larger world": p.merges_larger, "one “Nothing happens.” found": p.no_op,
                        "alarm without cause": p.wrong,
                    }
                    for p in POWER
                ]
            ),
            hide_index=True, alt="power of the tests",
        )
        st.caption("Percent of groups or moments in known worlds (docs/log.md). No alarm never means clean.")


HEADLINES = {
    "alarm": "the past changes what follows", "nodes": "single moments are suspect", "none": "no sign",
    "small": "no sign, but the group is small", "cut": "turn limits hide most of the test", "rare": "too small to judge",
}


def _offer(settings: Settings, group: int, rule: str, effects: Any) -> None:
    st.dataframe(
        pd.DataFrame(
            [
                {"rule": e.rule, "meaning": e.meaning, "alarm afterwards": "no" if e.silenced else "yes", "moments": e.nodes}
                for e in effects
            ]
        ),
        hide_index=True, alt="what each rule would do",
    )
    if st.button(f"Add {literal(rule)}", key=f"add {group} {rule}"):
        kept = [spec for spec in settings.rules if spec != "exact"]
        urlstate.write("rules", join_rules([*kept, rule]))
        st.rerun()


def _suspect(found: Suspects, node: int) -> None:
    """One suspect, with two rollouts that go on differently there: in the graph, or side by side."""
    st.markdown(f"- {literal(moment_name(found.graph, node), 90)} {literal(node_sentence(found, node), 600)}")
    shown = pair(found, node)
    if shown is not None:
        names = found.graph.batch.rollout_ids
        st.caption(
            f"Rollout {literal(names[shown.one.rollout], 24)} at its step {shown.one.t} and rollout "
            f"{literal(names[shown.other.rollout], 24)} at its step {shown.other.t} stand in this moment and go on differently."
        )
    with st.container(horizontal=True, gap="xsmall"):
        graph = st.button(
            "In the graph", key=f"show {node}", icon=":material/hub:", help="this moment, and the paths of both rollouts"
        )
        beside = shown is not None and shown.one.rollout != shown.other.rollout and st.button(
            "Side by side", key=f"beside {node}", icon=":material/compare_arrows:", help="both rollouts in rows, at this moment"
        )
    if graph or beside:
        st.switch_page(f"screens/{'graph' if graph else 'rollouts'}.py", query_params=_address(found, node, shown))


def _address(found: Suspects, node: int, shown: Pair | None) -> dict[str, str]:
    """The words of the address that choose a moment, the step of one rollout there, and another rollout beside it."""
    batch = found.graph.batch
    words = {word: st.query_params[word] for word in st.query_params if word not in urlstate.OF_A_TASK}
    words |= {"task": batch.group_ids[int(found.graph.node_group[node])], "sel": f"n{node}"}
    if shown is None:
        return words
    one, other = shown.one.rollout, shown.other.rollout
    words |= {"at": str(int(batch.order[shown.one.position])), "rollout": batch.rollout_ids[one], "mark": str(one)}
    return words if one == other else words | {"beside": batch.rollout_ids[other], "mark2": str(other)}


def by_hand(settings: Settings) -> None:
    """Split or merge moments by hand; the edits are a small file that `--rule edits:FILE` applies anywhere."""
    st.markdown("#### By hand")
    graph = opened.findings(settings).graph
    file = next((spec.partition(":")[2] for spec in settings.rules if spec.startswith("edits:")), "")
    before = tuple(spec for spec in settings.rules if not spec.startswith("edits:"))
    edits = read_edits(file) if file else Edits(plain_rules(before))
    st.caption("Node numbers stand on the Graph page when a moment is chosen.")
    left, right = st.columns(2, vertical_alignment="bottom")
    with left.form("merge nodes", border=False):
        nodes = st.text_input("Merge these nodes", placeholder="12 57")
        merge = st.form_submit_button("Merge", icon=":material/merge:")
    with right.form("split node", border=False):
        node = st.text_input("Split this node by its last action", placeholder="12")
        split = st.form_submit_button("Split", icon=":material/call_split:")
    words = nodes.split() if merge else node.split()[:1] if split else []
    if words:
        try:
            positions = [_first_step(graph, word) for word in words]
            names = tuple(dict.fromkeys(names_at(opened.batch, before, positions)))
            edit = Edit(merge=names) if merge else Edit(split=names[0], by="actions:1")
            made = edits.added(edit)
        except GraftError as error:
            st.error(f"{literal(str(error), 400)} Nothing was changed.")
        else:
            _use(made, before)
    for number, edit in enumerate(edits.edits):
        text = f"merge {' with '.join(edit.merge)}" if edit.merge else f"split {edit.split} by {edit.by or 'steps'}"
        if st.button(f"Take back: {text}", key=f"edit {number}", icon=":material/undo:"):
            _use(edits.removed(number), before)
    if file:
        st.download_button("Download the edits", edits.as_bytes(), Path(file).name, "application/json")
        st.caption(f"On the command line: `--rule {join_rules(settings.rules)}`")


def _first_step(graph: TrajectoryGraph, word: str) -> int:
    if not (word.isascii() and word.isdigit()) or int(word) >= graph.n_ordinary:
        raise UsageError(f"{word!r} is not a moment of this graph, expected a number from 0 to {graph.n_ordinary - 1}")
    return int(np.flatnonzero(graph.src == int(word))[0])


def _use(edits: Edits, before: tuple[str, ...]) -> None:
    if edits.edits:
        path = write_edits(controls.roots()[opened.index] / ".graft-edits", edits)
        urlstate.write("rules", join_rules([*(before or ("exact",)), f"edits:{path}"]))
    else:
        urlstate.write("rules", None if before in ((), LOOK.rules) else join_rules(before))
    st.rerun()


opened = header.start()
with table.sentences():
    settings = controls.current()
    compose(settings)  # first: a rule from an address that cannot be applied here must not hide the others
    found = opened.findings(settings)
    if opened.batch.n_steps == 0:
        st.info("These rollouts have no steps, so there are no moments to compare.")
        st.stop()
    alternatives(settings)
    strict(settings)
    merges.show(found.graph)
    masked(settings)
    by_hand(settings)
    doubtful(settings)
    power()
    st.caption(count(found.graph.n_ordinary, "moment") + " under the chosen rule.")
