"""tau-bench results: a JSON list of {task_id, trial, reward, info, traj}, traj being an OpenAI chat with tool calls.

Group = task_id (the file's name in front where two task sets have the same id), rollout = trial. Outcome = reward;
success where it is 1 up to 1e-6, as tau-bench itself counts.
"""

from __future__ import annotations

from typing import Any, Final

from graft_core.constants import SUCCESS_TOLERANCE
from graft_core.formats._records import unusable_ids
from graft_core.formats.chat import chat_steps
from graft_core.formats.jsonio import word
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

KEYS: Final = {"task_id", "reward", "traj"}


def detect(head: Head) -> int:
    """Sure where the file is a list whose items have task_id, reward and traj."""
    items = head.document
    return 2 if isinstance(items, list) and any(isinstance(i, dict) and set(i) >= KEYS for i in items[:20]) else 0


def read(source: Source, rows: Rows) -> None:
    """One rollout per list item."""
    seen: dict[tuple[str, str], int] = {}
    for index, item in enumerate(source.head.document):
        reason = _problem(item)
        if reason:
            rows.reject(index, reason)
            continue
        key = (word(item["task_id"]), word(item.get("trial", "")))
        seen[key] = seen.get(key, 0) + 1
        trial = key[1] if seen[key] == 1 and key[1] else f"{key[1]}#{seen[key]}".strip("#")
        if seen[key] > 1:
            rows.warn("rollout_ids_renamed", "one (task_id, trial) occurs twice", rows.where(index))
        made = rollout_rows(item, trial, source.label)
        rows.add(made, [index] * len(made))


def _problem(item: Any) -> str:
    if not isinstance(item, dict) or not set(item) >= KEYS:
        return "the item has not the keys task_id, reward and traj"
    messages = item["traj"]
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        return "traj is no list of messages"
    return unusable_ids({"group_id": item["task_id"], "rollout_id": "given"})


def rollout_rows(item: dict[str, Any], trial: str, task_set: str) -> list[dict[str, Any]]:
    """The rows of one rollout: one that declares it, with its metadata, and one per assistant message."""
    steps, final = chat_steps(item["traj"])
    ids = {"group_id": item["task_id"], "rollout_id": trial, "task_set": task_set}
    reward = item["reward"]
    declaration = {**ids, "outcome": reward, "metadata": _metadata(item)}
    if isinstance(reward, (int, float)):
        declaration["success"] = abs(reward - 1.0) <= SUCCESS_TOLERANCE
    if final is not None:
        declaration["next_observation"] = final
    return [declaration, *({**ids, **step} for step in steps)]


def _metadata(item: dict[str, Any]) -> dict[str, Any] | None:
    """What helps a reader of the rollout: the task's instruction, how it ended, other keys of the item."""
    found = {k: v for k, v in item.items() if k not in ("task_id", "trial", "reward", "traj", "info")}
    info = item.get("info")
    if isinstance(info, dict):
        task = info.get("task")
        if isinstance(task, dict):
            found |= {k: task[k] for k in ("user_id", "instruction") if k in task}
        found |= {k: info[k] for k in ("source", "user_cost") if k in info}
    return found or None


FORMAT: Final = Format(
    name="tau-bench",
    meaning="tau-bench results: chats with tool calls, several trials per task",
    detected_by="a JSON list of objects with task_id, reward and traj",
    unit="item",
    detect=detect,
    read=read,
)
