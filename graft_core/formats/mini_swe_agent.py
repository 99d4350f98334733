"""mini-swe-agent trajectories: a list of chat messages, or {info, messages, trajectory_format}.

One file is one rollout of the task that its name or `instance_id` names. What the environment executed is the shell command in
the message's one code block (or the tool call); its output is the next observation. There is no reward: the outcome is
unknown.
"""

from __future__ import annotations

import re
from typing import Any, Final

from graft_core.formats._file_names import task_of_name
from graft_core.formats._records import Gather, Row, extras, is_messages, with_ids
from graft_core.formats.chat import action_of, chat_steps, content_text
from graft_core.formats.jsonio import word
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

BLOCK: Final = re.compile(r"```(?:mswea_bash_command|bash)[ \t]*\n(.*?)\n?```", re.DOTALL)
MARKS: Final = ("```mswea_bash_command", "<returncode>")


def detect(head: Head) -> int:
    """Sure where the file says so, or is a list of messages with the marks that its shell leaves."""
    value = head.document
    if isinstance(value, dict):
        named = word(value.get("trajectory_format", "")).startswith("mini-swe-agent")
        return 2 if isinstance(value.get("messages"), list) and (named or _marked(value["messages"])) else 0
    return 2 if isinstance(value, list) and _marked(value) else 0


def _marked(messages: list[Any]) -> bool:
    some = [m for m in messages[:20] if isinstance(m, dict) and "role" in m]
    return any(mark in content_text(m.get("content")) for m in some for mark in MARKS)


def read(source: Source, rows: Rows) -> None:
    """One rollout."""
    value = source.head.document
    rows.files[-1].unit = "file"
    messages = value if isinstance(value, list) else value["messages"]
    if not is_messages(messages):
        rows.reject(0, "the file is no list of messages")
        return
    steps, final = chat_steps([m for m in messages if m.get("role") != "exit"], shell_action)
    whole = value if isinstance(value, dict) else {}
    info = whole["info"] if isinstance(whole.get("info"), dict) else {}
    task = whole.get("instance_id") or info.get("instance_id") or task_of_name(source, rows)
    status = word(info.get("exit_status") or "")
    declaration = {
        "terminated": True if status == "Submitted" else None,
        "truncated": True if "LimitsExceeded" in status else None,
        "metadata": extras({"exit_status": status or None, "instance_cost": info.get("instance_cost")}),
    }
    gather = Gather(rows)
    gather.add(0, with_ids({"group_id": task, "rollout_id": source.label}, declaration, steps, final))
    gather.finish()


def shell_action(message: Row) -> tuple[str, str]:
    """(the shell command, everything said); a message without exactly one command is its own action."""
    done, said = action_of(message)
    extra = message.get("extra")
    actions = extra.get("actions") if isinstance(extra, dict) else None
    commands = (
        [a["command"] for a in actions if isinstance(a, dict) and isinstance(a.get("command"), str)]
        if isinstance(actions, list)
        else []
    )
    if commands:
        return "\n".join(commands), said
    found = BLOCK.findall(done)
    return (found[0].strip(), said) if len(found) == 1 else (done, said)


FORMAT: Final = Format(
    name="mini-swe-agent",
    meaning="mini-swe-agent trajectory: one rollout per file, no outcome",
    detected_by="a JSON list of messages with shell blocks and return codes, or an object with trajectory_format",
    unit="file",
    detect=detect,
    read=read,
)
