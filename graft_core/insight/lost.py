"""Where failed rollouts were lost: the largest drop of each, loops, what siblings did there, and what drops share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from graft_core.graph import TrajectoryGraph
from graft_core.insight._moments import ActionHere, Ended, actions_at, ended, steps_at, value_word
from graft_core.insight._words import error_text, excerpt, verb
from graft_core.insight.findings import Findings, lost_positions
from graft_core.rollouts import IntArray, RolloutBatch
from graft_core.values import Values

__all__ = ["Loop", "Lost", "LostGroup", "LostStep", "loop_starts", "lost", "lost_positions", "lost_step"]

SITUATIONS: Final = {
    "retry": "retry after error",
    "after_error": "other action after error",
    "causes_error": "answered by an error",
    "loop": "back to an earlier moment",
    "last": "last step",
    "first": "first step",
}
"""Codes of what surrounds a drop, with the words for a table. One drop can be in several."""


@dataclass(frozen=True)
class Loop:
    """The loop that a step closes: it leads back to the moment where the rollout stood before step `start`.

    start: the file's step number there; steps: how many steps the loop has; cost: gamma^steps V - V (plus the loop's
    discounted rewards under `dense`), what walking it lost.
    """

    start: int
    start_position: int
    steps: int
    cost: float


@dataclass(frozen=True)
class LostStep:
    """The largest drop of one failed rollout.

    loop: the loop this step closes, if any: then the drop is the cost of that loop. returns: the file's step number at
    which the rollout stands again in the moment it left here, None if never. siblings: what other rollouts did in this
    moment, most successes first; own action marked `chosen`. error: the error reported before the step, "" if none.
    action, observation, verb, error are rollout text.
    """

    position: int
    row: int
    group_id: str
    rollout_id: str
    step: int
    of_steps: int
    action: str
    observation: str
    verb: str
    error: str
    value_before: float
    value_after: float
    credit: float
    situations: tuple[str, ...]
    loop: Loop | None
    returns: int | None
    reached: Ended
    siblings: tuple[ActionHere, ...]
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "reached": self.reached.as_dict(),
            "siblings": [action.as_dict() for action in self.siblings],
        }


@dataclass(frozen=True)
class LostGroup:
    """Drops that have something in common, over all tasks.

    kind: "verb", "error" (before the step) or "situation" (`code` one of SITUATIONS). label: rollout text for the first
    two. rollouts: how many failed rollouts had their largest drop there; mean: their mean credit; worst: path position.
    """

    kind: str
    code: str
    label: str
    rollouts: int
    tasks: int
    mean: float
    worst: int
    positions: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "positions": list(self.positions)}


@dataclass(frozen=True)
class Lost:
    """Where failed rollouts were lost. steps: worst first, at most the limit asked for; groups: most rollouts first.

    failed: failed rollouts; with_drop: those with a drop; in_loops: those whose largest drop closes a loop.
    """

    steps: tuple[LostStep, ...]
    groups: tuple[LostGroup, ...]
    failed: int
    with_drop: int
    in_loops: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "failed": self.failed,
            "with_drop": self.with_drop,
            "in_loops": self.in_loops,
            "steps": [step.as_dict() for step in self.steps],
            "groups": [group.as_dict() for group in self.groups],
        }


def loop_starts(graph: TrajectoryGraph) -> IntArray:
    """For each step the latest position at which its rollout left the moment that the step leads to; -1 if never.

    int64[n_steps], path order. A step that stays in its moment gives its own position.
    """
    if "loop_starts" not in graph.memo:
        graph.memo["loop_starts"] = _loop_starts(graph)
    starts: IntArray = graph.memo["loop_starts"]
    return starts


def _loop_starts(graph: TrajectoryGraph) -> IntArray:
    batch = graph.batch
    last = batch.offsets[1:][batch.lengths > 0] - 1
    node = np.concatenate([graph.src, graph.dst[last]])
    reached_by = np.concatenate([np.arange(batch.n_steps) - 1, last])  # the step that leads to each visit
    key = np.concatenate([batch.step_rollout, batch.step_rollout[last]]) * graph.n_nodes + node
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(key[order][1:] == key[order][:-1])
    starts = np.full(batch.n_steps, -1, dtype=np.int64)
    starts[reached_by[order[again + 1]]] = order[again]  # an earlier visit is never a rollout's end: it was left
    return starts


def _loop(graph: TrajectoryGraph, values: Values, position: int) -> Loop | None:
    start = int(loop_starts(graph)[position])
    if start < 0:
        return None
    steps = position + 1 - start
    cost = (values.gamma**steps - 1.0) * values.v[graph.dst[position]]
    if values.rewards == "dense":
        cost += float(values.gamma ** np.arange(steps) @ graph.batch.reward[start : position + 1])
    return Loop(int(graph.batch.step_index[start]), start, steps, float(cost))


def _returns(graph: TrajectoryGraph, position: int) -> int | None:
    """Step number at which the rollout stands again where it stood before the step at `position`."""
    batch = graph.batch
    end = int(batch.offsets[batch.step_rollout[position] + 1])
    again = np.flatnonzero(graph.dst[position:end] == graph.src[position])
    if not again.size:
        return None
    back = position + int(again[0]) + 1
    return int(batch.step_index[back]) if back < end else int(batch.step_index[back - 1]) + 1


@dataclass(frozen=True)
class _Texts:
    """Verb and error of texts, each text looked at once."""

    verb: Callable[[int], str]
    error: Callable[[int], str]


def _texts(batch: RolloutBatch) -> _Texts:
    seen: dict[tuple[str, int], str] = batch.memo.setdefault("words", {})

    def cached(kind: str, of: Callable[[str], str], text_id: int) -> str:
        key = (kind, int(text_id))
        if key not in seen:
            seen[key] = of(batch.text(key[1]))
        return seen[key]

    return _Texts(partial(cached, "verb", verb), partial(cached, "error", error_text))


def _situations(graph: TrajectoryGraph, texts: _Texts, position: int) -> tuple[str, ...]:
    batch = graph.batch
    row = batch.step_rollout[position]
    first, last = position == batch.offsets[row], position + 1 == batch.offsets[row + 1]
    found = []
    if texts.error(batch.observation[position]) and not first:
        same = texts.verb(batch.action[position]) == texts.verb(batch.action[position - 1])
        found.append("retry" if same else "after_error")
    if texts.error(batch.final_observation[row] if last else batch.observation[position + 1]):
        found.append("causes_error")
    if loop_starts(graph)[position] >= 0:
        found.append("loop")
    return (*found, *(["last"] if last else []), *(["first"] if first else []))


def lost_step(findings: Findings, position: int) -> LostStep:
    """All there is to say about one drop (any step's path position; meant for those in `findings.lost`)."""
    batch, graph, values = findings.batch, findings.graph, findings.values
    row, node = int(batch.step_rollout[position]), int(graph.src[position])
    texts = _texts(batch)
    here = steps_at(graph, node)
    others = here[batch.step_rollout[here] != row]
    loop = _loop(graph, values, position)
    reached = ended(batch, batch.step_rollout[others])
    pair = int(graph.pair[position])
    siblings = actions_at(graph, values, others, pair)
    elsewhere = ended(batch, batch.step_rollout[others[graph.pair[others] != pair]])
    before, after = float(values.v[node]), float(values.v[graph.dst[position]])
    return LostStep(
        position=position,
        row=int(batch.order[position]),
        group_id=batch.group_ids[int(batch.group[row])],
        rollout_id=batch.rollout_ids[row],
        step=int(batch.step_index[position]),
        of_steps=int(batch.lengths[row]),
        action=excerpt(batch.text(int(batch.action[position]))),
        observation=excerpt(batch.text(int(batch.observation[position]))),
        verb=texts.verb(batch.action[position]),
        error=texts.error(batch.observation[position]),
        value_before=before,
        value_after=after,
        credit=float(findings.credit[position]),
        situations=_situations(graph, texts, position),
        loop=loop,
        returns=_returns(graph, position),
        reached=reached,
        siblings=siblings,
        sentence=_sentence(value_word(batch, values), before, after, loop, reached, elsewhere),
    )


def _sentence(what: str, before: float, after: float, loop: Loop | None, reached: Ended, others: Ended) -> str:
    """The drop in words, with numbers only. others: rollouts that did something else in this moment."""
    words = [f"The {what} fell from {before:.2f} to {after:.2f}."] if after < before else []
    if loop is not None and loop.steps == 1:
        words.append("The step led nowhere: the rollout stayed in the same moment.")
    elif loop is not None:
        words.append(f"It closed a loop of {loop.steps} steps, back to where the rollout stood before step {loop.start}.")
    if not reached.rollouts:
        words.append("No other rollout was in this moment.")
    elif not others.rollouts:
        words.append("Every other rollout that was here did the same.")
    elif not others.known:
        words.append("How the others ended that did something else here is unknown.")
    else:
        words.append(f"Of those that did something else here, {others.succeeded} of {others.known} succeeded.")
    return " ".join(words)


def lost(findings: Findings, limit: int = 200) -> Lost:
    """Where the failed rollouts were lost under these findings: single drops (worst first, `limit` of them) and groups."""
    batch, graph = findings.batch, findings.graph
    positions = findings.lost
    failed = int(((batch.success == 0) & batch.known).sum())
    in_loops = int((loop_starts(graph)[positions] >= 0).sum()) if positions.size else 0
    return Lost(
        steps=tuple(lost_step(findings, p) for p in positions[:limit].tolist()),
        groups=tuple(_groups(findings)),
        failed=failed,
        with_drop=int(positions.size),
        in_loops=in_loops,
    )


def _groups(findings: Findings) -> list[LostGroup]:
    batch, texts = findings.batch, _texts(findings.batch)
    members: dict[tuple[str, str, str], list[int]] = {}
    for position in findings.lost.tolist():
        for key in _keys(findings.graph, texts, position):
            members.setdefault(key, []).append(position)
    groups = []
    for (kind, code, label), own in members.items():
        credit = findings.credit[own]
        tasks = int(np.unique(batch.group[batch.step_rollout[own]]).size)
        worst = own[int(np.argmin(credit))]
        groups.append(LostGroup(kind, code, label, len(own), tasks, float(credit.mean()), worst, tuple(own)))
    return sorted(groups, key=lambda g: (-g.rollouts, g.mean, g.kind, g.label))


def _keys(graph: TrajectoryGraph, texts: _Texts, position: int) -> Iterator[tuple[str, str, str]]:
    word = texts.verb(graph.batch.action[position])
    yield "verb", word, word
    error = texts.error(graph.batch.observation[position])
    if error:
        yield "error", error, error
    for code in _situations(graph, texts, position):
        yield "situation", code, SITUATIONS[code]
