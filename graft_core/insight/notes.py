"""Notes on findings: keep, reject, comment, saved beside the data and tied to its SHA-256."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from graft_core.errors import InputError, UsageError
from graft_core.insight._note_file import (
    VERDICTS,
    Change,
    Key,
    Note,
    Section,
    Unreadable,
    read_sections,
    write_sections,
)
from graft_core.insight._note_place import beside, elsewhere, locked, set_aside

__all__ = ["Key", "Note", "Notes"]

LONGEST_COMMENT: Final = 10_000

Verdict = Literal["keep", "reject"] | None
Edit = Callable[[Section, dict[Key, Note]], bool]
"""Changes a section, given the notes that lie below it; says whether anything changed."""


class Notes:
    """The notes on one version of some data. Open them anew, or `reload`, to see what others have written since.

    place: the file that the next change goes to. messages: sentences that whoever reads the notes has to see (notes on
    other data at this path, a file that could not be read, notes kept elsewhere); they are plain text.
    Every change reads the file again first, so writers that run at the same time keep each other's notes.
    """

    def __init__(self, path: Path, sha256: str) -> None:
        self.path = path
        self.sha256 = sha256
        self._beside = beside(path)
        self._elsewhere = elsewhere(path)
        self._notes: dict[Key, Note] = {}
        self._below: dict[Key, Note] = {}  # notes beside the data, which those in the user's own folder lie on top of
        self._kept: list[str] = []
        self._changes = 0
        self.place = self._beside
        self.messages: tuple[str, ...] = ()
        self.reload()

    @classmethod
    def open(cls, path: str | os.PathLike[str], sha256: str) -> Notes:
        """The notes on the file or directory `path` whose content has this SHA-256 (`cards.data_sha256`)."""
        if not sha256:
            raise UsageError("notes need the SHA-256 of the data; got an empty one")
        return cls(Path(os.path.abspath(path)), sha256)

    def reload(self) -> None:
        """Read both places again; where both have a note on a step, the user's own folder has the later word."""
        found: dict[Key, Note] = {}
        said = list(self._kept)
        self._below, self._changes = {}, 0
        for place in (self._beside, self._elsewhere):
            try:
                sections = read_sections(place)
            except Unreadable as problem:
                said.append(
                    f"{place.name} cannot be read as notes ({problem}); it will be kept under another name when the "
                    "next note is saved"
                )
                continue
            except OSError as error:
                said.append(f"{place.name} cannot be read: {error.strerror}")
                continue
            own = sections.get(self.sha256)
            if own is not None:
                self._below = own.notes if place == self._beside else self._below
                found |= own.notes
                self._changes = len(own.changes)
                self.place = place
            said += self._others(place, sections)
        self._notes = {key: note for key, note in found.items() if note.verdict or note.comment}
        if self.place == self._elsewhere:
            said.append("these notes are kept in your own data folder, because the data's folder could not be written to")
        self.messages = tuple(said)

    def get(self, key: Key) -> Note | None:
        """The note on a step, None where there is none."""
        return self._notes.get(_checked(key))

    def all(self) -> dict[Key, Note]:
        """Every note on this data, in the order in which they were first made."""
        return dict(self._notes)

    def as_rows(self) -> list[dict[str, Any]]:
        """The same as plain dictionaries: group_id, rollout_id, step, verdict, comment, at."""
        names = ("group_id", "rollout_id", "step")
        return [dict(zip(names, key, strict=True)) | note.as_dict() for key, note in self._notes.items()]

    def counts(self) -> dict[str, int]:
        """How many steps are kept, rejected, and have a comment."""
        notes = list(self._notes.values())
        return {
            "keep": sum(n.verdict == "keep" for n in notes),
            "reject": sum(n.verdict == "reject" for n in notes),
            "comments": sum(bool(n.comment) for n in notes),
        }

    @property
    def can_undo(self) -> bool:
        return self._changes > 0

    def set(self, key: Key, verdict: Verdict = None, comment: str = "") -> Note | None:
        """Say what one thinks of a step; neither verdict nor comment takes the note back. Saved at once.

        Raises `UsageError` for another verdict or a comment beyond 10,000 characters, `InputError` where it cannot be
        saved anywhere.
        """
        key = _checked(key)
        if verdict not in (None, *VERDICTS):
            raise UsageError(f"verdict {verdict!r}: expected {' or '.join(VERDICTS)}, or None")
        if len(comment) > LONGEST_COMMENT:
            raise UsageError(f"the comment has {len(comment):,} characters; expected at most {LONGEST_COMMENT:,}")
        comment = comment.encode("utf-8", "replace").decode()
        made = Note(verdict, comment, _now()) if verdict or comment else None

        def change(section: Section, below: dict[Key, Note]) -> bool:
            before = section.notes.get(key, below.get(key))
            if _same(before, made):
                return False
            section.changes.append(Change(key, before, made))
            _put(section, key, made, below)
            return True

        self._save(change)
        return self.get(key)

    def undo(self) -> Key | None:
        """Take the last change back (the last 100 are remembered) and return its step; None where there is none."""
        undone: list[Key] = []

        def change(section: Section, below: dict[Key, Note]) -> bool:
            if section.changes:
                last = section.changes.pop()
                _put(section, last.key, last.before, below)
                undone.append(last.key)
            return bool(undone)

        if self._changes:
            self._save(change)
        return undone[0] if undone else None

    def _others(self, place: Path, sections: dict[str, Section]) -> list[str]:
        """What to say of notes that belong to other data at the same path."""
        counted = [
            len(part.notes)
            for sha, part in sections.items()
            if sha != self.sha256 and part.notes and (place == self._beside or part.path == str(self.path))
        ]
        if not counted:
            return []
        notes = sum(counted)
        versions = "another version" if len(counted) == 1 else f"{len(counted)} other versions"
        return [
            f"{notes} {'note' if notes == 1 else 'notes'} in {place.name} belong{'s' if notes == 1 else ''} to {versions} "
            f"of {self.path.name} (other SHA-256) and {'is' if notes == 1 else 'are'} not shown"
        ]

    def _save(self, change: Edit) -> None:
        places = [self._elsewhere] if self.place == self._elsewhere else [self._beside, self._elsewhere]
        problem: OSError | None = None
        for place in places:
            try:
                self._save_at(place, change)
            except OSError as error:
                problem = error
                continue
            self.place = place
            self.reload()
            return
        raise InputError(f"the note could not be saved: {places[-1]}: {problem and problem.strerror}")

    def _save_at(self, place: Path, change: Edit) -> None:
        if place == self._elsewhere:
            place.parent.mkdir(parents=True, exist_ok=True)
        with locked(place):
            try:
                sections = read_sections(place)
            except Unreadable:
                kept = set_aside(place)
                self._kept.append(f"{place.name} could not be read as notes; it is kept as {kept.name}")
                sections = {}
            section = sections.pop(self.sha256, Section())
            section.file = self.path.name
            section.path = str(self.path) if place == self._elsewhere else ""
            if change(section, self._below if place == self._elsewhere else {}):
                write_sections(place, sections | {self.sha256: section})


def _checked(key: Key) -> Key:
    group, rollout, step = key
    return str(group), str(rollout), int(step)


def _put(section: Section, key: Key, note: Note | None, below: dict[Key, Note]) -> None:
    if note is None and key in below:
        section.notes[key] = Note(at=_now())  # an empty note hides the one below it, which cannot be removed
    elif note is None:
        section.notes.pop(key, None)
    else:
        section.notes[key] = note


def _same(one: Note | None, other: Note | None) -> bool:
    if one is None or other is None:
        return one is other
    return replace(one, at="") == replace(other, at="")


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")
