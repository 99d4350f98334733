"""States: when are two moments the same? What each rule merges, which merges are suspect, and edits by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from graft_app import batch as table
from graft_app import cache, controls, urlstate
from graft_app.views import header, merges
from graft_app.views.text import count, literal
from graft_core.errors import GraftError
from graft_core.insight.suspect import MEMORY, POWER, Suspects, node_sentence, pair, sentence, summary
from graft_core.settings import LOOK, Settings
from graft_core.states import join_rules, split_rules
from graft_core.states.edit_file import Edit, Edits, names_at, plain_rules, read_edits, write_edits

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
            help="Rules in the words of the command line, joined by +; applied left to right, text rules first.",
        )
    if word and word != st.session_state.get("composition_taken"):
        st.session_state["composition_taken"] = word
        try:
            rules = controls.rules_of(word)
            opened.findings(settings.with_options(rules=rules))
        except GraftError as error:
            st.error(f"{literal(str(error), 400)} The rule stays as it was.")
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
        place.metric(title, f"{100 * row[name]:.1f} %", f"{100 * (row[name] - loose[name]):+.1f} points")
    luck = f"{row['chance']['low']} to {row['chance']['high']} by luck" if row.get("chance") else None
    good.metric("good steps", row["good_steps"], luck, delta_color="off", delta_arrow="off")
    if row["rules"] != join_rules(settings.rules) and st.button(f"Use {literal(row['rules'])}", key="use_strict"):
        urlstate.write("rules", None if split_rules(row["rules"]) == LOOK.rules else row["rules"])
        st.rerun()
    frame = pd.DataFrame([{f"last {of}": row["k"], **_row(row)} for row in rows])
    st.dataframe(
        frame.drop(columns=["two moments are the same when"]), hide_index=True, column_config=_columns(), alt="strictness"
    )


def doubtful(settings: Settings) -> None:
    """Suspect merges, tested after the page is drawn."""
    st.markdown("#### Suspect merges: probably two different moments")
    found = cache.suspects_of(*opened.source, settings)
    st.markdown(literal(summary(found), 600))
    for said in sorted(found.groups, key=lambda group: (not group.alarm, not group.nodes)):
        task = literal(found.graph.batch.group_ids[said.group], 60)
        icon = ":material/warning:" if said.alarm else ":material/help:" if said.nodes else None
        with st.expander(f"{task}: {_headline(said.word)}", icon=icon, expanded=said.alarm):
            st.markdown(literal(sentence(found, said.group), 1000))
            if said.alarm:
                st.caption(literal(MEMORY, 600))
            if said.rule:
                _offer(settings, said.rule, said.effects)
            for node in said.nodes[:5]:
                _suspect(found, node)


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


def _headline(word: str) -> str:
    return {
        "alarm": "the past changes what follows", "nodes": "single moments are suspect", "none": "no sign",
        "small": "no sign, but the group is small", "cut": "turn limits hide most of the test", "rare": "too small to judge",
    }.get(word, word)


def _offer(settings: Settings, rule: str, effects: Any) -> None:
    st.dataframe(
        pd.DataFrame(
            [
                {"rule": e.rule, "meaning": e.meaning, "alarm afterwards": "no" if e.silenced else "yes", "moments": e.nodes}
                for e in effects
            ]
        ),
        hide_index=True, alt="what each rule would do",
    )
    if st.button(f"Add {rule}", key=f"add {rule}"):
        kept = [spec for spec in settings.rules if spec != "exact"]
        urlstate.write("rules", join_rules([*kept, rule]))
        st.rerun()


def _suspect(found: Suspects, node: int) -> None:
    st.markdown(f"- {literal(node_sentence(found, node), 600)}")
    graph = found.graph
    if st.button(f"Show node {node} in its graph", key=f"show {node}"):
        keep = {name: st.query_params[name] for name in st.query_params}
        task = graph.batch.group_ids[int(graph.node_group[node])]
        st.switch_page("screens/graph.py", query_params={**keep, "task": task, "sel": f"n{node}"})
    shown = pair(found, node)
    if shown is not None:
        names = graph.batch.rollout_ids
        st.caption(
            f"Compare rollout {literal(names[shown.one.rollout], 24)} at its step {shown.one.t} with rollout "
            f"{literal(names[shown.other.rollout], 24)} at its step {shown.other.t}: they stand in the same moment and go on "
            "differently."
        )


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
    words = nodes.split() if merge else node.split() if split else []
    if words:
        positions = [_first_step(graph, word) for word in words]
        names = names_at(opened.batch, before, positions)
        edit = Edit(merge=tuple(names)) if merge else Edit(split=names[0], by="actions:1")
        _use(edits.added(edit), before)
    for number, edit in enumerate(edits.edits):
        text = f"merge {' with '.join(edit.merge)}" if edit.merge else f"split {edit.split} by {edit.by or 'steps'}"
        if st.button(f"Take back: {text}", key=f"edit {number}", icon=":material/undo:"):
            _use(edits.removed(number), before)
    if file:
        st.download_button("Download the edits", edits.as_bytes(), Path(file).name, "application/json")
        st.caption(f"On the command line: `--rule {join_rules(settings.rules)}`")


def _first_step(graph: Any, word: str) -> int:
    import numpy as np

    from graft_core.errors import UsageError

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


opened = table.choose()
if not header.show(opened):
    header.wait_for_groups()
with table.sentences():
    settings = controls.current()
    found = opened.findings(settings)
    compose(settings)
    if opened.batch.n_steps == 0:
        st.info("These rollouts have no steps, so there are no moments to compare.")
        st.stop()
    alternatives(settings)
    strict(settings)
    merges.show(found.graph)
    by_hand(settings)
    doubtful(settings)
    power()
    st.caption(count(found.graph.n_ordinary, "moment") + " under the chosen rule.")
