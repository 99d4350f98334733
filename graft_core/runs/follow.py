"""Following a run while it grows: the complete lines that were added since the last look."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from graft_core.formats.fields import HEADER_KEY
from graft_core.formats.jsonio import BadJson, loads
from graft_core.runs.store import AnyPath, step_files

MOST_BYTES: Final = 1 << 24


@dataclass(frozen=True)
class Line:
    """One new row: where it stands (file and byte offset of its line) and what it holds."""

    path: Path
    offset: int
    row: dict[str, Any]


@dataclass
class Follower:
    """Remembers how far each file was read. `broken` counts complete lines that were no JSON object."""

    path: Path
    broken: int = 0
    _read: dict[Path, int] = field(default_factory=dict)
    _identity: dict[Path, int] = field(default_factory=dict)

    def look(self) -> list[Line]:
        """The rows of all lines that were completed since the last look; header lines are passed over.

        A last line without its end is left for a later look. A file that shrank or was replaced is read anew. At most
        16 MB per file and look, the rest comes with the next ones.
        """
        files = step_files(self.path) if self.path.is_dir() else [self.path]
        return [line for file in files for line in self._new_lines(file)]

    def _new_lines(self, file: Path) -> Iterator[Line]:
        try:
            with file.open("rb") as stream:
                start = self._start(file, os.fstat(stream.fileno()))
                stream.seek(start)
                data = stream.read(MOST_BYTES)
                while b"\n" not in data and (more := stream.read(MOST_BYTES)):
                    data += more
        except OSError:
            return
        end = data.rfind(b"\n") + 1
        self._read[file] = start + end
        at = start
        for raw in data[:end].split(b"\n")[:-1]:
            row = self._row(raw)
            if row is not None and HEADER_KEY not in row:
                yield Line(file, at, row)
            at += len(raw) + 1

    def _start(self, file: Path, status: os.stat_result) -> int:
        start = self._read.get(file, 0)
        if self._identity.setdefault(file, status.st_ino) != status.st_ino or status.st_size < start:
            self._identity[file] = status.st_ino
            start = 0
        return start

    def _row(self, raw: bytes) -> dict[str, Any] | None:
        if not raw.strip():
            return None
        try:
            value, _ = loads(raw)
        except BadJson:
            value = None
        if isinstance(value, dict):
            return value
        self.broken += 1
        return None


def follow(path: AnyPath) -> Follower:
    """Follow a run directory (or one step file), which need not exist yet; call `look` as often as wanted."""
    return Follower(Path(path))
