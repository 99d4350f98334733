"""What tests of pages share: reading what a page says, and writing small files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

Open = Callable[..., AppTest]
KINDS = ("markdown", "caption", "subheader", "warning", "error", "info", "text", "code")


def words(test: AppTest) -> str:
    """All the text of a page."""
    return "\n".join(str(element.value) for kind in KINDS for element in test.get(kind))


def metrics(test: AppTest) -> dict[str, str]:
    """The large numbers of a page by their labels."""
    return {metric.label: metric.value for metric in test.metric}


def write(path: Path, *rows: dict[str, object]) -> Path:
    """A canonical step file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def step(rollout: str, number: int, observation: str, action: str, outcome: float | None, **more: object) -> dict[str, object]:
    """A row of a canonical step file, of the task g."""
    row = {"group_id": "g", "rollout_id": rollout, "step": number, "observation": observation, "action": action}
    return {**row, "outcome": outcome, **more}
