"""Check by rollout under an explained step: ask for it, watch it, and read what fresh continuations say of the credit."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from graft_app import cache, visit
from graft_app.batch import Opened
from graft_app.check import (
    MEANINGS,
    NOW,
    OWN_CLASS,
    POLICIES,
    CheckOrder,
    environment,
    live_folder,
    policies,
    recorded_environment,
    step_source,
    texts_of,
)
from graft_app.jobs import jobs
from graft_app.jobview import View
from graft_app.views import opening
from graft_app.views.text import count, literal, number, one_line
from graft_core.constants import SIGN_TOLERANCE
from graft_core.errors import GraftError
from graft_core.insight import Findings
from graft_core.insight.moment import node_facts
from graft_core.live.probe import CONFIRMED, CONTRADICTED, TRIES, verdict_of
from graft_core.rollouts import RolloutBatch
from graft_core.settings import Settings
from graft_core.takeaway.snippet import probe_commands

MORE = 4
PLAYER = "check_player"
TITLES = {CONFIRMED: "Confirmed", CONTRADICTED: "Contradicted"}
ICONS = {CONFIRMED: ":material/check_circle:", CONTRADICTED: ":material/cancel:"}
LOST = ("cannot be restored", "cannot save and restore")


@st.cache_resource(max_entries=256, show_spinner="Looking for the state of this step ...")
def _environment(
    path: str, on_disk: cache.Stamp, step: tuple[str, str, int], file: str, trusted: bool, _batch: RolloutBatch, _position: int
) -> tuple[str, str]:
    """(environment, "") where the step can be played on, else ("", the sentence why not)."""
    try:
        return environment(_batch, _position, Path(file) if file else None, trusted), ""
    except GraftError as error:
        return "", str(error)


def show(opened: Opened, settings: Settings, position: int) -> None:
    """The part of the panel under an explained step."""
    try:
        _show(opened, settings, position)
    except (GraftError, OSError) as error:  # the file is gone: the rest of the panel stays
        st.caption(opening.said(error))


def _show(opened: Opened, settings: Settings, position: int) -> None:
    found = cache.credit_of(*opened.source, settings)
    batch = cache.read_once(opened.path, opened.on_disk)[0]  # as the file names its tasks, whatever is one task here
    row = int(batch.step_rollout[position])
    file = step_source(batch, row)
    live = live_folder(file) if file is not None else None
    trusted = live is not None and live.is_relative_to(jobs().folder.resolve())
    on_disk = opened.on_disk if file is None else ()  # what is recorded of a run does not change when it grows
    place = str(file or opened.path)
    step = (batch.group_ids[int(batch.group[row])], batch.rollout_ids[row], int(batch.step_index[position]))
    spec, why = _environment(place, on_disk, step, str(file or ""), trusted, batch, position)
    sample = opened.path in _samples() and spec.startswith("household")
    players = policies(batch, live, trusted, sample)
    st.markdown("**Check by rollout**")
    if spec:
        kept = str(st.session_state.get(PLAYER))
        player = kept if kept in players else players[0]
        order = CheckOrder(
            place, _known_by(opened, file), *step, texts_of(batch, position), spec, player, TRIES,
            float(dict(found.settings.given).get("gamma", 0.99)), str(live or ""),
        )  # fmt: skip
        _, view = _latest(order)
        lost = view.state == "failed" and any(words in view.why for words in LOST)
        if lost:
            st.caption(opening.said(view.why))
        else:
            with st.container():  # a place of its own: nothing beside it hangs on a part that runs alone
                st.fragment(_panel, run_every="1s" if view.active else None)(order, players, found, position, view.active)
    else:
        player = players[0]
        st.caption(literal(why, 400))
    own = recorded_environment(file) if why == OWN_CLASS and file is not None else ""
    _elsewhere(opened, settings, position, spec or own, player, file)


def _samples() -> list[str]:
    import graft_sample_data

    return [str(path) for path in graft_sample_data.paths()]


def _known_by(opened: Opened, file: Path | None) -> str:
    """What the data are known by: a file by its content; the step of a run, which is written once, by where and when."""
    return f"{file} {_started(file)}" if file is not None else cache.sha256_of(*opened.source)


def _started(file: Path) -> str:
    from graft_core.runs import read_run

    try:
        return read_run(file.parent.parent).started
    except GraftError:
        return ""


def _panel(order: CheckOrder, players: list[str], found: Findings, position: int, before: bool) -> None:
    """The button, the progress or the result; runs alone while the check is under way."""
    asked, view = _latest(order)
    if view.active != before:  # from now on, or no longer, this part has to look again by itself
        st.rerun(scope="app")
    if view.active:
        _progress(asked, view)
        return
    if view.state == "done":
        _result(view.status["check"], found, position, order.gamma)
    elif view.state == "failed":
        st.error(f"{opening.said(view.why)}.", icon=":material/error:")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if view.state != "done":
            st.button(
                f"Check by rollout: play on from here {order.tries} times", key="check_start", icon=":material/replay:",
                on_click=_start, args=(order,), help="Fresh rollouts from this very state: after this action, after each other "
                "action that was possible here, and after the policy's own choice.",
            )  # fmt: skip
        elif asked.tries == order.tries:
            more = _more(order)
            st.button(f"Play on {more.tries} times", key="check_more", icon=":material/replay:", on_click=_start, args=(more,))
        if len(players) > 1:
            st.selectbox(
                "Played on by", players, index=players.index(order.policy), format_func=lambda p: POLICIES[p], key=_menu(order),
                on_change=_choose, args=(_menu(order),), help=f"{MEANINGS[order.policy]}.",
            )  # fmt: skip


def _more(order: CheckOrder) -> CheckOrder:
    return replace(order, tries=MORE * order.tries)


def _latest(order: CheckOrder) -> tuple[CheckOrder, View]:
    """The larger check where one was asked for, else this one."""
    larger = jobs().view_check(_more(order).key)
    if larger.state in ("unknown", "stopped"):
        return order, jobs().view_check(order.key)
    return _more(order), larger


def _menu(order: CheckOrder) -> str:
    return f"check_by {order.key}"


def _choose(key: str) -> None:
    st.session_state[PLAYER] = st.session_state[key]


def _start(order: CheckOrder) -> None:
    try:
        jobs().check(order.key, order.words(), visit.owner(), order.quick)
    except GraftError as error:
        st.toast(opening.said(error), icon=":material/error:")


def _progress(order: CheckOrder, view: View) -> None:
    done, total = int(view.status.get("done") or 0), int(view.status.get("total") or 0)
    words = f"{done} of {count(total, 'action')} played on {order.tries} times" if total else "restoring the state"
    if view.state == "waiting":
        words = f"in the queue, {count(view.before, 'run is', 'runs are')} before it"
    st.progress(done / total if total else 0.0, words)
    if jobs().checks_by(order.key, visit.owner()):
        st.button("Cancel", key="check_cancel", icon=":material/close:", on_click=jobs().cancel_check, args=(order.key,))


def _result(check: dict[str, Any], found: Findings, position: int, gamma: float) -> None:
    """One sentence, and every action's share of successes beside its credit."""
    credit = float(found.credit[position])
    verdict = verdict_of(0.0 if abs(credit) <= SIGN_TOLERANCE else credit, check["low"], check["high"])
    words = sentence(check, credit)
    {CONFIRMED: st.success, CONTRADICTED: st.warning}.get(verdict, st.info)(words, icon=ICONS.get(verdict, ":material/help:"))
    table = arms_table(check, found, position)
    st.dataframe(
        table, hide_index=True, key="check_arms", alt="success after each action",
        column_config={
            "action": st.column_config.TextColumn(width=120),
            "succeed": st.column_config.NumberColumn(format="%.0f %%", width=64),
            "95 %": st.column_config.TextColumn(width=92, help="Wilson's interval of the share of successes"),
            "credit": st.column_config.TextColumn(width=60, help="credit A shown here; – where no rollout did this"),
        },
    )  # fmt: skip
    st.caption(
        f"{check['taken']['tries']} fresh rollouts each, played on by {literal(check['played_by'], 200)}. A later success is "
        f"worth less: {gamma:g} times as much per step (γ)."
    )


