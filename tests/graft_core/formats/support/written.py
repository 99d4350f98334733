"""Writing a test's file and reading it back as plain rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from graft_core.formats import load
from graft_core.rollouts import LoadReport, batch_rows

Rows = list[dict[str, Any]]


def lines(path: Path, *values: Any) -> Path:
    """A JSONL file, folders made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((v if isinstance(v, str) else json.dumps(v)) + "\n" for v in values))
    return path


def document(path: Path, value: Any) -> Path:
    """A JSON file of several lines, folders made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1))
    return path


def read(path: Path, **options: Any) -> tuple[Rows, Rows, LoadReport]:
    """Rollouts and steps as dictionaries, and the report."""
    batch, report = load(path, report=True, **options)
    return (*batch_rows(batch), report)


def column(rows: Rows, name: str) -> list[Any]:
    return [row[name] for row in rows]
