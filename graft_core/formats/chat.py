"""Chat messages (OpenAI style) as steps: what every reader of chat data shares.

A step is one assistant message. Its observation is what arrived since the assistant message before it (user texts and
tool results); its action is what the environment executed: the tool calls as name and canonical JSON arguments, else
the text; `action_text` is all that was said. The system prompt is no observation.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any, Final

from graft_core.formats._tags import executed
from graft_core.formats.jsonio import dumps, word

Message = dict[str, Any]
MEDIA: Final = ("image", "audio", "video")
THOUGHTS: Final = frozenset({"reasoning", "thinking", "redacted_thinking"})
DATA_ADDRESS: Final = re.compile(r"data:(image|audio|video)/[\w.+-]{1,40};base64,([A-Za-z0-9+/=_-]{16,})")


def content_text(content: Any, thoughts: bool = True) -> str:
    """The text of a message's content: a string, null, or a list of parts; images become [image <hash>].

    Without `thoughts` parts that hold reasoning are left out.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return without_data(content)
    if isinstance(content, list):
        parts = content if thoughts else [part for part in content if not _is_thought(part)]
        return "\n".join(_part(part) for part in parts)
    return dumps(content, sort=True)


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and word(part.get("type")) in THOUGHTS


def _part(part: Any) -> str:
    if isinstance(part, str):
        return without_data(part)
    if not isinstance(part, dict):
        return dumps(part, sort=True)
    for key in ("text", "reasoning", "thinking", "refusal"):
        if isinstance(part.get(key), str):
            return without_data(part[key])
    kind = next((k for k in MEDIA if k in word(part.get("type", ""))), None)
    return media_mark(kind, part) if kind else dumps(part, sort=True)


def media_mark(kind: str, part: dict[str, Any]) -> str:
    """[image <hash>]: the hash is that of the data (or of its address), however the part names it."""
    held: Any = part
    for key in (word(part.get("type")), f"{kind}_url", kind, "source", "url", "data"):
        if isinstance(held, dict) and key in held and key != "type":
            held = held[key]
    text = held if isinstance(held, str) else dumps(held, sort=True)
    return f"[{kind} {_hash(text.rpartition(';base64,')[2])}]"


def _hash(text: str) -> str:
    return hashlib.sha1(text.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def without_data(text: str) -> str:
    """The text with pictures and sounds that are written into it (data: addresses) replaced by [image <hash>]."""
    if ";base64," not in text:
        return text
    return DATA_ADDRESS.sub(lambda found: f"[{found[1]} {_hash(found[2])}]", text)


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
            out.append((word(function.get("name", "")), function.get("arguments")))
        elif isinstance(call, dict) and isinstance(call.get("name"), str):
            out.append((call["name"], call.get("arguments")))
    return out


def action_of(message: Message) -> tuple[str, str]:
    """(executed action, everything said) of one assistant message.

    Executed are its tool calls; without any, its text without thoughts (and, where it has action tags, the last of them).
    """
    content = message.get("content")
    text, calls = content_text(content), tool_calls(message)
    if not calls:
        return executed(content_text(content, thoughts=False)), text
    done = "\n".join(f"{name} {canonical_arguments(arguments)}" for name, arguments in calls)
    raw = [f"{name} {a if isinstance(a, str) else dumps(a)}" for name, a in calls]
    return done, "\n".join([text, *raw] if text else raw)


def chat_steps(
    messages: list[Message], action: Callable[[Message], tuple[str, str]] = action_of
) -> tuple[list[dict[str, Any]], str | None]:
    """Canonical step rows (without ids) of a conversation, and what arrived after the last assistant message.

    `action` gives (executed action, everything said) of an assistant message.
    """
    steps: list[dict[str, Any]] = []
    arrived: list[str] = []
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            done, said = action(message)
            row = {"step": len(steps), "observation": "\n\n".join(arrived), "action": done}
            if said != done:
                row["action_text"] = said
            steps.append(row)
            arrived = []
        elif role not in ("system", "developer"):
            arrived.append(content_text(message.get("content")))
    return steps, "\n\n".join(arrived) if arrived and steps else None
