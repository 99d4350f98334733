"""--group-by: file, task, column and regular expression."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from step_rows import codes, row

from graft_core.errors import GroupMissingError, InputError, UsageError
from graft_core.formats import load
from graft_core.rollouts import LoadReport, RolloutBatch

Loader = Callable[..., tuple[RolloutBatch, LoadReport]]

ROWS = [
    row(0, None, "r1", observation="room A: start", task="t1", outcome=1),
    row(0, None, "r2", observation="room B: start", task="t2", outcome=1, metadata={"level": {"name": "easy"}}),
    row(0, None, "r3", observation="room A: start", task="t1", outcome=0, train_step=3),
]


def test_without_a_choice_groups_are_assumed_and_credit_waits(loaded: Loader) -> None:
    batch, report = loaded(ROWS)
    assert batch.group_ids == ["rows"] and codes(report) == {"group_missing": 3}
    with pytest.raises(GroupMissingError, match="--group-by"):
        batch.require_groups()


@pytest.mark.parametrize(
    ("group_by", "groups"),
    [
        ("file", ["rows", "rows", "rows"]),
        ("task", ["t1", "t2", "t1"]),
        ("column:task", ["t1", "t2", "t1"]),
        ("column:outcome", ["1", "1", "0"]),
        ("column:observation", ["room A: start", "room B: start", "room A: start"]),
        ("column:task+outcome", ["t1 + 1", "t2 + 1", "t1 + 0"]),
        ("column: rollout_id + task", ["r1 + t1", "r2 + t2", "r3 + t1"]),
        ("regex:room (.)", ["A", "B", "A"]),
        (r"regex:/(row)s\.jsonl$", ["row", "row", "row"]),
        ("regex:(?:room (.))|nothing", ["A", "B", "A"]),
    ],
)
def test_every_choice_sets_the_groups(loaded: Loader, group_by: str, groups: list[str]) -> None:
    batch, report = loaded(ROWS, group_by=group_by)
    assert batch.rollouts.column("group_id").to_pylist() == groups
    assert not batch.groups_assumed and not codes(report)
    batch.require_groups()


def test_a_regular_expression_looks_at_the_path_first(tmp_path: Path) -> None:
    for name in ("task-7", "task-9"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row(0, None, "r", observation="task-1", outcome=1)) + "\n")
    batch = load(tmp_path, group_by=r"regex:task-(\d)")
    assert batch.group_ids == ["7", "9"]


def test_a_group_by_overrides_the_files_own_groups(loaded: Loader) -> None:
    rows = [row(0, "g1", "r1", outcome=1, task="t"), row(0, "g2", "r2", outcome=1, task="t")]
    batch, _ = loaded(rows, group_by="column:task")
    assert batch.group_ids == ["t"]
    batch, _ = loaded(rows, group_by="task")
    assert batch.group_ids == ["g1", "g2"], "task keeps the groups that the file names"


def test_rollouts_of_one_id_that_come_together_are_renamed(loaded: Loader) -> None:
    rows = [row(0, g, "r", outcome=1) for g in ("g1", "g2", "g3")]
    batch, report = loaded(rows, group_by="file")
    assert batch.rollout_ids == ["r", "r#2", "r#3"] and codes(report) == {"rollout_ids_renamed": 2}


def test_a_value_inside_the_metadata(loaded: Loader) -> None:
    batch, _ = loaded(ROWS[1:2], group_by="column:level.name")
    assert batch.group_ids == ["easy"]


def test_groups_of_several_columns_differ_where_one_of_them_does(loaded: Loader) -> None:
    pairs = [("a + b", "c"), ("a", "b + c"), ("a", "b"), ("a + b", "c")]
    rows = [row(0, None, f"r{i}", outcome=1, x=x, y=y) for i, (x, y) in enumerate(pairs)]
    batch, _ = loaded(rows, group_by="column:x+y")
    groups = batch.rollouts.column("group_id").to_pylist()
    assert len(set(groups)) == 3 and groups[0] == groups[3] and groups[2] == "a + b"


def test_a_name_may_hold_a_plus(loaded: Loader) -> None:
    batch, _ = loaded([row(0, None, "r", outcome=1, a="1", b="2") | {"a+b": "both"}], group_by="column:a+b")
    assert batch.group_ids == ["both"]


@pytest.mark.parametrize(
    ("group_by", "error", "words"),
    [
        ("column:nope", UsageError, "no column or metadata key 'nope'; there are .*task"),
        ("column:task+nope", UsageError, r"column:task\+nope: no column or metadata key 'nope'; there are .*task"),
        ("column:task+", UsageError, "no column or metadata key ''"),
        ("column:task+train_step", InputError, "2 of 3 rollouts give no group, first .*rows.jsonl:1"),
        ("column:train_step", InputError, "2 of 3 rollouts give no group, first .*rows.jsonl:1"),
        ("regex:room (A)", InputError, "1 of 3 rollouts give no group, first .*rows.jsonl:2"),
        ("regex:room (", UsageError, "no regular expression"),
        ("regex:room .", UsageError, "no capture group"),
        ("regex:()", UsageError, r"the capture group of '\(\)' is empty in every rollout"),
        (r"regex:(\d*)", UsageError, "is empty in every rollout"),
        ("regex:", UsageError, r"expected file, task, column:NAME \(or NAME\+NAME: .*\) or regex:PATTERN"),
        ("files", UsageError, r"expected file, task, column:NAME \(or NAME\+NAME: .*\) or regex:PATTERN"),
    ],
)
def test_choices_that_do_not_work_are_one_sentence(loaded: Loader, group_by: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        loaded(ROWS, group_by=group_by)


def test_group_by_task_without_any_task(loaded: Loader) -> None:
    with pytest.raises(InputError, match="no task is named"):
        loaded([row(0, None, outcome=1)], group_by="task")
