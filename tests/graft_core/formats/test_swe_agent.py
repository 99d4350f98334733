"""SWE-agent and mini-swe-agent trajectories: one file, one rollout, no outcome."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sample_files import MINI, swe
from step_rows import codes

from graft_core.errors import InputError
from graft_core.formats import load
from graft_core.rollouts import batch_rows


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1))
    return path


def test_a_trajectory(tmp_path: Path) -> None:
    batch, report = load(write(tmp_path / "owner__repo-12.traj", swe()), report=True)
    rollout, steps = batch_rows(batch)[0][0], batch_rows(batch)[1]
    assert [s["observation"] for s in steps] == ["the issue", "out 0", "out 1"], "no demonstration, no system prompt"
    assert [s["action"] for s in steps] == ["run 0", "run 1", "run 2"] and steps[0]["action_text"] == "I will\nrun 0\n"
    assert rollout["final_observation"] == "out 2" and rollout["outcome"] is None and rollout["terminated"] is True
    assert json.loads(rollout["metadata"]) == {"exit_status": "submitted", "environment": "swe_main"}
    assert codes(report) == {"group_from_name": 1, "no_outcome": 1} and report.read == 1


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("owner__repo-12.traj", "owner__repo-12"),
        ("replay__owner__repo-12__t-0.20__install-1__owner__repo-12.traj", "owner__repo-12"),
        ("scikit-learn__scikit-learn-9__x__scikit-learn__scikit-learn-9.traj", "scikit-learn__scikit-learn-9"),
        ("my_task.traj", "my_task"),
        ("my_task.traj.json", "my_task"),
        ("a__b.traj", "a__b"),
    ],
)
def test_the_task_is_the_end_of_the_name(tmp_path: Path, name: str, task: str) -> None:
    assert load(write(tmp_path / name, swe())).group_ids == [task]


def test_runs_of_one_task_are_one_group(tmp_path: Path) -> None:
    for run in ("run1", "run2"):
        write(tmp_path / run / "o__r-1.traj", swe())
    batch = load(tmp_path)
    assert (
        batch.group_ids == ["o__r-1"]
        and batch.rollout_ids == ["run1/o__r-1", "run2/o__r-1"]
        and batch.lengths.tolist() == [3, 3]
    )


@pytest.mark.parametrize(
    ("status", "ends"),
    [("submitted", (True, None)), ("submitted (exit_cost)", (None, True)), ("exit_context", (None, True)), ("", (None, None))],
)
def test_how_it_ended(tmp_path: Path, status: str, ends: tuple[bool | None, bool | None]) -> None:
    rollout = batch_rows(load(write(tmp_path / "o__r-1.traj", swe(info={"exit_status": status}))))[0][0]
    assert (rollout["terminated"], rollout["truncated"]) == ends


def test_only_a_history(tmp_path: Path) -> None:
    batch, report = load(write(tmp_path / "o__r-1.traj", {"history": swe()["history"]}), report=True)
    assert [(s["observation"], s["action"]) for s in batch_rows(batch)[1]] == [("the issue", "run 0")]
    assert "only the history" in report.notes[0] and batch_rows(batch)[0][0]["final_observation"] == "out 0"


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    good = swe()
    write(tmp_path / "o__r-1.traj", good)
    write(tmp_path / "o__r-2.traj", {**good, "trajectory": [*good["trajectory"], 5]})
    write(tmp_path / "o__r-3.traj", {**good, "trajectory": [{**good["trajectory"][0], "action": None}]})
    (tmp_path / "o__r-4.traj").write_bytes(b"")
    batch, report = load(tmp_path, report=True)
    assert batch.group_ids == ["o__r-1"] and (report.read, report.rejected) == (3, 2) and codes(report)["file_skipped"] == 1
    assert (
        "step 0 of the trajectory has no action" in report.rejections[1].reason
        and "o__r-4.traj: the file is empty" in report.notes[0]
    )
    with pytest.raises(InputError, match=r"o__r-4.traj: the file is empty"):
        load(tmp_path / "o__r-4.traj")


def test_a_list_of_messages(tmp_path: Path) -> None:
    batch, report = load(write(tmp_path / "o__r-1.traj.json", MINI), report=True)
    rollout, steps = batch_rows(batch)[0][0], batch_rows(batch)[1]
    assert [s["action"] for s in steps] == ["ls -la", "echo DONE"], "the command, not the text around it"
    assert steps[0]["action_text"] == MINI[2]["content"] and steps[1]["observation"].startswith("<returncode>0")
    assert rollout["group_id"] == "o__r-1" and rollout["final_observation"] == "" and report.formats == ("mini-swe-agent",)
    assert codes(report) == {"group_from_name": 1, "no_outcome": 1}


def test_an_object_with_messages(tmp_path: Path) -> None:
    value = {
        "trajectory_format": "mini-swe-agent-1", "instance_id": "o__r-7", "info": {"exit_status": "LimitsExceeded"},
        "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": None, "extra": {"actions": [{"command": "ls"}]}},
            {"role": "assistant", "content": "```bash\na\n```\n```bash\nb\n```"},
            {"role": "exit", "content": "bye"},
        ],
    }  # fmt: skip
    batch, report = load(write(tmp_path / "x.json", value), report=True)
    assert batch.group_ids == ["o__r-7"] and batch.truncated.tolist() == [True] and codes(report) == {"no_outcome": 1}
    assert [s["action"] for s in batch_rows(batch)[1]] == ["ls", "```bash\na\n```\n```bash\nb\n```"]
