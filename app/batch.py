"""The batch on the table: which of the files, grouped how, and what its report says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from graft_app import cache, follow, paths, samedata, urlstate
from graft_app.jobs import jobs
from graft_app.server import given_paths
from graft_app.views import opening
from graft_app.views.text import literal, one_line
from graft_core.errors import GraftError, InputError
from graft_core.formats.success import parse_rule
from graft_core.rollouts import LoadReport, RolloutBatch
from graft_core.settings import Settings

OPENED = "opened_entries"
UPLOADED = "uploaded_entries"
LIVE = "live:"
STOPPED = "reading_stopped"
MOST_OPENED = 20
PROGRESS_FROM = 2_000_000  # bytes
OF_A_FILE = (*samedata.OF_THE_DATA, urlstate.DATA)  # words of the address that mean nothing for another file


@dataclass(frozen=True)
class Entry:
    """One line of the menu: `word` stands for it in the address, a number for a given path, rN:PATH for one under a root,
    uN for an upload, which only its own visit knows, live:RUN/ESTIMATOR/seed-N for what a live run of this app recorded."""

    word: str
    path: str
    name: str


@dataclass(frozen=True)
class Opened:
    """A batch with what the caches need to know about where it came from."""

    path: str
    on_disk: cache.Stamp
    group_by: str | None
    batch: RolloutBatch
    report: LoadReport
    index: int = 0
    success_when: str | None = None

    @property
    def source(self) -> tuple[str, cache.Stamp, str | None, str | None]:
        return self.path, self.on_disk, self.group_by, self.success_when

    @property
    def value_word(self) -> str:
        """'chance of success' where outcomes are 0 or 1, else 'expected score'."""
        known = self.batch.outcome[self.batch.known]
        return "chance of success" if bool(((known == 0) | (known == 1)).all()) else "expected score"

    def findings(self, settings: Settings) -> cache.Findings:
        return cache.findings_of(*self.source, settings)


@contextmanager
def sentences() -> Iterator[None]:
    """Show an error that is meant for people as one sentence, and stop the page there: never a traceback."""
    try:
        yield
    except GraftError as error:
        st.error(opening.said(error), icon=":material/error:")
        st.stop()
    except OSError as error:
        st.error(opening.said(f"{error.filename}: {error.strerror}"), icon=":material/error:")
        st.stop()


def entries() -> list[Entry]:
    """The menu: the given paths, then what was opened in this visit."""
    given = [Entry(str(number), path, Path(path).name) for number, path in enumerate(given_paths())]
    return [*given, *st.session_state.get(OPENED, [])]


def entry_of(word: str) -> Entry:
    """The entry that a word of the address stands for, whether it is on the menu or not. ValueError or `InputError` says
    why there is none."""
    if word.isascii() and word.isdigit():
        given = given_paths()
        if len(word) > 6 or int(word) >= len(given):
            raise ValueError(f"there are files 0 to {len(given) - 1}, not {word[:7]}")
        return entries()[int(word)]
    if word.startswith("u"):
        found = next((entry for entry in st.session_state.get(UPLOADED, []) if entry.word == word), None)
        if found is None:
            raise ValueError("an upload lasts as long as the visit in which it was made; open the file again")
        return found
    if word.startswith(LIVE):
        name = word.removeprefix(LIVE)
        return Entry(word, str(jobs().recorded(name)), name.removesuffix("/seed-0"))
    place = paths.from_word(word)
    paths.check(place)
    given = entries()[: len(given_paths())]
    same = next((entry for entry in given if Path(entry.path).resolve() == place.path), None)
    return same or Entry(place.word, str(place.path), place.path.name)


def put_on_menu(entry: Entry) -> int:
    """Add an entry to the menu of this visit, if it is not there; returns its position."""
    known = entries()
    if entry in known:
        return known.index(entry)
    st.session_state[OPENED] = [*st.session_state.get(OPENED, []), entry][-MOST_OPENED:]
    return len(entries()) - 1


def read(path: str, on_disk: cache.Stamp, group_by: str | None, success_when: str | None) -> tuple[RolloutBatch, LoadReport]:
    """A batch from the cache or from disk; of a large one it is on screen meanwhile how far it was read, with a way to stop."""
    if sum(size for _, _, size in on_disk) >= PROGRESS_FROM:
        _read_slowly(path, on_disk)
    return cache.batch_of(path, on_disk, group_by, success_when)


def _read_slowly(path: str, on_disk: cache.Stamp) -> None:
    stopped: set[str] = st.session_state.setdefault(STOPPED, set())
    if path in stopped:
        st.button("Read it after all", icon=":material/play_arrow:", on_click=stopped.discard, args=(path,), key="read_again")
        raise InputError("reading was stopped; choose another file, or read it after all")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        place, way_out = st.empty(), st.empty()
    bar = opening.Progress(place)

    def told(done: int, total: int) -> None:
        if bar.shown < 0:  # nothing is drawn for a batch that is in the cache
            way_out.button("Stop", icon=":material/stop:", on_click=stopped.add, args=(path,), key="stop_reading")
        bar(done, total)  # a click on Stop ends this run of the page at its next drawing

    cache.read_once(path, on_disk, told)
    place.empty()
    way_out.empty()


def _rule(word: str) -> str:
    parse_rule(word)
    return word


def choose() -> Opened:
    """The batch the address names: a given path by its number, or a path under an allowed root; `picker` offers the others."""
    index = urlstate.read("file", lambda word: put_on_menu(entry_of(word)), 0)
    group_by = urlstate.read("group_by", str, None)
    success_when = urlstate.read("success_when", _rule, None)
    path = entries()[index].path
    with sentences():
        on_disk = follow.stamp(path)
        try:
            batch, report = read(path, on_disk, group_by, success_when)
        except GraftError:
            picker(index)  # a file that cannot be read must not hide the others
            if group_by is not None:
                st.button("Take the grouping back", on_click=lambda: urlstate.write("group_by", None))
            raise
        samedata.check(path, on_disk, entries()[index].name)
    return Opened(path, on_disk, group_by, batch, report, index, success_when)


def picker(index: int) -> None:
    """A menu of the files, where there are several, the success rule where one is in force, and how to open others."""
    known = entries()
    bound = urlstate.bind("file", index, 0, lambda i: known[i].word)

    def another() -> None:
        urlstate.write_all(dict.fromkeys((*OF_A_FILE, "group_by", "success_when", "look")))
        bound["on_change"]()

    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        rule = st.query_params.get("success_when")
        if rule:
            st.button(
                f"success: {literal(rule, 40)}", icon=":material/close:", key="no_rule", help="Take this rule back.",
                on_click=lambda: urlstate.write("success_when", None),
            )
        if len(known) > 1:
            st.selectbox(
                "Rollouts", range(len(known)), format_func=lambda i: one_line(known[i].name, 40), width=170,
                label_visibility="collapsed", key=bound["key"], on_change=another,
            )
        with st.popover("Open my rollouts…", icon=":material/folder_open:"):
            st.page_link("screens/open.py", label="Choose or upload a file", icon=":material/folder_open:")
            st.markdown("Or start the app with your files or folders; each becomes an entry of the menu:")
            st.code("graft app my_rollouts.jsonl another_folder/", language=None)


def group_menu(opened: Opened) -> None:
    """What makes rollouts one task: asked where the file names none, else folded away; each way with the sizes it gives."""
    now = opened.group_by
    ways = cache.candidates_of(opened.path, opened.on_disk, opened.success_when)
    assumed = cache.read_once(opened.path, opened.on_disk)[0].groups_assumed
    current = next((way for way in ways if way.group_by == now), None)
    words = f"{current.meaning} · {opening.sizes_words(current.sizes)}" if current else now or ""
    place = st.expander(f"One task is: {literal(words, 160)}") if now else st.container()
    with place:
        chosen = opening.grouping(ways, now, assumed, f"table {now}")
        if now:
            st.button("Take the grouping back", on_click=lambda: urlstate.write("group_by", None))
    if chosen != now:
        urlstate.write_all({**dict.fromkeys(OF_A_FILE), "group_by": chosen})
        st.rerun()
