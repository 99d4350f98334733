"""Where notes are kept: beside the data, in the user's data folder, one writer at a time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from graft_core.errors import InputError

SUFFIX: Final = ".graft-notes.json"
"""A file NAME has its notes in NAME.graft-notes.json; a directory in a hidden file of this name inside it."""

PATIENCE: Final = 10.0
"""Seconds after which a lock that is still there is taken for left behind; a write takes milliseconds."""


def user_folder() -> Path:
    """The folder for this user's own data, where the platform wants it (it may not exist yet)."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    else:
        named = os.environ.get("XDG_DATA_HOME", "")
        base = Path(named) if os.path.isabs(named) else home / ".local" / "share"  # relative ones are to be ignored
    return base / "graft-lab"


def beside(data: Path, suffix: str = SUFFIX) -> Path:
    """Where the notes on a file or directory stand when its place can be written to."""
    return data / suffix if data.is_dir() else data.with_name(data.name + suffix)


def elsewhere(data: Path) -> Path:
    """Where they stand when it cannot."""
    return user_folder() / "notes" / (data.name + SUFFIX)


@contextmanager
def locked(place: Path) -> Iterator[None]:
    """Hold the only right to write `place`: a lock file beside it, which works for processes and threads alike.

    Raises `InputError` where another writer does not let go, OSError where the folder cannot be written to.
    """
    lock = place.with_name(f".{place.name}.lock")
    deadline = time.monotonic() + 2 * PATIENCE
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            _clear_if_left_behind(lock)
            if time.monotonic() > deadline:
                raise InputError(f"{place.name}: another program keeps it locked ({lock.name}); try again") from None
            time.sleep(0.01)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _clear_if_left_behind(lock: Path) -> None:
    try:
        if time.time() - lock.stat().st_mtime > PATIENCE:
            lock.unlink()
    except FileNotFoundError:
        pass


def set_aside(place: Path) -> Path:
    """Move a file that cannot be read to the first free name `NAME.broken-N`, so that nothing is lost."""
    number = 1
    while (kept := place.with_name(f"{place.name}.broken-{number}")).exists():
        number += 1
    os.replace(place, kept)
    return kept
