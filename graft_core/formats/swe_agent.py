"""SWE-agent trajectories (.traj): {environment, trajectory: [{action, observation, response, ...}], history, info}.

One file is one rollout; its name ends with the task (owner__repository-number). The observation of a step is what the
action before it printed, that of the first is the task's text from the history. Files that have only the history are
read as a chat. There is no reward in them: the outcome is unknown.
"""

from __future__ import annotations

from typing import Any, Final

from graft_core.formats._file_names import task_of_name
from graft_core.formats._records import Gather, Row, extras, is_messages, with_ids
from graft_core.formats.chat import action_of, chat_steps, content_text
from graft_core.formats.jsonio import word
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

CUT_OFF: Final = ("exit_cost", "exit_context", "exit_total_cost", "exit_total_execution_time", "limit")
STEP_SAYS: Final = frozenset({"action", "observation", "response", "thought", "messages", "query"})


def detect(head: Head) -> int:
    """Sure where the file has a trajectory of actions and observations, or a history of chat messages with agents."""
    value = head.document
    if not isinstance(value, dict):
        return 0
    steps, history = value.get("trajectory"), value.get("history")
    if isinstance(steps, list) and any(isinstance(s, dict) and {"action", "observation"} <= set(s) for s in steps[:20]):
        return 2
    some = [m for m in history[:20] if isinstance(m, dict)] if isinstance(history, list) else []
    return 2 if any("role" in m and {"agent", "message_type"} & set(m) for m in some) else 0


def read(source: Source, rows: Rows) -> None:
    """One rollout."""
    value = source.head.document
    steps, history = value.get("trajectory"), value.get("history")
    rows.files[-1].unit = "file"
    if (steps is not None and not is_messages(steps)) or (history is not None and not is_messages(history)):
        rows.reject(0, "trajectory or history is no list of objects")
        return
    if steps:
        problem = next((i for i, s in enumerate(steps) if not isinstance(s.get("action"), str)), None)
        if problem is not None:
            rows.reject(0, f"step {problem} of the trajectory has no action text")
            return
        made, final = trajectory_steps(steps, history or [])
    else:
        rows.note(f"{source.name}: the file has only the history, which was read as a chat")
        made, final = chat_steps([m for m in history or [] if not m.get("is_demo")], _history_action)
    info = value["info"] if isinstance(value.get("info"), dict) else {}
    status = word(info.get("exit_status") or "")
    cut = any(word in status for word in CUT_OFF)
    declaration = {
        "truncated": True if cut else None,
        "terminated": True if status.startswith("submitted") and not cut else None,
        "metadata": extras({"exit_status": status or None, "environment": value.get("environment")}),
    }
    gather = Gather(rows)
    gather.add(0, with_ids({"group_id": task_of_name(source, rows), "rollout_id": source.label}, declaration, made, final))
    gather.finish()


def trajectory_steps(steps: list[Row], history: list[Row]) -> tuple[list[Row], str | None]:
    """Step rows of a trajectory, and the last observation."""
    made: list[Row] = []
    seen: Any = task_text(history)
    for index, step in enumerate(steps):
        action, said = step["action"].rstrip("\n"), step.get("response")
        row = {"step": index, "observation": content_text(seen), "action": action, "metadata": extras(step, STEP_SAYS)}
        if isinstance(said, str) and said and said != action:
            row["action_text"] = said
        made.append(row)
        seen = step.get("observation")
    return made, None if seen is None else content_text(seen)


def task_text(history: list[Row]) -> str:
    """What the agent was shown before its first action, demonstrations left out."""
    shown: list[str] = []
    for message in history:
        if message.get("is_demo") or message.get("message_type") == "demonstration":
            continue
        if message.get("role") == "assistant":
            break
        if message.get("role") != "system":
            shown.append(content_text(message.get("content")))
    return "\n\n".join(shown)


def _history_action(message: Row) -> tuple[str, str]:
    done, said = action_of(message)
    given = message.get("action")
    return (given.rstrip("\n"), said) if isinstance(given, str) else (done, said)


FORMAT: Final = Format(
    name="swe-agent",
    meaning="SWE-agent trajectory (.traj): one rollout per file, no outcome",
    detected_by="a JSON object with trajectory (action, observation) or history",
    unit="file",
    detect=detect,
    read=read,
)
