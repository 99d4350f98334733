"""Puts the tests' own modules (plain rows to batches, the slow reference) where test files can import them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent / "support"))


def pytest_configure(config: pytest.Config) -> None:
    """Random rows have random step rewards, which do not sum to the outcome; that warning has a test of its own."""
    config.addinivalue_line("filterwarnings", "ignore:rewards 'dense'.*:graft_core.values.system.DataWarning")
