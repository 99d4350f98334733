"""The readers, found by themselves: every module of this package that holds a `FORMAT` is one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from graft_core.errors import InputError
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source
from graft_core.registry import members

YAML: Final = (
    "this is YAML (as ART keeps trajectories), which is not read. Write it as JSON in three lines: (1) import json, yaml; "
    "(2) items = yaml.safe_load(open(file)) (never yaml.load, which can run code); (3) json.dump(items, open('rollouts.json', "
    "'w'), default=str); then open rollouts.json"
)


@dataclass(frozen=True)
class Format:
    """One file format that can be read.

    `detect` looks at the beginning of a file and says how sure it is (0 = no, 1 = perhaps, 2 = sure); `detected_by`
    says the same in words. `read` puts canonical rows into `Rows`. `unit` names the records it counts: line and row (of
    one step each), record (a line with a whole rollout), item (of a list or an archive), file.
    Of formats that are equally sure the one of lowest `rank` reads.
    """

    name: str
    meaning: str
    detected_by: str
    unit: str
    detect: Callable[[Head], int]
    read: Callable[[Source, Rows], None]
    rank: int = 100


class UnknownFormatError(InputError):
    """No reader knows the file."""


@cache
def formats() -> dict[str, Format]:
    """All formats that can be read, by name."""
    return members(sys.modules["graft_core.formats"], "FORMAT")


def detect(source: Source) -> Format:
    """The reader for a file, by its content; `InputError` says what was found where none fits."""
    head = source.head
    scores = [(f.detect(head), f) for f in formats().values()]
    best = max(score for score, _ in scores)
    if best == 0:
        if head.kind == "other" and source.is_yaml:
            raise InputError(f"{source.name}: {YAML}")
        known = ", ".join(formats())
        raise UnknownFormatError(f"{source.name}: no known format, found {found_words(head)}; expected one of {known}")
    return next(f for score, f in scores if score == best)


def found_words(head: Head) -> str:
    """What a file seems to hold, in a few words."""
    if head.kind == "parquet":
        return f"a Parquet file {_some('columns', dict.fromkeys(head.columns))}"
    if head.kind == "zip":
        return f"a zip archive {_some('members', head.members)}"
    if head.kind == "jsonl":
        return f"JSON lines {_some('keys', head.records[0])}"
    if head.kind == "json":
        value = head.document
        if isinstance(value, dict):
            return f"one JSON object {_some('keys', value)}"
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return f"a JSON list of {len(value)} objects {_some('keys', value[0])}"
        return f"a JSON {'list' if isinstance(value, list) else 'value'} without objects"
    return f"broken JSON ({head.problem})" if head.problem else "neither JSON nor Parquet"


def _some(what: str, names: Iterable[str]) -> str:
    keys = sorted(map(str, names))
    if not keys:
        return f"without {what}"
    return f"with the {what} " + ", ".join(k[:30] for k in keys[:8]) + (", ..." if len(keys) > 8 else "")
