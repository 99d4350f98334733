"""The tables behind "beyond luck": 100 batches with nothing to find in each world, and what is marked where there is."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = [pytest.mark.audit, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def tables(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmarks_chance_audit", root / "benchmarks" / "chance.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize(
    "name",
    [
        "household sample, 8 tasks x 8",
        "frozen lake 4x4, 8 tasks x 16",
        "frozen lake 4x4, 1 task x 64",
        "key-door 4x4, 4 tasks x 32",
        "one choice, 4 tasks x 32",
    ],
)
def test_empty_at_least_ninety_times_in_a_hundred(tables: ModuleType, name: str) -> None:
    sources = tables.null_sources()
    assert len(sources) == 5
    marked = tables.false_lists(sources[name](), 100)
    print(f"{name}: {marked} of 100")
    assert marked <= 10


@pytest.mark.parametrize(("tasks", "batches"), [(1, 50), (8, 10)])
def test_half_of_the_truly_good_steps_at_sixty_four(tables: ModuleType, tasks: int, batches: int) -> None:
    shares = []
    for size in (8, 16, 32, 64):
        found = tables.lake_power(size, tasks, batches)
        print(f"{tasks} tasks x {size}: {found.share:.1%} of {found.good} marked, {found.wrong} wrong")
        assert found.wrong <= 0.05 * max(found.marked, 1)
        shares.append(found.share)
    assert shares[-1] >= 0.5
    assert shares == sorted(shares)


@pytest.mark.parametrize("size", [16, 32, 64])
def test_wrong_marks_where_nearly_all_listed_steps_are_worthless(tables: ModuleType, size: int) -> None:
    """The rate is stated as 5 %; twice that is allowed for, over 40 batches."""
    found = tables.power(lambda n: tables.one_choice(8, size, 900 + n), 40)
    print(f"one choice, 8 tasks x {size}: {found.share:.1%} of {found.good} marked, {found.wrong_share:.1%} wrong")
    assert found.wrong_share <= 0.10
