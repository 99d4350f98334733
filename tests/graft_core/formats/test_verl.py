"""verl dumps: one text per rollout, groups from uid or prompt, and the forks that dump one line per step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from more_files import VERL_V0, VERL_V1, verl
from step_rows import codes
from written import column, lines, read

import graft_core as gc

FLAT = "I call the tool\n<tool_call>x</tool_call>\ntool\n4\nassistant\nfour"


def test_a_dump_without_uid_is_grouped_by_equal_prompts_and_says_so(tmp_path: Path) -> None:
    rollouts, steps, report = read(lines(tmp_path / "3.jsonl", *VERL_V0))
    assert report.formats == ("verl",) and codes(report) == {"group_from_prompt": 6}
    assert len(set(column(rollouts, "group_id"))) == 2 and column(rollouts, "group_id")[0].startswith("task 0 #")
    assert column(rollouts, "outcome") == [0, 1, 0, 0, 1, 0] and set(column(rollouts, "train_step")) == {3}
    assert [(s["observation"], s["action"], s["step"]) for s in steps[:2]] == [
        ("task 0", "answer 0", 0),
        ("task 0", "answer 1", 0),
    ]
    assert json.loads(rollouts[0]["metadata"]) == {"gts": "42"}
    assert "2 of 3" in report.warnings[0].sentence, "the sizes of the groups"


def test_a_uid_names_sample_rollout_and_output(tmp_path: Path) -> None:
    rollouts, _, report = read(lines(tmp_path / "3.jsonl", *VERL_V1, verl(uid="my_task_1_0", output="x"), verl(uid="plain")))
    assert column(rollouts, "group_id") == ["0", "0", "1", "1", "my_task", "plain"]
    assert column(rollouts, "rollout_id") == ["0_0", "1_0", "0_0", "1_0", "1_0", "6"] and not codes(report)


def test_the_same_sample_in_two_training_steps_is_two_groups(tmp_path: Path) -> None:
    for step in (3, 4):
        lines(tmp_path / f"{step}.jsonl", *(r | {"step": step} for r in VERL_V1))
    batch = gc.load(tmp_path)
    assert (
        batch.group_ids == ["3/0", "3/1", "4/0", "4/1"] and batch.rollouts.column("train_step").to_pylist() == [3] * 4 + [4] * 4
    )


def test_rollouts_of_a_prompt_in_two_training_steps_stay_apart(tmp_path: Path) -> None:
    for step in (3, 4):
        lines(tmp_path / f"{step}.jsonl", *(r | {"step": step} for r in VERL_V0))
    assert gc.load(tmp_path).n_groups == 4


@pytest.mark.parametrize("text", [FLAT, "<|im_start|>assistant\na<|im_end|>", "user\nhello"])
def test_a_flattened_conversation_is_one_step_and_says_so(tmp_path: Path, text: str) -> None:
    _, steps, report = read(
        lines(tmp_path / "3.jsonl", verl(output=text), verl(output="the user said a tool\nis an assistant"))
    )
    assert len(steps) == 2 and steps[0]["action"] == text and codes(report)["turns_flattened"] == 1


def test_only_lonely_prompts_give_no_groups(tmp_path: Path) -> None:
    alone = [verl(f"p{i}", "o") for i in range(4)]
    assert codes(read(lines(tmp_path / "a.jsonl", *alone, verl("p0", "x")))[2])["group_missing"] == 5
    rollouts, _, report = read(lines(tmp_path / "b.jsonl", *alone[:2], verl("p0", "x"), verl("p0", "y")))
    assert "group_missing" not in codes(report) and len(set(column(rollouts, "group_id"))) == 2


def test_lines_that_name_their_trajectory_are_steps(tmp_path: Path) -> None:
    dumped = [
        verl(
            f"room {i // 2}",
            f"<think>hm</think><action>go {i}</action>",
            i % 2,
            uid="g",
            traj_uid=f"r{i % 2}",
            is_action_valid=i < 5,
        )
        for i in range(6)
    ]
    rollouts, steps, report = read(lines(tmp_path / "3.jsonl", *dumped))
    assert column(rollouts, "rollout_id") == ["r0", "r1"] and column(rollouts, "outcome") == [0, 1]
    assert column(steps[:3], "action") == ["go 0", "go 2", "go 4"] and steps[0]["action_text"].startswith("<think>")
    assert column(steps, "valid") == [True, True, True, True, True, False]
    assert codes(report) == {"step_missing": 6, "order_doubtful": 2} and (report.read, report.rejected) == (6, 0)


def test_scores_of_several_kinds(tmp_path: Path) -> None:
    made = [verl(score=[0.25, 0.5]), verl(score=None), verl(score="x"), verl(score=None, reward=2)]
    rollouts, _, report = read(lines(tmp_path / "3.jsonl", *made))
    assert column(rollouts, "outcome") == [0.75, None, 2] and report.rejected == 1
    assert codes(report)["no_outcome"] == 1 and codes(report)["aliases_used"] == 1


def test_lines_that_are_no_rollouts_are_rejected(tmp_path: Path) -> None:
    _, _, report = read(lines(tmp_path / "3.jsonl", verl(), {"input": "p"}, verl(output=None), "[1]", "{"))
    assert (report.read, report.accepted, report.rejected) == (5, 1, 4)
    assert "no text under input and output" in {r.reason.removeprefix("the record has ") for r in report.rejections}
