"""Saved views: named addresses of the app, kept beside the data like notes, and shared as a JSON file."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import orjson

from graft_core.errors import InputError, UsageError
from graft_core.exports import replace_with
from graft_core.insight._note_place import beside, locked, set_aside, user_folder

FORMAT: Final = 1
SUFFIX: Final = ".graft-views.json"
"""A file NAME has its views in NAME.graft-views.json; a directory in a hidden file of this name inside it."""

LONGEST_NAME: Final = 80
LONGEST_WORD: Final = 4000
MOST_WORDS: Final = 60
MOST_VIEWS: Final = 500
PAGES: Final = ("findings", "graph", "compare", "rollouts", "states")
_PARAMETER = re.compile(r"[a-z][a-z0-9_]{0,40}")
_DIGITS = re.compile(r"[0-9a-f]{8,64}")

Views = dict[str, "View"]


@dataclass(frozen=True)
class View:
    """A page with the words of its address. sha256: first digits of the SHA-256 of the data it was saved on; at: when."""

    name: str
    page: str
    words: Mapping[str, str]
    sha256: str
    at: str = ""


def view(name: str, page: str, words: Mapping[str, str], sha256: str, at: str | None = None) -> View:
    """A view, checked. Raises `UsageError` with one sentence for a name, page, word or SHA-256 that is none."""
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME:
        raise UsageError(f"a view needs a name of 1 to {LONGEST_NAME} characters; got {len(name)}")
    if page not in PAGES:
        raise UsageError(f"view {name!r}: expected one of the pages {', '.join(PAGES)}; got {page[:40]!r}")
    if len(words) > MOST_WORDS or any(not _PARAMETER.fullmatch(key) or len(word) > LONGEST_WORD for key, word in words.items()):
        raise UsageError(f"view {name!r}: its words are not those of an address")
    if not _DIGITS.fullmatch(sha256):
        raise UsageError(f"view {name!r}: expected the first digits of a SHA-256; got {sha256[:20]!r}")
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    return View(name, page, dict(words), sha256, now if at is None else at[:LONGEST_NAME])


def as_json(views: Iterable[View]) -> bytes:
    """Views as a file to share."""
    return orjson.dumps({"graft_views": FORMAT, "views": [asdict(one) for one in views]}, option=orjson.OPT_INDENT_2)


def from_json(content: bytes) -> Views:
    """The views of such a file by name. Raises `InputError` where it is none."""
    try:
        data = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise InputError("this is not a file of views: it is not JSON") from None
    if not isinstance(data, dict) or data.get("graft_views") != FORMAT or not isinstance(data.get("views"), list):
        raise InputError(f'this is not a file of views: it has no "graft_views": {FORMAT} with a list "views"')
    if len(data["views"]) > MOST_VIEWS:
        raise InputError(f"a file of views holds at most {MOST_VIEWS}; this one has {len(data['views']):,}")
    found = [_from_words(item) for item in data["views"]]
    return {one.name: one for one in found}


def _from_words(item: Any) -> View:
    try:
        texts = [item[key] for key in ("name", "page", "sha256", "at")]
        words = dict(item["words"].items())
        if not all(isinstance(text, str) for text in [*texts, *words, *words.values()]):
            raise TypeError
    except (KeyError, TypeError, AttributeError):
        raise InputError("this is not a file of views: a view lacks its name, page, words, sha256 or at") from None
    try:
        return view(texts[0], texts[1], words, texts[2], texts[3])
    except UsageError as error:
        raise InputError(f"this is not a file of views: {error}") from None


def places(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Where the views of some data are kept: beside it, and, where that cannot be written to, in the user's own folder."""
    data = Path(os.path.abspath(path))
    own = hashlib.sha256(os.fsencode(data)).hexdigest()[:8]
    return beside(data, SUFFIX), user_folder() / "views" / f"{data.name}-{own}{SUFFIX}"


def saved(path: str | os.PathLike[str]) -> Views:
    """The views saved on a file or directory, by name; what is in the user's own folder has the later word.

    Raises `InputError` for a file that holds no views, OSError where it cannot be read.
    """
    return {name: one for place in places(path) for name, one in _read(place).items()}


def save(path: str | os.PathLike[str], views: Iterable[View]) -> None:
    """Keep views; a name that is there already gets the new view. Raises `InputError` where they cannot be saved."""
    more = {one.name: one for one in views}
    _change(path, lambda kept: {**kept, **more})


def remove(path: str | os.PathLike[str], name: str) -> None:
    """Take a view away; nothing happens where there is none of this name."""
    for place in places(path):
        if name in _read(place):
            _write(place, lambda kept: {key: one for key, one in kept.items() if key != name})


def _read(place: Path) -> Views:
    try:
        return from_json(place.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}


def _change(path: str | os.PathLike[str], change: Callable[[Views], Views]) -> None:
    near, far = places(path)
    try:
        _write(near, change)
    except OSError:
        try:
            far.parent.mkdir(parents=True, exist_ok=True)
            _write(far, change)
        except OSError as error:
            raise InputError(f"the view could not be saved: {far}: {error.strerror}") from None


def _write(place: Path, change: Callable[[Views], Views]) -> None:
    """Change the file whole or not at all, one writer at a time; one that holds no views is set aside."""
    with locked(place):
        try:
            kept = _read(place)
        except InputError:
            set_aside(place)
            kept = {}
        views = change(kept)
        if len(views) > MOST_VIEWS:
            raise InputError(f"at most {MOST_VIEWS} views are kept for one file; remove some first")
        replace_with(place, lambda stream: stream.write(as_json(views.values())))
