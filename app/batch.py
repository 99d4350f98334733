"""The batch on the table: which of the given paths, grouped how, and what its report says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from graft_app import cache, urlstate
from graft_app.server import given_paths
from graft_app.views.text import one_line
from graft_core.errors import GraftError
from graft_core.rollouts import LoadReport, RolloutBatch
from graft_core.settings import Settings


@dataclass(frozen=True)
class Opened:
    """A batch with what the caches need to know about where it came from."""

    path: str
    on_disk: cache.Stamp
    group_by: str | None
    batch: RolloutBatch
    report: LoadReport
    index: int = 0

    @property
    def source(self) -> tuple[str, cache.Stamp, str | None]:
        return self.path, self.on_disk, self.group_by

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
        st.error(str(error), icon=":material/error:")
        st.stop()
    except OSError as error:
        st.error(f"{error.filename}: {error.strerror}", icon=":material/error:")
        st.stop()


def _index(word: str, n: int) -> int:
    number = int(word)
    if not 0 <= number < n:
        raise ValueError(f"there are files 0 to {n - 1}, not {number}")
    return number


def choose() -> Opened:
    """The batch the address names (an index into the given paths); `picker` offers the others."""
    paths = given_paths()
    index = urlstate.read("file", lambda word: _index(word, len(paths)), 0)
    group_by = urlstate.read("group_by", str, None)
    with sentences():
        on_disk = cache.stamp(paths[index])
        try:
            batch, report = cache.batch_of(paths[index], on_disk, group_by)
        except GraftError:
            picker(index)  # a file that cannot be read must not hide the others
            if group_by is not None:
                st.button("Take the grouping back", on_click=lambda: urlstate.write("group_by", None))
            raise
    return Opened(paths[index], on_disk, group_by, batch, report, index)


def picker(index: int) -> None:
    """A menu of the given paths, where there are several, and how to open others."""
    paths = given_paths()

    bound = urlstate.bind("file", index, 0)

    def another() -> None:
        for name in ("task", "sel", "at", "group_by"):
            urlstate.write(name, None)
        bound["on_change"]()

    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        if len(paths) > 1:
            st.selectbox(
                "Rollouts", range(len(paths)), format_func=lambda i: one_line(Path(paths[i]).name, 40), width=210,
                label_visibility="collapsed", key=bound["key"], on_change=another,
            )
        with st.popover("Open my rollouts…", icon=":material/folder_open:"):
            st.markdown("Start the app with your files or folders; each becomes an entry of the menu:")
            st.code("graft app my_rollouts.jsonl another_folder/", language=None)
            st.markdown("`graft inspect my_rollouts.jsonl` says what is in a file; the README shows the format in ten lines.")


def group_menu(opened: Opened) -> None:
    """Offer a grouping where the file names none."""
    kinds = {"file": "each file is one task", "regex": "a pattern", "column": "a column"}
    now = opened.group_by or ""
    kind = st.segmented_control(
        "What makes rollouts one task?", list(kinds), default=None, format_func=lambda w: kinds[w], key="group_kind",
        help="Credit compares rollouts of one task; a wrong grouping invents credit.",
    )
    if kind == "file" and now != "file":
        urlstate.write("group_by", "file")
        st.rerun()
    if kind in ("regex", "column"):
        hint = "regular expression, first group" if kind == "regex" else "name of a column or metadata key"
        word = st.text_input(hint, key=f"group_{kind}")
        if word and now != f"{kind}:{word}":
            urlstate.write("group_by", f"{kind}:{word}")
            st.rerun()
    if now:
        st.button("Take the grouping back", on_click=lambda: urlstate.write("group_by", None))
