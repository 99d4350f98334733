"""The only place that knows Streamlit's caches: batches and analyses, computed once and bounded in number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from graft_core.formats import load
from graft_core.insight import Findings
from graft_core.insight.cards import data_sha256
from graft_core.insight.compare import Comparison, compare
from graft_core.insight.findings import findings, lambda_counts
from graft_core.insight.lost import Lost, lost
from graft_core.insight.report import with_certainty, with_chance
from graft_core.insight.teach import Teaching, teach
from graft_core.rollouts import LoadReport, RolloutBatch
from graft_core.settings import Settings

NOTES = ".graft-notes.json"  # written by the app itself beside the data
Stamp = tuple[tuple[str, int, int], ...]


def stamp(path: str) -> Stamp:
    """What a file or folder looks like on disk; a change makes the caches read it again."""
    place = Path(path)
    files = sorted(p for p in place.rglob("*") if p.is_file() and not p.name.endswith(NOTES)) if place.is_dir() else [place]
    return tuple((str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in files if p.exists())


@st.cache_resource(max_entries=4, show_spinner="Reading the rollouts ...")
def batch_of(path: str, on_disk: Stamp, group_by: str | None) -> tuple[RolloutBatch, LoadReport]:
    """The batch in a file or folder, and what became of every record."""
    batch, report = load(path, group_by=group_by, report=True)
    return batch, report


@st.cache_resource(max_entries=24, show_spinner="Computing credit ...")
def findings_of(path: str, on_disk: Stamp, group_by: str | None, settings: Settings) -> Findings:
    """Credit under A and B, good steps, largest drops and intervals; without chance."""
    return with_certainty(findings(batch_of(path, on_disk, group_by)[0], settings))


@st.cache_resource(max_entries=24, show_spinner=False)
def chance_of(
    path: str, on_disk: Stamp, group_by: str | None, settings: Settings, _progress: Callable[[int, int], None] | None = None
) -> Findings:
    """The same with chance; an estimator other than graph TD runs once for each of 200 shuffles."""
    return with_chance(findings_of(path, on_disk, group_by, settings), progress=_progress)


@st.cache_resource(max_entries=24, show_spinner=False)
def lost_of(path: str, on_disk: Stamp, group_by: str | None, settings: Settings) -> Lost:
    """Where failed rollouts were lost, with loops, siblings and what drops have in common."""
    return lost(findings_of(path, on_disk, group_by, settings))


@st.cache_resource(max_entries=24, show_spinner=False)
def teaching_of(path: str, on_disk: Stamp, group_by: str | None, settings: Settings) -> Teaching:
    """Which tasks teach nothing, and why."""
    found = findings_of(path, on_disk, group_by, settings)
    return teach(found.batch, found.graph, settings.rewards)


@st.cache_data(max_entries=8, show_spinner=False)
def sha256_of(path: str, on_disk: Stamp, group_by: str | None) -> str:
    """SHA-256 of the batch's data, which notes are tied to."""
    return data_sha256(batch_of(path, on_disk, group_by)[1].files, path)


@st.cache_resource(max_entries=4, show_spinner=False)
def teaching_at_start(path: str, on_disk: Stamp, group_by: str | None) -> Teaching:
    """The same by outcomes alone, for the line above every page."""
    return teach(batch_of(path, on_disk, group_by)[0])


@st.cache_resource(max_entries=24, show_spinner="Comparing estimators ...")
def comparison_of(
    path: str, on_disk: Stamp, group_by: str | None, settings: Settings, names: tuple[str, ...]
) -> Comparison:
    """Agreement and scale of several estimators."""
    return compare(batch_of(path, on_disk, group_by)[0], names, settings)


@st.cache_data(max_entries=24, show_spinner=False)
def lambda_effect(path: str, on_disk: Stamp, group_by: str | None, settings: Settings) -> list[dict[str, float]]:
    """How many good steps each lambda would list."""
    return lambda_counts(batch_of(path, on_disk, group_by)[0], settings)
