"""Items of the OpenAI Responses API as steps: messages, function calls and their outputs, reasoning.

Every function call is a step of its own, also where a turn holds several; a message of the model is one unless calls follow
it at once (then it is what was said with the first). Observation = what arrived since the step before, so it is empty
for the second call of a turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from graft_core.formats._records import Row
from graft_core.formats._tags import executed
from graft_core.formats.chat import canonical_arguments, content_text
from graft_core.formats.jsonio import dumps, word


@dataclass
class _Turns:
    """Steps so far, what arrived since the last, and what the model has said without an action yet."""

    steps: list[Row] = field(default_factory=list)
    arrived: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    text: str | None = None

    def act(self, done: str, raw: str) -> None:
        said = "\n".join([*self.thoughts, raw])
        step = {"step": len(self.steps), "observation": "\n\n".join(self.arrived), "action": done}
        self.steps.append({**step, "action_text": said} if said != done else step)
        self.arrived, self.thoughts, self.text = [], [], None

    def flush(self) -> None:
        """Make a step of a message that no call followed."""
        if self.text is not None:
            self.act(executed(self.text), self.text)

    def hear(self, text: str) -> None:
        self.flush()
        self.arrived.append(text)


def responses_steps(given: Any, output: list[Any]) -> tuple[list[Row], str | None]:
    """Steps of a response (without ids) and what arrived after the last; `given` is the request's input."""
    turns = _Turns()
    for item in given if isinstance(given, list) else [{"role": "user", "content": given}] if given is not None else []:
        if not isinstance(item, dict) or item.get("role") in ("system", "developer"):
            continue
        if item.get("role") == "assistant" or item.get("type") in ("function_call", "reasoning"):
            turns.arrived = []
        else:
            turns.arrived.append(content_text(item.get("content", item.get("output"))))
    for item in output:
        if isinstance(item, dict):
            _take(turns, item)
    turns.flush()
    return turns.steps, "\n\n".join(turns.arrived) if turns.arrived and turns.steps else None


def _take(turns: _Turns, item: Row) -> None:
    kind = word(item.get("type") or "message")
    if kind == "message" and item.get("role") in ("assistant", None):
        turns.flush()
        turns.text = content_text(item.get("content"))
    elif kind == "message":
        turns.hear(content_text(item.get("content")))
    elif kind == "reasoning":
        turns.flush()
        turns.thoughts.append(content_text(item.get("summary") or item.get("content")))
    elif kind.endswith("_output"):
        turns.hear(content_text(item.get("output")))
    elif kind.endswith("_call"):
        name = word(item.get("name") or kind)
        raw = item.get("arguments", item.get("input", item.get("action")))
        if turns.text:
            turns.thoughts.append(turns.text)
        turns.act(f"{name} {canonical_arguments(raw)}", f"{name} {raw if isinstance(raw, str) else dumps(raw)}")
