"""Recording a run: what is written is what is loaded, whatever happens in between."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graft_core as gc
from graft_core.environments.household import household
from graft_core.environments.household_tasks import TASKS
from graft_core.environments.policies import scripted_policy
from graft_core.environments.sampler import rows_of, sample_paths
from graft_core.environments.tables import compile_world
from graft_core.errors import InputError, UsageError
from graft_core.rollouts import LoadReport, batch_rows
from graft_core.runs import Recorder, follow, read_run, record, runs_in, step_files

STEP_ONLY = ("action_text", "state", "admissible")
END = ("next_observation", "next_state", "success", "task_family")


def codes(report: LoadReport) -> dict[str, int]:
    return {w.code: w.count for w in report.warnings}


def household_rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for seed, name in enumerate(list(TASKS)[:3]):
        table = compile_world(household(name))
        paths = sample_paths(table, scripted_policy(table, 0.4), groups=1, group_size=8, max_steps=15, seed=seed)
        rows += rows_of(paths, [name], task_family=name, admissible=True)
    return rows


def replay(rec: Recorder, rows: Iterable[dict[str, Any]]) -> None:
    """Record rows as a loop would have met them, one rollout after the other."""
    rows = list(rows)
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        ids = (row["group_id"], row["rollout_id"])
        if row["step"] is not None:
            more = {k: row[k] for k in STEP_ONLY if k in row}
            rec.step(*ids, row["step"], row["observation"], row["action"], row["reward"], **more)
        if after is None or (after["group_id"], after["rollout_id"]) != ids:
            rec.end(*ids, row["outcome"], row["terminated"], row["truncated"], **{k: row[k] for k in END if k in row})


def test_a_recorded_household_run_is_the_sampled_batch(tmp_path: Path) -> None:
    rows = household_rows()
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    with gc.record(tmp_path / "run") as rec:
        replay(rec, rows)
    batch, report = gc.load(tmp_path / "run", report=True)
    sampled = gc.load(tmp_path / "rows.jsonl")
    assert batch.equals(sampled) and batch.n_steps > 100 and 0 < batch.success.sum() < batch.n_rollouts
    assert not report.warnings and not report.rejected and batch.name == "run"


def test_what_a_run_directory_holds(tmp_path: Path) -> None:
    with record(tmp_path / "x", name="try", settings={"gamma": 0.9, "where": Path("a")}) as rec:
        rec.train_step(3)
        rec.step("g", "r", None, "o", "a")
        rec.step("g", "r", None, {"b": 1}, "b", reward=np.float32(0.5), metadata={"entropy": 1.5})
        rec.end("g", "r", 1, terminated=True, next_observation="z")
    info = read_run(tmp_path / "x")
    assert (info.name, info.settings, info.version) == ("try", {"gamma": 0.9, "where": "a"}, gc.__version__)
    assert [p.name for p in step_files(tmp_path / "x")] == ["000003.jsonl"]
    lines = [json.loads(line) for line in step_files(tmp_path / "x")[0].read_text().splitlines()]
    assert lines[0] == {"graft_format": 1, "graft_run": "try", "train_step": 3}
    assert [line["step"] for line in lines[1:]] == [0, 1, None]
    rollouts, steps = batch_rows(gc.load(tmp_path / "x"))
    assert rollouts[0]["train_step"] == 3 and rollouts[0]["final_observation"] == "z" and rollouts[0]["terminated"] is True
    assert [s["observation"] for s in steps] == ["o", '{"b":1}'] and steps[1]["reward"] == 0.5
    assert json.loads(steps[1]["metadata"]) == {"entropy": 1.5}
    assert gc.load(step_files(tmp_path / "x")[0]).equals(gc.load(tmp_path / "x")), "a step file stands for itself"
    assert [r.name for r in runs_in(tmp_path)] == ["try"]


def test_a_task_met_again_in_a_later_training_step_is_another_group(tmp_path: Path) -> None:
    with record(tmp_path / "x") as rec:
        for number in (1, 2):
            rec.train_step(number)
            for name in ("r1", "r2"):
                rec.step("g", name, 0, "o", "a")
                rec.end("g", name, number - 1)
            rec.step(f"only {number}", "r1", 0, "o", "a")
            rec.end(f"only {number}", "r1", 1)
    batch, report = gc.load(tmp_path / "x", report=True)
    assert batch.group_ids == ["000001/g", "000001/only 1", "000002/g", "000002/only 2"] and not report.warnings
    assert batch.rollouts.column("train_step").to_pylist() == [1, 1, 1, 2, 2, 2]


def test_a_rollout_keeps_the_training_step_it_began_in(tmp_path: Path) -> None:
    with record(tmp_path / "x") as rec:
        rec.train_step(1)
        rec.step("g", "slow", None, "o", "a")
        rec.train_step(2)
        rec.step("g", "slow", None, "p", "b")
        rec.step("g", "new", None, "o", "a")
        rec.end("g", "slow", 1)
        rec.end("g", "new", 0)
        rec.train_step(1)
        rec.step("h", "late", None, "o", "a")
        rec.end("h", "late", 0)
    batch, report = gc.load(tmp_path / "x", report=True)
    found = dict(zip(batch.rollout_ids, batch.rollouts.column("train_step").to_pylist(), strict=True))
    assert found == {"slow": 1, "late": 1, "new": 2} and batch.lengths.tolist() == [2, 1, 1] and not report.warnings


def test_outcomes(tmp_path: Path) -> None:
    with record(tmp_path / "x") as rec:
        for name in ("given", "unknown", "summed", "broken off", "flag"):
            rec.step("g", name, None, "o", "a", reward=0.25)
            rec.step("g", name, None, "o", "a", reward=0.5)
        rec.end("g", "given", 1)
        rec.end("g", "unknown", None)
        rec.end("g", "summed")
        rec.end("g", "flag", None, success=True)
        rec.end("g", "no steps", 0, truncated=True)
    batch, report = gc.load(tmp_path / "x", report=True)
    outcome = dict(zip(batch.rollout_ids, batch.outcome.tolist(), strict=True))
    assert outcome == pytest.approx(
        {"given": 1, "unknown": np.nan, "summed": 0.75, "broken off": np.nan, "flag": 1, "no steps": 0}, nan_ok=True
    )
    assert codes(report) == {"rollout_unfinished": 1}


def test_odd_values_never_stop_the_loop_and_loading_names_them(tmp_path: Path) -> None:
    with record(tmp_path / "x") as rec:
        rec.step("g", "nan", 0, "o", "a", reward=float("nan"))
        rec.end("g", "nan", np.float32("inf"))
        rec.step("g", 7, 0, "broken \ud835", ["a", 2**70], reward=np.int64(1), admissible=("a", "b"), metadata={1: {2, 3}})
        rec.step("g", 7, 1, None, None, valid=np.bool_(True), tokens=np.arange(3))
        rec.end("g", 7, np.float64(1))
    batch, report = gc.load(tmp_path / "x", report=True)
    _, steps = batch_rows(batch)
    assert batch.rollout_ids == ["7"] and steps[0]["observation"] == "broken \\ud835"
    assert steps[0]["action"] == f'["a","{2**70}"]' and steps[1]["action"] == "" and steps[1]["valid"] is True
    assert json.loads(steps[1]["tokens"]) == [0, 1, 2] and steps[0]["admissible"] == ["a", "b"]
    assert report.rejected == 2 and "expected a finite number" in report.rejections[0].reason


def test_arrays_of_other_libraries(tmp_path: Path) -> None:
    class Tensor:
        def __float__(self) -> float:
            return 0.5

        def tolist(self) -> list[int]:
            return [1, 2]

    with record(tmp_path / "x") as rec:
        rec.step("g", "r", 0, Tensor(), "a", reward=Tensor())  # type: ignore[arg-type]
        rec.end("g", "r")
    batch = gc.load(tmp_path / "x")
    assert batch.text(batch.observation[0]) == "[1,2]" and batch.outcome.tolist() == [0.5]


def test_ids_used_twice_become_two_rollouts(tmp_path: Path) -> None:
    with record(tmp_path / "x") as rec:
        rec.step("g", "r", 0, "o", "a")
        rec.end("g", "r", 0)
        with pytest.warns(UserWarning, match="recorded before"):
            rec.step("g", "r", 0, "o", "a")
        rec.end("g", "r", 1)
        rec.step("g", "r", 0, "o", "a")
        rec.end("g", "r", 1)
    assert gc.load(tmp_path / "x").rollout_ids == ["r", "r#2", "r#3"]


def test_a_run_is_only_continued_when_told_so(tmp_path: Path) -> None:
    with record(tmp_path / "x") as rec:
        rec.train_step(1)
        rec.step("g", "r", 0, "o", "a")
        rec.end("g", "r", 0)
        rec.step("g", "cut", 0, "o", "a", reward=1)
    with pytest.raises(UsageError, match="resume=True"):
        record(tmp_path / "x")
    file = step_files(tmp_path / "x")[0]
    file.write_bytes(file.read_bytes()[:-7])
    with record(tmp_path / "x", resume=True) as rec:
        rec.train_step(1)
        with pytest.warns(UserWarning, match="recorded before"):
            rec.step("g", "r", 0, "o", "a")
        rec.end("g", "r", 1)
    batch, report = gc.load(tmp_path / "x", report=True)
    assert batch.rollout_ids == ["r", "r#2"] and batch.outcome.tolist() == [0, 1]
    assert report.rejected == 1 and report.rejections[0].where.endswith("000001.jsonl:4")


def test_a_run_without_rollouts_is_an_empty_batch(tmp_path: Path) -> None:
    with record(tmp_path / "x") as rec:
        assert gc.load(tmp_path / "x").n_rollouts == 0
        rec.train_step(1)
    batch, report = gc.load(tmp_path / "x", report=True)
    assert batch.n_rollouts == 0 and report.read == 0 and not report.warnings


def test_a_torn_tail_costs_its_line_and_the_rollout_it_would_have_ended(tmp_path: Path) -> None:
    with record(tmp_path / "x") as rec:
        for name in ("whole", "torn"):
            rec.step("g", name, 0, "o", "a", reward=1.0)
            rec.end("g", name, 1)
    file = step_files(tmp_path / "x")[0]
    file.write_bytes(file.read_bytes()[:-5])
    batch, report = gc.load(tmp_path / "x", report=True)
    assert batch.rollout_ids == ["whole", "torn"] and batch.outcome.tolist() == pytest.approx([1, np.nan], nan_ok=True)
    assert report.rejected == 1 and codes(report) == {"rollout_unfinished": 1}


def test_wrong_use_is_named(tmp_path: Path) -> None:
    rec = record(tmp_path / "x")
    with pytest.raises(UsageError, match="unknown name rewrad"):
        rec.step("g", "r", 0, "o", "a", rewrad=1)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="unknown name won"):
        rec.end("g", "r", 0, won=True)  # type: ignore[call-arg]
    for number in (-1, 1.5, True):
        with pytest.raises(UsageError, match="whole number"):
            rec.train_step(number)  # type: ignore[arg-type]
    rec.close()
    with pytest.raises(UsageError, match="closed"):
        rec.step("g", "r", 0, "o", "a")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        record(tmp_path / "file")
    with pytest.raises(InputError, match=r"run\.json"):
        read_run(tmp_path)
    with pytest.raises(InputError, match="name the directory"):
        gc.load(tmp_path / "x" / "run.json")


def test_gathered_steps_are_written_in_time(tmp_path: Path) -> None:
    def lines() -> int:
        return len(step_files(tmp_path / "x")[0].read_bytes().splitlines())

    with record(tmp_path / "x", flush_every=3, flush_seconds=3600) as rec:
        seen = []
        for number in range(7):
            rec.step("g", "r", number, "o", "a")
            seen.append(lines())
        assert seen == [1, 1, 4, 4, 4, 7, 7]
        rec.end("g", "r", 1)
        assert lines() == 9
        rec.step("g", "s", 0, "o", "a")
        rec.flush()
        assert lines() == 10
    with record(tmp_path / "y", flush_every=1000, flush_seconds=0) as rec:
        rec.step("g", "r", 0, "o", "a")
        assert len(step_files(tmp_path / "y")[0].read_bytes().splitlines()) == 2


def test_a_failing_disk_never_stops_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, full = os.write, [True]

    def failing(file: int, data: bytes) -> int:
        if full[0]:
            raise OSError(28, "No space left on device")
        return write(file, bytes(data)[:5])

    rec = record(tmp_path / "x")
    monkeypatch.setattr(os, "write", failing)
    with pytest.warns(UserWarning, match="No space left"):
        rec.step("g", "r", 0, "o", "a")
    rec.step("g", "r", 1, "o", "a")
    full[0] = False
    rec.end("g", "r", 1)
    assert gc.load(tmp_path / "x").n_steps == 2, "what waited was written, five bytes at a time"
    full[0] = True
    rec.step("g", "s", 0, "o", "a")
    with pytest.raises(InputError, match="could not be written"):
        rec.close()


def test_threads_share_a_recorder(tmp_path: Path) -> None:
    def work(rec: Recorder, name: str) -> None:
        for number in range(200):
            rec.step("g", name, number, f"{name} {number}", "a")
        rec.end("g", name, 1)

    with record(tmp_path / "x") as rec:
        threads = [threading.Thread(target=work, args=(rec, f"r{i}")) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    batch, report = gc.load(tmp_path / "x", report=True)
    assert batch.lengths.tolist() == [200] * 8 and not report.warnings
    for text, rollout in zip(batch.observation.tolist(), batch.step_rollout.tolist(), strict=True):
        assert batch.text(text).startswith(batch.rollout_ids[rollout])


LOOP = """
import sys
from graft_core.runs import record
with record(sys.argv[1]) as rec:
    for n in range(1, 10**6):
        rec.train_step(n)
        for name in ("r1", "r2"):
            for step in range(20):
                rec.step("g", name, step, f"seen {step} " + "x" * 300, f"do {step}", reward=0.0)
                print(n, name, step, flush=True)
            rec.end("g", name, 1.0)
