"""Lets test files import the tests' own modules (plain rows to batches, the slow reference), and keeps a card and its data."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from graft_core.cli import main

sys.path.append(str(Path(__file__).parent / "support"))


def pytest_configure(config: pytest.Config) -> None:
    """Random rows have random step rewards, which do not sum to the outcome; that warning has a test of its own."""
    config.addinivalue_line("filterwarnings", "ignore:rewards 'dense'.*:graft_core.values.system.DataWarning")


@pytest.fixture
def place(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a copy of the sample data; the working directory is another, empty one."""
    folder = tmp_path / "place"
    folder.mkdir()
    shutil.copy(root / "sample_data" / "household.jsonl", folder)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return folder


@pytest.fixture(scope="module")
def made(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A card made by the command line."""
    from card_files import ROLLOUT, STEP, TASK

    folder = tmp_path_factory.mktemp("made")
    words = ("--task", TASK, "--rollout", ROLLOUT, "--step", str(STEP), "-o", str(folder))
    assert main(["card", str(root / "sample_data" / "household.jsonl"), *words]) == 0
    return next(folder.glob("*.json"))


@pytest.fixture
def card(place: Path, made: Path) -> Path:
    """The card, beside its data."""
    return Path(shutil.copy(made, place))