def sentence(check: dict[str, Any], credit: float) -> str:
    """What the continuations say of the credit, no louder than the interval allows."""
    taken, usual, low, high = check["taken"], check["usual"], check["low"], check["high"]
    n, worth = taken["tries"], f"{check['difference']:+.2f} (95 % interval {low:+.2f} to {high:+.2f})"
    facts = (
        f"After this action {taken['successes']} of {n} succeed, after the policy's own choice {usual['successes']}: it is "
        f"worth {worth}."
    )
    if math.isnan(credit) or abs(credit) <= SIGN_TOLERANCE:
        return f"**Nothing to check.** The credit is {'not defined' if math.isnan(credit) else '0'}: it claims nothing. {facts}"
    verdict = verdict_of(credit, low, high)
    says = "better than usual" if credit > 0 else "worse than usual"
    if verdict == CONFIRMED:
        return f"**Confirmed.** {facts} The credit of {credit:+.2f} says {says}, and so do the rollouts."
    if verdict == CONTRADICTED:
        other = "worse" if credit > 0 else "better"
        return f"**Contradicted.** {facts} The credit of {credit:+.2f} says {says}, the rollouts say {other}."
    return f"**Not decided.** {facts} 0 lies within. {too_few(n, (high - low) / 2, check['difference'], credit)}"


