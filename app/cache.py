"""The only place that knows Streamlit's caches: batches and analyses, computed once and bounded in number."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Literal, TypeVar

import streamlit as st

from graft_core.credit.estimate import graph_of
from graft_core.formats import load
from graft_core.formats.candidates import Candidate, candidates
from graft_core.formats.grouping import regroup
from graft_core.formats.run_directory import RUN_FILE
from graft_core.formats.success import decide
from graft_core.insight import Findings
from graft_core.insight.align import AlignedRow, Pair, align_rollouts, batch_measures, lambda_sweep, pair
from graft_core.insight.cards import data_sha256
from graft_core.insight.compare import Comparison, compare
from graft_core.insight.findings import findings, lambda_counts
from graft_core.insight.lost import Lost, lost
from graft_core.insight.measures import rule_table
from graft_core.insight.merges import merge_warnings
from graft_core.insight.picture import picture
from graft_core.insight.report import with_certainty, with_chance
from graft_core.insight.sketch import Shape
from graft_core.insight.strictness import strictness
from graft_core.insight.structure import GraphStructure
from graft_core.insight.suspect import Suspects, suspects
from graft_core.insight.teach import Teaching, teach
from graft_core.insight.transcript import Course, course
from graft_core.insight.why import Why, why
from graft_core.rollouts import FloatArray, LoadReport, RolloutBatch, Warning_
from graft_core.runs.store import STEPS
from graft_core.settings import Settings
from graft_core.states.preview import mask_previews

OWN = (".graft-notes.json", ".graft-views.json")  # written by the app itself beside the data
LEFT_OUT_UP_TO = 64  # rollouts of a task; leaving each out takes some tenths of a second there
HASHED_AT_ONCE = 64_000_000  # bytes: some hundredths of a second
_HASHING = ThreadPoolExecutor(max_workers=2, thread_name_prefix="sha256")
T = TypeVar("T")
Stamp = tuple[tuple[str, int, int], ...]


def stamp(path: str) -> Stamp:
    """What a file or folder looks like on disk; a change makes the caches read it again."""
    place = Path(path)
    files = [place]
    if place.is_dir():
        below = sorted(p for p in place.rglob("*") if p.is_file())
        hidden = {p for p in below if any(part.startswith(".") for part in p.relative_to(place).parts)}  # `load` skips them too
        files = [p for p in below if p not in hidden and not p.name.endswith(OWN)]
    return tuple((str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in files if p.exists())


@dataclass
class _Slot(Generic[T]):
    """Where a result is kept that shows its progress while it is made; the lock lets a second visitor wait for it.

    Streamlit draws again what a cached function drew, which fails for a bar that stands elsewhere; so the slot is cached
    and the function that fills it is not.
    """

    lock: Lock
    value: T | None = None


@st.cache_resource(max_entries=3, show_spinner=False)
def _slot(path: str, on_disk: Stamp) -> _Slot[tuple[RolloutBatch, LoadReport]]:
    return _Slot(Lock())


def read_once(
    path: str, on_disk: Stamp, progress: Callable[[int, int], None] | None = None
) -> tuple[RolloutBatch, LoadReport]:
    """The batch as the file itself says, before any grouping or success rule is chosen."""
    slot = _slot(path, on_disk)
    with slot.lock:
        if slot.value is None:
            slot.value = load(path, report=True, progress=progress)
        return slot.value


def put_back(path: str, on_disk: Stamp, kept: tuple[RolloutBatch, LoadReport]) -> None:
    """Under this stamp stay the data that were read with it, though the files have grown since and the cache let them go."""
    slot = _slot(path, on_disk)
    with slot.lock:
        slot.value = slot.value or kept


@st.cache_resource(max_entries=6, show_spinner="Reading the rollouts ...")
def batch_of(path: str, on_disk: Stamp, group_by: str | None, success_when: str | None) -> tuple[RolloutBatch, LoadReport]:
    """The batch in a file or folder, and what became of every record; the file is read once for all groupings and rules."""
    batch, report = read_once(path, on_disk)
    if group_by is not None:
        said = tuple(w for w in report.warnings if w.code != "group_missing")
        batch, report = regroup(batch, replace(report, warnings=said), group_by)
    return decide(batch, report, success_when)


@st.cache_data(max_entries=8, show_spinner="Looking for what could make rollouts one task ...")
def candidates_of(path: str, on_disk: Stamp, success_when: str | None) -> list[Candidate]:
    """Ways to group the rollouts, with the sizes each would give."""
    return candidates(batch_of(path, on_disk, None, success_when)[0])


@st.cache_resource(max_entries=24, show_spinner="Computing credit ...")
def credit_of(path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, settings: Settings) -> Findings:
    """Credit under A and B and what follows at once; intervals, which take seconds on large graphs, are left out."""
    return findings(batch_of(path, on_disk, group_by, success_when)[0], settings)


@st.cache_resource(max_entries=24, show_spinner="Computing credit ...")
def findings_of(path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, settings: Settings) -> Findings:
    """Credit under A and B, good steps, largest drops and intervals; without chance."""
    return with_certainty(credit_of(path, on_disk, group_by, success_when, settings))


@st.cache_resource(max_entries=24, show_spinner=False)
def _chance_slot(
    path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, settings: Settings
) -> _Slot[Findings]:
    return _Slot(Lock())


def chance_of(
    path: str,
    on_disk: Stamp,
    group_by: str | None,
    success_when: str | None,
    settings: Settings,
    _progress: Callable[[int, int], None] | None = None,
) -> Findings:
    """The same with chance; an estimator other than graph TD runs once for each of 200 shuffles."""
    source = path, on_disk, group_by, success_when, settings
    slot = _chance_slot(*source)
    with slot.lock:
        if slot.value is None:
            slot.value = with_chance(findings_of(*source), progress=_progress)
        return slot.value


@st.cache_resource(max_entries=24, show_spinner=False)
def lost_of(path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, settings: Settings) -> Lost:
    """Where failed rollouts were lost, with loops, siblings and what drops have in common."""
    return lost(findings_of(path, on_disk, group_by, success_when, settings))


@st.cache_resource(max_entries=24, show_spinner=False)
def teaching_of(path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, settings: Settings) -> Teaching:
    """Which tasks teach nothing under these settings, and why."""
    batch = batch_of(path, on_disk, group_by, success_when)[0]
    return teach(batch, graph_of(batch, **settings.graph_words), settings.rewards)


def sha256_of(path: str, on_disk: Stamp, group_by: str | None, success_when: str | None) -> str:
    """SHA-256 of the batch's data, which notes are tied to."""
    return _sha256(path, on_disk, tuple(map(str, read_once(path, on_disk)[1].files))).result()


