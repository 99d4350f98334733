"""What readers of whole rollouts share: JSONL records one by one, names that stay distinct, rows handed over in bulk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from graft_core.formats.canonical import parsed_blocks
from graft_core.formats.columns import EXACT
from graft_core.formats.jsonio import dumps, word
from graft_core.formats.limits import FEWEST_ROLLOUTS, LARGEST_EXTRA, ROLLOUTS_PER_BYTE
from graft_core.formats.rows import Rows
from graft_core.formats.source import Source

ROWS_AT_ONCE: Final = 4_000
IMAGE: Final = "[image "
Row = dict[str, Any]


def records(source: Source, rows: Rows) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file with their places: lines of JSONL, items of a JSON list, or the one object.

    What is no object is rejected on the way; sets the unit of the file's records.
    """
    document = source.head.document
    if source.head.kind == "json":
        items = document if isinstance(document, list) else [document]
        rows.files[-1].unit = "item" if isinstance(document, list) else "file"
        for index, item in enumerate(items):
            if isinstance(item, dict):
                yield index, item
            else:
                rows.reject(index, f"the item is a JSON {type(item).__name__}, expected an object")
        return
    for values, numbers in parsed_blocks(source, rows, source.most_records(FEWEST_ROLLOUTS, ROLLOUTS_PER_BYTE)):
        yield from zip(numbers, values, strict=True)


@dataclass
class Gather:
    """Hands the rows of many rollouts over to `Rows` some thousand at a time, and keeps rollout ids distinct."""

    rows: Rows
    _made: list[Row] = field(default_factory=list)
    _places: list[int] = field(default_factory=list)
    _seen: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, record: int, made: list[Row]) -> None:
        """The rows of one rollout; all must have its ids. A rollout id that its group has had gets a number."""
        reason = unusable_ids(made[0])
        if reason:
            self.rows.reject(record, reason)
            return
        key = (dumps(made[0].get("group_id")), dumps(made[0]["rollout_id"]))
        count = self._seen[key] = self._seen.get(key, 0) + 1
        if count > 1:
            self.rows.warn("rollout_ids_renamed", "one rollout id occurs twice in a group", self.rows.where(record))
            for row in made:
                row["rollout_id"] = f"{row['rollout_id']}#{count}"
        if any(IMAGE in word(row.get("observation")) for row in made):
            self.rows.note("images in observations were replaced by [image <hash>]; the hash is part of the state")
        self._made.extend(made)
        self._places.extend([record] * len(made))
        if len(self._made) >= ROWS_AT_ONCE:
            self.finish()

    def finish(self) -> None:
        """Hand over what is left."""
        self.rows.add(self._made, self._places)
        self._made, self._places = [], []


def unusable_ids(row: Row) -> str:
    """Why the ids of a rollout cannot be used; empty where they can."""
    for name in ("group_id", "rollout_id"):
        value = row.get(name)
        if isinstance(value, float) and not abs(value) < EXACT:
            return f"{name} is the number {value!r}, too large to be exact; write ids as text"
    return "rollout_id is missing" if row.get("rollout_id") is None else ""


def extras(value: Any, leave_out: frozenset[str] | set[str] = frozenset()) -> dict[str, Any] | None:
    """The entries of an object that are short enough to keep as metadata; None where there are none."""
    if not isinstance(value, dict):
        return None
    kept = {k: v for k, v in value.items() if k not in leave_out and v is not None and len(dumps(v)) <= LARGEST_EXTRA}
    return kept or None


def with_ids(ids: Row, declaration: Row, steps: list[Row], final: str | None) -> list[Row]:
    """The rows of one rollout: one that declares it, then its steps."""
    said = {**ids, **{k: v for k, v in declaration.items() if v is not None or k == "outcome"}}
    if final is not None:
        said["next_observation"] = final
    return [said, *({**ids, **step} for step in steps)]


def is_messages(value: Any) -> bool:
    """Whether a value is a list of objects (chat messages, events)."""
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)
