"""Makes small canonical files for the tests of the readers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from graft_core.formats import load
from graft_core.rollouts import LoadReport, RolloutBatch

sys.path.append(str(Path(__file__).parent / "support"))


@pytest.fixture
def loaded(tmp_path: Path) -> Callable[..., tuple[RolloutBatch, LoadReport]]:
    """Write rows (or raw lines) to a file and load it."""

    def write(rows: Sequence[dict[str, Any] | str], **options: Any) -> tuple[RolloutBatch, LoadReport]:
        path = tmp_path / "rows.jsonl"
        path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
        return load(path, report=True, **options)

    return write
