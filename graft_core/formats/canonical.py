"""Canonical step file, JSONL, format 1: one step per line (design.md, "The batch").

Lines may use other names (`fields.FIELDS` lists them), carry unknown keys (kept in the metadata), stand in any order,
and be preceded by `{"graft_format": 1}`. A line that is no JSON is rejected with its number, the rest is read.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

from graft_core.errors import InputError
from graft_core.formats.fields import FORMAT_VERSION, HEADER_KEY, likeness
from graft_core.formats.jsonio import BadJson, has_long_numbers, loads, word
from graft_core.formats.limits import FEWEST_STEPS, SMALL_TEXT, STEPS_PER_BYTE
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import BOM, Head, Source

SHOWN_BYTES: Final = 40


def detect(head: Head) -> int:
    """Sure where a line has observation and action, or names a rollout and its outcome or action."""
    if head.kind != "jsonl":
        return 0
    return max((likeness(set(record)) for record in head.records), default=0)


def read(source: Source, rows: Rows) -> None:
    """Read a whole file, block by block."""
    most = source.most_records(FEWEST_STEPS, STEPS_PER_BYTE)
    with without_collection():
        for number, (values, numbers) in enumerate(parsed_blocks(source, rows, most)):
            if number == 0 and values and HEADER_KEY in values[0]:
                check_version(source, values[0][HEADER_KEY])
            rows.add_foreign(values, numbers)


def parsed_blocks(source: Source, rows: Rows, most: float) -> Iterator[tuple[list[Any], list[int] | range]]:
    """The JSON objects of a JSONL file with their line numbers, some thousand at a time.

    What is none is rejected. Told is where a compressed file is cut off, and where the rest is not looked at: after `most`
    lines, and where nearly nothing of a file can be used.
    """
    for first, lines in source.lines():
        if first > most:
            _stop(rows, first, f"the compressed file has more than {most:,.0f} lines, far more than rollouts of its size")
            return
        if first == 1 and lines[0].startswith(BOM):
            lines[0] = lines[0][len(BOM) :]
        yield parse_lines(rows, first, lines)
        if rows.hopeless():
            _stop(rows, first + len(lines), "nearly no record up to about here can be used, so the file was not read further")
            return
    if "torn" in source.memo:
        rows.reject(0, f"the compressed file is cut off ({source.memo['torn']}); what stood before was read")


def _stop(rows: Rows, record: int, reason: str) -> None:
    """Say that the rest of the file is not read: as a rejection, and as a warning, for not all rejections are listed."""
    rows.reject(record, reason)
    rows.warn("file_not_read_to_end", reason, rows.where(record))


@contextmanager
def without_collection() -> Iterator[None]:
    """No garbage collection meanwhile: parsed lines hold no cycles, and looking for some takes a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def parse_lines(rows: Rows, first: int, lines: list[bytes]) -> tuple[list[Any], list[int] | range]:
    """The objects of some lines and their line numbers; lines that are none are rejected, blank ones passed over."""
    import orjson

    values: list[Any]
    numbers: list[int] | range = range(first, first + len(lines))
    try:
        large = max(map(len, lines), default=0) > SMALL_TEXT  # its brackets are counted first
        values = [] if large else list(map(orjson.loads, lines))
        exact = not large and not has_long_numbers(b"\n".join(lines))
    except orjson.JSONDecodeError:
        exact = False
    if not exact:
        values, numbers = _one_by_one(rows, first, lines)
    if set(map(type, values)) - {dict}:
        values, numbers = _objects(rows, values, numbers)
    return values, numbers


def _one_by_one(rows: Rows, first: int, lines: list[bytes]) -> tuple[list[Any], list[int]]:
    """Parse lines singly: bad ones are rejected, broken characters replaced, blank lines passed over."""
    values: list[Any] = []
    numbers: list[int] = []
    if not any(lines) or not any(map(bytes.strip, lines)):
        return values, numbers
    for number, line in zip(count(first), lines, strict=False):
        if not line.strip():
            continue
        try:
            value, cleaned = loads(line)
        except BadJson as error:
            shown = line[:SHOWN_BYTES].decode("utf-8", "replace")
            rows.reject(number, f"no valid JSON: {error}; the line of {len(line)} bytes begins with {shown!r}")
            if rows.hopeless():
                break
            continue
        if cleaned:
            rows.warn("surrogates_replaced", "broken characters were escaped", rows.where(number))
            rows.repaired.append(rows.record_key(number))
        values.append(value)
        numbers.append(number)
    return values, numbers


def _objects(rows: Rows, values: list[Any], numbers: list[int] | range) -> tuple[list[Any], list[int]]:
    """Reject lines that are JSON but no object."""
    kept, places = [], []
    for value, number in zip(values, numbers, strict=True):
        if isinstance(value, dict):
            kept.append(value)
            places.append(number)
        else:
            rows.reject(number, f"the line is a JSON {type(value).__name__}, expected an object")
    return kept, places


def check_version(source: Source, version: Any) -> None:
    """Raise `InputError` where the file was written in a format that is newer than this reader."""
    if version != FORMAT_VERSION:
        raise InputError(f"{source.name}: graft_format is {word(version)[:40]}; this version reads format {FORMAT_VERSION}")


FORMAT: Final = Format(
    name="canonical",
    meaning="canonical step file (JSONL): one step per line",
    detected_by="JSON lines with observation and action, or rollout_id and outcome",
    unit="line",
    detect=detect,
    read=read,
)
