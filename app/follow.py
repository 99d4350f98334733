"""Pages follow a run that is still being written: its new steps appear by themselves, and what is chosen stays chosen.

A page shows the data as they were at the last look until the next look finds more; so nothing changes under a click. What
has been added is read beside the page, once for all visitors, and the page is made anew when it is there. Nodes and edges
get other numbers when a graph grows; the chosen one is found again by a step that it holds.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np
import streamlit as st

from graft_app import cache, urlstate
from graft_app.views.text import count
from graft_core.errors import GraftError
from graft_core.formats import load
from graft_core.insight import Findings
from graft_core.insight.why import position_of_row
from graft_core.live import keep
from graft_core.live.process import status
from graft_core.rollouts import LoadReport, RolloutBatch
from graft_core.runs import step_files
from graft_core.runs.store import STEPS
from graft_core.settings import Settings

if TYPE_CHECKING:
    from graft_app.batch import Opened

EVERY: Final = 1.0
"""Seconds between two looks."""
LEAST: Final = 1.5
"""Seconds that a page stays as it is at the least."""
AT_ONCE: Final = 0.3
"""Seconds that a look waits for what it reads; a larger run is there at a later look."""
STEPS_A_SECOND: Final = 20_000
"""A page of a larger batch is made anew less often: making it takes longer."""
QUIET: Final = 600.0
"""Seconds without a new step after which a run that an outside loop records no longer counts as being written."""
SHOWN, BEFORE, NEXT, PAUSED = "follow_shown", "follow_before", "follow_next", "follow_paused"
Kept = tuple[RolloutBatch, LoadReport]
_READER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="follow")
_READ: dict[str, tuple[cache.Stamp, Future[Kept]]] = {}
_LOCK = Lock()


@dataclass(frozen=True)
class Shown:
    """What this visit is looking at: kept, so that the same data stay on screen until the next look."""

    path: str
    on_disk: cache.Stamp
    kept: Kept
    group_by: str | None
    success_when: str | None
    since: float

    def findings(self, settings: Settings) -> Findings:
        cache.put_back(self.path, self.on_disk, self.kept)
        return cache.findings_of(self.path, self.on_disk, self.group_by, self.success_when, settings)


def being_written(path: str) -> bool:
    """Whether a path is a run directory to which somebody is still adding steps."""
    place = Path(path)
    if not place.is_dir():
        return False
    for run in (place, *place.resolve().parents[1:2]):
        if (run / keep.LIVE).is_file():
            return _runs(run) and not (run != place and _complete(place, run))
    return (place / "run.json").is_file() and time.time() - _last_written(place) < QUIET


def _runs(run: Path) -> bool:
    try:
        return status(run).get("state") in ("running", "paused")
    except GraftError:
        return False


def _complete(seed: Path, run: Path) -> bool:
    """Whether one estimator's seed has all its updates, while the run goes on with others."""
    try:
        done, settings = keep.read_json(seed / keep.RESULT), keep.read_json(run / keep.LIVE)["settings"]
        return bool(done) and int(done["update"]) >= int(settings["updates"])
    except (GraftError, KeyError, TypeError, ValueError):
        return False


def _last_written(run: Path) -> float:
    files = step_files(run)
    try:
        return files[-1].stat().st_mtime if files else 0.0
    except OSError:
        return 0.0


def stamp(path: str) -> cache.Stamp:
    """How the data on the table look on disk; of a run that is followed: how they looked when they were read last."""
    shown: Shown | None = st.session_state.get(SHOWN)
    following: tuple[cache.Stamp, Kept] | None = st.session_state.pop(NEXT, None)
    if shown is None or shown.path != path:
        st.session_state.pop(SHOWN, None)
        st.session_state.pop(PAUSED, None)
        return cache.stamp(path)
    if following is None and being_written(path):
        cache.put_back(path, shown.on_disk, shown.kept)
        return shown.on_disk
    st.session_state[BEFORE] = st.session_state.pop(SHOWN)
    if following is None:
        return cache.stamp(path)
    cache.put_back(path, *following)
    return following[0]


def newer(path: str, on_disk: cache.Stamp) -> tuple[cache.Stamp, Kept] | None:
    """More steps than a stamp knows, if they have been read; else None, and they are read beside the page where there are any.

    A file that could not be read (it was being written) is read again at the next look.
    """
    fresh = cache.stamp(path)
    with _LOCK:
        known = _READ.get(path)
        pending = known is not None and not known[1].done()
        failed = known is not None and not pending and known[1].exception() is not None
        if not pending and _steps(fresh) != _steps(on_disk) and (known is None or failed or not _more(known[0], on_disk)):
            known = _READ[path] = fresh, _READER.submit(load, path, report=True)
    if known is None or not _more(known[0], on_disk):
        return None
    try:
        return known[0], known[1].result(AT_ONCE)
    except (TimeoutError, GraftError, OSError):
        return None


