"""Where numbers come from: version, settings, and the SHA-256 of the input files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graft_core import __version__


def sha256_of(path: str | Path) -> str:
    """SHA-256 of one file's bytes, as hexadecimal digits."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def provenance(files: Iterable[str], settings: dict[str, Any]) -> dict[str, Any]:
    """What has to travel with an export: tool, version, settings, and each input file's name and SHA-256."""
    return {
        "tool": "graft-lab",
        "version": __version__,
        "settings": settings,
        "input": [{"file": Path(f).name, "sha256": sha256_of(f)} for f in files],
    }
