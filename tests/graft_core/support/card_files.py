"""Cards as files: running the command line on them, and editing them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run

TASK, ROLLOUT, STEP = "cool apple", "r5", 5
"""A good step of the sample data."""


def change_card(card: Path, *keys: Any, to: Any) -> None:
    data = json.loads(card.read_text())
    at = data
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = to
    card.write_text(json.dumps(data))


def falsified(card: Path, capsys: pytest.CaptureFixture[str], keys: tuple[Any, ...], to: Any, named: str) -> str:
    """Changes a card, checks that `graft verify` refuses it and names what was changed; returns what it said."""
    change_card(card, *keys, to=to)
    status, out, err = run(capsys, "verify", str(card))
    assert (status, err) == (1, "")
    assert out.startswith("not reproduced\n")
    assert named in out
    return out
