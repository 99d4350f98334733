"""Prime platform export of training samples: {problem_id, sample_id, step, reward, advantage, prompt, completion, ...}.

`prompt`, `completion`, `metrics`, `timing` and `answer` are JSON inside JSON text, and every tool call is JSON text again.
Group = problem_id within a training step, rollout = sample_id. `advantage` is the trainer's own, the same on every step.
"""

from __future__ import annotations

from typing import Any, Final

from graft_core.formats._records import Gather, Row, extras, records, with_ids
from graft_core.formats.jsonio import BadJson, clean_text, loads, word
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source
from graft_core.formats.trl import steps_after
from graft_core.formats.verifiers import as_messages

KEYS: Final = frozenset({"problem_id", "prompt", "completion"})
SAYS: Final = KEYS | {"sample_id", "step", "reward", "advantage", "metrics", "timing", "answer", "info"}
LISTS: Final = ("samples", "rollouts", "data", "rows")


def detect(head: Head) -> int:
    """Sure where a record has problem_id, prompt and completion."""
    items = [*_listed(head.document), *head.records]  # an object with all samples may stand in one line
    return 2 if any(isinstance(i, dict) and set(i) >= KEYS for i in items[:20]) else 0


def _listed(document: Any) -> list[Any]:
    """The records of a JSON document: the list it is, or holds."""
    if isinstance(document, dict):
        document = next((document[n] for n in LISTS if isinstance(document.get(n), list)), [])
    return document if isinstance(document, list) else []


def read(source: Source, rows: Rows) -> None:
    """One rollout per record."""
    gather = Gather(rows)
    if isinstance(source.head.document, dict) and not set(source.head.document) >= KEYS:
        rows.files[-1].unit = "item"
        for index, item in enumerate(_listed(source.head.document)):
            _add(source, rows, gather, index, item)
    else:
        for record, item in records(source, rows):
            _add(source, rows, gather, record, item)
    gather.finish()


def _add(source: Source, rows: Rows, gather: Gather, record: int, item: Any) -> None:
    if not isinstance(item, dict) or not set(item) >= KEYS or item["problem_id"] is None:
        rows.reject(record, f"the record has not the keys {', '.join(sorted(KEYS))}")
        return
    given, done = as_messages(decoded(item["prompt"]), "user"), as_messages(decoded(item["completion"]), "assistant")
    if given is None or done is None:
        rows.reject(record, "prompt or completion is neither text nor a list of messages")
        return
    steps, final = steps_after([_with_calls(m) for m in given], [_with_calls(m) for m in done])
    if item.get("advantage") is not None:
        steps = [{**row, "advantage": item["advantage"]} for row in steps]
    step = item.get("step")
    ids: Row = {
        "group_id": item["problem_id"],
        "rollout_id": record if item.get("sample_id") is None else item["sample_id"],
        "task_set": source.label if step is None else f"{source.label} step {word(step)}",
    }
    about = {name: decoded(item.get(name)) for name in ("metrics", "answer", "info")}
    declaration: Row = {
        **({"outcome": item["reward"]} if "reward" in item else {}),
        "train_step": step,
        "metadata": {**(extras(item, SAYS) or {}), **(extras(about) or {})} or None,
    }
    gather.add(record, with_ids(ids, declaration, steps, final))


def decoded(value: Any) -> Any:
    """The value of a JSON text; what is no JSON text stays as it is."""
    if not isinstance(value, str) or value[:1] not in ("{", "[", '"', "n"):
        return value
    try:
        return loads(clean_text(value).encode())[0]
    except BadJson:
        return value


def _with_calls(message: Row) -> Row:
    """The message with its tool calls as objects."""
    calls = message.get("tool_calls")
    return {**message, "tool_calls": [decoded(call) for call in calls]} if isinstance(calls, list) else message


FORMAT: Final = Format(
    name="prime-export",
    meaning="Prime platform export: samples of training steps, several per problem",
    detected_by="JSON or JSON lines with problem_id, prompt and completion",
    unit="record",
    detect=detect,
    read=read,
)
