"""Which tasks teach nothing, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from row_batches import batch_of, walk

import graft_core as gc
from graft_core.insight.teach import CAUSES, Teaching, teach

Rows = list[dict[str, Any]]


def task(group: str, *outcomes: float | None, apart: bool = False, **fields: Any) -> Rows:
    """One rollout per outcome, all over the same states, or (apart) each over states of its own."""
    rows: Rows = []
    for i, outcome in enumerate(outcomes):
        state = f"S{i}" if apart else "S"
        rows += walk(f"r{i}", f"{state}:a M{state}:b", outcome, f"end{state}", group=group, **fields)
    return rows


def taught(rows: Rows, **options: Any) -> Teaching:
    batch = batch_of(rows)
    return teach(batch, gc.build_graph(batch), **options)


@pytest.mark.parametrize(
    "rows, causes",
    [
        (task("g", 0.0, 0.0, 0.0), ["all_failed"]),
        (task("g", 1.0, 1.0), ["all_succeeded"]),
        (task("g", 0.4, 0.4), ["all_failed"]),
        (task("g", 1.0, 3.0), []),
        (task("g", 0.1, 0.2), []),
        (task("g", 1.0, 0.0), []),
        (task("g", None, None), ["all_unknown"]),
        (task("g", 1.0), ["one_rollout"]),
        (task("g", None), ["all_unknown", "one_rollout"]),
        (task("g", 1.0, None, None), ["one_known"]),
        (task("g", 1.0, 0.0, apart=True), ["nothing_merges"]),
        (task("g", 0.0, 0.0, apart=True), ["all_failed", "nothing_merges"]),
        (walk("r0", "", 1.0) + walk("r1", "", 0.0), ["no_steps"]),
        (task("g", 0.0, 0.0, None), ["all_failed"]),
    ],
)
def test_causes_of_one_task(rows: Rows, causes: list[str]) -> None:
    found = taught(rows)
    assert [cause.code for silent in found.tasks for cause in silent.causes] == causes
    assert found.silent == bool(causes)
    assert found.by_cause == ({causes[0]: 1} if causes else {})


def test_equal_scores_between_success_and_failure_by_flag() -> None:
    rows = task("g", 0.5, 0.5)
    for row in rows:
        row["success"] = row["rollout_id"] == "r0"
    assert [c.code for c in taught(rows).tasks[0].causes] == ["equal_scores"]


def test_float_residue_is_no_difference() -> None:
    assert taught(task("g", 0.1 + 0.2, 0.3)).by_cause == {"all_failed": 1}


def test_a_moment_shared_with_an_unknown_rollout_only_is_not_shared() -> None:
    rows = task("g", 1.0, 0.0, apart=True) + walk("r2", "S0:a", None, "e", group="g")
    assert taught(rows).by_cause == {"nothing_merges": 1}
    assert teach(batch_of(rows)).silent == 0  # nobody asked the graph


def test_step_rewards_that_differ_teach_under_dense() -> None:
    rows = task("g", 0.0, 0.0)
    for i, row in enumerate(rows):
        row["reward"] = float(i)
    assert taught(rows).silent == 1
    assert taught(rows, rewards="dense").silent == 0
    for row in rows:
        row["reward"] = 0.5
    assert taught(rows, rewards="dense").silent == 1


def test_sentences_carry_the_tasks_numbers() -> None:
    rows = task("hard", *[0.0] * 8) + task("easy", 1.0, 1.0, None) + task("fine", 1.0, 0.0)
    hard, easy = taught(rows).tasks
    assert (hard.group_id, hard.failed, hard.steps) == ("hard", 8, 16)
    assert hard.cause.sentence == "All 8 rollouts failed, so no step made a difference that can be seen."
    assert "as high as 31 %" in hard.cause.change  # 1 - 0.05 ** (1 / 8)
    assert easy.cause.sentence.startswith("Both rollouts of known outcome succeeded")
    assert (easy.succeeded, easy.unknown) == (2, 1)


def test_the_header_counts_tasks_once() -> None:
    rows = task("a", 0.0, 0.0, apart=True) + task("b", 1.0, 1.0) + task("c", 1.0, 0.0) + task("d", 0.0, 0.0)
    found = taught(rows)
    assert found.sentence == "3 of 4 tasks teach nothing (all failed 2, all succeeded 1)"
    assert taught(task("c", 1.0, 0.0)).sentence == "the task teaches something"
    assert taught(task("a", 1.0, 1.0)).sentence.startswith("1 of 1 task teaches nothing")


def test_every_cause_has_words() -> None:
    rows = task("a", None, None) + task("b", 1.0) + task("c", 1.0, None) + task("d", 0.0, 0.0) + task("e", 1.0, 1.0)
    rows += task("f", 1.5, 1.5) + task("g", 1.0, 0.0, apart=True) + walk("r0", "", 1.0, group="h")
    for row in rows:
        if row["group_id"] == "f":
            row["success"] = row["rollout_id"] == "r0"
    found = taught(rows)
    assert {cause.code for silent in found.tasks for cause in silent.causes} == set(CAUSES)
    for silent in found.tasks:
        for cause in silent.causes:
            assert cause.sentence.endswith(".")
            assert cause.change.endswith(".")
            assert "{" not in cause.sentence + cause.change
    assert orjson.loads(orjson.dumps(found.as_dict()))["silent"] == found.silent


def test_tau_bench(test_data: Path) -> None:
    batch = gc.load(test_data / "tau_bench" / "gpt-4o-airline.json")
    found = teach(batch, gc.build_graph(batch))
    assert found.by_cause["all_failed"] + found.by_cause["all_succeeded"] == 50 - 26
    assert found.groups == 50