def keep_chosen(opened: Opened, settings: Settings) -> None:
    """After a look that found more: write the numbers of what is chosen as they are now into the address."""
    before: Shown | None = st.session_state.pop(BEFORE, None)
    words = {name: st.query_params[name] for name in ("sel", "at") if name in st.query_params}
    if before is None or before.on_disk == opened.on_disk or not words:
        return
    if (before.path, before.group_by, before.success_when) != (opened.path, opened.group_by, opened.success_when):
        return
    try:
        old, new = before.findings(settings), opened.findings(settings)
    except GraftError:
        return  # the page says what is wrong
    urlstate.write_all({name: renumbered(old, new, word) for name, word in words.items()})


def renumbered(old: Findings, new: Findings, word: str) -> str | None:
    """The word for the same node (n12), edge (e12) or step (12) in a batch that has grown; None where it is gone."""
    kind, digits = (word[0], word[1:]) if word[:1] in ("n", "e") else ("", word)
    number = urlstate.whole(digits, {"n": old.graph.n_nodes, "e": old.graph.n_edges, "": old.batch.n_steps}[kind])
    if number is None:
        return None
    if kind == "":
        found = _same_step(old, new, position_of_row(old.batch, number))
        return None if found is None else str(int(new.batch.order[found]))
    ends = ((old.graph.src, new.graph.src), (old.graph.dst, new.graph.dst))
    for was, now in ((old.graph.edge, new.graph.edge),) if kind == "e" else ends:
        for position in np.flatnonzero(was == number)[:1].tolist():
            found = _same_step(old, new, position)
            return None if found is None else f"{kind}{int(now[found])}"
    return None


def _same_step(old: Findings, new: Findings, position: int) -> int | None:
    """The path position of the same step: the same place in the rollout that began on the same line."""
    row = int(old.batch.step_rollout[position])
    begins = old.batch.rollouts.column("source")[row].as_py()
    sources = new.batch.rollouts.column("source").to_pylist()
    if begins is None or begins not in sources:
        return None
    now = sources.index(begins)
    found = int(new.batch.offsets[now]) + position - int(old.batch.offsets[row])
    return found if found < int(new.batch.offsets[now + 1]) else None


def chip(opened: Opened) -> None:
    """Says that the page follows a run, and follows it; nothing where the data no longer grow."""
    if not being_written(opened.path):
        st.session_state.pop(SHOWN, None)
        return
    shown: Shown | None = st.session_state.get(SHOWN)
    same = shown is not None and (shown.path, shown.on_disk) == (opened.path, opened.on_disk)
    st.session_state[SHOWN] = Shown(
        opened.path, opened.on_disk, cache.read_once(opened.path, opened.on_disk), opened.group_by, opened.success_when,
        shown.since if same and shown is not None else time.time(),
    )  # fmt: skip
    every = max(LEAST, opened.batch.n_steps / STEPS_A_SECOND)
    st.fragment(_look, run_every=EVERY)(opened, every)


def _look(opened: Opened, every: float) -> None:
    """Look at the disk, and make the page anew where there are more steps."""
    shown: Shown | None = st.session_state.get(SHOWN)
    if shown is None or shown.path != opened.path:
        return
    age, paused = time.time() - shown.since, bool(st.session_state.get(PAUSED))
    if not being_written(opened.path):
        with _LOCK:
            _READ.pop(opened.path, None)
        st.rerun()
    found = None if paused else newer(opened.path, opened.on_disk)
    if found is not None and age >= every:
        st.session_state[NEXT] = found
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center", width="content", gap="small"):
        if paused:
            st.markdown(":gray-badge[:material/pause: live · paused]", width="content")
            st.button("Follow", key="follow_on", icon=":material/play_arrow:", on_click=_pause, args=(False,), type="tertiary")
            return
        often = "" if every == LEAST else f"; a batch of this size every {every:.0f} s"
        st.markdown(
            f":green-badge[:material/sensors: live · updated {_ago(age)} ago]", width="content",
            help=f"This run is still being written; new steps appear by themselves{often}.",
        )  # fmt: skip
        st.button("Pause", key="follow_off", icon=":material/pause:", on_click=_pause, args=(True,), type="tertiary",
                  help="Keep what is shown; the run goes on.")  # fmt: skip


def _pause(on: bool) -> None:
    st.session_state[PAUSED] = on


def _ago(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else count(round(seconds / 60), "minute")


def _more(one: cache.Stamp, other: cache.Stamp) -> bool:
    """Whether the first stamp is of a larger run."""
    return sum(size for _, size in _steps(one)) > sum(size for _, size in _steps(other))


def _steps(on_disk: cache.Stamp) -> list[tuple[str, int]]:
    """Only the step files, by their size: a run's curves and status change without a new step."""
    return [(file, size) for file, _, size in on_disk if Path(file).parent.name == STEPS]
