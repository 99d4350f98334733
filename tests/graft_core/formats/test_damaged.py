"""Damaged files: wrong types, missing keys, odd numbers, torn bytes. A batch that adds up, or one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutators import NAMES, mutated

from graft_core.errors import InputError
from graft_core.formats import load, write_jsonl

COPIED = 10  # one in so many is written and read again, too


def read_damaged(name: str, numbers: range, folder: Path) -> int:
    """Load these damaged files; how many of them could be used in part."""
    usable = 0
    for number in numbers:
        file, data = mutated(name, number)
        path = folder / file
        path.write_bytes(data)
        try:
            batch, report = load(path, report=True)
        except InputError:
            continue
        usable += batch.n_rollouts > 0
        assert report.read == report.accepted + report.rejected, (name, number)
        listed = sum(r.records for r in report.rejections)
        assert listed == report.rejected, (name, number)
        if number % COPIED == 0:
            write_jsonl(batch, folder / "copy.jsonl")
            if batch.n_rollouts:
                assert load(folder / "copy.jsonl").equals(batch), (name, number)
    return usable


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_are_read_as_far_as_they_go(tmp_path: Path, name: str) -> None:
    assert read_damaged(name, range(500), tmp_path) > 50


@pytest.mark.audit
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NAMES)
def test_ten_thousand_damaged_files(tmp_path: Path, name: str) -> None:
    assert read_damaged(name, range(10_000), tmp_path) > 1000
