"""Take away what is on screen: pictures, tables, a report, training weights, and the same as command or Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc
import streamlit as st

from graft_app import cache
from graft_app.batch import Opened
from graft_app.views.text import count, literal, one_line
from graft_core.errors import GraftError
from graft_core.insight import Findings
from graft_core.insight.notes import Notes
from graft_core.insight.picture import GraphPaint, GraphStructure
from graft_core.provenance import provenance
from graft_core.rollouts import IntArray
from graft_core.settings import Settings
from graft_core.takeaway.graphml import graph_graphml
from graft_core.takeaway.html import graph_html
from graft_core.takeaway.names import file_name, stem
from graft_core.takeaway.report import PICTURES, report_html
from graft_core.takeaway.snippet import command, python
from graft_core.takeaway.svg import graph_svg
from graft_core.takeaway.tables import FORMATS, as_bytes, edge_rows, node_rows, step_rows
from graft_core.takeaway.weights import positions_named, train_settings, training_weights

MIME = {
    "svg": "image/svg+xml", "html": "text/html", "graphml": "application/xml", "csv": "text/csv",
    "jsonl": "application/x-ndjson", "parquet": "application/vnd.apache.parquet",
}
TABLES = {"steps": step_rows, "moments": node_rows, "edges": edge_rows}
CHOSEN = {"good": "good", "kept": "kept by me", "all": "all"}
LEFT_OUT = "takeaway_texts_left_out"
NOTE = {"csv": "for a spreadsheet: formulas are guarded", "jsonl": "without loss", "parquet": "without loss, with settings"}


def graph_menu(
    opened: Opened, settings: Settings, found: Findings, group: int, structure: GraphStructure, painted: GraphPaint
) -> None:
    """The menu of the graph page: this picture, this task's tables, and the same in words."""
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


def findings_menu(opened: Opened, settings: Settings, found: Findings) -> None:
    """The menu of the findings page: report, tables of all tasks, training weights, and the same in words."""
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
        st.markdown("**Tables** of all tasks")
        _tables(opened, found, None, texts, "findings")
        _weights(opened, settings, found, name)
        _words(opened, settings, None, "findings")


def _menu(page: str) -> Any:
    return st.popover("Take away", icon=":material/download:", on_change="rerun", key=f"takeaway_{page}")


def texts_left_out() -> bool:
    """Whether the reader chose to take nothing away that a rollout saw, did or said."""
    return bool(st.session_state.get(LEFT_OUT, False))


def _with_texts(page: str) -> bool:
    """The choice, kept over pages and while the menu is closed."""
    st.session_state[LEFT_OUT] = st.checkbox(
        "Leave texts out", texts_left_out(), key=f"takeaway_no_texts_{page}",
        help="Nothing that a rollout saw, did or said leaves with the file; names of tasks and rollouts, and numbers, stay.",
    )
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
    with st.container(horizontal=True):
        for form in FORMATS:
            make = partial(_table, opened, found, which, group, texts, form)
            _button(form.upper() if form != "parquet" else "Parquet", file_name(*words, ending=form), make, NOTE[form])


def _table(
    opened: Opened, found: Findings, which: str, group: int | None, texts: bool, form: Literal["csv", "jsonl", "parquet"]
) -> bytes:
    travels = _provenance(opened, found.settings) if form == "parquet" else None
    return as_bytes(TABLES[which](found, group, texts=texts), form, travels)


def _report(opened: Opened, found: Findings, groups: list[int], texts: bool) -> str:
    return report_html(found, _provenance(opened, found.settings), groups, group_by=opened.group_by, texts=texts)


def _provenance(opened: Opened, settings: Settings) -> dict[str, Any]:
    return provenance(opened.report.files, settings.to_words())


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
    _button(
        "Weights", file_name(name, "weights", which or "good", chosen.estimator, ending="jsonl"),
        lambda: as_bytes(training_weights(found, positions, chosen), "jsonl"),
        "One line per step: group_id, rollout_id, step, weight (what multiplies the log-probability of its tokens; "
        "null: leave the step out).",
    )


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
