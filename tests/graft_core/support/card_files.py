"""Cards as files: running the command line on them, and editing them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graft_core.cli import main

TASK, ROLLOUT, STEP = "cool apple", "r5", 5
"""A good step of the sample data."""


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    try:
        status = main(list(words))
    except SystemExit as stop:
        status = int(stop.code or 0)
    out, err = capsys.readouterr()
    return status, out, err


def change_card(card: Path, *keys: Any, to: Any) -> None:
    data = json.loads(card.read_text())
    at = data
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = to
    card.write_text(json.dumps(data))
