"""Which files the app may open: those under the roots it was started with, and what was uploaded to it.

A path from the address bar or a text box is a foreigner's word. It is taken apart as text first, so that nothing outside
is even looked at, then resolved, and has to lie under a root after all links were followed. What is refused is never
opened, and the sentence that says so repeats nothing of it.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from graft_app.jobs import base
from graft_app.server import PATHS_VARIABLE
from graft_core.errors import InputError

LONGEST_PATH = 2000
MOST_LISTED = 5000
MOST_FILES = 10_000
MOST_UPLOADS = 16
LARGEST_UPLOAD = 200_000_000
"""Bytes of one upload; a larger file is better opened where it lies."""
MOST_UPLOADED = 1_000_000_000
"""Bytes of all uploads that are kept; the oldest go first."""

OUTSIDE = "this path is not under a folder that the app was started with"
MISSING = "there is no such file or folder under the folders that the app was started with"
HIDDEN = "hidden files and folders are not opened here"
NO_FILE = "this is neither a file nor a folder (a device, a pipe or a socket)"
_WORD = re.compile(r"r(\d{1,4}):(.*)\Z", re.ASCII | re.DOTALL)
_ODD = re.compile("[\u0000-\u001f\u007f\ud800-\udfff]")  # control characters, and bytes that are no text
_DRIVE = re.compile(r"[A-Za-z]:")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Place:
    """A file or folder that may be opened: which root, where under it ("" is the root itself), and its resolved path."""

    root: int
    relative: str
    path: Path

    @property
    def word(self) -> str:
        """Its name in the address; it says nothing of where the root is kept."""
        return f"r{self.root}:{self.relative}"


@dataclass(frozen=True)
class Item:
    """One line of a folder's list. size: bytes, None for a folder."""

    name: str
    size: int | None


def given() -> list[str]:
    """The paths that the app was started with; none where it opened on the sample data."""
    return [str(path) for path in json.loads(os.environ.get(PATHS_VARIABLE, "[]"))]


def roots() -> list[Path]:
    """The given paths, resolved; without any the working directory and the folder of the sample data."""
    start = given()
    if not start:
        import graft_sample_data

        start = [os.getcwd(), *(os.path.dirname(path) for path in graft_sample_data.paths())]
    return list(dict.fromkeys(Path(path).resolve() for path in start))


def inside(root: int, relative: str) -> Place:
    """The file or folder under a root. `InputError` with one sentence for everything else.

    Refused: parents, absolute paths, drives and network shares, control characters, links that lead out, hidden files,
    devices, pipes and sockets.
    """
    known = roots()
    if not 0 <= root < len(known):
        raise InputError(f"there are {len(known)} folders to choose from, numbered from 0")
    _refuse_odd(relative)
    base = known[root]
    try:
        target = (base / relative).resolve()
        within = target.relative_to(base)
    except (OSError, RuntimeError):  # a loop of links, a name that the system does not take
        raise InputError(MISSING) from None
    except ValueError:
        raise InputError(OUTSIDE) from None
    if any(part.startswith(".") for part in within.parts):
        raise InputError(HIDDEN)
    try:
        mode = target.stat().st_mode
    except OSError:
        raise InputError(MISSING) from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(NO_FILE)
    return Place(root, "" if within == Path(".") else within.as_posix(), target)


def _refuse_odd(relative: str) -> None:
    """Refuse by its text alone what cannot be a plain path under a folder."""
    parts = re.split(r"[/\\]", relative)
    if len(relative) > LONGEST_PATH or _ODD.search(relative):
        raise InputError(MISSING)
    if ".." in parts or relative.startswith(("/", "\\")) or _DRIVE.match(relative):
        raise InputError(OUTSIDE)
    if any(part.startswith(".") and part != "." for part in parts):
        raise InputError(HIDDEN)
    if os.name == "nt" and any(Path(part).is_reserved() for part in parts if part):
        raise InputError(NO_FILE)


def from_word(word: str) -> Place:
    """The place that a word of the address names."""
    found = _WORD.match(word)
    if not found:
        raise InputError("expected the number of a given path, or rN:PATH with a path under one of the folders")
    return inside(int(found[1]), found[2])


