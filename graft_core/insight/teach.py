"""Tasks that teach nothing: why, and what would change it (method.md sec. 7)."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from graft_core.constants import RANGE_ABSOLUTE, RANGE_RELATIVE
from graft_core.graph import TrajectoryGraph
from graft_core.insight.merges import distinct_per
from graft_core.rollouts import BoolArray, FloatArray, IntArray, RolloutBatch

CAUSES: Final = {
    "no_steps": "no steps",
    "all_unknown": "all outcomes unknown",
    "one_rollout": "one rollout",
    "one_known": "one known outcome",
    "all_failed": "all failed",
    "all_succeeded": "all succeeded",
    "equal_scores": "equal scores",
    "nothing_merges": "no shared moment",
}
"""Causes in the order in which the first that holds is called the decisive one, with a short name for a table."""


@dataclass(frozen=True)
class Cause:
    """One reason why a task teaches nothing: a stable code, a sentence, and what would change it."""

    code: str
    title: str
    sentence: str
    change: str


@dataclass(frozen=True)
class SilentTask:
    """A task (group) that teaches nothing. causes: all that hold, the decisive one first."""

    group: int
    group_id: str
    rollouts: int
    succeeded: int
    failed: int
    unknown: int
    steps: int
    causes: tuple[Cause, ...]

    @property
    def cause(self) -> Cause:
        return self.causes[0]

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "causes": [asdict(cause) for cause in self.causes]}


@dataclass(frozen=True)
class Teaching:
    """Which tasks teach nothing.

    by_cause: tasks per decisive cause. sentence: "2 of 8 tasks teach nothing" with the causes.
    """

    tasks: tuple[SilentTask, ...]
    groups: int
    by_cause: dict[str, int]
    sentence: str

    @property
    def silent(self) -> int:
        return len(self.tasks)

    def as_dict(self) -> dict[str, Any]:
        return {
            "groups": self.groups,
            "silent": self.silent,
            "by_cause": self.by_cause,
            "sentence": self.sentence,
            "tasks": [task.as_dict() for task in self.tasks],
        }


@dataclass(frozen=True, eq=False)
class _Counts:
    """Per group: rollouts, successes, failures, unknown outcomes, steps. int64[G] each."""

    rollouts: IntArray
    succeeded: IntArray
    failed: IntArray
    unknown: IntArray
    steps: IntArray


def _counts(batch: RolloutBatch) -> _Counts:
    def per_group(chosen: BoolArray) -> IntArray:
        return np.bincount(batch.group[chosen], minlength=batch.n_groups)

    return _Counts(
        rollouts=np.bincount(batch.group, minlength=batch.n_groups),
        succeeded=per_group(batch.known & (batch.success == 1)),
        failed=per_group(batch.known & (batch.success == 0)),
        unknown=per_group(~batch.known),
        steps=np.bincount(batch.group[batch.step_rollout], minlength=batch.n_groups),
    )


def _flat(x: FloatArray, group: IntArray, n_groups: int) -> BoolArray:
    """Groups whose range is within the range rule of method.md sec. 4; empty ones too. bool[n_groups]."""
    low, high = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
    np.minimum.at(low, group, x)
    np.maximum.at(high, group, x)
    size = np.maximum(np.abs(low), np.abs(high))
    empty = low > high
    flat: BoolArray = np.where(empty, 0.0, high - low) <= RANGE_ABSOLUTE + RANGE_RELATIVE * np.where(empty, 0.0, size)
    return flat


def _equal(batch: RolloutBatch, rewards: str) -> BoolArray:
    """Groups whose known outcomes are equal; under `dense` also their step rewards."""
    rows = np.flatnonzero(batch.known)
    equal = _flat(batch.outcome[rows], batch.group[rows], batch.n_groups)
    if rewards == "dense":
        steps = batch.step_known
        equal &= _flat(batch.reward[steps], batch.group[batch.step_rollout[steps]], batch.n_groups)
    return equal


def _merging(graph: TrajectoryGraph) -> BoolArray:
    """Groups with a moment that two or more rollouts of known outcome leave. bool[G]."""
    known = graph.known
    leavers = distinct_per(graph.src[known], graph.batch.step_rollout[known], graph.n_nodes)
    shared = (leavers >= 2) & ~graph.node_is_sink
    return np.bincount(graph.node_group[shared], minlength=graph.batch.n_groups) > 0


def teach(batch: RolloutBatch, graph: TrajectoryGraph | None = None, rewards: str = "outcome") -> Teaching:
    """The tasks of a batch that teach nothing, by cause.

    graph: judges "no shared moment" (left out without one): then group estimators may still tell rollouts apart, but
    graph credit rests on one witness per moment. rewards: under `dense` equal outcomes are no cause while step
    rewards differ. Outcomes count as equal by the range rule of method.md sec. 4.
    """
    n = _counts(batch)
    equal = _equal(batch, rewards)
    merging = _merging(graph) if graph is not None else np.ones(batch.n_groups, dtype=bool)
    known = n.rollouts - n.unknown
    holds = {
        "no_steps": n.steps == 0,
        "all_unknown": known == 0,
        "one_rollout": n.rollouts == 1,
        "one_known": (known == 1) & (n.rollouts > 1),
        "all_failed": (known > 1) & equal & (n.failed == known),
        "all_succeeded": (known > 1) & equal & (n.succeeded == known),
        "equal_scores": (known > 1) & equal & (n.failed != known) & (n.succeeded != known),
        "nothing_merges": (n.steps > 0) & (known > 1) & ~merging,
    }
    silent = np.flatnonzero(np.logical_or.reduce(list(holds.values())))
    tasks = tuple(_task(batch, n, int(g), [c for c in CAUSES if holds[c][g]]) for g in silent)
    by_cause = Counter(task.cause.code for task in tasks)
    ordered = {code: by_cause[code] for code in CAUSES if by_cause[code]}
    return Teaching(tasks, batch.n_groups, ordered, _headline(batch.n_groups, len(tasks), ordered))


def _task(batch: RolloutBatch, n: _Counts, g: int, codes: list[str]) -> SilentTask:
    numbers = {name: int(getattr(n, name)[g]) for name in ("rollouts", "succeeded", "failed", "unknown", "steps")}
    causes = tuple(Cause(code, CAUSES[code], *_words(code, **numbers)) for code in codes)
    return SilentTask(g, batch.group_ids[g], causes=causes, **numbers)


def _headline(groups: int, silent: int, by_cause: dict[str, int]) -> str:
    if not groups:
        return "there are no tasks"
    if not silent:
        return f"all {groups} tasks teach something" if groups != 1 else "the task teaches something"
    what = ", ".join(f"{CAUSES[code]} {count}" for code, count in by_cause.items())
    return f"{silent} of {groups} {'task teaches' if groups == 1 else 'tasks teach'} nothing ({what})"


_SENTENCES: Final = {
    "no_steps": (
        "None of its rollouts has a step.",
        "Check the file: steps may be missing, or every rollout ended before it began.",
    ),
    "all_unknown": (
        "No outcome is known, so nothing says what went well.",
        "Add outcomes or success flags to the file.",
    ),
    "one_rollout": (
        "There is one rollout, and nothing to compare it with.",
        "Sample more rollouts of this task, or group by something that several rollouts share.",
    ),
    "one_known": (
        "Only one of its {rollouts} rollouts has a known outcome, and nothing to compare it with.",
        "Add the missing outcomes, or sample more rollouts.",
    ),
    "all_failed": (
        "{all_known} failed, so no step made a difference that can be seen.",
        "Sample more rollouts, or make the task easier: after {known} failures its success rate may still be as high "
        "as {bound} %.",
    ),
    "all_succeeded": (
        "{all_known} succeeded, so no step made a difference that can be seen.",
        "Take a harder task, or sample more rollouts: after {known} successes its failure rate may still be as high "
        "as {bound} %.",
    ),
    "equal_scores": (
        "{all_known} have the same score, so no step made a difference that can be seen.",
        "Sample more rollouts, or score them more finely (partial credit, step rewards).",
    ),
    "nothing_merges": (
        "No two of its rollouts share a moment: every step is seen by one witness only.",
        "Merge more moments with another rule, or sample more rollouts; estimators without a graph still tell rollouts "
        "apart where outcomes differ.",
    ),
}
"""Per cause: why, and what would change it. `bound` is the upper 95 % bound of a rate after `known` tries without one."""


def _words(code: str, rollouts: int, succeeded: int, failed: int, unknown: int, steps: int) -> tuple[str, str]:
    """The sentence of a cause and what would change it, with the task's numbers."""
    known = rollouts - unknown
    words = {
        "rollouts": rollouts,
        "known": known,
        "all_known": f"{'Both' if known == 2 else f'All {known}'} rollouts{' of known outcome' if unknown else ''}",
        "bound": f"{100 * (1.0 - 0.05 ** (1.0 / max(known, 1))):.0f}",
    }
    sentence, change = _SENTENCES[code]
    return sentence.format(**words), change.format(**words)
