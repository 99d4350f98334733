"""Take away what is on screen: pictures, tables, a report, training weights, and the same as command or Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from graft_app import cache
from graft_app.batch import Opened
from graft_app.views.text import count, literal, one_line
from graft_core.errors import GraftError
from graft_core.insight import Findings
from graft_core.insight.notes import Notes
from graft_core.insight.structure import GraphPaint, GraphStructure
from graft_core.provenance import provenance
from graft_core.rollouts import IntArray
from graft_core.settings import Settings
from graft_core.takeaway.graphml import graph_graphml
from graft_core.takeaway.html import graph_html
from graft_core.takeaway.names import file_name, stem
from graft_core.takeaway.report import PICTURES, report_html
from graft_core.takeaway.snippet import command, python
from graft_core.takeaway.svg import graph_svg
from graft_core.takeaway.tables import FORMATS, Format, as_bytes, edge_rows, listed_rows, node_rows, step_rows
from graft_core.takeaway.weights import positions_named, train_settings, training_weights

MIME = {
    "svg": "image/svg+xml", "html": "text/html", "graphml": "application/xml", "csv": "text/csv",
    "jsonl": "application/x-ndjson", "parquet": "application/vnd.apache.parquet", "json": "application/json",
}
TABLES = {"steps": step_rows, "moments": node_rows, "edges": edge_rows}
CHOSEN = {"good": "good", "kept": "kept by me", "all": "all"}
LEFT_OUT, CHANGED = "takeaway_texts_left_out", "takeaway_changed"
NOTE = {"csv": "for a spreadsheet: formulas are guarded", "jsonl": "without loss", "parquet": "without loss, settings inside"}
ABOUT = "settings, version and the data's SHA-256, for the CSV and JSONL files of this name; a Parquet file has them inside"
Rows = list[dict[str, Any]]


def graph_menu(
    opened: Opened, settings: Settings, found: Findings, group: int, structure: GraphStructure, painted: GraphPaint
) -> None:
    """The menu of the graph page: this picture, this task's tables, and the same in words."""
    with st.container(width="content"):
        _graph_menu(opened, settings, found, group, structure, painted)


@st.fragment  # opening it and choosing in it does not send the page again
def _graph_menu(
    opened: Opened, settings: Settings, found: Findings, group: int, structure: GraphStructure, painted: GraphPaint
) -> None:
    with _menu("graph") as box:
        if not box.open:
            return
        texts = _with_texts("graph")
        task, name = found.batch.group_ids[group], stem(found.batch.name)
        st.markdown("**Picture** (PNG: the button in the picture)")
        made: Any = {"title": task, "texts": texts}
        with st.container(horizontal=True):
            _button("SVG", file_name(name, task, ending="svg"), partial(graph_svg, structure, painted, **made))
            _button("HTML", file_name(name, task, ending="html"), partial(graph_html, structure, painted, **made))
            graphml = partial(graph_graphml, found, group, texts=texts)
            _button("GraphML", file_name(name, task, ending="graphml"), graphml)
        st.markdown("**Tables** of this task")
        _tables(opened, found, group, texts, "graph")
        _words(opened, settings, task, "graph")


def findings_menu(opened: Opened, settings: Settings, found: Findings, which: str = "", listed: Rows | None = None) -> None:
    """The menu of the findings page: report, tables of all tasks, training weights, and the same in words.

    which, listed: name and rows of the list on screen, which then can be taken away too.
    """
    with st.container(width="content"):
        _findings_menu(opened, settings, found, which, listed)