def data_hash(path: str, on_disk: Stamp) -> str | None:
    """SHA-256 of what an address was made on; None while that of a large file is still being made.

    It is the SHA-256 of the data, but a recorded run is known by its `run.json`: its step files grow.
    """
    files = tuple(dict.fromkeys(_unchanging(str(file)) for file in read_once(path, on_disk)[1].files))
    made = _sha256(path, on_disk, files)
    return made.result() if made.done() or sum(map(os.path.getsize, files)) <= HASHED_AT_ONCE else None


def _unchanging(file: str) -> str:
    """The file itself, or the `run.json` of the run whose steps it holds."""
    run = Path(file).parent.parent / RUN_FILE
    return str(run) if Path(file).parent.name == STEPS and run.is_file() else file


@st.cache_resource(max_entries=16, show_spinner=False)
def _sha256(path: str, on_disk: Stamp, files: tuple[str, ...]) -> Future[str]:
    """The SHA-256 of files, made beside the page: a large file must not keep the first screen waiting."""
    return _HASHING.submit(data_sha256, files, path)


@st.cache_resource(max_entries=24, show_spinner=False)
def merge_warnings_of(
    path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, settings: Settings
) -> list[Warning_]:
    """What is doubtful about the graph under these settings."""
    return merge_warnings(graph_of(batch_of(path, on_disk, group_by, success_when)[0], **settings.graph_words))


@st.cache_resource(max_entries=4, show_spinner=False)
def teaching_at_start(path: str, on_disk: Stamp, group_by: str | None, success_when: str | None) -> Teaching:
    """The same by outcomes alone, where the settings allow no graph."""
    return teach(batch_of(path, on_disk, group_by, success_when)[0])


@st.cache_resource(max_entries=24, show_spinner="Comparing estimators ...")
def comparison_of(
    path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, settings: Settings, names: tuple[str, ...]
) -> Comparison:
    """Agreement and scale of several estimators."""
    return compare(batch_of(path, on_disk, group_by, success_when)[0], names, settings)


