"""Puts the tests' own modules (plain rows to batches, the slow reference) where test files can import them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "support"))
