"""Live: train a small policy with each credit from the same start, watch it, and take its rollouts to the other pages."""

from __future__ import annotations

from typing import Any

import streamlit as st

from graft_app import batch as on_table
from graft_app import paths, urlstate
from graft_app.jobs import jobs
from graft_app.jobview import View
from graft_app.views import live_figures, live_form, live_rollouts, opening
from graft_app.views.live_form import Order
from graft_app.views.text import count, literal
from graft_app.visit import open_to_others, owner
from graft_core.errors import GraftError
from graft_core.live import keep
from graft_core.live.run import LiveSettings, load_settings
from graft_core.live.table import result_rows
from graft_core.live.weights import LOSSES
from graft_core.settings import LOOK
from graft_core.states.compose import join_rules

SAID, WANTED = "live_said", "live_wanted"
EARLIER_SHOWN = 20
LONGER = 20
WORDS = {
    "waiting": "waiting", "starting": "starting", "running": "running", "paused": "paused", "done": "done",
    "stopped": "stopped", "failed": "broke off", "interrupted": "interrupted", "elsewhere": "running, started elsewhere",
    "unknown": "unknown",
}
ASKED = {"pause": "pausing after this update", "stop": "stopping after this update"}


def said(error: Exception) -> None:
    """Keep a message for the next run of the page: callbacks write nothing themselves."""
    st.session_state[SAID] = opening.said(error)


def start(order: Order) -> None:
    try:
        urlstate.write("run", jobs().start(order.env, order.words, owner(), order.quick))
    except GraftError as error:
        said(error)


def ask(name: str, word: str) -> None:
    try:
        jobs().ask(name, word)
    except GraftError as error:
        said(error)


def go_on(name: str, longer: int = 0) -> None:
    try:
        settings = load_settings(jobs().place(name))
        jobs().go_on(name, owner(), _quick(settings), settings.updates + longer if longer else None)
    except GraftError as error:
        said(error)


def _quick(settings: LiveSettings) -> bool:
    order = Order(
        settings.env, settings.policy.name, tuple(settings.estimators), group_size=settings.group_size * settings.groups,
        seeds=len(settings.seeds), updates=settings.updates, turns=settings.turns,
    )  # fmt: skip
    return order.quick


def remove(name: str) -> None:
    try:
        jobs().remove(name)
        urlstate.write("run", None)
    except GraftError as error:
        said(error)


def open_run(name: str) -> None:
    urlstate.write("run", name)


def start_side() -> None:
    """The two standing cases, the form, and earlier runs."""
    st.markdown("#### Train a policy")
    places = st.columns(2)
    for place, (title, (order, meaning)) in zip(places, live_form.CASES.items(), strict=True):
        place.button(
            title, key=f"case_{title}", on_click=start, args=(order,),
            help=f"{meaning} Ten seeds, 60 updates, about a minute on a free core.",
            icon=":material/key:" if title == "Clean keys" else ":material/key_off:", width="stretch",
        )  # fmt: skip
    with st.container(border=True):
        top = st.container()
        order = live_form.form(open_to_others())
        wrong = live_form.trouble(order, open_to_others())
        # not a callback: its arguments would be those of the last run of the page, without what was typed just now
        if top.button("Start", key="live_start", type="primary", icon=":material/play_arrow:", disabled=bool(wrong),
                      width="stretch") and not wrong:  # fmt: skip
            start(order)
            st.rerun()
        if wrong:
            top.caption(wrong)
        elif order.policy == live_form.TABULAR:
            lane = "goes into the quick lane" if order.quick else "waits its turn among the long runs"
            top.caption(f"At most about {order.seconds:.0f} s of work; {lane}.")
    with st.expander("The same on the command line"):
        st.code(live_form.order_words(["live", *order.words, "-o", "runs/mine"]), language=None, wrap_lines=True)
    earlier()