@st.cache_data(max_entries=24, show_spinner=False)
def lambda_effect(
    path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, settings: Settings
) -> list[dict[str, float]]:
    """How many good steps each lambda would list."""
    return lambda_counts(batch_of(path, on_disk, group_by, success_when)[0], settings)


@st.cache_data(max_entries=12, show_spinner="Comparing rules ...")
def rule_table_of(
    path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, settings: Settings, with_chance: bool
) -> list[dict[str, Any]]:
    """The measures of the chosen rule and of each alternative."""
    return rule_table(batch_of(path, on_disk, group_by, success_when)[0], settings=settings, with_chance=with_chance)


@st.cache_data(max_entries=12, show_spinner="Trying stricter keys ...")
def strictness_of(
    path: str,
    on_disk: Stamp,
    group_by: str | None,
    success_when: str | None,
    settings: Settings,
    of: Literal["observations", "actions"],
    chance: bool,
) -> list[dict[str, Any]]:
    """What the last 0..4 observations or actions do to merging and findings."""
    return strictness(batch_of(path, on_disk, group_by, success_when)[0], settings, of, with_chance=chance)


@st.cache_data(max_entries=6, show_spinner="Trying the masks ...")
def masks_of(
    path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, rules: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    """What each ready mask would merge behind the text rules of these."""
    return mask_previews(batch_of(path, on_disk, group_by, success_when)[0], rules)


@st.cache_resource(max_entries=8, show_spinner="Looking for suspect merges ...")
def suspects_of(path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, settings: Settings) -> Suspects:
    """Merges that seem to hide a state, tested group by group."""
    return suspects(findings_of(path, on_disk, group_by, success_when, settings).graph)


@st.cache_resource(max_entries=32, show_spinner=False)
def course_of(
    path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, settings: Settings, rollout: int
) -> Course:
    """Value and credit along one rollout."""
    return course(findings_of(path, on_disk, group_by, success_when, settings), rollout)


@st.cache_resource(max_entries=64, show_spinner=False)
def why_of(
    path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, settings: Settings, position: int
) -> Why:
    """Why one step has its credit; in large groups without leaving each rollout out."""
    found = findings_of(path, on_disk, group_by, success_when, settings)
    batch = found.batch
    size = int((batch.group == batch.group[batch.step_rollout[position]]).sum())
    return why(found, position, leave_out=size <= LEFT_OUT_UP_TO)


@st.cache_resource(max_entries=16, show_spinner="Aligning the rollouts ...")
def aligned_of(
    path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, settings: Settings, left: int, right: int
) -> tuple[AlignedRow, ...]:
    """Two rollouts in rows, aligned where they share moments."""
    return align_rollouts(findings_of(path, on_disk, group_by, success_when, settings).graph, left, right)


@st.cache_resource(max_entries=12, show_spinner="Comparing the two settings ...")
def pair_of(path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, left: Settings, right: Settings) -> Pair:
    """Two settings on the same steps."""
    return pair(batch_of(path, on_disk, group_by, success_when)[0], left, right)


@st.cache_resource(max_entries=4, show_spinner="Sweeping λ ...")
def sweep_of(
    path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, settings: Settings, lambdas: tuple[float, ...]
) -> FloatArray:
    """Credit of every step at each lambda."""
    return lambda_sweep(batch_of(path, on_disk, group_by, success_when)[0], settings, lambdas)


@st.cache_data(max_entries=24, show_spinner="Measuring the batch ...")
def measures_of(
    path: str, on_disk: Stamp, group_by: str | None, success_when: str | None, settings: Settings
) -> dict[str, float]:
    """The measures that papers report, under these settings and their estimator A."""
    batch = batch_of(path, on_disk, group_by, success_when)[0]
    return batch_measures(batch, settings, settings.credit(batch, settings.estimator)[batch.order])


@st.cache_resource(max_entries=32, show_spinner="Placing the graph ...")
def structure_of(
    source: Any, graph_words: str, group: int, size: int, shape: Shape, nodes: Sequence[int], rollouts: Sequence[int],
    _found: Findings,
) -> GraphStructure:
    """Where one task's graph is drawn (`picture`); `nodes` and `rollouts` are brought in where it would leave them out."""
    return picture(_found.graph, group, max_nodes=size, shape=shape, nodes=nodes, rollouts=rollouts)
