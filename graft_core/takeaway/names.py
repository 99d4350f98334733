"""File names for what is taken away: safe on any file system, whatever a task is called."""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePath

_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


def file_name(*words: str, ending: str) -> str:
    """`household-cool-apple.svg`: letters, digits and dashes; a short hash stands in where that loses something."""
    parts = []
    for word in words:
        safe = _NOT_IN_NAMES.sub("-", word.lower()).strip("-")[:40].strip("-")
        lost = len(word) > 40 or safe != re.sub(r"[ _./-]+", "-", word.lower()).strip("-")
        digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).hexdigest()[:6] if lost else ""
        parts.append("-".join(part for part in (safe, digest) if part))
    return "-".join(part for part in parts if part) + f".{ending}"


def stem(name: str) -> str:
    """A data file's name without folder and endings."""
    return PurePath(name).name.partition(".")[0] or "rollouts"