def typed(text: str) -> Place:
    """The place that a person typed: a path under one of the roots, relative or whole."""
    text = text.strip().strip("\"'")
    known = roots()
    for number, root in enumerate(known):
        front = str(root)
        if text == front or text.startswith(front + os.sep):
            return inside(number, text[len(front) :].lstrip(os.sep))
    trouble = InputError(MISSING)
    for number in range(len(known)):
        try:
            return inside(number, text)
        except InputError as error:
            trouble = error
    raise trouble


def listing(place: Place) -> tuple[list[Item], list[Item]]:
    """Folders and files of a folder, by name; only what `inside` would let through."""
    folders: list[Item] = []
    files: list[Item] = []
    for number, entry in enumerate(_scan(place.path)):
        if number >= MOST_LISTED:
            break
        try:
            found = inside(place.root, f"{place.relative}/{entry.name}".lstrip("/"))
        except InputError:
            continue
        if found.path.is_dir():
            folders.append(Item(entry.name, None))
        else:
            files.append(Item(entry.name, found.path.stat().st_size))
    return sorted(folders, key=_by_name), sorted(files, key=_by_name)


def _scan(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as error:
        raise InputError(f"this folder cannot be read: {error.strerror}") from None


def _by_name(item: Item) -> tuple[str, str]:
    return item.name.lower(), item.name


def check(place: Place) -> tuple[int, int]:
    """How many files a place holds and their bytes. Refused: a folder with links that lead out, or with far too many files."""
    if place.path.is_file():
        return 1, place.path.stat().st_size
    base, number, size = roots()[place.root], 0, 0
    for folder, below, names in os.walk(place.path):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in names:
            path = Path(folder, name)
            if name.startswith(".") or not path.is_file():
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(base):
                raise InputError("this folder holds a link that leads out of the folders that the app was started with")
            number, size = number + 1, size + path.stat().st_size
            if number > MOST_FILES:
                raise InputError(f"this folder holds more than {MOST_FILES:,} files; choose one inside it")
    return number, size


def shorten(text: str) -> str:
    """A message without the folders that files are kept in: what is under a root, or a live run, is named from there on."""
    fronts = [*(str(root if root.is_dir() else root.parent) for root in roots()), str(base())]
    kept = [str(_uploads())] if _uploads.cache_info().currsize else []
    for front in sorted({*fronts, *kept}, key=len, reverse=True):
        text = text.replace(front.rstrip(os.sep) + os.sep, "")
    return re.sub(r"\b[0-9a-f]{32}/", "", text) if kept else text


# -- uploads ------------------------------------------------------------------------------------------------------------


@cache
def _uploads() -> Path:
    """The folder of this process for uploads, removed when it ends."""
    folder = tempfile.mkdtemp(prefix="graft-uploads-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def safe_name(name: str) -> str:
    """An uploaded file's own name without anything that could lead elsewhere."""
    bare = _UNSAFE.sub("_", re.split(r"[/\\]", name)[-1]).lstrip(".")[-100:]
    return f"_{bare}" if not bare or (os.name == "nt" and Path(bare).is_reserved()) else bare


def keep(files: Iterable[tuple[str, bytes]]) -> Path:
    """Keep uploaded files (name, bytes) for this process: one file, or a folder of several. Returns what to open.

    `InputError` for a file that is too large. Only the latest `MOST_UPLOADS` are kept, `MOST_UPLOADED` bytes in all.
    """
    several = list(files)
    too_large = [name for name, data in several if len(data) > LARGEST_UPLOAD]
    if too_large or not several:
        raise InputError(f"an upload holds at most {LARGEST_UPLOAD // 1_000_000} MB; start the app with the file instead")
    own = _uploads() / secrets.token_hex(16)
    place = own if len(several) == 1 else own / "uploaded_files"
    place.mkdir(mode=0o700, parents=True)
    paths = []
    for number, (name, data) in enumerate(several):
        path = place / safe_name(name)
        path = path.with_name(f"{number}_{path.name}") if path.exists() else path
        path.write_bytes(data)
        paths.append(path)
    _forget_old(own)
    return paths[0] if len(paths) == 1 else place


def _forget_old(latest: Path) -> None:
    kept = sorted((p for p in _uploads().iterdir() if p != latest), key=lambda p: p.stat().st_mtime_ns, reverse=True)
    total = _bytes(latest)
    for number, folder in enumerate(kept, start=1):
        total += _bytes(folder)
        if number >= MOST_UPLOADS or total > MOST_UPLOADED:
            shutil.rmtree(folder, ignore_errors=True)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
