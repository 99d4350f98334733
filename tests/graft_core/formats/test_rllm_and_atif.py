"""rLLM episodes, and Harbor trials with their ATIF trajectories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from more_files import TALK, atif, rllm
from step_rows import codes
from written import column, document, lines, read

from graft_core.errors import InputError
from graft_core.formats import load


def test_episodes_one_file_each(tmp_path: Path) -> None:
    for task in ("t0", "t1"):
        for k in (0, 1):
            document(tmp_path / "episodes" / "train_step_7" / f"{task}{k}.json", rllm(f"{task}:{k}", float(k), bool(k)))
    rollouts, steps, report = read(tmp_path)
    assert set(report.formats) == {"rllm"} and not codes(report)
    assert column(rollouts, "group_id") == ["t0", "t0", "t1", "t1"] and column(rollouts, "rollout_id") == ["0", "1", "0", "1"]
    assert column(rollouts, "outcome") == [0, 1, 0, 1] and set(column(rollouts, "train_step")) == {7}
    assert column(steps[:2], "action") == ["a1", 'go {"a":2,"b":1}'] and column(steps[:2], "reward") == [0, 1]
    assert column(steps[:2], "observation") == ["o1", '{"room":1}'] and steps[0]["action_text"] == "<think>t</think>a1"
    assert column(rollouts, "terminated") == [True] * 4


def test_steps_of_an_episode_may_only_have_their_chat(tmp_path: Path) -> None:
    steps = [{"chat_completions": TALK[:3], "action": None}, {"chat_completions": TALK[:5], "observation": "", "action": ""}]
    made = rllm(trajectories=[{"name": "a", "reward": None, "steps": steps}], is_correct=False)
    rollouts, steps, _ = read(document(tmp_path / "e.json", made))
    assert column(steps, "action") == ['find {"a":"x","b":1}', "Booked."]
    assert column(steps, "observation") == ["book a table", "two tables"] and rollouts[0]["outcome"] == 0


def test_how_an_episode_ended(tmp_path: Path) -> None:
    made = [rllm(f"t:{k}", termination_reason=r) for k, r in enumerate(["max_turns_exceeded", "error", "timeout", None])]
    rollouts, _, report = read(lines(tmp_path / "e.jsonl", *made))
    assert column(rollouts, "truncated") == [True, None, True, None] and column(rollouts, "outcome") == [1, None, 1, 1]
    assert column(rollouts, "success")[1] is None and codes(report) == {"infrastructure_error": 1}


def test_agents_of_one_episode_are_groups_of_their_own(tmp_path: Path) -> None:
    step = {"observation": "o", "action": "a"}
    agents = [{"name": n, "reward": r, "steps": [step]} for n, r in (("solver", 1.0), ("solver", 0.0), ("judge", 0.5))]
    rollouts, _, _ = read(document(tmp_path / "e.json", rllm("t:0", trajectories=agents)))
    assert column(rollouts, "group_id") == ["t/solver", "t/solver", "t/judge"]
    assert column(rollouts, "rollout_id") == ["0/0", "0/1", "0/2"] and column(rollouts, "outcome") == [1, 0, 0.5]
    assert set(column(rollouts, "success")) == {None}, "whether the episode was right says nothing about one agent"


def test_episodes_without_a_task_in_their_id(tmp_path: Path) -> None:
    made = [rllm("x1", task_hash="h"), rllm("x2", task={"id": 5}), rllm("x3")]
    rollouts, _, report = read(lines(tmp_path / "e.jsonl", *made))
    assert column(rollouts, "group_id")[:2] == ["h", "5"] and codes(report)["group_missing"] == 1
    _, _, report = read(lines(tmp_path / "f.jsonl", rllm(), rllm(trajectories=None), rllm(trajectories=[{"steps": [1]}])))
    assert (report.read, report.rejected) == (3, 2)


def trial(folder: Path, trajectory: Any = None, result: Any = None, reward: str | None = None) -> Path:
    folder.mkdir(parents=True)
    if trajectory is not None:
        document(folder / "agent" / "trajectory.json", trajectory)
    if result is not None:
        document(folder / "result.json", result)
    if reward is not None:
        (folder / "verifier").mkdir()
        (folder / "verifier" / "reward.txt").write_text(reward)
    return folder


def outcome(reward: Any, task: str = "fix", name: str = "fix__a1") -> dict[str, Any]:
    return {
        "task_name": task,
        "trial_name": name,
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
    }


def test_a_folder_of_trials(tmp_path: Path) -> None:
    trial(tmp_path / "fix__a1", atif(), outcome(1.0))
    trial(tmp_path / "fix__b2", atif(session_id="s2"), {**outcome(None, name="fix__b2"), "exception_info": {"x": 1}})
    trial(tmp_path / "fix__c3", None, outcome(0.0, name="fix__c3"))
    trial(tmp_path / "make__d4", atif(), reward="0.5\n")
    rollouts, steps, report = read(tmp_path)
    assert column(rollouts, "group_id") == ["fix", "fix", "fix", "make"]
    assert column(rollouts, "rollout_id") == ["fix__a1", "fix__b2", "fix__c3", "make__d4"]
    assert column(rollouts, "outcome") == [1, None, 0, 0.5] and column(rollouts, "n_steps") == [2, 2, 0, 2]
    assert codes(report) == {"file_skipped": 1, "group_from_name": 1, "infrastructure_error": 1}
    assert column(steps[:2], "action") == ['run {"cmd":"ls","z":1}', "Fixed."]
    assert column(steps[:2], "observation") == ["fix it", "files"]
    assert steps[0]["action_text"] == 'hm\nI look.\nrun {"z":1,"cmd":"ls"}'


def test_a_trajectory_alone_has_neither_task_nor_outcome(tmp_path: Path) -> None:
    rollouts, _, report = read(document(tmp_path / "trajectory.json", atif()))
    assert rollouts[0]["rollout_id"] == "s1" and rollouts[0]["outcome"] is None
    assert codes(report) == {"group_missing": 1, "no_outcome": 1}


def test_a_trajectory_that_goes_on_in_other_files_is_one_rollout(tmp_path: Path) -> None:
    last = {"step_id": 1, "source": "agent", "message": "the end"}
    folder = trial(tmp_path / "fix__a1", atif(continued_trajectory_ref="trajectory.cont-1.json"), outcome(1.0))
    document(folder / "agent" / "trajectory.cont-1.json", atif(last, continued_trajectory_ref="trajectory.json"))
    rollouts, steps, report = read(tmp_path)
    assert len(rollouts) == 1 and column(steps, "action")[-1] == "the end" and len(steps) == 3
    assert any("continued" in n for n in report.notes) and not codes(report)


@pytest.mark.parametrize("ref", ["../../secret.json", "/etc/passwd", "sub/x.json", 5, "missing.json", "trajectory.json"])
def test_only_files_beside_a_trajectory_are_followed(tmp_path: Path, ref: Any) -> None:
    document(tmp_path / "secret.json", atif({"source": "agent", "message": "secret"}))
    folder = trial(tmp_path / "jobs" / "fix__a1", atif(continued_trajectory_ref=ref), outcome(1.0))
    document(folder / "agent" / "sub" / "x.json", atif({"source": "agent", "message": "secret"}))
    _, steps, _ = read(folder / "agent" / "trajectory.json")
    assert column(steps, "action") == ['run {"cmd":"ls","z":1}', "Fixed."]


@pytest.mark.parametrize(("text", "found"), [("1", 1.0), ("x", None), ("", None), ("nan", None), ("1e999", None)])
def test_rewards_in_a_text_file(tmp_path: Path, text: str, found: float | None) -> None:
    folder = trial(tmp_path / "fix__a1", atif(), reward=text)
    path = folder / "agent" / "trajectory.json"
    if text in ("nan", "1e999"):
        with pytest.raises(InputError, match="expected a finite number"):
            load(path)
    else:
        assert read(path)[0][0]["outcome"] == found


def test_odd_steps(tmp_path: Path) -> None:
    text = {"type": "text", "text": "look"}
    results = [{"content": None}, {"content": [{"type": "text", "text": "t"}]}]
    calls = [{"function_name": "f", "arguments": '{"cut'}, 5]
    steps = [
        {"source": "user", "message": [text, {"type": "image", "source": {"path": "a.png"}}]},
        {"source": "agent", "message": None, "tool_calls": calls, "observation": None},
        {"source": "agent", "message": "", "observation": {"results": results}, "tool_calls": 7},
    ]
    rollouts, made, _ = read(document(tmp_path / "trajectory.json", atif(*steps)))
    assert made[0]["observation"].startswith("look\n[image ") and made[0]["action"] == 'f {"cut' and made[1]["action"] == ""
    assert rollouts[0]["final_observation"] == "\n\nt"
    with pytest.raises(InputError, match="no list of objects"):
        load(document(tmp_path / "b.json", json.loads(json.dumps(atif())) | {"steps": [1]}))
