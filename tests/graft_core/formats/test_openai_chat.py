"""Chats with a reward: ids under many names, groups from openings, step rewards, ShareGPT."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from more_files import CHATS, TALK, answer, chat, choice, tool, user
from step_rows import codes
from written import column, document, lines, read

from graft_core.errors import InputError
from graft_core.formats import load


def test_lines_and_lists_and_single_objects_read_the_same(tmp_path: Path) -> None:
    rollouts, steps, report = read(lines(tmp_path / "a.jsonl", *CHATS))
    assert report.formats == ("openai-chat",) and not codes(report)
    assert column(rollouts, "group_id") == ["t0", "t0", "t1", "t1"] and column(rollouts, "outcome") == [0, 1, 0, 1]
    assert column(steps[:2], "observation") == ["book a table", "two tables"], "no system prompt"
    assert column(steps[:2], "action") == ['find {"a":"x","b":1}', "Booked."]
    assert steps[0]["action_text"] == 'Let me see.\nfind {"b": 1, "a": "x"}' and rollouts[0]["final_observation"] == "thanks"
    assert json.loads(rollouts[1]["metadata"])["seed"] == 1
    again = read(document(tmp_path / "a.json", CHATS))
    assert [{**r, "rollout_id": ""} for r in again[0]] == [{**r, "rollout_id": ""} for r in rollouts] and again[1] == steps
    assert read(document(tmp_path / "b.json", CHATS[1]))[0][0]["outcome"] == 1


def test_ids_flags_and_training_step_under_other_names_and_inside_metadata(tmp_path: Path) -> None:
    about = {"instance_id": "i", "trial_id": 4, "is_correct": True, "done": True, "global_step": 9, "task_type": "book"}
    rollouts, _, _ = read(lines(tmp_path / "a.jsonl", {"messages": TALK, "metadata": about, "score": 0.25}))
    found = rollouts[0]
    assert (found["group_id"], found["rollout_id"], found["success"], found["terminated"]) == ("i", "4", True, True)
    assert (found["train_step"], found["task_family"], found["outcome"]) == (9, "book", 0.25)


def test_without_a_task_the_opening_makes_the_group_where_it_repeats(tmp_path: Path) -> None:
    one, two = [user("a"), answer("x")], [user("b"), answer("y")]
    rollouts, _, report = read(lines(tmp_path / "a.jsonl", *(chat(t) for t in (one, two, one, two))))
    assert len(set(column(rollouts, "group_id"))) == 2 and rollouts[0]["group_id"] == rollouts[2]["group_id"]
    assert codes(report)["group_from_prompt"] == 4
    _, _, report = read(lines(tmp_path / "b.jsonl", chat(one), chat(two)))
    assert codes(report)["group_missing"] == 2


def test_rewards_per_step(tmp_path: Path) -> None:
    given = [{"messages": TALK, "task_id": 1, "rewards": r} for r in ([0.25, 0.5], [1.0], {"a": 1})]
    rollouts, steps, report = read(lines(tmp_path / "a.jsonl", *given))
    assert column(steps, "reward") == [0.25, 0.5, None, None, None, None] and column(rollouts, "outcome") == [0.75, None, None]
    assert any("list of rewards" in n for n in report.notes)


def test_rewards_by_name_are_summed_and_told(tmp_path: Path) -> None:
    rollouts, _, report = read(
        lines(tmp_path / "a.jsonl", chat(reward={"right": 1.0, "short": 0.5}, task_id=1), chat(reward=None, task_id=1))
    )
    assert column(rollouts, "outcome") == [1.5, None] and codes(report)["rewards_summed"] == 1
    assert "no_outcome" not in codes(report), "present and null is unknown, and said so by the file"


def test_conversations_of_from_and_value(tmp_path: Path) -> None:
    talk = [
        {"from": "human", "value": "go"},
        {"from": "gpt", "value": "Thought: hm\nAction: north"},
        {"from": "human", "value": "wall"},
    ]
    meta = {"reward": 0.5, "success": False, "finished": True, "terminate_reason": "max"}
    rollouts, steps, _ = read(document(tmp_path / "a.json", [{"meta": meta, "conversations": talk, "item_id": "x"}]))
    assert steps[0]["observation"] == "go" and rollouts[0]["final_observation"] == "wall"
    assert (rollouts[0]["outcome"], rollouts[0]["success"], rollouts[0]["terminated"]) == (0.5, False, True)
    assert rollouts[0]["group_id"] == "x"


def test_choices_hold_messages_and_older_function_calls_are_calls(tmp_path: Path) -> None:
    old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"b":1,"a":2}'}}
    flat = {"role": "assistant", "content": None, "tool_calls": [{"name": "g", "arguments": {"b": 1, "a": 2}}]}
    _, steps, _ = read(lines(tmp_path / "a.jsonl", chat([user("q"), choice(old), tool("r"), flat], task_id=1)))
    assert column(steps, "action") == ['f {"a":2,"b":1}', 'g {"a":2,"b":1}'] and steps[1]["observation"] == "r"


def test_records_that_are_no_chats_are_rejected(tmp_path: Path) -> None:
    bad = [{"messages": "x", "reward": 1}, {"messages": [{"content": "x"}]}, {"messages": []}, {"reward": 1}]
    rollouts, _, report = read(lines(tmp_path / "a.jsonl", CHATS[0], *bad, chat(task_id="t", reward="much")))
    assert len(rollouts) == 1 and (report.read, report.accepted, report.rejected) == (6, 1, 5)
    with pytest.raises(InputError, match="no known format"):
        load(lines(tmp_path / "b.jsonl", {"messages": [user("only a question")]}))


def test_prompts_and_completions_under_the_names_of_several_trainers(tmp_path: Path) -> None:
    areal = {"task_id": "t", "sample_idx": 0, "prompt": "q", "completion": "<think>h</think>four", "reward": 1.0, "seqlen": 9}
    skyrl = {"input_prompt": [user("2+2"), answer("4"), user("3+3")], "output_response": "six", "score": [0.0, 0.25, 0.5]}
    skyrl |= {"stop_reason": "length", "env_class": "math", "data_source": "gsm"}
    plain = {"question": "q", "response": "user\nx\nassistant\ny", "reward": 0.0}
    rollouts, steps, report = read(lines(tmp_path / "a.jsonl", areal, skyrl, plain))
    assert report.formats == ("openai-chat",) and column(steps, "action")[:2] == ["four", "six"]
    assert column(steps, "observation") == ["q", "2+2\n\n3+3", "q"] and column(rollouts, "outcome") == [1, 0.75, 0]
    assert (rollouts[0]["group_id"], rollouts[0]["rollout_id"]) == ("t", "0") and rollouts[1]["truncated"] is True
    assert rollouts[1]["task_family"] == "gsm" and codes(report)["turns_flattened"] == 1
    with pytest.raises(InputError, match="no known format"):
        load(lines(tmp_path / "b.jsonl", {"prompt": "q", "completion": "a"}))
