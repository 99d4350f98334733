"""Take away what is on screen: pictures, tables, a report, training weights, and the same as command or Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import streamlit as st

from graft_app.batch import Opened
from graft_app.views.text import one_line
from graft_core.insight import Findings
from graft_core.insight.picture import GraphPaint, GraphStructure
from graft_core.provenance import provenance
from graft_core.settings import Settings
from graft_core.takeaway.graphml import graph_graphml
from graft_core.takeaway.html import graph_html
from graft_core.takeaway.names import file_name, stem
from graft_core.takeaway.report import PICTURES, report_html
from graft_core.takeaway.snippet import command, python
from graft_core.takeaway.svg import graph_svg
from graft_core.takeaway.tables import FORMATS, as_bytes, edge_rows, node_rows, step_rows
from graft_core.takeaway.weights import train_settings, training_weights

MIME = {
    "svg": "image/svg+xml", "html": "text/html", "graphml": "application/xml", "csv": "text/csv",
    "jsonl": "application/x-ndjson", "parquet": "application/vnd.apache.parquet",
}
TABLES = {"steps": step_rows, "moments": node_rows, "edges": edge_rows}
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
            "Tasks to draw", range(found.batch.n_groups), with_good[:PICTURES], key="takeaway_groups",
            format_func=lambda g: one_line(found.batch.group_ids[g], 40),
        )
        _button("Report", file_name(name, "report", ending="html"), lambda: _report(opened, found, chosen, texts))
        st.markdown("**Tables** of all tasks")
        _tables(opened, found, None, texts, "findings")
        _weights(settings, found, name)
        _words(opened, settings, None, "findings")


def _menu(page: str) -> Any:
    return st.popover("Take away", icon=":material/download:", on_change="rerun", key=f"takeaway_{page}")


def _with_texts(page: str) -> bool:
    out = st.checkbox(
        "Leave texts out", key=f"takeaway_no_texts_{page}",
        help="Nothing that a rollout saw, did or said leaves with the file; names of tasks and rollouts, and numbers, stay.",
    )
    return not out


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


def _weights(settings: Settings, found: Findings, name: str) -> None:
    st.markdown("**Steps with weights**, for training")
    everything = st.toggle("All steps, not only the good ones of failed rollouts", key="takeaway_all_steps")
    preset = st.toggle(
        "Weights of the Train preset", value=True, key="takeaway_train",
        help="path credit, λ .95, normalised among the steps of a moment; off: credit A as it is set here",
    )
    positions = np.arange(found.batch.n_steps) if everything else found.good
    chosen = train_settings(found) if preset else settings
    _button(
        "Weights", file_name(name, "weights", "all" if everything else "good", chosen.estimator, ending="jsonl"),
        lambda: as_bytes(training_weights(found, positions, chosen), "jsonl"),
        "One line per step: group_id, rollout_id, step, weight (what multiplies the log-probability of its tokens; null: leave "
        "the step out). A good step can weigh less than 0 under another estimator than the one that found it.",
    )


def _words(opened: Opened, settings: Settings, task: str | None, page: str) -> None:
    name = Path(opened.path).name
    st.markdown("**The same elsewhere**, in the folder of the data")
    st.code(command(settings, name, opened.group_by), language=None, wrap_lines=True)
    st.code(python(settings, name, opened.group_by, task), language=None, wrap_lines=True)
