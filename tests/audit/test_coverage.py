"""The whole coverage table: the certainty interval against true advantages, in every world and support bin."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from graft_core.insight.certainty import ROUGH, SUPPORT_BINS

pytestmark = [pytest.mark.audit, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def experiment(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("interval_coverage", root / "benchmarks" / "interval_coverage.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


def test_ninety_percent_intervals_cover_eighty_to_ninety_eight(experiment: ModuleType) -> None:
    """On seeds that chose nothing; bins outside are at most two and are called rough on screen."""
    assert experiment.FRESH_SEED != experiment.TUNING_SEED
    cells = experiment.table(200, experiment.FRESH_SEED, 20_000)
    print(experiment.show(cells, details=True))
    print(experiment.verdict(cells))
    assert len(cells) == 4 * 2 * (5 + 2)
    assert all(cell.judged for cell in cells)
    rough = [cell for cell in cells if cell.rough]
    assert len(rough) <= experiment.ROUGH_ALLOWED
    named = {experiment.words(*bounds) for bounds in SUPPORT_BINS if bounds in ROUGH}
    assert {cell.support for cell in rough} <= named