"""


def killed(tmp_path: Path, name: str, wait: float) -> tuple[int, int]:
    """Steps that a process had recorded for certain when it was killed, and steps that are loaded."""
    run = tmp_path / name
    process = subprocess.Popen([sys.executable, "-c", LOOP, str(run)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    printed = [1]

    def count() -> None:
        assert process.stdout is not None
        printed[0] += sum(1 for line in process.stdout if line.endswith(b"\n"))

    reader = threading.Thread(target=count)
    reader.start()
    time.sleep(wait)
    process.send_signal(signal.SIGKILL)
    process.wait()
    reader.join()
    process.stdout.close()
    batch, report = gc.load(run, report=True)
    assert report.rejected <= 1 and batch.success[:-1].all(), "only the last line may be torn, only the last rollout open"
    assert codes(report).keys() <= {"rollout_unfinished"}
    assert all(n == 20 for n in batch.lengths[:-1])
    return printed[0], batch.n_steps


def test_a_killed_process_loses_at_most_the_step_it_was_writing(tmp_path: Path) -> None:
    chance = random.Random(0)
    for number in range(3):
        certain, found = killed(tmp_path, f"run{number}", chance.uniform(0.0, 0.2))
        assert certain <= found <= certain + 1


@pytest.mark.audit
def test_twenty_killed_processes_lose_at_most_the_step_they_were_writing(tmp_path: Path) -> None:
    chance = random.Random(1)
    for number in range(20):
        certain, found = killed(tmp_path, f"run{number}", chance.uniform(0.0, 0.5))
        assert certain <= found <= certain + 1


def test_following_gives_each_complete_line_once(tmp_path: Path) -> None:
    follower = follow(tmp_path / "x")
    assert follower.look() == []
    with record(tmp_path / "x") as rec:
        rec.train_step(1)
        assert follower.look() == []
        rec.step("g", "r", 0, "o", "a")
        assert [line.row["step"] for line in follower.look()] == [0]
        rec.step("g", "r", 1, "o", "a")
        rec.end("g", "r", 1)
        rec.train_step(2)
        rec.step("h", "r", 0, "o", "a")
        found = follower.look()
        assert [(line.path.stem, line.row["step"]) for line in found] == [("000001", 1), ("000001", None), ("000002", 0)]
        assert follower.look() == []
        with found[0].path.open("rb") as stream:
            stream.seek(found[0].offset)
            assert json.loads(stream.readline()) == found[0].row


def test_following_waits_for_torn_lines_and_starts_anew_with_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    follower = follow(path)
    path.write_bytes(b'{"step": 1}\n\n{"st')
    assert [line.row for line in follower.look()] == [{"step": 1}]
    with path.open("ab") as stream:
        stream.write(b'ep": 2}\n[3]\nno json\n{"step": 4}\r\n')
    assert [line.row for line in follower.look()] == [{"step": 2}, {"step": 4}] and follower.broken == 2
    path.write_bytes(b'{"step": 5}\n')
    assert [line.row for line in follower.look()] == [{"step": 5}]
    (tmp_path / "new").write_bytes(b'{"step": 6}\n' * 9)
    (tmp_path / "new").replace(path)
    assert [line.row["step"] for line in follower.look()] == [6] * 9
