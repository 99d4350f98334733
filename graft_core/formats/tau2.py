"""tau2-bench results: {tasks, simulations: [{task_id, trial, reward_info, termination_reason, messages}]}, or one simulation.

Group = task_id, rollout = trial. Outcome = reward_info.reward; a simulation that ended by an error of the infrastructure,
or was not scored, is unknown. Tool calls and tool results of the simulated user are not seen by the agent and are left
out.
"""

from __future__ import annotations

from typing import Any, Final

from graft_core.constants import SUCCESS_TOLERANCE
from graft_core.formats._records import Gather, Row, extras, is_messages, with_ids
from graft_core.formats.chat import chat_steps
from graft_core.formats.jsonio import word
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

SAYS: Final = frozenset({"messages", "task_id", "trial", "reward_info", "ticks", "effect_timeline"})
CUT_OFF: Final = ("max_steps", "too_many_errors", "timeout")


def detect(head: Head) -> int:
    """Sure where an object has simulations, or is one."""
    document = head.document
    if not isinstance(document, dict):
        return 0
    items = document.get("simulations")
    if isinstance(items, list):
        return 2 if "tasks" in document or any(_is_simulation(i) for i in items[:20]) else 0
    return 2 if _is_simulation(document) else 0


def _is_simulation(value: Any) -> bool:
    return isinstance(value, dict) and "task_id" in value and "termination_reason" in value and "reward_info" in value


def read(source: Source, rows: Rows) -> None:
    """One rollout per simulation."""
    document = source.head.document
    several = isinstance(document.get("simulations"), list)
    items = document["simulations"] if several else [document]
    if not several:
        rows.files[-1].unit = "file"
    gather = Gather(rows)
    for index, item in enumerate(items):
        if not isinstance(item, dict) or "task_id" not in item:
            rows.reject(index, "the simulation has no task_id")
        elif not is_messages(item.get("messages")):
            voice = " (it has the ticks of a voice conversation, which are not read)" if "ticks" in item else ""
            rows.reject(index, f"the simulation has no list of messages{voice}")
        else:
            task_set = source.label if several else source.path.parent.name
            gather.add(index, _rollout(rows, index, item, task_set))
    gather.finish()
    if not items:
        rows.note(f"{source.name}: the file holds no simulations")


def _rollout(rows: Rows, index: int, item: Row, task_set: str) -> list[Row]:
    steps, final = chat_steps(seen_by_agent(item["messages"]))
    trial = item.get("trial")
    ids: Row = {"group_id": item["task_id"], "rollout_id": item.get("id", index) if trial is None else trial}
    reason = word(item.get("termination_reason") or "")
    scored = item.get("reward_info")
    reward = scored.get("reward") if isinstance(scored, dict) else None
    declaration: Row = {"outcome": reward}
    if "infrastructure" in reason or "error" in reason.replace("too_many_errors", ""):
        rows.warn("infrastructure_error", f"a simulation ended by {reason[:60]}", rows.where(index))
        declaration = {"outcome": None}
    elif isinstance(reward, (int, float)):
        declaration["success"] = abs(reward - 1.0) <= SUCCESS_TOLERANCE
    declaration |= {
        "terminated": True if reason.endswith("_stop") else None,
        "truncated": True if reason in CUT_OFF else None,
        "metadata": {**(extras(item, SAYS) or {}), **({"reward_info": found} if (found := extras(scored)) else {})} or None,
    }
    return with_ids(ids | {"task_set": task_set}, declaration, steps, final)


def seen_by_agent(messages: list[Row]) -> list[Row]:
    """The messages without what passes between the simulated user and its own tools; several results are taken apart."""
    seen: list[Row] = []
    for message in messages:
        inner = message.get("tool_messages")
        parts = [m for m in inner if isinstance(m, dict)] if isinstance(inner, list) else [message]
        for part in parts:
            of_user = part.get("role") == "tool" and part.get("requestor") == "user"
            calling = part.get("role") == "user" and part.get("tool_calls") and not part.get("content")
            if not of_user and not calling:
                seen.append(part)
    return seen


FORMAT: Final = Format(
    name="tau2-bench",
    meaning="tau2-bench results: chats with tool calls, several trials per task",
    detected_by="a JSON object with simulations, or with task_id, termination_reason and reward_info",
    unit="item",
    detect=detect,
    read=read,
)
