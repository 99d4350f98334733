"""NeMo-Gym rollouts and items of the Responses API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sample_files import call, lines, nemo, result, say
from step_rows import codes

from graft_core.formats import load
from graft_core.rollouts import LoadReport, RolloutBatch, batch_rows

THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}


def rollouts(folder: Path, *records: Any, tail: bytes = b"") -> tuple[RolloutBatch, LoadReport]:
    (folder / "rollouts.jsonl").write_bytes(lines(list(records)) + tail)
    return load(folder / "rollouts.jsonl", report=True)


def test_a_rollout(tmp_path: Path) -> None:
    batch, report = rollouts(
        tmp_path, nemo(3, 1, -1.0, terminated=True, truncated=False, info={"result": "bust"}, agent_ref={"name": "b"})
    )
    rollout, steps = batch_rows(batch)[0][0], batch_rows(batch)[1]
    assert (rollout["group_id"], rollout["rollout_id"], rollout["outcome"]) == ("3", "1", -1.0)
    assert rollout["terminated"] is True and rollout["truncated"] is False and rollout["task_family"] == "b"
    assert json.loads(rollout["metadata"]) == {"info": {"result": "bust"}}
    assert [(s["observation"], s["action"]) for s in steps] == [("do it", 'look {"a":2,"b":1}'), ("seen", "bye")]
    assert steps[0]["action_text"] == 'look {"b": 1, "a": 2}' and not report.warnings
    assert batch.rollouts.column("source")[0].as_py().endswith("rollouts.jsonl:1")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ([call("a"), call("b"), result("1"), result("2"), say("end")], [("do it", "a {}"), ("", "b {}"), ("1\n\n2", "end")]),
        ([say("I look"), call("a"), result("1"), say("end")], [("do it", "a {}"), ("1", "end")]),
        ([say("one"), say("two")], [("do it", "one"), ("", "two")]),
        ([say("hi"), say("board", "user"), say("left")], [("do it", "hi"), ("board", "left")]),
        ([THOUGHT, say("<action>hit</action>")], [("do it", "hit")]),
        ([say("so it is</think>stand")], [("do it", "stand")]),
        ([call("f", '{"cut": "o')], [("do it", 'f {"cut": "o')]),
        ([{"type": "web_search_call", "action": {"query": "q"}}, 5], [("do it", 'web_search_call {"query":"q"}')]),
        ([], []),
    ],
)  # fmt: skip
def test_items_as_steps(tmp_path: Path, output: list[Any], expected: list[tuple[str, str]]) -> None:
    batch, _ = rollouts(tmp_path, nemo(output=output))
    assert [(s["observation"], s["action"]) for s in batch_rows(batch)[1]] == expected


def test_what_was_said_is_kept_beside_what_was_done(tmp_path: Path) -> None:
    batch, _ = rollouts(tmp_path, nemo(output=[THOUGHT, say("I look"), call("a"), say("<action>hit</action>")]))
    assert [s["action_text"] for s in batch_rows(batch)[1]] == ["hm\nI look\na {}", "<action>hit</action>"]


def test_what_arrives_last_is_the_final_observation(tmp_path: Path) -> None:
    batch, _ = rollouts(tmp_path, nemo(output=[say("go"), say("the end", "user")]))
    assert batch_rows(batch)[0][0]["final_observation"] == "the end"


@pytest.mark.parametrize(
    "more",
    [{"exception_type": "RuntimeError"}, {"response": None}, {"response": {"output": [], "error": {"code": 500}}}],
)
def test_an_error_of_the_infrastructure_is_unknown(tmp_path: Path, more: dict[str, Any]) -> None:
    batch, report = rollouts(tmp_path, nemo(0, 0, 0.0, [], **more), nemo(0, 1, 0.0))
    assert batch.rollouts.column("outcome").to_pylist() == [None, 0.0] and codes(report) == {"infrastructure_error": 1}
    assert batch.lengths.tolist() == [0, 2] and "rollouts without any step (1x)" in report.notes


def test_truncated_is_not_failed(tmp_path: Path) -> None:
    batch, _ = rollouts(
        tmp_path, nemo(0, 0, 1.0, truncated=True), nemo(0, 1, 0.0, response={"output": [], "status": "incomplete"})
    )
    assert batch.truncated.tolist() == [True, True] and batch.success.tolist() == [1.0, 0.0]


def test_without_a_task_index_groups_are_assumed_and_told(tmp_path: Path) -> None:
    batch, report = rollouts(tmp_path, nemo(None, None), nemo(None, None, 0.0))
    assert batch.groups_assumed and batch.rollout_ids == ["1", "2"] and codes(report) == {"group_missing": 2}
    assert load(tmp_path / "rollouts.jsonl", group_by="column:observation").group_ids == ["do it"]


def test_torn_lines_cost_only_themselves(tmp_path: Path) -> None:
    (tmp_path / "rollouts.jsonl").write_bytes(lines([nemo(0, 0)]) + b'{"response": {"out\n\n' + lines([nemo(0, 1)]) + b'{"torn')
    batch, report = load(tmp_path / "rollouts.jsonl", report=True)
    assert batch.rollout_ids == ["0", "1"] and (report.read, report.accepted) == (4, 2)
    assert [r.where.rpartition(":")[2] for r in report.rejections] == ["2", "5"] and "18 bytes" in report.rejections[0].reason


def test_odd_records(tmp_path: Path) -> None:
    batch, report = rollouts(
        tmp_path, nemo(0, 0), nemo(0, 0), {"reward": 1}, nemo(1, 0, float("nan")), nemo(1, 1, "0.5"),
        {**nemo(), "_ng_task_index": float("inf")},
        nemo(2, 0, response={"output": 5}), nemo(3, 0, output=[say("\ud835 sum")]), nemo(4, 0, 10**40),
    )  # fmt: skip
    assert batch.rollout_ids == ["0", "0#2", "1", "0", "0"] and batch.outcome.tolist() == [1.0, 1.0, 0.5, 1.0, 1e40]
    assert (report.read, report.rejected) == (9, 4) == (9, sum(r.records for r in report.rejections))
    assert codes(report) == {"rollout_ids_renamed": 1, "numbers_from_text": 1, "surrogates_replaced": 1}
    assert batch.text(int(batch.action[-3])) == "\\ud835 sum"


def test_files_of_two_environments_keep_their_tasks_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes(lines([nemo(0, 0), nemo(0, 1)]))
    assert load(tmp_path).group_ids == ["a/0", "b/0"]


def test_a_json_list_of_records(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps([nemo(0, 0), 5, nemo(0, 1)], indent=1))
    batch, report = load(tmp_path / "r.json", report=True)
    assert batch.rollout_ids == ["0", "1"] and report.rejections[0].where.endswith("r.json[1]")
