"""Directories and several files as one batch: what is one group, what is left out, what is told."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from step_rows import Row, codes, row

from graft_core.errors import InputError
from graft_core.formats import load, write_parquet
from graft_core.rollouts import batch_rows


def write(path: Path, rows: list[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def some_rows(groups: int = 3, rollouts: int = 4) -> list[Row]:
    return [
        row(s, f"g{g}", f"r{r}", reward=float(s), outcome=float(r % 2), observation=f"o{g}{(r + s) % 3}")
        for g in range(groups)
        for r in range(rollouts)
        for s in range(r)
    ] + [row(None, "g0", "r0", outcome=0.0)]


@pytest.mark.parametrize("seed", range(5))
def test_splitting_a_batch_over_files_changes_nothing(tmp_path: Path, seed: int) -> None:
    rows, chance = some_rows(), random.Random(seed)
    whole = load(write(tmp_path / "whole.jsonl", rows))
    cuts = sorted(chance.sample(range(1, len(rows)), 3))
    parts = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    for number, part in enumerate(parts):
        write(tmp_path / "parts" / "steps" / f"{number:06d}.jsonl", part)
    batch, report = load(tmp_path / "parts", report=True)
    assert batch_rows(batch) == batch_rows(whole), "also where a rollout goes on in the next file"
    assert not report.warnings and report.read == len(rows) and len(report.files) == 4
    assert batch.name == "parts"
    listed = load([tmp_path / "parts" / "steps" / f"{n:06d}.jsonl" for n in range(4)])
    assert batch_rows(listed) == batch_rows(whole) and listed.name == "000000.jsonl and 3 more"


def test_files_that_use_the_same_ids_are_kept_apart(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [row(0, outcome=1), row(0, "only-a", outcome=0)])
    write(tmp_path / "b.jsonl", [row(0, outcome=0, action="other")])
    write(tmp_path / "c.jsonl", [row(0, "g", "elsewhere", outcome=1), row(0, "only-a", "r2", outcome=1)])
    batch, report = load(tmp_path, report=True)
    assert batch.group_ids == ["a/g", "a/only-a", "b/g", "g", "only-a"]
    assert codes(report) == {"group_ids_reused": 1}
    assert report.warnings[0].where.endswith("b.jsonl:1")


def test_equal_rollouts_of_two_files_are_kept_and_told(tmp_path: Path) -> None:
    rows = [row(s, rollout=r, outcome=1.0) for r in "ab" for s in range(3)]
    batch = load(write(tmp_path / "run.jsonl", rows))
    write_parquet(batch, tmp_path / "copy.parquet")
    both, report = load(tmp_path, report=True)
    assert both.n_rollouts == 4 and both.group_ids == ["copy/g", "run/g"]
    assert codes(report) == {"group_ids_reused": 2, "duplicate_rollouts": 2}


def test_jsonl_and_parquet_together(tmp_path: Path) -> None:
    rows = [row(s, g, "r", outcome=1.0, observation=f"{g}{s}", admissible=[g, f"{s}"]) for g in "xyz" for s in range(2)]
    whole = load(write(tmp_path / "whole.jsonl", rows))
    write(tmp_path / "parts" / "1.jsonl", rows[:2])
    for number in (2, 3):
        write(tmp_path / "part.jsonl", rows[2 * number - 2 : 2 * number])
        write_parquet(load(tmp_path / "part.jsonl"), tmp_path / "parts" / f"{number}.parquet")
    batch, report = load(tmp_path / "parts", report=True)
    assert batch_rows(batch) == batch_rows(whole)
    assert report.formats == ("canonical", "canonical-parquet", "canonical-parquet") and not report.warnings
    assert len(set(batch.text_array.to_pylist())) == len(batch.text_array), "each text is stored once"


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [row(0, outcome=1)])
    batch, report = load([path, tmp_path, path], report=True)
    assert batch.n_steps == 1 and not report.warnings


def test_assumed_groups_get_one_group_per_file_with_short_distinct_names(tmp_path: Path) -> None:
    bare = {"rollout_id": "r", "step": 0, "observation": "o", "action": "a", "outcome": 1}
    for name in ("x/steps.jsonl", "y/steps.jsonl", "z.jsonl"):
        write(tmp_path / name, [bare])
    batch, report = load(tmp_path, report=True)
    assert batch.group_ids == ["x/steps", "y/steps", "z"] and batch.groups_assumed
    assert codes(report) == {"group_missing": 3}


def test_a_group_named_on_one_row_counts_for_its_rollout(tmp_path: Path) -> None:
    rows = [row(0, None, "r1"), row(1, "g", "r1", outcome=1), row(0, None, "r2", outcome=1)]
    batch, report = load(write(tmp_path / "a.jsonl", rows), report=True)
    assert batch.group_ids == ["g", "a"] and batch.lengths.tolist() == [2, 1]
    assert codes(report) == {"group_missing": 1}
    assert batch.rollouts.column("group_assumed").to_pylist() == [False, True]


def test_a_directory_may_hold_other_files(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [row(0, outcome=1)])
    write(tmp_path / ".hidden.jsonl", [row(0, "hidden", outcome=1)])
    write(tmp_path / "newer.jsonl", [{"graft_format": 9}, row(0, "newer", outcome=1)])
    (tmp_path / "notes.md").write_text("# notes")
    (tmp_path / "empty.jsonl").write_text("")
    batch, report = load(tmp_path, report=True)
    assert batch.group_ids == ["g"] and codes(report) == {"file_skipped": 3}
    assert [Path(note.partition(": ")[0]).name for note in report.notes] == ["empty.jsonl", "notes.md", "newer.jsonl"]
    assert "the file is empty" in report.notes[0]


def test_a_named_file_must_be_usable(tmp_path: Path) -> None:
    good = write(tmp_path / "a.jsonl", [row(0, outcome=1)])
    (tmp_path / "notes.md").write_text("# notes")
    with pytest.raises(InputError, match=r"notes.md: no known format"):
        load([good, tmp_path / "notes.md"])


def test_nothing_found(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file of rollouts found"):
        load(tmp_path)
    with pytest.raises(InputError, match="no such file or directory"):
        load(tmp_path / "missing.jsonl")
    with pytest.raises(InputError, match="no path was given"):
        load([])


def test_one_bad_file_among_good_ones_is_counted(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [row(0, outcome=1)])
    write(tmp_path / "b.jsonl", [row(0, "h", outcome=1, reward="much")])
    batch, report = load(tmp_path, report=True)
    assert batch.group_ids == ["g"] and (report.read, report.rejected) == (2, 1)
    assert report.rejections[0].where.endswith("b.jsonl:1")
