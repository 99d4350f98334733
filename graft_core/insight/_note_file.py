"""The notes file: sections by the data's SHA-256, each with notes by step and the last changes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from graft_core.exports import replace_with

FORMAT: Final = 1
VERDICTS: Final = ("keep", "reject")
CHANGES_KEPT: Final = 100
NOTE_FIELDS: Final = ("verdict", "comment", "at")

Key = tuple[str, str, int]
"""(group_id, rollout_id, step): a step as the file names it."""


@dataclass(frozen=True)
class Note:
    """What somebody thought of a finding. verdict: keep, reject or None; at: when, ISO 8601 with time zone."""

    verdict: str | None = None
    comment: str = ""
    at: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Change:
    """One change that can be taken back: the note of `key` before it and after it (None = there was none)."""

    key: Key
    before: Note | None
    after: Note | None


@dataclass
class Section:
    """The notes on one version of some data. `path` is kept in the user's own folder only, else empty."""

    file: str = ""
    path: str = ""
    notes: dict[Key, Note] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)


class Unreadable(ValueError):
    """A notes file that is not one: the message says why, in a few words."""


def read_sections(place: Path) -> dict[str, Section]:
    """The sections of a notes file by SHA-256; none where there is no file. Raises `Unreadable`, OSError."""
    try:
        content = place.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    try:
        data = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise Unreadable("it is not JSON") from None
    if not isinstance(data, dict) or data.get("graft_notes") != FORMAT:
        raise Unreadable(f'it has no "graft_notes": {FORMAT}')
    try:
        return {str(sha): _section(part) for sha, part in data["data"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Unreadable("a part of it is missing or has another form") from None


def write_sections(place: Path, sections: dict[str, Section]) -> None:
    """Write the whole file or nothing of it."""
    data = {"graft_notes": FORMAT, "data": {sha: _section_words(part) for sha, part in sections.items()}}
    replace_with(place, lambda stream: stream.write(orjson.dumps(data, option=orjson.OPT_INDENT_2)))


def _section(part: dict[str, Any]) -> Section:
    notes = {_key(row): _note(row) for row in part["notes"]}
    changes = [Change(_key(row), _maybe(row["before"]), _maybe(row["after"])) for row in part["changes"]]
    return Section(str(part["file"]), str(part.get("path", "")), {k: n for k, n in notes.items() if n}, changes)


def _section_words(part: Section) -> dict[str, Any]:
    return {
        "file": part.file,
        **({"path": part.path} if part.path else {}),
        "notes": [_key_words(key) | note.as_dict() for key, note in part.notes.items()],
        "changes": [
            _key_words(c.key) | {"before": c.before and c.before.as_dict(), "after": c.after and c.after.as_dict()}
            for c in part.changes[-CHANGES_KEPT:]
        ],
    }


def _key(row: dict[str, Any]) -> Key:
    group, rollout, step = row["group_id"], row["rollout_id"], row["step"]
    if not (isinstance(group, str) and isinstance(rollout, str) and isinstance(step, int)):
        raise TypeError("a key is two texts and a whole number")
    return group, rollout, step


def _key_words(key: Key) -> dict[str, Any]:
    return {"group_id": key[0], "rollout_id": key[1], "step": key[2]}


def _note(row: dict[str, Any]) -> Note:
    verdict, comment, at = (row[name] for name in NOTE_FIELDS)
    if verdict not in (None, *VERDICTS) or not isinstance(comment, str) or not isinstance(at, str):
        raise ValueError("not a note")
    return Note(verdict, comment, at)


def _maybe(row: dict[str, Any] | None) -> Note | None:
    return None if row is None else _note(row)