@st.fragment
def _findings_menu(opened: Opened, settings: Settings, found: Findings, which: str, listed: Rows | None) -> None:
    with _menu("findings") as box:
        if not box.open:
            return
        texts = _with_texts("findings")
        name = stem(found.batch.name)
        st.markdown("**Report**: one page to hand on, without scripts")
        with_good = list(dict.fromkeys(found.batch.group[found.batch.step_rollout[found.good]].tolist()))
        chosen = st.multiselect(
            "Tasks to draw", range(found.batch.n_groups), with_good[:PICTURES],
            key=f"takeaway_groups {opened.index} {opened.group_by}",
            format_func=lambda g: one_line(found.batch.group_ids[g], 40),
        )
        _button("Report", file_name(name, "report", ending="html"), lambda: _report(opened, found, chosen, texts))
        if listed:
            st.markdown(f"**This list**: {count(len(listed), 'row')}")
            _formats([name, which], partial(listed_rows, listed, texts=texts), _about(opened, settings))
        st.markdown("**Tables** of all tasks")
        _tables(opened, found, None, texts, "findings")
        _weights(opened, settings, found, name)
        _words(opened, settings, None, "findings")


def rows_menu(opened: Opened, name: str, rows: Rows, settings: dict[str, Any]) -> None:
    """A menu for one table on screen. settings: whatever it was made with, in the words of the command line."""
    with st.container(width="content"):
        _rows_menu(opened, name, rows, settings)


@st.fragment
def _rows_menu(opened: Opened, name: str, rows: Rows, settings: dict[str, Any]) -> None:
    with _menu(name) as box:
        if box.open:
            texts = _with_texts(name)
            words, about = [stem(opened.batch.name), name], partial(_travels, opened, settings)
            _formats(words, partial(listed_rows, rows, texts=texts), about)


def _menu(page: str) -> Any:
    return st.popover("Take away", icon=":material/download:", on_change="rerun", key=f"takeaway_{page}")


def texts_left_out() -> bool:
    """Whether the reader chose to take nothing away that a rollout saw, did or said."""
    return bool(st.session_state.get(LEFT_OUT, False))


def _with_texts(page: str) -> bool:
    """The choice, kept over pages and while the menu is closed."""
    key = f"takeaway_no_texts_{page}"
    st.session_state[key] = texts_left_out()

    def changed() -> None:
        st.session_state[LEFT_OUT] = st.session_state[key]
        st.session_state[CHANGED] = True

    st.checkbox(
        "Leave texts out", key=key, on_change=changed,
        help="Nothing that a rollout saw, did or said leaves with the file; names of tasks and rollouts, and numbers, stay.",
    )
    if st.session_state.pop(CHANGED, False):
        st.rerun()  # the whole page, not the menu alone: the picture has a button of its own
    return not texts_left_out()


def _button(label: str, name: str, make: Callable[[], str | bytes], note: str | None = None) -> None:
    """A download that is made when it is asked for."""
    st.download_button(
        label, make, name, MIME[name.rpartition(".")[2]], icon=":material/download:", on_click="ignore", help=note,
        key=f"takeaway {label} {name}",
    )


def _tables(opened: Opened, found: Findings, group: int | None, texts: bool, page: str) -> None:
    kind = st.segmented_control(
        "Rows", list(TABLES), default="steps", required=True, key=f"takeaway_rows_{page}", label_visibility="collapsed"
    )
    which = kind if kind in TABLES else "steps"
    words = [stem(found.batch.name), *([found.batch.group_ids[group]] if group is not None else []), which]
    _formats(words, partial(TABLES[which], found, group, texts=texts), _about(opened, found.settings))


def _formats(words: list[str], make: Callable[[], pa.Table], about: Callable[[], dict[str, Any]]) -> None:
    """One table in each format, and what has to travel with it: inside a Parquet file, else as a file of the same name."""

    def content(form: Format) -> bytes:
        return as_bytes(make(), form, about() if form == "parquet" else None)

    with st.container(horizontal=True):
        for form in FORMATS:
            label = form.upper() if form != "parquet" else "Parquet"
            _button(label, file_name(*words, ending=form), partial(content, form), NOTE[form])
        _settings_button(words, about)


def _settings_button(words: list[str], about: Callable[[], dict[str, Any]]) -> None:
    _button("Settings", file_name(*words, ending="meta.json"), lambda: orjson.dumps(about(), option=orjson.OPT_INDENT_2), ABOUT)


