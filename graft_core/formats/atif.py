"""Harbor ATIF trajectories: {schema_version "ATIF-v1.x", agent, steps: [{source, message, tool_calls, observation}]}.

The file has neither task nor reward; both come from its trial folder: `result.json` (task_name, verifier_result) or
`verifier/reward.txt`, next to the trajectory or one folder up. A step of the agent is a step; user messages and the results
of its tool calls are what it sees next. A trajectory that is continued in another file (the context was rewritten) is read
together with it. A trial folder without a trajectory is a rollout without steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from graft_core.formats._records import Gather, Row, extras, is_messages, with_ids
from graft_core.formats.chat import canonical_arguments, content_text
from graft_core.formats.jsonio import BadJson, dumps, loads, word
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

LARGEST_SIDE_FILE: Final = 1 << 24
MOST_PARTS: Final = 50
MOST_SIBLINGS: Final = 1000
RESULT: Final = "result.json"
TRAJECTORY: Final = ("trajectory.json", "agent/trajectory.json")


def detect(head: Head) -> int:
    """Sure where schema_version says ATIF, or steps have a source and a message."""
    document = head.document
    if not isinstance(document, dict) or not isinstance(document.get("steps"), list):
        return 0
    if word(document.get("schema_version", "")).upper().startswith("ATIF"):
        return 2
    some = document["steps"][:5]
    return (
        1 if "agent" in document and some and all(isinstance(s, dict) and {"source", "message"} <= set(s) for s in some) else 0
    )


def read(source: Source, rows: Rows) -> None:
    """One rollout per file."""
    document = source.head.document
    if not source.named and _continues_another(source.path):
        rows.note("files that continue another trajectory were read with it")
        return
    if not is_messages(document["steps"]):
        rows.reject(0, "the steps are no list of objects")
        return
    steps = list(document["steps"])
    for part in _continuations(source.path, document):
        if is_messages(part.get("steps")):
            steps += part["steps"]
            rows.note("trajectories continued in another file were put together")
    if document.get("subagent_trajectories"):
        rows.note("trajectories of sub-agents were left out")
    made, final = agent_steps(steps)
    found = _trial(source.path.parent, source, rows, word(document.get("session_id") or source.label))
    agent = document.get("agent")
    about = {**(extras(agent) or {}), **(extras(document.get("final_metrics")) or {})}
    gather = Gather(rows)
    found.declaration["metadata"] = about or None
    gather.add(0, with_ids(found.ids, found.declaration, made, final))
    gather.finish()


def agent_steps(steps: list[Row]) -> tuple[list[Row], str | None]:
    """Canonical steps (without ids) of a trajectory, and what arrived after the last."""
    made: list[Row] = []
    arrived: list[str] = []
    for step in steps:
        text = content_text(step.get("message"))
        if step.get("source") == "agent":
            done, said = _action(step, text)
            row: Row = {"step": len(made), "observation": "\n\n".join(arrived), "action": done}
            made.append(row | ({"action_text": said} if said != done else {}))
            arrived = _results(step)
        elif step.get("source") == "user":
            arrived += [text, *_results(step)]
        else:
            arrived += _results(step)
    return made, "\n\n".join(arrived) if arrived and made else None


def _action(step: Row, text: str) -> tuple[str, str]:
    calls = step.get("tool_calls")
    made = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    named = [(word(call.get("function_name") or ""), call.get("arguments")) for call in made]
    thought = step.get("reasoning_content")
    parts = [part for part in (thought if isinstance(thought, str) else "", text) if part]
    if not named:
        return text, "\n".join(parts)
    raw = [f"{name} {a if isinstance(a, str) else dumps(a)}" for name, a in named]
    return "\n".join(f"{name} {canonical_arguments(a)}" for name, a in named), "\n".join([*parts, *raw])


def _results(step: Row) -> list[str]:
    observation = step.get("observation")
    results = observation.get("results") if isinstance(observation, dict) else None
    return [content_text(r.get("content")) for r in results if isinstance(r, dict)] if isinstance(results, list) else []


def _continuations(path: Path, document: Row) -> list[Row]:
    """The files that a trajectory says it goes on in, in order; only files beside it are followed."""
    found: list[Row] = []
    seen = {path.name}
    at: Any = document
    while isinstance(at, dict) and len(found) < MOST_PARTS:
        name = at.get("continued_trajectory_ref")
        if not isinstance(name, str) or Path(name).name in seen or Path(name).name != name.removeprefix("./"):
            break
        seen.add(Path(name).name)
        at = _side(path.with_name(Path(name).name))
        if isinstance(at, dict):
            found.append(at)
    return found


def _continues_another(path: Path) -> bool:
    """Whether a trajectory beside this file says that it goes on in it; of a circle the shortest name is the beginning."""
    refs = _references(str(path.parent), path.parent.stat().st_mtime_ns)
    chain = [path.name]
    while (following := refs.get(chain[-1])) and following not in chain:
        chain.append(following)
    begins = following == path.name and path.name == min(chain, key=lambda name: (len(name), name))
    return path.name in refs.values() and not begins


@lru_cache(maxsize=8)
def _references(folder: str, changed: int) -> dict[str, str]:
    """Which trajectory file of a folder goes on in which; `changed` is when the folder changed last."""
    refs: dict[str, str] = {}
    for path in sorted(Path(folder).glob("*trajectory*.json"))[:MOST_SIBLINGS]:
        value = _side(path)
        ref = value.get("continued_trajectory_ref") if isinstance(value, dict) else None
        if isinstance(ref, str) and Path(ref).name != path.name:
            refs[path.name] = Path(ref).name
    return refs


def _side(path: Path) -> Any:
    """The value of a JSON file that lies beside; None where there is none."""
    try:
        if path.stat().st_size > LARGEST_SIDE_FILE:
            return None
        return loads(path.read_bytes())[0]
    except (OSError, BadJson):
        return None


@dataclass(frozen=True)
class _Trial:
    """What a trial folder says: the ids of its rollout, and its outcome."""

    ids: Row
    declaration: Row


def _trial(folder: Path, source: Source, rows: Rows, session: str) -> _Trial:
    for place in (folder, folder.parent):
        result = _side(place / RESULT)
        if isinstance(result, dict) and ("task_name" in result or "verifier_result" in result):
            return _from_result(result, place, session, rows)
        reward = _reward_file(place / "verifier")
        if reward is not None:
            rows.warn("group_from_name", "the task was taken from the name of the trial's folder", source.name)
            return _Trial(_folder_ids(place), {"outcome": reward})
    return _Trial({"rollout_id": session}, {})


def _folder_ids(folder: Path) -> Row:
    """Harbor names trial folders task__random."""
    task, mark, _ = folder.name.rpartition("__")
    return {"group_id": task if mark else folder.name, "rollout_id": folder.name}


def _from_result(result: Row, folder: Path, session: str, rows: Rows) -> _Trial:
    ids = _folder_ids(folder)
    task, name = result.get("task_name"), result.get("trial_name")
    if isinstance(task, str) and task:
        ids["group_id"] = task
    ids["rollout_id"] = name if isinstance(name, str) and name else folder.name or session
    verified = result.get("verifier_result")
    reward = _number_of(verified.get("rewards", verified.get("reward"))) if isinstance(verified, dict) else None
    reward = _reward_file(folder / "verifier") if reward is None else reward
    if reward is None and result.get("exception_info"):
        rows.warn("infrastructure_error", "a trial ended by an exception and was not scored", str(folder / RESULT))
    return _Trial(ids, {"outcome": reward})


def _reward_file(folder: Path) -> Any:
    """The reward that a verifier wrote into its folder."""
    held = _number_of(_side(folder / "reward.json"))
    if held is not None:
        return held
    try:
        text = (folder / "reward.txt").read_text(encoding="utf-8", errors="replace")[:100].strip()
        return float(text)
    except (OSError, ValueError):
        return None


def _number_of(value: Any) -> Any:
    """The reward in {"reward": x}, in {"name": x} or alone; the first where there are several."""
    if isinstance(value, dict):
        value = value.get("reward", next(iter(value.values()), None))
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def detect_result(head: Head) -> int:
    """Sure where an object is what Harbor writes about a trial."""
    value = head.document
    return 2 if isinstance(value, dict) and "task_name" in value and "verifier_result" in value else 0


def read_result(source: Source, rows: Rows) -> None:
    """A rollout without steps where the trial has no trajectory; else nothing, for the trajectory's reader reads it."""
    folder = source.path.parent
    if any((folder / name).is_file() for name in TRAJECTORY):
        return
    found = _from_result(source.head.document, folder, source.label, rows)
    rows.note("trials without a trajectory are rollouts without steps")
    rows.add(with_ids(found.ids, found.declaration, [], None), [0])


FORMAT: Final = (
    Format(
        name="atif",
        meaning="Harbor ATIF trajectory: one rollout per file, its reward beside it",
        detected_by="a JSON object with schema_version ATIF and steps",
        unit="file",
        detect=detect,
        read=read,
    ),
    Format(
        name="harbor-trial",
        meaning="Harbor trial result: task and reward of the trajectory beside it",
        detected_by="a JSON object with task_name and verifier_result",
        unit="file",
        detect=detect_result,
        read=read_result,
    ),
)
