"""NeMo-Gym rollouts: JSONL with {responses_create_params, response, reward, _ng_task_index, _ng_rollout_index, ...}.

Group = _ng_task_index within the file; where it is missing one group per file is assumed and flagged. Steps are the items
of the response (see `_responses`). A row with exception_type, or without a response, ended by an error of the
infrastructure: its outcome is unknown, whatever reward was written.
"""

from __future__ import annotations

from typing import Any, Final

from graft_core.formats._records import Gather, Row, extras, records, with_ids
from graft_core.formats._responses import responses_steps
from graft_core.formats.jsonio import word
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

REQUEST: Final = "responses_create_params"
SAYS: Final = frozenset(
    {REQUEST, "response", "reward", "terminated", "truncated", "_ng_task_index", "_ng_rollout_index", "agent_ref"}
)


def detect(head: Head) -> int:
    """Sure where a record has the request and the response of a rollout."""
    items = head.records if head.kind == "jsonl" else head.document if isinstance(head.document, list) else [head.document]
    return 2 if any(isinstance(i, dict) and {REQUEST, "response"} <= set(i) for i in items[:20]) else 0


def read(source: Source, rows: Rows) -> None:
    """One rollout per line."""
    gather = Gather(rows)
    for record, item in records(source, rows):
        response = item.get("response")
        if "response" not in item or REQUEST not in item:
            rows.reject(record, f"the record has not the keys {REQUEST} and response")
        elif response is not None and not (isinstance(response, dict) and isinstance(response.get("output", []), list)):
            rows.reject(record, "the response has no list of output items")
        else:
            gather.add(record, _rollout(source, rows, record, item, response or {}))
    gather.finish()


def _rollout(source: Source, rows: Rows, record: int, item: Row, response: Row) -> list[Row]:
    request = item[REQUEST] if isinstance(item[REQUEST], dict) else {}
    steps, final = responses_steps(request.get("input"), response.get("output") or [])
    ids: Row = {"rollout_id": record if item.get("_ng_rollout_index") is None else item["_ng_rollout_index"]}
    if item.get("_ng_task_index") is not None:
        ids |= {"group_id": item["_ng_task_index"], "task_set": source.label}
    failed = _failure(item, response)
    if failed:
        rows.warn("infrastructure_error", f"a rollout ended by {failed}", rows.where(record))
    if not steps:
        rows.note("rollouts without any step")
    agent = item.get("agent_ref")
    declaration: Row = {
        **({"outcome": None} if failed else {"outcome": item["reward"]} if "reward" in item else {}),
        "terminated": item.get("terminated"),
        "truncated": True if response.get("status") == "incomplete" else item.get("truncated"),
        "task_family": agent.get("name") if isinstance(agent, dict) else None,
        "metadata": extras(item, SAYS),
    }
    return with_ids(ids, declaration, steps, final)


def _failure(item: Row, response: Row) -> str:
    """What broke the rollout off, if its infrastructure did."""
    kind: Any = item.get("exception_type") or item.get("exception")
    if kind:
        return f"the exception {word(kind)[:60]}"
    if response.get("error") or response.get("status") == "failed":
        return "an error of the model's server"
    return "" if response else "a missing response"


FORMAT: Final = Format(
    name="nemo-gym",
    meaning="NeMo-Gym rollouts (Responses items), several per task",
    detected_by="JSON lines with responses_create_params and response",
    unit="record",
    detect=detect,
    read=read,
)