def _about(opened: Opened, settings: Settings) -> Callable[[], dict[str, Any]]:
    """What travels with a file; made when one is asked for, since the data are hashed for it."""
    return partial(_provenance, opened, settings)


def _report(opened: Opened, found: Findings, groups: list[int], texts: bool) -> str:
    return report_html(found, _provenance(opened, found.settings), groups, group_by=opened.group_by, texts=texts)


def _provenance(opened: Opened, settings: Settings) -> dict[str, Any]:
    return _travels(opened, settings_words(settings))


def settings_words(settings: Settings) -> dict[str, Any]:
    """Settings as they travel with a file: everything in force, as `graft credit -o` writes it, and which is A and B."""
    names = {"estimator": settings.estimator, "baseline": settings.baseline}
    resolved = {name: settings.resolved(name) for name in names.values()}
    return {**names, **settings.graph_words, **settings.value_words, "estimators": resolved}


def _travels(opened: Opened, settings: dict[str, Any]) -> dict[str, Any]:
    reading = {"group_by": opened.group_by, "success_when": opened.success_when}
    return provenance(opened.report.files, {**settings, **{name: word for name, word in reading.items() if word is not None}})


def _weights(opened: Opened, settings: Settings, found: Findings, name: str) -> None:
    st.markdown("**Steps with weights**, for training")
    kept, rejected = _judged(opened, found)
    sets = {"good": np.setdiff1d(found.good, rejected), "kept": kept, "all": np.arange(found.batch.n_steps)}
    which = st.segmented_control(
        "Which steps", list(sets), default="good", required=True, key="takeaway_chosen", label_visibility="collapsed",
        format_func=lambda w: f"{CHOSEN[w]} ({sets[w].size:,})", help="Good: those of failed rollouts that you did not reject.",
    )
    preset = st.toggle(
        "Weights of the Train preset", key="takeaway_train",
        help="Path credit, λ .95, normalised among the steps of a moment; off: credit A as it is set here. Near λ 1 credit "
        "is the outcome minus the value, so under the preset most good steps of failed rollouts weigh less than 0.",
    )
    positions, chosen = sets[which if which in sets else "good"], train_settings(found) if preset else settings
    if preset:
        below = pc.sum(pc.less(training_weights(found, positions, chosen).column("weight"), 0)).as_py() or 0
        st.caption(f"{below:,} of {count(positions.size, 'weight')} below 0: a trainer would push these steps down.")
    words = [name, "weights", which or "good", chosen.estimator]
    with st.container(horizontal=True):
        _button(
            "Weights", file_name(*words, ending="jsonl"),
            lambda: as_bytes(training_weights(found, positions, chosen), "jsonl"),
            "One line per step: group_id, rollout_id, step, weight (what multiplies the log-probability of its tokens; "
            "null: leave the step out).",
        )
        _settings_button(words, _about(opened, chosen))


def _judged(opened: Opened, found: Findings) -> tuple[IntArray, IntArray]:
    """Positions of the steps that the reader kept and of those rejected; none where there are no notes to read."""
    try:
        notes = Notes.open(opened.path, cache.sha256_of(*opened.source)).all()
    except (GraftError, OSError) as error:
        st.caption(f"Verdicts could not be read: {literal(str(error), 200)}")
        notes = {}
    kept, rejected = (
        positions_named(found.batch, (key for key, note in notes.items() if note.verdict == verdict))
        for verdict in ("keep", "reject")
    )
    return kept, rejected


def _words(opened: Opened, settings: Settings, task: str | None, page: str) -> None:
    name = Path(opened.path).resolve().name
    st.markdown("**The same elsewhere**, in the folder of the data")
    st.code(command(settings, name, opened.group_by), language=None, wrap_lines=True)
    st.code(python(settings, name, opened.group_by, task), language=None, wrap_lines=True)
