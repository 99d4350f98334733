"""What tests of pages share: reading what a page says, and writing small files."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

from graft_app import server

Open = Callable[..., AppTest]
KINDS = ("markdown", "caption", "subheader", "warning", "error", "info", "text", "code")


def run_page(page: str, **address: str) -> AppTest:
    """A page run as a script at an address, without an exception."""
    test = AppTest.from_file(str(server.MAIN), default_timeout=90)
    for name, word in address.items():
        test.query_params[name] = word
    if page == "findings":
        test.run()
    else:
        test.switch_page(f"screens/{page}.py").run()
    assert not test.exception, test.exception
    return test


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Waits for something that another process or thread does."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)


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
