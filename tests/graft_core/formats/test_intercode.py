"""InterCode results: turns as steps, task sets, several runs of one task, and records that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sample_files import intercode_task
from step_rows import codes

from graft_core.formats import load
from graft_core.rollouts import batch_rows


def results(path: Path, **tasks: Any) -> Path:
    path.write_text(json.dumps(tasks))
    return path


def test_what_a_turn_printed_is_seen_in_the_next(tmp_path: Path) -> None:
    batch, report = load(results(tmp_path / "r.json", **{"4": intercode_task(4, 1.0, info={"big": "x" * 9000})}), report=True)
    rollouts, steps = batch_rows(batch)
    assert [s["observation"] for s in steps] == ["task 4", "o0"] and [s["action"] for s in steps] == ["a0", "a1"]
    assert [s["reward"] for s in steps] == [0.25, 1.0] and [s["valid"] for s in steps] == [True, True]
    assert rollouts[0]["final_observation"] == "o1" and rollouts[0]["outcome"] == 1.0, "the best reward, not the sum"
    assert rollouts[0]["terminated"] is True and rollouts[0]["task_family"] == "ic_bash" and not report.warnings
    assert batch.rollouts.column("source")[0].as_py().endswith("r.json[4]")


def test_turns_that_ran_out_are_truncated_not_failed_for_that(tmp_path: Path) -> None:
    batch = load(results(tmp_path / "r.json", a=intercode_task(0, 0.5, 3), b=intercode_task(1, 1.0, 3)))
    assert batch.rollouts.column("truncated").to_pylist() == [True, None] and batch.success.tolist() == [0.0, 1.0]


def test_two_runs_on_one_task_set_are_one_group_and_other_sets_are_apart(tmp_path: Path) -> None:
    results(tmp_path / "gpt-a.json", **{"0": intercode_task(0)})
    results(tmp_path / "gpt-b.json", **{"0": intercode_task(0, 0.0)})
    assert load(tmp_path).group_ids == ["0"] and load(tmp_path).rollout_ids == ["gpt-a", "gpt-b"]
    results(tmp_path / "other.json", **{"0": intercode_task(0, dataset="./data/sql/spider.json")})
    batch, report = load(tmp_path, report=True)
    assert batch.group_ids == ["fs_1/0", "spider/0"] and "2 task sets" in report.notes[0]


def test_tasks_that_cannot_be_used(tmp_path: Path) -> None:
    short = intercode_task(1)
    short["turn_history"]["observations"] = ["o0"]
    nan = intercode_task(2, float("nan"))
    path = results(tmp_path / "r.json", good=intercode_task(0), short=short, nan=nan, none=5, bare={"turn_history": {}})
    batch, report = load(path, report=True)
    assert batch.group_ids == ["0"] and (report.read, report.rejected) == (5, 4)
    assert sorted(r.where.rpartition("[")[2] for r in report.rejections) == ["bare]", "nan]", "none]", "short]"]


def test_a_task_that_stands_twice_is_told(tmp_path: Path) -> None:
    one = json.dumps(intercode_task(0))
    (tmp_path / "r.json").write_text(f'{{"0": {one},\n "0": {one}}}')
    batch, report = load(tmp_path / "r.json", report=True)
    assert batch.n_rollouts == 1 and codes(report) == {"keys_repeated": 1}


def test_a_large_file_of_one_line(tmp_path: Path) -> None:
    tasks = {str(i): intercode_task(i, query="q" * 3000) for i in range(40)}
    batch = load(results(tmp_path / "r.json", **tasks))
    assert (tmp_path / "r.json").stat().st_size > 1 << 16 and batch.n_rollouts == 40
