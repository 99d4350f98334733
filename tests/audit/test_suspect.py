"""The whole table of suspect merges against known truth, on seeds that chose nothing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = [pytest.mark.audit, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def experiment(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("suspect_experiment", root / "benchmarks" / "suspect.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


def test_hidden_facts_are_found_and_correct_keys_stay_quiet(experiment: ModuleType) -> None:
    """The targets at G = 16, and more is found in larger groups."""
    assert experiment.FRESH_SEED != experiment.TUNING_SEED
    print(experiment.HEAD)
    rows = experiment.table(experiment.FRESH_SEED, out=print)
    assert experiment.failures(rows) == []
    by = {(row.setting, row.size): row for row in rows}
    curve = [by[experiment.HIDDEN[4].name, size].recall for size in experiment.SIZES]
    assert curve == sorted(curve) and curve[-1] >= 0.9
    for row in rows:
        if row.setting in {experiment.CLEAN[5].name, experiment.HOUSE.name, experiment.CLEAN_CUT.name}:
            assert row.alarms <= 0.06 and row.flagged_clean <= 0.05
