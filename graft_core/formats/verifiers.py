"""verifiers evaluation results (`results.jsonl`): {example_id, prompt, completion, reward, metrics, ...}, a line per rollout.

Group = example_id; it stands once per rollout, in the order in which rollouts finished, so that order numbers the
rollouts. Metrics stand on the top level too and go to the metadata. A rollout with an error is unknown, whatever its reward.
"""

from __future__ import annotations

from typing import Any, Final

from graft_core.formats._prompt import tell_flattened
from graft_core.formats._records import Gather, Row, extras, is_messages, records, with_ids
from graft_core.formats.jsonio import word
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source
from graft_core.formats.trl import steps_after

KEYS: Final = frozenset({"example_id", "prompt", "completion"})
SAYS: Final = KEYS | {"reward", "is_truncated", "tool_defs", "oai_tools", "trajectory", "id", "error", "timing", "token_usage"}


def detect(head: Head) -> int:
    """Sure where a record has example_id, prompt and completion."""
    items = head.records if head.kind == "jsonl" else head.document if isinstance(head.document, list) else ()
    return 2 if any(isinstance(i, dict) and set(i) >= KEYS for i in items[:20]) else 0


def read(source: Source, rows: Rows) -> None:
    """One rollout per line."""
    gather = Gather(rows)
    seen: dict[str, int] = {}
    for record, item in records(source, rows):
        if not set(item) >= KEYS or isinstance(item["example_id"], (dict, list)) or item["example_id"] is None:
            rows.reject(record, f"the record has not the keys {', '.join(sorted(KEYS))}")
            continue
        given, done = as_messages(item["prompt"], "user"), as_messages(item["completion"], "assistant")
        if given is None or done is None:
            rows.reject(record, "prompt or completion is neither text nor a list of messages")
            continue
        if isinstance(item["completion"], str):
            tell_flattened(rows, record, item["completion"])
        group = word(item["example_id"])
        number = seen[group] = seen.get(group, -1) + 1
        ids: Row = {"group_id": item["example_id"], "rollout_id": number, "task_set": source.label}
        steps, final = steps_after(given, done)
        gather.add(record, with_ids(ids, _declaration(item, rows, record), steps, final))
    gather.finish()


def as_messages(value: Any, role: str) -> list[Row] | None:
    """Messages from messages, from a text or from nothing; None where it is neither."""
    if value is None or isinstance(value, str):
        return [{"role": role, "content": value}] if value else []
    return value if is_messages(value) else None


def _declaration(item: Row, rows: Rows, record: int) -> Row:
    cut = item.get("is_truncated")
    if cut is not None and not isinstance(cut, (bool, int, str)):
        rows.warn("fields_unusable", "is_truncated is not true or false for one rollout", rows.where(record))
        cut = None
    outcome: Row = {"outcome": item["reward"]} if "reward" in item else {}
    if item.get("error"):
        rows.warn("infrastructure_error", "a rollout ended with an error", rows.where(record))
        outcome = {"outcome": None}
    error = item.get("error")
    about = {**(extras(item, SAYS) or {}), **({"error": word(error)[:400]} if error else {})}
    return {**outcome, "truncated": cut, "task_family": item.get("task"), "metadata": about or None}


FORMAT: Final = Format(
    name="verifiers",
    meaning="verifiers evaluation results (results.jsonl), several rollouts per example",
    detected_by="JSON lines with example_id, prompt and completion",
    unit="record",
    detect=detect,
    read=read,
)
