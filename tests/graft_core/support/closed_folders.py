"""Folders in which nothing can be created, whoever runs the test."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from graft_core.insight import _note_place


def close(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes and views that are written into the folder find it read-only."""
    really = os.open

    def refuse(path: Any, *rest: Any, **more: Any) -> int:
        if Path(path).parent == folder:
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return really(path, *rest, **more)

    monkeypatch.setattr(_note_place.os, "open", refuse)
