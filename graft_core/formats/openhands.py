"""OpenHands: output.jsonl of an evaluation or of the issue resolver (records with an event `history`), or a list of events.

A step is one action event of the agent; its observation is what arrived since its action before: the observations that
name that action as their `cause` (without one: that follow it) and messages of the user. Group = instance_id, or the issue
in the repository. Outcome = the verdict, if the record has one (`success`, or `resolved` of a test report), else unknown.
"""

from __future__ import annotations

from typing import Any, Final

from graft_core.formats._records import Gather, Row, extras, records, with_ids
from graft_core.formats.chat import content_text
from graft_core.formats.jsonio import dumps, word
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

NO_STEP: Final = frozenset(
    {"change_agent_state", "null", "recall", "system", "initialize", "condensation", "condensation_request"}
)
NO_TEXT: Final = frozenset({"agent_state_changed", "null", "recall"})
EVENT: Final = frozenset(
    {"id", "timestamp", "source", "message", "action", "tool_call_metadata", "llm_metrics", "timeout", "cause"}
)
NOISE: Final = frozenset(
    {
        "thought", "is_confirmed", "confirmation_state", "action_risk", "security_risk", "keep_prompt", "hidden", "blocking",
        "kernel_init_code", "is_input", "is_static", "wait_for_response", "images_urls", "image_urls", "include_extra", "cwd",
    }
)  # fmt: skip
SAYS: Final = frozenset({"history", "instruction", "issue", "instance", "metadata", "git_patch", "test_result", "instance_id"})


def detect(head: Head) -> int:
    """Sure where a record has a history of events, or the file is a list of events."""
    if head.kind == "jsonl":
        return 2 if any(_is_history(r.get("history")) for r in head.records) else 0
    value = head.document
    if isinstance(value, dict):
        return 2 if _is_history(value.get("history")) else 0
    return 2 if _is_history(value) and any("source" in e and "id" in e for e in value[:20] if isinstance(e, dict)) else 0


def _is_history(value: Any) -> bool:
    """Whether a value is a list of events, each an action or an observation (or a pair of them, as long ago)."""
    if not isinstance(value, list) or not value:
        return False
    events = _events(value[:20])
    return any(("action" in e) != ("observation" in e) and "role" not in e and "step" not in e for e in events)


def _events(history: list[Any]) -> list[Row]:
    flat = [e for entry in history for e in (entry if isinstance(entry, list) else [entry])]
    return [e for e in flat if isinstance(e, dict)]


def read(source: Source, rows: Rows) -> None:
    """One rollout per record."""
    gather = Gather(rows)
    if source.head.kind == "json" and isinstance(source.head.document, list) and _is_history(source.head.document):
        rows.files[-1].unit = "file"
        _add(source, gather, 0, {"history": source.head.document})
    else:
        for record, item in records(source, rows):
            _add(source, gather, record, item)
    gather.finish()


def _add(source: Source, gather: Gather, record: int, item: Row) -> None:
    history = item.get("history")
    if not isinstance(history, list):
        gather.rows.reject(record, "the record has no history of events")
        return
    steps, final, finished = event_steps(_events(history))
    ids: Row = {"rollout_id": source.label}
    task = _task(item)
    if task is not None:
        ids["group_id"] = task
    else:
        ids["rollout_id"] = f"{source.label}:{record}" if record else source.label
    declaration = {
        **_verdict(gather.rows, record, item),
        "terminated": True if finished else None,
        "metadata": extras(item, SAYS | {"metrics"}),
    }
    gather.add(record, with_ids(ids, declaration, steps, final))


def _task(item: Row) -> Any:
    if item.get("instance_id") is not None:
        return item["instance_id"]
    issue = item.get("issue")
    if isinstance(issue, dict) and "number" in issue:
        return f"{word(issue.get('owner', ''))}/{word(issue.get('repo', ''))}#{word(issue['number'])}"
    return None


def _verdict(rows: Rows, record: int, item: Row) -> Row:
    """The outcome if somebody judged the rollout; a failure beside an error of the machinery is no verdict."""
    result = item["test_result"] if isinstance(item.get("test_result"), dict) else {}
    reports = [r for r in (item.get("report"), result.get("report"), result) if isinstance(r, dict)]
    verdict = next((r["resolved"] for r in reports if isinstance(r.get("resolved"), bool)), item.get("success"))
    if item.get("error") and verdict is not True:
        rows.warn("infrastructure_error", "a record has an error and no success", rows.where(record))
        return {"outcome": None}
    return {} if verdict is None else {"success": verdict}


def event_steps(events: list[Row]) -> tuple[list[Row], str | None, bool]:
    """Step rows of an event history, what arrived after the last action, and whether the agent finished by itself."""
    arrived: list[list[str]] = [[]]
    actions: list[Row] = []
    position: dict[Any, int] = {}
    for event in events:
        if event.get("action") is not None:
            if not _by_agent(event):
                if event["action"] == "message":
                    arrived[-1].append(content_text(_arguments(event).get("content", event.get("content"))))
            elif word(event["action"]) not in NO_STEP:
                actions.append(event)
                arrived.append([])
                if isinstance(event.get("id"), (int, str)):
                    position[event["id"]] = len(actions)
        elif event.get("observation") is not None and word(event["observation"]) not in NO_TEXT:
            cause = event.get("cause")
            place = position.get(cause, -1) if isinstance(cause, (int, str)) else -1
            arrived[place].append(content_text(event.get("content")))
    steps = []
    for index, event in enumerate(actions):
        done, said = event_action(event)
        row = {"step": index, "observation": "\n\n".join(arrived[index]), "action": done}
        steps.append({**row, "action_text": said} if said != done else row)
    final = "\n\n".join(arrived[-1]) if arrived[-1] and actions else None
    return steps, final, bool(actions) and actions[-1]["action"] == "finish"


def _by_agent(event: Row) -> bool:
    """Whether the agent did it; events without a source are the agent's but for messages that wait for nobody."""
    if event.get("source") is not None:
        return bool(event["source"] == "agent")
    return event["action"] != "message" or bool(_arguments(event).get("wait_for_response"))


def _arguments(event: Row) -> Row:
    given = event.get("args")
    return given if isinstance(given, dict) else {k: v for k, v in event.items() if k not in EVENT}


def event_action(event: Row) -> tuple[str, str]:
    """(name and canonical arguments, thought and action) of an action event; of a message its text."""
    arguments, kind = _arguments(event), event["action"]
    name = kind if isinstance(kind, str) else dumps(kind)
    thought = arguments.get("thought")
    if name == "message":
        done = content_text(arguments.get("content"))
    else:
        done = f"{name} {dumps({k: v for k, v in arguments.items() if k not in NOISE and v is not None}, sort=True)}"
    return done, f"{thought}\n{done}" if isinstance(thought, str) and thought else done


FORMAT: Final = Format(
    name="openhands",
    meaning="OpenHands event histories: records of an evaluation or of the issue resolver",
    detected_by="JSON lines with a history of action and observation events, or a list of events",
    unit="record",
    detect=detect,
    read=read,
)
