"""Damaged files: wrong types, missing keys, odd numbers, torn bytes, bombs. A batch that adds up, or one sentence; in five
seconds and a gigabyte."""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all values within a JSON value; of a list the first two."""
    inside = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, below in inside:
        yield (*path, key)
        yield from places(below, (*path, key))


def deepened(value: Any, path: tuple[Any, ...], levels: int) -> str:
    """The JSON of a value with something nested very deep at a path."""
    whole = copy.deepcopy(value)
    here = whole
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = "@deep@"
    return json.dumps(whole).replace('"@deep@"', "[" * levels + "]" * levels)


@pytest.mark.parametrize("name", [name for name in NAMES if intact(name, random.Random(1))[1][:1] in (b"{", b"[")])
def test_no_value_is_nested_too_deep_for_a_reader(tmp_path: Path, name: str) -> None:
    file, data = intact(name, random.Random(1))
    whole = data.decode().strip()
    lines_ = whole.splitlines() if file.endswith(".jsonl") else [whole]
    values = list(map(json.loads, lines_))
    for number, value in list(enumerate(values))[:3]:
        for path in places(value):
            lines_now = [*lines_[:number], deepened(value, path, 1000 - len(path)), *lines_[number + 1 :]]
            (tmp_path / file).write_text("\n".join(lines_now))
            found = tried(tmp_path / file)
            assert isinstance(found, str) or found[1].read == found[1].accepted + found[1].rejected, path


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_are_read_as_far_as_they_go(tmp_path: Path, name: str) -> None:
    assert read_damaged(name, range(500), tmp_path) > 50 or name == "run", "run.json holds no rollouts"


@pytest.mark.audit
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NAMES)
def test_ten_thousand_damaged_files(tmp_path: Path, name: str) -> None:
    assert read_damaged(name, range(10_000), tmp_path) > 1000 or name == "run"
