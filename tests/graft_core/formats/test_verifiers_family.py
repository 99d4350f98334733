"""verifiers results, v1 traces, and the platform's export."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from more_files import EXPORT, SYSTEM, TALK, TRACES, VERIFIERS, answer, episode, export, node, nodes, result, tool, trace, user
from step_rows import codes
from written import column, document, lines, read

ACTIONS = ['find {"a":"x","b":1}', "Booked."]


def test_results(tmp_path: Path) -> None:
    rollouts, steps, report = read(lines(tmp_path / "results.jsonl", *VERIFIERS))
    assert report.formats == ("verifiers",) and not codes(report)
    assert column(rollouts, "group_id") == ["0", "0", "1", "1"] and column(rollouts, "rollout_id") == ["0", "1", "0", "1"]
    assert column(rollouts, "outcome") == [0, 1, 0, 1] and column(rollouts, "truncated") == [False] * 4
    assert column(steps[:2], "action") == ACTIONS and column(steps[:2], "observation") == ["book a table", "two tables"]
    assert json.loads(rollouts[0]["metadata"])["turns"] == 2.0


def test_results_of_two_environments_stay_apart(tmp_path: Path) -> None:
    for env in ("math", "chess"):
        lines(tmp_path / env / "results.jsonl", *VERIFIERS)
    rollouts, _, report = read(tmp_path)
    assert len(set(column(rollouts, "group_id"))) == 4 and "group_ids_reused" not in codes(report)


def test_prompts_and_completions_as_text_or_nothing(tmp_path: Path) -> None:
    made = [
        result(0, prompt="q", completion="<think>t</think>four"),
        result(0, completion=None, error={"error": "x"}),
        result(0, completion=5),
        result([1]),
        {"example_id": 0, "prompt": "p"},
    ]
    rollouts, steps, report = read(lines(tmp_path / "results.jsonl", *made))
    assert [(s["observation"], s["action"], s["action_text"]) for s in steps] == [("q", "four", "<think>t</think>four")]
    assert column(rollouts, "outcome") == [1, None] and column(rollouts, "n_steps") == [1, 0]
    assert report.rejected == 3 and codes(report) == {"infrastructure_error": 1}


def test_examples_in_the_prompt_are_no_steps(tmp_path: Path) -> None:
    made = result(0, prompt=[SYSTEM, user("2+2"), answer("4"), user("3+3")], completion=[answer("6")])
    _, steps, _ = read(lines(tmp_path / "results.jsonl", made))
    assert [(s["step"], s["observation"], s["action"]) for s in steps] == [(0, "3+3", "6")]


def test_traces(tmp_path: Path) -> None:
    rollouts, steps, report = read(lines(tmp_path / "run" / "rollouts" / "step_12" / "train" / "traces.jsonl", *TRACES))
    assert report.formats == ("verifiers-v1",) and not codes(report)
    assert column(rollouts, "group_id") == ["g0", "g0", "g1", "g1"] and column(rollouts, "rollout_id") == [
        "e00",
        "e01",
        "e10",
        "e11",
    ]
    assert column(rollouts, "outcome") == [0, 1, 0, 1] and set(column(rollouts, "train_step")) == {12}
    assert column(steps[:2], "action") == ACTIONS and column(steps[:2], "logprob") == [-1, -1]
    assert column(steps[:2], "advantage") == [0.25, 0.25] and rollouts[0]["task_family"] == "booking"
    assert "token_ids" not in json.dumps([rollouts, steps]) and rollouts[0]["final_observation"] == "thanks"


@pytest.mark.parametrize(
    ("rewards", "outcome"),
    [
        ({"a": {"value": 1.0, "weight": 0.5}, "b": {"value": 0.5, "weight": 1.0}}, 1.0),
        ({"a": {"value": 1.0}, "b": 0.25}, 1.25),
        ({"a": {"value": 1.0, "weight": 1.0}, "b": None}, None),
        ({}, None),
    ],
)
def test_the_outcome_of_a_trace_is_its_weighted_sum(tmp_path: Path, rewards: Any, outcome: float | None) -> None:
    rollouts, _, _ = read(lines(tmp_path / "t.jsonl", episode("e", "g", trace(rewards))))
    assert rollouts[0]["outcome"] == outcome


def test_of_a_tree_the_branch_sampled_last_is_read_and_the_others_are_told(tmp_path: Path) -> None:
    tree = [
        node(None, user("long task")),
        node(0, answer("old"), True),
        node(1, tool("result")),
        node(2, answer("lost end"), True),
        node(None, user("summary")),
        node(4, answer("new"), True),
        node(5, user("side"), False),
        node(5, tool("ok")),
        node(7, answer("end"), True),
    ]
    _, steps, report = read(lines(tmp_path / "t.jsonl", episode("e", "g", trace(tree=tree))))
    assert [(s["observation"], s["action"]) for s in steps] == [("summary", "new"), ("ok", "end")]
    assert codes(report) == {"branches_left_out": 2}


def test_answers_that_were_not_sampled_are_no_steps_and_circles_end(tmp_path: Path) -> None:
    tree = [node(None, user("2+2")), node(0, answer("4")), node(1, user("3+3")), node(2, answer("6"), True)]
    _, steps, _ = read(lines(tmp_path / "t.jsonl", episode("e", "g", trace(tree=tree))))
    assert column(steps, "action") == ["6"]
    circle = [{**n, "parent": (i + 1) % 4} for i, n in enumerate(tree)]
    rollouts, _, report = read(lines(tmp_path / "t.jsonl", episode("e", "g", trace(tree=circle))))
    assert len(rollouts) == 1 and report.rejected == 0


def test_episodes_without_group_with_errors_and_with_several_agents(tmp_path: Path) -> None:
    two = episode("d", "g", trace(agent={"name": "solver"}), trace(agent={"name": "judge"}, rewards={"r": 0.0}))
    made = [
        episode("a", None), episode("b", "g", trace(ok=False)), episode("c", "g", trace(stop_condition="max_turns")), two,
        episode("n", "g") | {"traces": []}, {"id": "x", "traces": [{"nodes": [1]}]},
    ]  # fmt: skip
    rollouts, _, report = read(lines(tmp_path / "t.jsonl", *made))
    assert column(rollouts, "group_id") == ["5", "g", "g", "g/solver", "g/judge", "g"]
    assert column(rollouts, "rollout_id") == ["a", "b", "c", "d/0", "d/1", "n"]
    assert column(rollouts, "outcome") == [1, None, 1, 1, 0, None] and column(rollouts, "truncated")[2] is True
    assert report.rejected == 1 and codes(report)["infrastructure_error"] == 1


def test_log_probs_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    tree = nodes()
    tree[2] |= {"logprobs": [None, -1.0], "advantages": 0.5}
    tree[4] |= {"logprobs": [], "advantages": [math.nan]}
    _, steps, _ = read(lines(tmp_path / "t.jsonl", episode("e", "g", trace(tree=tree))))
    assert column(steps, "logprob") == [None, None] and column(steps, "advantage") == [0.5, None]


@pytest.mark.parametrize("shape", ["lines", "list", "samples"])
def test_the_platform_export_is_json_inside_json(tmp_path: Path, shape: str) -> None:
    if shape == "lines":
        path = lines(tmp_path / "e.jsonl", *EXPORT)
    else:
        path = document(tmp_path / "e.json", EXPORT if shape == "list" else {"samples": EXPORT})
    rollouts, steps, report = read(path)
    assert report.formats == ("prime-export",) and not codes(report) and (report.read, report.accepted) == (4, 4)
    assert column(rollouts, "group_id") == ["0", "0", "1", "1"] and column(rollouts, "rollout_id") == ["0", "1", "0", "1"]
    assert column(steps[:2], "action") == ACTIONS and column(steps[:2], "observation") == ["book a table", "two tables"]
    assert column(steps, "advantage") == [-1.49e-08] * 8 and set(column(rollouts, "train_step")) == {4}
    assert json.loads(rollouts[0]["metadata"]) == {"metrics": {"turns": 2}, "answer": "x"}


def test_an_export_with_plain_values_torn_inner_json_and_two_steps(tmp_path: Path) -> None:
    made = [
        export(0, 0, prompt=TALK[:2], completion=TALK[2:]),
        export(0, 0, step=5, completion="just text"),
        export(0, 1, completion='[{"role": "assis'),
        export(0, 2, completion="{}"),
        export(None, 3),  # type: ignore[arg-type]
    ]
    rollouts, steps, report = read(lines(tmp_path / "e.jsonl", *made))
    assert len(set(column(rollouts, "group_id"))) == 2, "a problem of two training steps is two groups"
    assert column(steps, "action") == [*ACTIONS, "just text", '[{"role": "assis'] and report.rejected == 2
