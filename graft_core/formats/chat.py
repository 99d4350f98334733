"""Chat messages (OpenAI style) as steps: what every reader of chat data shares.

A step is one assistant message. Its observation is what arrived since the assistant message before it (user texts and
tool results); its action is what the environment executed: the tool calls as name and canonical JSON arguments, else
the text; `action_text` is all that was said. The system prompt is no observation.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from graft_core.formats.jsonio import dumps

Message = dict[str, Any]


def content_text(content: Any) -> str:
    """The text of a message's content: a string, null, or a list of parts; images become [image <hash>]."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    return dumps(content, sort=True)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        if isinstance(part.get("text"), str):
            return str(part["text"])
        if "image" in str(part.get("type", "")):
            return f"[image {hashlib.sha1(dumps(part, sort=True).encode()).hexdigest()[:12]}]"
    return dumps(part, sort=True)


def canonical_arguments(arguments: Any) -> str:
    """Tool arguments with sorted keys and no spaces; text that is no JSON (cut off, say) stays as it is."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return str(arguments)
    return dumps(arguments, sort=True)


def tool_calls(message: Message) -> list[tuple[str, Any]]:
    """Name and raw arguments of every tool call of a message (also the older `function_call`)."""
    calls = message.get("tool_calls")
    calls = list(calls) if isinstance(calls, list) else []
    if isinstance(message.get("function_call"), dict):
        calls.append({"function": message["function_call"]})
    out = []
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, str):
            out.append((function, call.get("arguments")))
        elif isinstance(function, dict):
            out.append((str(function.get("name", "")), function.get("arguments")))
    return out


def action_of(message: Message) -> tuple[str, str]:
    """(executed action, everything said) of one assistant message."""
    text, calls = content_text(message.get("content")), tool_calls(message)
    if not calls:
        return text, text
    executed = "\n".join(f"{name} {canonical_arguments(arguments)}" for name, arguments in calls)
    raw = [f"{name} {a if isinstance(a, str) else dumps(a)}" for name, a in calls]
    return executed, "\n".join([text, *raw] if text else raw)


def chat_steps(messages: list[Message]) -> tuple[list[dict[str, Any]], str | None]:
    """Canonical step rows (without ids) of a conversation, and what arrived after the last assistant message."""
    steps: list[dict[str, Any]] = []
    arrived: list[str] = []
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            action, said = action_of(message)
            row = {"step": len(steps), "observation": "\n\n".join(arrived), "action": action}
            if said != action:
                row["action_text"] = said
            steps.append(row)
            arrived = []
        elif role not in ("system", "developer"):
            arrived.append(content_text(message.get("content")))
    return steps, "\n\n".join(arrived) if arrived and steps else None
