"""tau-bench results, and chats as steps."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from step_rows import codes

from graft_core.formats import load, write_jsonl
from graft_core.formats.chat import action_of, chat_steps, content_text
from graft_core.rollouts import RolloutBatch, batch_rows


def call(name: str, arguments: Any, content: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": [{"function": {"name": name, "arguments": arguments}}]}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def tool(text: str) -> dict[str, Any]:
    return {"role": "tool", "content": text, "name": "t", "tool_call_id": "c"}


CHAT = [
    {"role": "system", "content": "policy"},
    user("hello"),
    {"role": "assistant", "content": "who are you?"},
    user("me"),
    call("find", '{"b": 1, "a": "x"}'),
    tool("found"),
    call("stop", "{}", content="Goodbye."),
    tool("stopped"),
    user("###STOP###"),
]


def item(task: int, trial: int, reward: Any, chat: list[dict[str, Any]] = CHAT, **more: Any) -> dict[str, Any]:
    return {"task_id": task, "trial": trial, "reward": reward, "info": {"task": {"instruction": "do it"}}, "traj": chat} | more


@pytest.fixture(scope="module")
def airline(test_data: Path) -> RolloutBatch:
    return load(test_data / "tau_bench" / "gpt-4o-airline.json")


def test_the_real_file_has_the_counts_of_an_independent_count(airline: RolloutBatch, test_data: Path) -> None:
    expected = next(e for e in json.loads((test_data / "expected.json").read_text()) if e["set"] == "tau_bench")
    sizes = Counter(airline.group.tolist())
    assert (airline.n_rollouts, airline.n_groups, airline.n_steps) == (200, 50, 2454)
    assert (airline.n_rollouts, airline.n_groups, airline.n_steps) == tuple(
        expected[k] for k in ("trajectories", "groups", "steps")
    )
    assert Counter(sizes.values()) == {4: 50}
    assert int(airline.success.sum()) == 84 == expected["success"]
    wins: dict[int, set[float]] = {}
    for group, success in zip(airline.group.tolist(), airline.success.tolist(), strict=True):
        wins.setdefault(group, set()).add(success)
    assert sum(len(w) == 2 for w in wins.values()) == 26 == expected["mixed_groups"]
    assert set(airline.group_ids) == {str(i) for i in range(50)} and set(airline.rollout_ids) == {"0", "1", "2", "3"}
    assert airline.lengths.min() > 0


def test_the_real_file_is_read_whole_and_without_complaint(test_data: Path) -> None:
    _, report = load(test_data / "tau_bench", report=True)
    assert (report.read, report.accepted, report.rejected) == (200, 200, 0) and not report.warnings


def test_the_real_file_has_tool_results_as_observations(airline: RolloutBatch) -> None:
    steps = batch_rows(airline)[1]
    assert steps[0]["observation"].startswith("Hi! I'm looking to book a flight"), "the first user message, no system prompt"
    assert steps[2]["action"] == 'get_user_details {"user_id":"mia_li_3668"}'
    assert not any("Airline Agent Policy" in s["observation"] for s in steps)
    tools = [s["action"].partition(" ")[0] for s in steps if s["action"].partition(" ")[2][:1] == "{"]
    assert len(tools) == 1164 and Counter(tools)["transfer_to_human_agents"] == 48


def test_steps_of_a_chat(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps([item(5, 2, 1.0)]))
    batch, report = load(tmp_path / "t.json", report=True)
    rollouts, steps = batch_rows(batch)
    assert (rollouts[0]["group_id"], rollouts[0]["rollout_id"]) == ("5", "2")
    assert [s["observation"] for s in steps] == ["hello", "me", "found"]
    assert [s["action"] for s in steps] == ["who are you?", 'find {"a":"x","b":1}', "stop {}"]
    assert [s["action_text"] for s in steps] == [None, 'find {"b": 1, "a": "x"}', "Goodbye.\nstop {}"]
    assert rollouts[0]["final_observation"] == "stopped\n\n###STOP###"
    assert json.loads(rollouts[0]["metadata"]) == {"instruction": "do it"}
    assert batch.rollouts.column("source")[0].as_py().endswith("t.json[0]") and not report.warnings


@pytest.mark.parametrize(
    ("reward", "success", "outcome"),
    [(1.0, True, 1.0), (1 + 5e-7, True, 1 + 5e-7), (1 + 1e-5, False, 1 + 1e-5), (0, False, 0.0), (None, None, None)],
)
def test_success_is_a_reward_of_one(tmp_path: Path, reward: Any, success: bool | None, outcome: float | None) -> None:
    (tmp_path / "t.json").write_text(json.dumps([item(0, 0, reward)]))
    rollout = batch_rows(load(tmp_path / "t.json"))[0][0]
    assert (rollout["success"], rollout["outcome"]) == (success, outcome)


def test_task_ids_of_two_task_sets_are_kept_apart_only_where_they_clash(tmp_path: Path) -> None:
    for name, tasks in {"airline": (0, 1), "retail": (1, 2), "telecom": (7,)}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps([item(t, k, 1.0) for t in tasks for k in range(2)]))
    batch, report = load(tmp_path, report=True)
    assert batch.group_ids == ["airline/0", "airline/1", "retail/1", "retail/2", "7"]
    assert batch.lengths.tolist() == [3] * 10 and not report.warnings


def test_a_converted_copy_beside_the_original_is_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "airline.json").write_text(json.dumps([item(0, k, 1.0) for k in range(2)]))
    write_jsonl(load(tmp_path / "airline.json"), tmp_path / "copy.jsonl")
    batch = load(tmp_path)
    assert batch.group_ids == ["airline/0", "0"] and batch.lengths.tolist() == [3] * 4


def test_items_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(
        json.dumps(
            [item(0, 0, 1.0), 5, {"task_id": 1}, item(1, 0, "NaN"), item(1, 1, 0.0, chat=["x"]), item(2, 0, 0.0, chat=[])]
        )  # type: ignore[list-item]
    )
    batch, report = load(tmp_path / "t.json", report=True)
    assert batch.rollout_ids == ["0", "0"] and batch.lengths.tolist() == [3, 0], "a chat without agent turns has no steps"
    assert (report.read, report.accepted, report.rejected) == (6, 2, 4)
    assert sum(r.records for r in report.rejections) == 4
    assert sorted(r.where.rpartition("[")[2] for r in report.rejections) == ["1]", "2]", "3]", "4]"]


def test_a_trial_that_occurs_twice_is_kept_under_another_name(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps([item(0, 0, 1.0), item(0, 0, 0.0)]))
    batch, report = load(tmp_path / "t.json", report=True)
    assert batch.rollout_ids == ["0", "0#2"] and codes(report) == {"rollout_ids_renamed": 1}


def test_odd_messages() -> None:
    assert action_of(call("f", '{"cut off')) == ('f {"cut off', 'f {"cut off')
    assert action_of(call("f", {"b": 1, "a": 2}))[0] == 'f {"a":2,"b":1}'
    assert action_of({"role": "assistant", "content": None}) == ("", "")
    assert action_of({"role": "assistant", "tool_calls": [{"function": "f", "arguments": {"x": 1}}]})[0] == 'f {"x":1}'
    image = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    other = [image[0], {"type": "image_url", "image_url": {"url": "data:image/png;base64,BBBB"}}]
    assert content_text(image).startswith("see\n[image ") and "AAAA" not in content_text(image)
    assert content_text(image) != content_text(other)


def test_two_assistant_messages_in_a_row_and_none_at_the_end() -> None:
    steps, final = chat_steps([user("q"), {"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}])
    assert [s["observation"] for s in steps] == ["q", ""] and final is None
    assert chat_steps([user("q")]) == ([], None)


def test_a_deeply_nested_id_is_no_traceback(tmp_path: Path) -> None:
    deep = "[" * 1015 + "]" * 1015  # as deep as orjson goes
    (tmp_path / "deep.json").write_text(
        f'[{{"task_id": 1, "trial": {deep}, "reward": 0, "traj": []}}, {{"task_id": 1, "trial": 0, "reward": 1, "traj": []}}]'
    )
    batch, report = load(tmp_path / "deep.json", report=True)
    assert report.read == 2 == report.accepted + report.rejected and batch.n_rollouts >= 1
