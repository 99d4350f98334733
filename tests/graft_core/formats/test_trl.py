"""TRL completions in Parquet: one completion per rollout, groups from prompts, rewards in columns."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from more_files import COMPLETIONS, SYSTEM, TALK, answer, user
from mutators import mutated
from step_rows import codes
from written import column, read

from graft_core.errors import InputError
from graft_core.formats import load


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_completions(tmp_path: Path) -> None:
    rollouts, steps, report = read(parquet(tmp_path / "completions_00005.parquet", COMPLETIONS))
    assert report.formats == ("trl",) and (report.read, report.accepted) == (4, 4)
    assert column(rollouts, "outcome") == [0.5, 1.5, 0.5, 1.5], "the sum of the reward columns"
    assert len(set(column(rollouts, "group_id"))) == 2 and set(column(rollouts, "train_step")) == {5}
    assert column(steps, "observation") == ["task 0", "task 0", "task 1", "task 1"] and column(steps, "advantage") == [0.1] * 4
    assert codes(report) == {"rewards_summed": 1} and "rollout-level" in report.notes[0]
    assert json.loads(rollouts[0]["metadata"]) == {"right_reward": 0.0, "length_reward": 0.5}


def test_rewards_that_were_not_given_are_left_out(tmp_path: Path) -> None:
    rows = [
        {**COMPLETIONS[0], "right_reward": a, "length_reward": b}
        for a, b in [(1.0, math.nan), (None, 0.5), (math.nan, None), (0.0, 0.0)]
    ]
    rollouts, _, report = read(parquet(tmp_path / "c.parquet", rows))
    assert column(rollouts, "outcome") == [1.0, 0.5, None, 0.0] and report.rejected == 0


def test_other_numbers_are_no_rewards_where_a_column_says_reward(tmp_path: Path) -> None:
    rows = [{"step": 1, "prompt": "p", "completion": "c", "my_reward": 0.25, "length": 300, "advantage": 0.0}] * 2
    rollouts, _, report = read(parquet(tmp_path / "c.parquet", rows))
    assert column(rollouts, "outcome") == [0.25, 0.25] and json.loads(rollouts[0]["metadata"])["length"] == 300
    plain = [{"step": 1, "prompt": "p", "completion": "c", "accuracy": 1.0, "kept": "x", "advantage": 0.0}] * 2
    rollouts, _, report = read(parquet(tmp_path / "d.parquet", plain))
    assert column(rollouts, "outcome") == [1.0, 1.0] and not codes(report)


def test_prompts_of_two_training_steps_stay_apart(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", COMPLETIONS)
    parquet(tmp_path / "b.parquet", [{**r, "step": 6} for r in COMPLETIONS])
    assert load(tmp_path).n_groups == 4


def test_conversations_are_steps(tmp_path: Path) -> None:
    plain = [{k: v for k, v in m.items() if k != "tool_calls"} for m in TALK]
    rows = [{"step": 1, "prompt": [SYSTEM, user("q"), answer("old"), *plain[1:2]], "completion": plain[2:], "a_reward": 1.0}]
    rollouts, steps, _ = read(parquet(tmp_path / "c.parquet", rows))
    assert column(steps, "observation") == ["book a table", "two tables"] and column(steps, "action") == [
        "Let me see.",
        "Booked.",
    ]
    assert column(steps, "step") == [0, 1] and rollouts[0]["final_observation"] == "thanks"
    half = [{"step": 1, "prompt": [SYSTEM, user("q")], "completion": "a", "a_reward": 1.0}]
    assert read(parquet(tmp_path / "d.parquet", half))[1][0]["observation"] == "q"


def test_a_table_of_something_else_is_no_completions(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Parquet file with the columns"):
        load(parquet(tmp_path / "c.parquet", [{"prompt": "p", "completion": "c"}]))


@pytest.mark.parametrize("number", [1368, 2398])
def test_texts_that_are_not_there_and_names_that_are_no_text(tmp_path: Path, number: int) -> None:
    file, data = mutated("trl", number)
    (tmp_path / file).write_bytes(data)
    with pytest.raises(InputError, match="broken"):
        load(tmp_path / file)
