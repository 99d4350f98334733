"""Canonical step rows as one JSON list instead of lines: what `json.dump(rows, file)` writes."""

from __future__ import annotations

from typing import Final

from graft_core.formats.fields import likeness
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source


def detect(head: Head) -> int:
    """Perhaps, where the file is a list of objects that can be canonical rows."""
    items = head.document
    if not isinstance(items, list):
        return 0
    return min(1, max((likeness(set(i)) for i in items[:20] if isinstance(i, dict)), default=0))


def read(source: Source, rows: Rows) -> None:
    """One row per list item."""
    good, numbers = [], []
    for index, item in enumerate(source.head.document):
        if isinstance(item, dict):
            good.append(item)
            numbers.append(index)
        else:
            rows.reject(index, f"the item is a JSON {type(item).__name__}, expected an object")
    rows.add_foreign(good, numbers)


FORMAT: Final = Format(
    name="canonical-list",
    meaning="canonical step rows as one JSON list",
    detected_by="a JSON list of objects with observation and action, or rollout_id and outcome",
    unit="item",
    detect=detect,
    read=read,
)