def too_few(n: int, half: float, difference: float, credit: float) -> str:
    """Why n continuations may not decide, from half the interval's width."""
    sure = f"{n} rollouts show a difference of about {half:.2f} or more"
    if abs(credit) > half:
        known = f"{sure}; one as large as the credit ({credit:+.2f}) would likely have shown"
        needed = _needed(n, half, difference)
        return f"{known}, the one found would take about {needed}." if needed else f"{known}."
    return f"{sure}; one as small as the credit ({credit:+.2f}) would take about {_needed(n, half, credit)}."


def _needed(n: int, half: float, difference: float) -> str:
    """How many rollouts make the interval narrower than a difference: it shrinks with their square root."""
    if abs(difference) < 0.005:
        return ""
    wanted = n * (half / abs(difference)) ** 2
    digits = max(0, math.floor(math.log10(wanted)) - 1)
    return f"{math.ceil(wanted / 10**digits) * 10**digits:,}"


def arms_table(check: dict[str, Any], found: Findings, position: int) -> pd.DataFrame:
    """This action, the policy's own choice, then the rivals, the best first."""
    facts = node_facts(found.graph, found.values.v, int(found.graph.src[position]), credit=found.credit)
    known = {row["action"]: row["credit"] for row in facts["actions"]}
    taken, usual = check["taken"], check["usual"]
    rivals = sorted(check["rivals"], key=lambda arm: -arm["value"])
    rows = [(f"▶ {one_line(taken['action'], 60)}", taken, float(found.credit[position]))]
    rows.append(("the policy's choice", usual, math.nan))
    rows += [(one_line(arm["action"], 60), arm, known.get(arm["action"], math.nan)) for arm in rivals]
    return pd.DataFrame(
        [
            {
                "action": name, "succeed": 100 * arm["success"],
                "95 %": f"{100 * arm['low']:.0f} … {100 * arm['high']:.0f} %", "credit": number(credit, sign=True),
            }
            for name, arm, credit in rows
        ]
    )  # fmt: skip


def _elsewhere(opened: Opened, settings: Settings, position: int, spec: str, player: str, file: Path | None) -> None:
    """The same as a command, and the way through one's own trainer."""
    batch = opened.batch
    row = int(batch.step_rollout[position])
    step = f"{batch.group_ids[int(batch.group[row])]}/{batch.rollout_ids[row]}/{int(batch.step_index[position])}"
    if player == NOW and file is not None:
        player = os.path.relpath(file.parent.parent, Path(opened.path).resolve().parent)
    check, export, back = probe_commands(settings, opened.path, step, spec or None, player, opened.group_by)
    with st.popover("Copy as command", icon=":material/terminal:", type="tertiary"):
        if check:
            st.caption("The same check in a terminal, in the folder of the data:")
            st.code(check, language=None, wrap_lines=True)
        st.caption("Or let your own trainer play on, and read its outcomes back:")
        st.code(f"{export}\n{back}", language=None, wrap_lines=True)
