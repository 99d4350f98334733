"""Probes for an outside trainer: prefixes out as JSONL, outcomes of their continuations back in.

Out, one line per step to check:
    {"graft_probe": 1, "probe_id", "group_id", "rollout_id", "step", "observation", "action", "rivals": [...], "credit",
     "stated": {"error", "degrees"} or null, "history": [{"observation", "action"}, ...], "continuations": 64}
In, one line per continuation:
    {"probe_id", "action": the first action that was forced, or null for the policy's own choice, "outcome": 0 to 1,
     "steps": number of steps to the end, the first included (optional: without it values are not discounted)}
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from graft_core.errors import InputError
from graft_core.formats.write import replacing
from graft_core.live.probe import TRIES, Check, arm_of, difference, verdict_of
from graft_core.live.stated import Stated
from graft_core.rollouts import RolloutBatch

VERSION: Final = 1


def probe_row(
    batch: RolloutBatch, position: int, credit: float, tries: int = TRIES, stated: Stated | None = None
) -> dict[str, Any]:
    """The line of one step, by its path position. Rivals: the admissible actions the file keeps, else what siblings did."""
    row = int(batch.step_rollout[position])
    group, first = int(batch.group[row]), int(batch.offsets[row])
    taken = int(batch.action[position])
    listed = batch.steps.column("admissible")[int(batch.order[position])].as_py()
    if listed is None:
        same = (batch.observation == batch.observation[position]) & (batch.group[batch.step_rollout] == group)
        listed = list(dict.fromkeys(batch.action[same].tolist()))
    ids = batch.group_ids[group], batch.rollout_ids[row], int(batch.step_index[position])
    return {
        "graft_probe": VERSION, "probe_id": "/".join(map(str, ids)), "group_id": ids[0], "rollout_id": ids[1], "step": ids[2],
        "observation": batch.text(int(batch.observation[position])), "action": batch.text(taken),
        "rivals": [batch.text(a) for a in listed if a != taken], "credit": credit,
        "history": [
            {"observation": batch.text(int(batch.observation[p])), "action": batch.text(int(batch.action[p]))}
            for p in range(first, position)
        ],
        "continuations": tries, "stated": {"error": stated.error, "degrees": stated.degrees} if stated is not None else None,
    }  # fmt: skip


def export_probes(
    batch: RolloutBatch, positions: Sequence[int], credit: Sequence[float], path: Path, tries: int = TRIES,
    stated: Sequence[Stated | None] | None = None,
) -> int:
    """Write the lines of the steps at these path positions; returns how many."""
    with replacing(path) as stream:
        for position, value, one in zip(positions, credit, stated or [None] * len(positions), strict=True):
            stream.write(orjson.dumps(probe_row(batch, position, float(value), tries, one)) + b"\n")
    return len(positions)


def _lines(path: Path) -> Iterable[tuple[int, dict[str, Any]]]:
    try:
        raw = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    for number, line in enumerate(raw, 1):
        if not line.strip():
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise InputError(f"{path}:{number}: not JSON ({error}); expected one object per line") from error
        if not isinstance(value, dict) or not isinstance(value.get("probe_id"), str):
            raise InputError(f"{path}:{number}: expected an object with a probe_id")
        yield number, value


def import_outcomes(probes: Path, outcomes: Path, gamma: float = 0.99) -> list[tuple[Check, Stated | None]]:
    """One check per probe that has outcomes of its action and of the policy's own choice, and what was stated of its credit.

    Raises InputError for a line that is no probe or outcome, names an unknown probe, or leaves no probe to check.
    """
    known: dict[str, dict[str, Any]] = {}
    for number, row in _lines(probes):
        lacking = [name for name in ("action", "credit", "group_id", "rollout_id", "step") if name not in row]
        lacking += [] if _is_statement(row.get("stated")) else ["stated"]
        if row.get("graft_probe") != VERSION or lacking:
            raise InputError(f"{probes}:{number}: expected a line that `graft probe export` wrote (graft_probe {VERSION})")
        known[row["probe_id"]] = row
    got: dict[tuple[str, str | None], list[tuple[float, float]]] = {}
    for number, row in _lines(outcomes):
        if row["probe_id"] not in known:
            raise InputError(f"{outcomes}:{number}: probe {row['probe_id']!r} is not in {probes}")
        outcome, steps, action = row.get("outcome"), row.get("steps", 0), row.get("action")
        fine = isinstance(steps, int) and steps >= 0 and isinstance(action, (str, type(None)))
        if not fine or not isinstance(outcome, (int, float)) or not 0 <= outcome <= 1:
            raise InputError(f"{outcomes}:{number}: expected an outcome from 0 to 1, action a text or null, steps from 0 up")
        got.setdefault((row["probe_id"], action), []).append((float(outcome), float(outcome) * gamma**steps))
    tried = [row for name, row in known.items() if (name, None) in got and (name, row["action"]) in got]
    if not tried:
        raise InputError(f"{outcomes}: no probe has outcomes of its action and of the policy's own choice (action null)")
    return [(_check(row, got), _stated(row)) for row in tried]


def _is_statement(found: Any) -> bool:
    numbers = found.values() if isinstance(found, dict) and set(found) == {"error", "degrees"} else [None]
    return found is None or all(isinstance(x, (int, float)) and 0 <= x < float("inf") for x in numbers)


def _stated(row: dict[str, Any]) -> Stated | None:
    found = row.get("stated")
    return Stated(float(row["credit"]), float(found["error"]), float(found["degrees"])) if found else None


def _check(row: dict[str, Any], got: dict[tuple[str, str | None], list[tuple[float, float]]]) -> Check:
    name, taken = row["probe_id"], row["action"]
    arms = {action: np.array(pairs).T for (probe, action), pairs in got.items() if probe == name}
    middle, low, high = difference(arms[taken][1], arms[None][1])
    others = [action for action in arms if action not in (None, taken)]
    return Check(
        row["group_id"], row["rollout_id"], row["step"], taken, row["credit"], arm_of(None, *arms[None]),
        arm_of(taken, *arms[taken]), tuple(arm_of(a, *arms[a]) for a in others), middle, low, high,
        verdict_of(row["credit"], low, high),
    )  # fmt: skip
