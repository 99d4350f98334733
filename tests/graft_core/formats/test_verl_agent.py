"""verl-agent step dumps: no task ids, doubtful order, actions inside tags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from step_rows import codes

from graft_core.errors import GroupMissingError
from graft_core.formats import load
from graft_core.formats._tags import parsed_action
from graft_core.formats.order import order_doubts
from graft_core.rollouts import batch_rows


def test_the_real_files_have_the_counts_of_an_independent_count(test_data: Path) -> None:
    batch, report = load(test_data / "verl_agent_webshop", report=True)
    assert (batch.n_rollouts, batch.n_groups, batch.n_steps) == (128, 4, 1256)
    assert int(batch.success.sum()) == 49 and batch.known.all()
    assert [int((batch.group == g).sum()) for g in range(4)] == [32] * 4
    assert (report.read, report.accepted, report.rejected) == (128, 128, 0) and len(report.files) == 4
    assert set(codes(report)) == {"group_missing", "order_doubtful"} and codes(report)["group_missing"] == 128
    assert batch.group_ids[0] == "global_step_160_observe_trajectories"
    with pytest.raises(GroupMissingError):
        batch.require_groups()
    by_file = load(test_data / "verl_agent_webshop", group_by="file")
    assert by_file.group_ids == batch.group_ids and not by_file.groups_assumed


def test_the_real_files_doubtful_rollouts_are_those_of_a_plain_count(test_data: Path) -> None:
    """Not first at the start page, or bought and went on: counted straight from the JSON."""
    expected = []
    for path in sorted((test_data / "verl_agent_webshop").glob("*.json")):
        for found in json.loads(path.read_text())["trajectories"]:
            bought = ["[buy now]" in s["action"].lower().rpartition("<action>")[2] for s in found["steps"]]
            expected.append(found["steps"][0]["observation"] != "'Search'" or any(bought[:-1]))
    batch, report = load(test_data / "verl_agent_webshop", report=True)
    assert batch.rollouts.column("order_doubtful").to_pylist() == expected
    assert codes(report)["order_doubtful"] == sum(expected)


def test_the_real_files_actions_are_parsed(test_data: Path) -> None:
    batch = load(test_data / "verl_agent_webshop")
    steps = batch_rows(batch)[1]
    assert not any("<action>" in s["action"] for s in steps)
    whole = sum(s["action_text"].lower() == s["action"] for s in steps)
    assert whole == 1, "a text that was cut off while thinking is all there is"
    clicks = sum(s["action"].startswith(("click[", "search[")) for s in steps)
    assert clicks == 1256 - 7, "but for seven that the model wrote otherwise"
    assert steps[0]["advantage"] == -79.541245 and json.loads(steps[0]["metadata"])["obs_n_tokens"] == 228
    assert batch.rollouts.column("train_step").to_pylist()[:1] == [160]


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("<think>why</think><action>click[a]</action>", "click[a]"),
        ("<action>first</action> then <action> second </action>", "second"),
        ("<think>about <action> tags</think><action>go</action>", "go"),
        ("<think>cut</think><action>search[shoes", "search[shoes"),
        ("thinking without a tag</think> look", "look"),
        ("thinking</think>look</action>", "look"),
        ("only words", "only words"),
        ("<think>only thoughts</think>", "<think>only thoughts</think>"),
        ("<action></action>", ""),
        ("", ""),
    ],
)
def test_the_executed_action_is_the_last_tag(text: str, action: str) -> None:
    assert parsed_action(text) == action


def trajectory(name: str, observations: list[str], actions: list[str], reward: float = 0.0, **more: Any) -> dict[str, Any]:
    steps = [
        {"step": i, "observation": o, "action": f"<action>{a}</action>", "advantage": 0.5, "step_reward": 0.0, "entropy": i}
        for i, (o, a) in enumerate(zip(observations, actions, strict=True))
    ]
    if reward:
        steps[actions.index("buy")]["step_reward"] = reward
    return {"traj_id": name, "n_steps": len(steps), "success": reward > 0, "episode_reward": reward, "steps": steps} | more


def dump(path: Path, trajectories: list[Any]) -> Path:
    path.write_text(json.dumps({"global_step": 8, "n_trajectories": len(trajectories), "trajectories": trajectories}))
    return path


GOOD = [trajectory(f"t{i}", ["start", "page"], ["search", "buy"], 10.0) for i in range(8)]


def test_an_orderly_dump_raises_no_doubt(tmp_path: Path) -> None:
    batch, report = load(dump(tmp_path / "d.json", GOOD), report=True)
    assert not any(batch.rollouts.column("order_doubtful").to_pylist()) and set(codes(report)) == {"group_missing"}
    assert batch.outcome.tolist() == [10.0] * 8 and batch.success.tolist() == [1.0] * 8


def test_doubtful_rollouts_are_flagged_one_by_one(tmp_path: Path) -> None:
    late = trajectory("late", ["page", "start"], ["search", "buy"], 10.0)
    early = trajectory("early", ["start", "page"], ["buy", "search"], 10.0)
    batch, report = load(dump(tmp_path / "d.json", [*GOOD, late, early]), report=True)
    assert batch.rollouts.column("order_doubtful").to_pylist() == [False] * 8 + [True, True]
    (warning,) = [w for w in report.warnings if w.code == "order_doubtful"]
    assert warning.count == 2 and "'start'" in warning.sentence and "'buy'" in warning.sentence
    assert warning.where.endswith("d.json[8]")


def test_no_doubt_where_nothing_can_be_tested() -> None:
    few = order_doubts([["a"], ["b"]], [["x"], ["y"]], [[0], [0]])
    assert few.usual_start is None and few.ending_action is None and not few.rollouts
    mixed = order_doubts([[f"o{i}"] for i in range(20)], [["x", "y"]] * 20, [[1, 1]] * 20)
    assert mixed.usual_start is None and mixed.ending_action is None and not mixed.rollouts


def test_a_trajectory_that_cannot_be_used(tmp_path: Path) -> None:
    bad = [
        5,
        {"traj_id": "x"},
        {"traj_id": "y", "steps": [{"step": 0}]},
        trajectory("z", ["o"], ["buy"], episode_reward=float("nan")),
    ]
    batch, report = load(dump(tmp_path / "d.json", [*GOOD, *bad]), report=True)
    assert batch.n_rollouts == 8 and (report.read, report.rejected) == (12, 4)
    assert [r.where.rpartition("[")[2] for r in report.rejections] == ["8]", "9]", "10]", "11]"]
