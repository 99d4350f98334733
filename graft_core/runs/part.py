"""One growing file of a run: opened for appending, repaired where an earlier process was killed, written in one piece."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from graft_core.errors import InputError
from graft_core.formats.fields import FORMAT_VERSION, HEADER_KEY
from graft_core.formats.jsonio import BadJson, dumps, loads, word
from graft_core.formats.run_directory import RUN_KEY
from graft_core.formats.write import replacing

MOST_WAITING: Final = 1 << 28
CLOSED: Final = -1


@dataclass
class Part:
    """The file of one training step.

    `waiting` is what was not written yet, `open` how many rollouts are under way, `used` how often each (group, rollout)
    was recorded in it.
    """

    path: Path
    train_step: int | None
    waiting: bytearray = field(default_factory=bytearray)
    steps: int = 0
    open: int = 0
    used: dict[tuple[str, str], int] = field(default_factory=dict)
    flushed: float = field(default_factory=time.monotonic)
    _file: int = CLOSED
    _warned: bool = False

    def begin(self, run: str) -> None:
        """Open the file; a new one appears with its first line, an unfinished last line of an existing one is ended."""
        try:
            if not self.path.exists():
                header = {HEADER_KEY: FORMAT_VERSION, RUN_KEY: run, "train_step": self.train_step}
                with replacing(self.path) as stream:
                    stream.write(dumps(header).encode("utf-8", "backslashreplace") + b"\n")
            self.used = used_ids(self.path)
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            if not _ends_a_line(self.path):
                self.waiting += b"\n"
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror or error})") from error

    def flush(self, sync: bool = False) -> None:
        """Hand what waits to the operating system; with `sync` also make the disk keep it.

        A failing disk gives one warning; what could not be written stays, up to 256 MB.
        """
        self.steps, self.flushed = 0, time.monotonic()
        try:
            while self.waiting:
                written = os.write(self._file, self.waiting)
                del self.waiting[:written]
            if sync:
                os.fsync(self._file)
        except OSError as error:
            if not self._warned:
                warnings.warn(f"{self.path}: steps cannot be written ({error.strerror or error})", stacklevel=2)
                self._warned = True
            if len(self.waiting) > MOST_WAITING:
                del self.waiting[self.waiting.rindex(b"\n", 0, MOST_WAITING) + 1 :]

    def close(self) -> None:
        """Write, sync and close; harmless when done twice."""
        if self._file == CLOSED:
            return
        self.flush(sync=True)
        os.close(self._file)
        self._file = CLOSED


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as stream:
        if stream.seek(0, os.SEEK_END) == 0:
            return True
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == b"\n"


def used_ids(path: Path) -> dict[tuple[str, str], int]:
    """How often each (group, rollout) occurs in a file, the number behind a repeated id counted as repetition."""
    used: dict[tuple[str, str], int] = {}
    with path.open("rb") as stream:
        for line in stream:
            try:
                row, _ = loads(line)
            except BadJson:
                continue
            if isinstance(row, dict) and "rollout_id" in row:
                name, mark, times = word(row["rollout_id"]).rpartition("#")
                repeated = bool(mark) and times.isdigit()
                key = (word(row.get("group_id")), name if repeated else word(row["rollout_id"]))
                used[key] = max(used.get(key, 0), int(times) if repeated else 1)
    return used
