"""OpenPipe ART trajectory groups: lists of {trajectories: [{messages_and_choices, reward, metrics, metadata}], metadata}.

As one JSON list of groups, as JSON lines with a group each, or as a list of lists of trajectories. The nesting is the
group. A message is a message or a Choice of the API, which holds one. Trajectories that ended in an exception were left out
by the writer, or stand as text under `exceptions`: told, not counted as failures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from graft_core.formats._records import Gather, Row, extras, is_messages, with_ids
from graft_core.formats._records import records as json_records
from graft_core.formats.chat import chat_steps
from graft_core.formats.openai_chat import message_of
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

MESSAGES: Final = "messages_and_choices"


def detect(head: Head) -> int:
    """Sure where groups hold trajectories with messages_and_choices."""
    document = head.document
    groups = head.records if head.kind == "jsonl" else document if isinstance(document, list) else [document]
    return 2 if any(_is_trajectory(t) for group in groups[:20] for t in (_members(group) or [])[:20]) else 0


def _is_trajectory(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get(MESSAGES), list)


def _members(group: Any) -> list[Any] | None:
    """The trajectories of a group; None where it is none."""
    held = group.get("trajectories") if isinstance(group, dict) else group
    return held if isinstance(held, list) else None


def read(source: Source, rows: Rows) -> None:
    """One rollout per trajectory, named group/trajectory."""
    names: list[str] = source.memo.setdefault("names", [])
    gather = Gather(rows)
    for number, group in _groups(source, rows):
        members = _members(group)
        if members is None:
            names.append(str(number))
            rows.reject(len(names) - 1, "the group has no list of trajectories")
            continue
        about = group if isinstance(group, dict) else {}
        failed = about.get("exceptions")
        if isinstance(failed, list) and failed:
            sentence = "trajectories ended in an exception and are not in the file"
            rows.warn("infrastructure_error", sentence, f"{source.name}[{number}]", len(failed))
        for place, trajectory in enumerate(members):
            names.append(f"{number}/{place}")
            if not _is_trajectory(trajectory) or not is_messages(trajectory[MESSAGES]):
                rows.reject(len(names) - 1, f"the trajectory has no list {MESSAGES}")
                continue
            gather.add(len(names) - 1, _rollout(source, number, place, trajectory, about))
    gather.finish()


def _groups(source: Source, rows: Rows) -> Iterator[tuple[int, Any]]:
    """The groups of a file with their numbers: line numbers of JSONL, positions in a list."""
    if source.head.kind == "json":
        document = source.head.document
        yield from enumerate(document if isinstance(document, list) else [document])
        return
    scratch = Rows()
    scratch.start(source, FORMAT.name, "record")
    yield from json_records(source, scratch)
    names: list[str] = source.memo["names"]
    for rejection in scratch.rejections:
        names.append(f"line {rejection.where.rpartition(':')[2]}")
        rows.reject(len(names) - 1, rejection.reason, rejection.records)


def _rollout(source: Source, number: int, place: int, trajectory: Row, group: Row) -> list[Row]:
    steps, final = chat_steps([message_of(m) for m in trajectory[MESSAGES]])
    ids: Row = {"group_id": number, "rollout_id": place, "task_set": source.label}
    about = trajectory.get("metadata")
    metrics = trajectory.get("metrics")
    declaration: Row = {
        **({"outcome": trajectory["reward"]} if "reward" in trajectory else {}),
        "metadata": {
            **(extras(group.get("metadata")) or {}),
            **(extras(about) or {}),
            **({"metrics": found} if (found := extras(metrics)) else {}),
        }
        or None,
    }
    return with_ids(ids, declaration, steps, final)


FORMAT: Final = Format(
    name="art",
    meaning="OpenPipe ART trajectory groups",
    detected_by="JSON groups of trajectories with messages_and_choices",
    unit="item",
    detect=detect,
    read=read,
)