def earlier() -> None:
    """Runs of this visit; those on disk too where only this machine reaches the app."""
    names = jobs().of(owner())
    if not open_to_others():
        names += [name for name in jobs().on_disk() if name not in names]
    if not names:
        return
    with st.expander(f"Earlier runs ({len(names)})"):
        for name in names[:EARLIER_SHOWN]:
            st.button(literal(name, 60), key=f"earlier_{name}", on_click=open_run, args=(name,), type="tertiary")
        st.caption(f"in {literal(jobs().folder.name)}/; the latest 100 that were started here are kept")


def steer(name: str, view: View) -> None:
    """Pause, stop, go on, delete."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"#### {literal(name, 70)}", width="content")
        if view.state in ("running", "starting", "elsewhere"):
            st.button("Pause", key="live_pause", icon=":material/pause:", on_click=ask, args=(name, "pause"))
        if view.state == "paused":
            st.button("Resume", key="live_resume", icon=":material/play_arrow:", on_click=ask, args=(name, "resume"))
        if view.active:
            st.button("Stop", key="live_stop", icon=":material/stop:", on_click=ask, args=(name, "stop"))
        elif view.state in ("stopped", "interrupted", "failed") and (jobs().place(name) / keep.LIVE).is_file():
            st.button("Continue", key="live_go_on", icon=":material/play_arrow:", on_click=go_on, args=(name,))
        elif view.state == "done" and not _searched(name):
            st.button(f"{LONGER} more updates", key="live_longer", icon=":material/add:", on_click=go_on, args=(name, LONGER))
        if not view.active and view.state != "unknown":
            # behind a second click: it stands where Stop was, and a double click must not delete
            with st.popover("Delete", icon=":material/delete:", type="tertiary"):
                st.caption("This run with its rollouts, curves and policies, for good.")
                st.button("Delete the run", key="live_remove", icon=":material/delete:", on_click=remove, args=(name,))


def _searched(name: str) -> bool:
    """Whether the run looked for step sizes: with more updates the best ones may be others, so it cannot be made longer."""
    try:
        settings = read_settings(name)
    except GraftError:
        return True
    return settings is None or bool(settings.step_sizes)


def where_it_is(name: str, view: View) -> None:
    """State, progress and time left, or why it broke off."""
    if view.state == "failed":
        kept = " What was sampled before is kept." if (jobs().place(name) / keep.LIVE).is_file() else ""
        st.error(f"{opening.said(view.why)}.{kept}", title="The run broke off", icon=":material/error:")
        return
    if view.state == "waiting":
        st.info(f"In the queue; {count(view.before, 'run is', 'runs are')} before it.", icon=":material/hourglass_empty:")
        return
    status = view.status
    done, total = int(status.get("done") or 0), int(status.get("total") or 0)
    asked = ASKED.get(keep.asked(jobs().place(name)), "") if view.state == "running" else ""
    words = (asked or WORDS[view.state]) + (f": {paths.shorten(view.why)}" if view.why else "")
    if done and total:
        left = status.get("seconds_left")
        trying = status.get("trying")
        words += f" · trying step size {trying:g}" if isinstance(trying, (int, float)) else ""
        words += f" · {done:,} of {total:,} updates"
        if view.state == "running":
            words += f" · {live_figures.title_of(str(status.get('estimator')))}, seed {status.get('seed')}"
            words += f" · about {left:,.0f} s left" if isinstance(left, (int, float)) else ""
    st.progress(min(1.0, done / total) if total else 0.0, literal(words, 200))
    for note in jobs().notes(name):
        st.caption(opening.said(note))


def what_it_is(settings: LiveSettings) -> str:
    """The run's settings in one line."""
    seeds, groups = count(len(settings.seeds), "seed"), f"{settings.groups} × " if settings.groups > 1 else ""
    sizes = settings.step_sizes
    step_size = f"the best of {len(sizes)} step sizes" if sizes else f"step size {settings.update.step_size:g}"
    return (
        f"{literal(settings.env, 60)} · {literal(settings.policy.name, 60)} policy · {groups}{settings.group_size} rollouts "
        f"per update · {count(settings.updates, 'update')} · {seeds} · at most {settings.turns} turns · {step_size} · "
        f"moments told apart by {live_form.key_words(settings.env, settings.rules)}{_expert_words(settings)}"
    )


