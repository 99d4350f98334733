"""InterCode results: one JSON object, task -> {query, turn_history: {actions, observations, rewards}, summary}.

Group = task id of the data set that the file names (else of the file); one rollout per task and file. What a turn's
action printed is the observation of the next turn, the query is the first. Outcome = the best reward of the rollout
(summary.max_reward); the rewards of turns are fractions of the task solved so far, not parts that add up.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, Final

from graft_core.formats._records import Gather, Row, extras, with_ids
from graft_core.formats.chat import content_text
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

SAYS: Final = frozenset({"turn_history", "task_id", "dataset", "info"})


def detect(head: Head) -> int:
    """Sure where the file is an object whose values have a turn_history with actions."""
    value = head.document
    if not isinstance(value, dict):
        return 0
    first = list(value.values())[:20]
    return 2 if any(_history(item) is not None for item in first) else 0


def _history(item: Any) -> Row | None:
    history = item.get("turn_history") if isinstance(item, dict) else None
    return history if isinstance(history, dict) and isinstance(history.get("actions"), list) else None


def read(source: Source, rows: Rows) -> None:
    """One rollout per task."""
    tasks = source.head.document
    source.memo["names"] = list(tasks)
    gather = Gather(rows)
    for index, (name, item) in enumerate(tasks.items()):
        history = _history(item)
        reason = "the task has no turn_history with actions" if history is None else _problem(history)
        if history is None or reason:
            rows.reject(index, reason)
        else:
            gather.add(index, _rollout(source, name, item, history))
    gather.finish()


def _problem(history: Row) -> str:
    """Columns of the turn history must have one entry per action (or be absent)."""
    for name in ("observations", "rewards", "valid_action"):
        values = history.get(name)
        if values is not None and (not isinstance(values, list) or len(values) != len(history["actions"])):
            return f"turn_history has {len(history['actions'])} actions, but {name} has another number of entries"
    return ""


def _rollout(source: Source, name: str, item: Row, history: Row) -> list[Row]:
    dataset = item.get("dataset")
    task_set = PurePosixPath(dataset).stem if isinstance(dataset, str) and dataset else source.label
    ids = {"group_id": item.get("task_id", name), "rollout_id": source.label, "task_set": task_set}
    summary = item["summary"] if isinstance(item.get("summary"), dict) else {}
    actions, n = history["actions"], len(history["actions"])
    after = history.get("observations") or [None] * n
    seen = [item.get("query"), *after][:n]
    steps = [
        {"step": i, "observation": content_text(o), "action": a if a is None or isinstance(a, str) else content_text(a)}
        for i, (o, a) in enumerate(zip(seen, actions, strict=True))
    ]
    for column, field in (("rewards", "reward"), ("valid_action", "valid")):
        for step, value in zip(steps, history.get(column) or [], strict=False):
            step[field] = value
    best = summary.get("max_reward")
    solved = isinstance(best, (int, float)) and best >= 1
    turns, most = summary.get("turns_taken"), summary.get("turns_max")
    used_up = isinstance(turns, (int, float)) and isinstance(most, (int, float)) and turns >= most
    declaration = {
        **({"outcome": best} if "max_reward" in summary else {}),
        "terminated": True if solved else None,
        "truncated": True if used_up and not solved else None,
        "task_family": item.get("environment"),
        "metadata": extras(item, SAYS),
    }
    return with_ids(ids, declaration, steps, content_text(after[-1]) if n and after[-1] is not None else None)


FORMAT: Final = Format(
    name="intercode",
    meaning="InterCode results: turns of shell, SQL, Python or CTF tasks",
    detected_by="a JSON object whose values have turn_history and summary",
    unit="item",
    detect=detect,
    read=read,
)
