"""Damaged files: wrong types, missing keys, odd numbers, torn bytes, bombs. A batch that adds up, or one sentence; in five
seconds and a gigabyte."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from bombs import KINDS, SIZE, bomb
from mutators import NAMES, intact, mutated
from sample_files import ROWS, lines
from watched import watched

from graft_core.errors import InputError
from graft_core.formats import formats, load, write_jsonl
from graft_core.formats.registry import detect
from graft_core.formats.source import Source
from graft_core.rollouts import LoadReport, RolloutBatch

COPIED = 10  # one in so many is written and read again, too


def tried(path: Path) -> tuple[RolloutBatch, LoadReport] | str:
    """What a file gives, or the sentence with which it is refused."""
    try:
        return load(path, report=True)
    except InputError as error:
        return str(error)


def read_damaged(name: str, numbers: range, folder: Path) -> int:
    """Load these damaged files; how many of them could be used in part."""
    usable = 0
    for number in numbers:
        file, data = mutated(name, number)
        path = folder / file
        path.write_bytes(data)
        with watched((name, number)):
            found = tried(path)
        if isinstance(found, str):
            assert "\n" not in found, (name, number)
            continue
        batch, report = found
        usable += batch.n_rollouts > 0
        assert report.read == report.accepted + report.rejected, (name, number)
        listed = sum(r.records for r in report.rejections)
        assert listed == report.rejected, (name, number)
        if number % COPIED == 0:
            write_jsonl(batch, folder / "copy.jsonl")
            if batch.n_rollouts:
                assert load(folder / "copy.jsonl").equals(batch), (name, number)
    return usable


def test_every_reader_is_tried(tmp_path: Path) -> None:
    found = set()
    for name, seed in itertools.product(NAMES, range(6)):  # with and without line breaks
        file, data = intact(name, random.Random(seed))
        (tmp_path / file).write_bytes(data)
        found.add(detect(Source(tmp_path / file)).name)
    assert found == set(formats())


@pytest.mark.parametrize("kind", KINDS)
def test_bombs_are_not_unpacked(tmp_path: Path, kind: str) -> None:
    data = bomb(lines(ROWS), kind, random.Random(0))
    (tmp_path / "bomb").write_bytes(data)
    assert len(data) < SIZE / 50
    with watched(kind):
        found = tried(tmp_path / "bomb")
    if isinstance(found, str):
        assert "\n" not in found and kind not in ("gzip", "zstd")
    else:
        assert found[1].rejected >= 1 and found[0].n_rollouts == (0 if kind.startswith("zip") else 2), "what stood before"


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_are_read_as_far_as_they_go(tmp_path: Path, name: str) -> None:
    assert read_damaged(name, range(500), tmp_path) > 50 or name == "run", "run.json holds no rollouts"


@pytest.mark.audit
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NAMES)
def test_ten_thousand_damaged_files(tmp_path: Path, name: str) -> None:
    assert read_damaged(name, range(10_000), tmp_path) > 1000 or name == "run"