def _expert_words(settings: LiveSettings) -> str:
    """What differs from what most runs have."""
    update, policy = settings.update, settings.policy
    facts = {
        f"{update.epochs} passes": update.epochs != live_form.EPOCHS.get(policy.name, 2),
        f"clip {update.clip:g}": update.clip != live_form.CLIP,
        f"KL weight {update.kl:g}": update.kl > 0,
        f"{count(settings.history, 'turn')} of history": settings.history > 0,
        "writes freely": policy.acting == "generate",
        "one ratio per token": update.ratio == "token",
        f"device {literal(policy.device, 20)}": policy.device != "auto",
    }
    return "".join(f" · {words}" for words, told in facts.items() if told)


def read_settings(name: str) -> LiveSettings | None:
    """What the run directory says; None before the process has written it."""
    folder = jobs().place(name)
    if not (folder / keep.LIVE).is_file():
        return None
    return load_settings(folder)


def shown_estimator(settings: LiveSettings) -> str:
    """Whose rollouts are looked at."""
    names = list(settings.estimators)
    chosen = st.segmented_control(
        "Rollouts of", names, format_func=live_figures.title_of, default=names[0], required=True, key="live_rollouts_of"
    )
    return chosen if chosen in names else names[0]


def follow(name: str, before: str) -> None:
    """What changes while the run goes on: progress, curves, credit, the table, the latest rollouts and their graph."""
    view = jobs().view(name)
    if view.state != before or WANTED in st.session_state:  # other buttons, or another page, are needed now
        st.rerun(scope="app")
    where_it_is(name, view)
    with on_table.sentences():  # a part that runs alone passes no error to the page around it
        details(name)


def details(name: str) -> None:
    """Curves, credit, the table, and the latest rollouts, as far as the run has come."""
    settings = read_settings(name)
    if settings is None:
        return
    st.caption(what_it_is(settings))
    run = jobs().place(name)
    curves = live_figures.read_curves(run, settings)
    if any(curves.values()):
        left, right = st.columns([2, 1])
        with left:
            live_figures.curves_chart(curves, settings.updates)
        with right:
            live_figures.credit_charts(curves)
        st.caption(
            "Line: mean over the seeds so far. Band: 95 % interval of that mean. Right: how many steps of the latest update "
            f"got which credit.{live_figures.invalid_words(curves)}"
        )
        results(result_rows(run, settings))
    latest_rollouts(name, settings)


def results(rows: list[dict[str, Any]]) -> None:
    """Ends with intervals over seeds, and what they allow to say."""
    if not any(row["seeds"] for row in rows):
        return
    plain, text = st.column_config.NumberColumn, st.column_config.TextColumn
    st.dataframe(
        live_figures.result_table(rows), hide_index=True, alt="results per estimator", key="live_results",
        column_config={
            "seeds": plain(help="finished so far"),
            "start": text(help="success of the first update's rollouts"),
            "end": text(help="success of fresh rollouts after the last update"),
            "seconds": plain(format="%.1f"), "invalid": plain(help="actions that were not possible"),
            "step size": plain(format="%g", help="the best of those tried, on other seeds"),
        },
    )  # fmt: skip
    sentence = live_figures.verdict(rows)
    if sentence:
        st.markdown(sentence)


def latest_rollouts(name: str, settings: LiveSettings) -> None:
    """The graph of the latest rollouts of one estimator, and the rollouts as a table."""
    chosen = shown_estimator(settings)
    latest = live_rollouts.read_latest(jobs().place(name), settings, chosen)
    if latest is None:
        st.caption("No rollouts yet; those of the first seed are kept.")
        return
    st.markdown(f"**Latest rollouts of {literal(live_figures.title_of(chosen))}** · {live_rollouts.facts(latest)}")
    st.button(
        "Look at all rollouts of this run", key="live_take", icon=":material/search:", on_click=wanted, args=(name, chosen),
        help="Puts the run directory on the table: Findings, Graph and the other pages show it, and see new rollouts "
        "whenever something is clicked there.",
    )  # fmt: skip
    live_rollouts.graph(latest, "live_graph")
    st.dataframe(live_rollouts.table(latest.found.batch), hide_index=True, alt="latest rollouts", key="live_latest")
    update_sees(name, settings, chosen)


