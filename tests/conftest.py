"""Fixtures every test may use."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NO_BROWSER = "no Chromium"  # how the reason of every test skipped for want of a browser begins


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder the repository is checked out in."""
    return ROOT


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The folder of reference vectors: `NAME.jsonl` and the right answers in `NAME.expected.json`."""
    return ROOT / "tests" / "vectors"


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real rollout files; tests that need it are skipped where it is absent."""
    named = os.environ.get("GRAFT_TEST_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no rollout files at {folder}; GRAFT_TEST_DATA names another folder")
    return folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Why tests did not run, one line for each reason; a loud one if the browser tests did not."""
    reasons: Counter[str] = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    )
    for reason, count in sorted(reasons.items()):
        if NO_BROWSER in reason:
            line = f"!!! {count} BROWSER TESTS DID NOT RUN: {reason}"
            terminalreporter.write_line(line, red=True, bold=True)
        else:
            terminalreporter.write_line(f"{count} skipped: {reason}", yellow=True)