def update_sees(name: str, settings: LiveSettings, chosen: str) -> None:
    """How credit, the loss's mean and the clip share the newest update out among verbs, rollouts and steps."""
    with st.expander("What the update sees", on_change="rerun", key="live_sees") as box:
        if not box.open:
            return
        found = live_rollouts.shares_of(jobs().place(name), settings, chosen)
        if found is None:
            st.caption("No rollouts yet.")
            return
        shares, update = found
        if not shares.share.any():
            st.caption(f"Update {update} changed nothing: the credit of every step is 0 or undefined.")
            return
        by = st.segmented_control("By", ["verb", "rollout", "step"], default="verb", required=True, key="live_sees_by")
        percent = st.column_config.NumberColumn(format="percent")
        st.dataframe(
            live_rollouts.shares_table(shares, by), hide_index=True, alt=f"share of the update by {by}", key="live_shares",
            column_config=dict.fromkeys(("share of the update", "made likelier", "made rarer"), percent),
        )
        st.caption(
            f"Update {update} of seed {settings.seeds[0]}. Loss: {LOSSES[settings.loss]}. Credit "
            f"{'divided by its root mean square' if settings.scale == 'rms' else 'as it is'}. Shares are of absolute weight, "
            "at the first pass over the batch, when the clip has not acted yet."
        )


def wanted(name: str, chosen: str) -> None:
    """The whole page, not the part that is followed, has to change to another one."""
    st.session_state[WANTED] = (name, chosen)


def put_on_table(name: str, chosen: str) -> None:
    """Open an estimator's run directory as the batch of all pages, with the run's own merge rule."""
    settings = read_settings(name)
    if settings is None or chosen not in settings.estimators:
        return
    folder = live_rollouts.recorded(jobs().place(name), settings, chosen)
    entry = on_table.entry_of(f"{on_table.LIVE}{name}/{folder.relative_to(jobs().place(name)).as_posix()}")
    on_table.put_on_menu(entry)
    urlstate.write_all(dict.fromkeys((*on_table.OF_A_FILE, "look", "group_by", "success_when", "rules")))
    urlstate.write("file", entry.word)
    if settings.rules != LOOK.rules:
        urlstate.write("rules", join_rules(settings.rules))
    st.switch_page("screens/findings.py", query_params={word: st.query_params[word] for word in st.query_params})


def run_word(word: str) -> str:
    jobs().place(word)
    return word


def welcome() -> None:
    st.markdown("#### What earns what, tried out")
    st.markdown(
        "Each estimator trains the same small policy from the same start with the same seeds; only the credit differs. "
        "Curves, credit and the graph grow while the rollouts arrive. The run goes on when this page is closed, until the "
        "app itself ends; its address brings the page back."
    )
    for title, (_, meaning) in live_form.CASES.items():
        st.markdown(f"**{title}.** {meaning}")


wish = st.session_state.pop(WANTED, None)
if wish is not None:
    with on_table.sentences():
        put_on_table(*wish)
chosen_run = urlstate.read("run", run_word, None)
side, main = st.columns([1, 2.6], gap="large")
with side:
    start_side()
with main:
    message = st.session_state.pop(SAID, None)
    if message:
        st.error(message, icon=":material/error:")
    if chosen_run is None:
        welcome()
    else:
        with on_table.sentences():
            now = jobs().view(chosen_run)
            if now.state == "unknown":
                st.warning("There is no run of this name here; it was deleted, or the app was started elsewhere.",
                           icon=":material/link_off:")  # fmt: skip
            else:
                steer(chosen_run, now)
                st.fragment(follow, run_every="1s" if now.active else None)(chosen_run, now.state)
