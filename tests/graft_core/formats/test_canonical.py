"""The canonical JSONL file: what its rows mean."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from step_rows import Row, codes, row

from graft_core.errors import InputError
from graft_core.formats import load
from graft_core.rollouts import LoadReport, RolloutBatch, batch_rows

Loader = Callable[..., tuple[RolloutBatch, LoadReport]]


def test_rows_become_rollouts_steps_and_texts(loaded: Loader) -> None:
    batch, report = loaded(
        [
            {"graft_format": 1},
            row(0, reward=0.5, observation="same"),
            row(1, reward=1, observation="same", next_observation="end", terminated=True, outcome=2),
        ]
    )
    rollouts, steps = batch_rows(batch)
    assert batch.name == "rows.jsonl"
    assert rollouts[0]["outcome"] == 2.0 and rollouts[0]["terminated"] is True and rollouts[0]["truncated"] is None
    assert rollouts[0]["final_observation"] == "end" and rollouts[0]["n_steps"] == 2
    assert [s["observation"] for s in steps] == ["same", "same"]
    assert [s["action"] for s in steps] == ["a0", "a1"]
    assert [s["reward"] for s in steps] == [0.5, 1.0]
    assert sorted(batch.texts.column("text").to_pylist()) == ["a0", "a1", "end", "same"], "each text is stored once"
    assert (report.read, report.accepted, report.rejected) == (2, 2, 0), "the header is no record"
    assert batch.rollouts.column("source")[0].as_py().endswith("rows.jsonl:2")


def test_interleaved_rows_keep_their_order_and_find_their_rollouts(loaded: Loader) -> None:
    batch, _ = loaded([row(0, rollout="a"), row(0, rollout="b"), row(1, rollout="a"), row(1, rollout="b")])
    assert batch.rollout_ids == ["a", "b"]
    assert batch.step_rollout_rows.tolist() == [0, 1, 0, 1]
    assert batch.order.tolist() == [0, 2, 1, 3]


def test_ids_are_read_as_text_whatever_their_kind(loaded: Loader) -> None:
    batch, _ = loaded([row(0, group=3, rollout=0), row(1, group="3", rollout="0"), row(0, group=3.0, rollout=1.0)])
    assert batch.group_ids == ["3"] and batch.rollout_ids == ["0", "1"]
    assert batch.lengths.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("rows", "outcome", "warned"),
    [
        ([row(0, outcome=0.25), row(1, outcome=0.25)], 0.25, set()),
        ([row(0, outcome=None, reward=1.0)], None, set()),
        ([row(0, reward=0.5), row(1, reward=0.25)], 0.75, set()),
        ([row(0, reward=0.5), row(1)], 0.5, set()),
        ([row(0, reward=None), row(1)], None, {"no_outcome"}),
        ([row(0), row(1, outcome=1.0)], 1.0, set()),
        ([row(0, outcome=None), row(1, outcome=1.0)], 1.0, {"outcome_partly_null"}),
        ([row(0), row(1), row(None, outcome=-2)], -2.0, set()),
        ([row(None)], None, {"no_outcome"}),
        ([row(None, outcome=0)], 0.0, set()),
    ],
)
def test_outcome_given_null_absent_or_summed(loaded: Loader, rows: list[Row], outcome: float | None, warned: set[str]) -> None:
    batch, report = loaded(rows)
    assert batch.rollouts.column("outcome").to_pylist() == [outcome]
    assert set(codes(report)) == warned


def test_success_flag_without_outcome_counts_and_is_no_warning(loaded: Loader) -> None:
    batch, report = loaded([row(0, success=True)])
    assert batch.rollouts.column("outcome").to_pylist() == [None]
    assert batch.outcome.tolist() == [1.0] and batch.success.tolist() == [1.0]
    assert not report.warnings


def test_step_null_declares_a_rollout_without_steps(loaded: Loader) -> None:
    batch, report = loaded([row(0, rollout="a"), row(None, rollout="b", outcome=1, truncated=True, next_observation="there")])
    assert batch.lengths.tolist() == [1, 0]
    rollout = batch_rows(batch)[0][1]
    assert rollout["truncated"] is True and rollout["outcome"] == 1.0 and rollout["final_observation"] == "there"
    assert report.accepted == 2


def test_flags_may_stand_on_the_last_step_or_on_all(loaded: Loader) -> None:
    batch, report = loaded(
        [
            row(0, rollout="a", terminated=False, truncated=False),
            row(1, rollout="a", terminated=True, truncated=False),
            row(0, rollout="b", terminated=True),
            row(1, rollout="b", terminated=True),
            row(0, rollout="c", terminated=False),
            row(1, rollout="c", terminated=False),
        ]
    )
    assert batch.rollouts.column("terminated").to_pylist() == [True, True, False]
    assert batch.rollouts.column("truncated").to_pylist() == [False, None, None]
    assert report.rejected == 0


def test_next_observation_of_the_last_step_is_the_final_observation(loaded: Loader) -> None:
    batch, report = loaded(
        [row(0, next_observation="o1"), row(1, next_observation="o2"), row(2, next_observation="end", outcome=0)]
    )
    assert batch.text(int(batch.final_observation[0])) == "end"
    assert not report.warnings


def test_next_observation_that_differs_from_the_next_row_is_warned(loaded: Loader) -> None:
    _, report = loaded([row(0, next_observation="elsewhere"), row(1, next_observation="end", outcome=0)])
    assert codes(report) == {"next_observation_differs": 1}
    assert report.warnings[0].where.endswith(":1")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([0, 1, 2], {}),
        ([1, 2, 3], {}),
        ([0, 2, 3], {"step_gap": 1}),
        ([5, 6], {}),
        ([-1, 0, 1], {}),
        ([-1, 1], {"step_gap": 1}),
        ([0, 1, 1, 2], {"step_repeat": 1}),
        ([0, 0, 4, 4], {"step_repeat": 2, "step_gap": 1}),
    ],
)
def test_gaps_and_repeats_in_step_are_warned(loaded: Loader, steps: list[int], expected: dict[str, int]) -> None:
    batch, report = loaded([row(step, outcome=0) for step in steps])
    assert codes(report) == expected
    assert batch.n_steps == len(steps)


def test_steps_out_of_order_are_sorted_for_paths_but_kept_in_rows(loaded: Loader) -> None:
    batch, report = loaded([row(2, outcome=1, next_observation="end"), row(0, outcome=1), row(1, outcome=1)])
    assert batch.steps.column("step").to_pylist() == [2, 0, 1]
    assert [batch.text(i) for i in batch.observation] == ["o0", "o1", "o2"]
    assert batch.text(int(batch.final_observation[0])) == "end"
    assert not report.warnings


def test_rows_without_step_number_are_numbered_in_the_order_of_the_file(loaded: Loader) -> None:
    rows = [{k: v for k, v in row(s, rollout=r, outcome=0).items() if k != "step"} for s, r in [(0, "a"), (0, "b"), (1, "a")]]
    batch, report = loaded(rows)
    assert batch.steps.column("step").to_pylist() == [0, 0, 1]
    assert codes(report) == {"step_missing": 3}


def test_other_names_are_accepted_and_told(loaded: Loader) -> None:
    batch, report = loaded(
        [
            {"uid": 7, "traj_id": "x", "step_idx": 0, "obs": "here", "act": "go", "step_reward": 0.0, "done": False},
            {"uid": 7, "traj_id": "x", "step_idx": 1, "obs": "there", "act": "stop", "step_reward": 1.0, "done": True,
             "next_obs": "end"},
        ]
    )  # fmt: skip
    rollouts, steps = batch_rows(batch)
    assert (rollouts[0]["group_id"], rollouts[0]["rollout_id"], rollouts[0]["terminated"]) == ("7", "x", True)
    assert rollouts[0]["outcome"] == 1.0 and rollouts[0]["final_observation"] == "end"
    assert [(s["observation"], s["action"], s["reward"]) for s in steps] == [("here", "go", 0.0), ("there", "stop", 1.0)]
    assert codes(report) == {"aliases_used": 2}
    assert "obs as observation" in report.warnings[0].sentence and "uid as group_id" in report.warnings[0].sentence


def test_state_is_the_observation_only_where_there_is_no_other(loaded: Loader) -> None:
    batch, _ = loaded([{"group_id": "g", "rollout_id": "r", "step": 0, "state": "s", "next_state": "t", "action": "a"}])
    assert batch_rows(batch)[1][0]["observation"] == "s" and batch_rows(batch)[1][0]["state"] is None
    assert batch_rows(batch)[0][0]["final_observation"] == "t"
    batch, _ = loaded([row(0, state="s", next_state="t")])
    assert batch_rows(batch)[1][0]["observation"] == "o0" and batch_rows(batch)[1][0]["state"] == "s"
    assert batch_rows(batch)[0][0]["final_state"] == "t"


def test_unknown_keys_go_to_the_metadata(loaded: Loader) -> None:
    batch, report = loaded([row(0, colour="red", metadata={"a": 1}), row(None, size=[1, 2])])
    assert json.loads(batch.steps.column("metadata")[0].as_py()) == {"a": 1, "colour": "red"}
    assert json.loads(batch.rollouts.column("metadata")[0].as_py()) == {"size": [1, 2]}
    assert "aliases_used" not in codes(report)


def test_optional_fields_are_kept(loaded: Loader) -> None:
    more: Row = {
        "action_text": "I think a0", "admissible": ["a0", "b"], "valid": False, "logprob": -1.5, "value": 0.25,
        "advantage": -2, "tokens": [1, 2], "train_step": 40, "task_family": "heat", "final_value": 3.0, "success": False,
    }  # fmt: skip
    batch, report = loaded([row(0, **more)])
    rollout, step = batch_rows(batch)[0][0], batch_rows(batch)[1][0]
    for name in ("action_text", "admissible", "valid", "logprob", "value", "advantage"):
        assert step[name] == more[name], name
    assert step["tokens"] == "[1,2]"
    for name in ("train_step", "task_family", "final_value", "success"):
        assert rollout[name] == more[name], name
    assert set(codes(report)) <= {"no_outcome"}


def test_observations_that_are_no_text_become_canonical_json(loaded: Loader) -> None:
    batch, _ = loaded([row(0, observation={"b": 1, "a": [2]}), row(1, observation={"a": [2], "b": 1}), row(2, observation=7)])
    assert [s["observation"] for s in batch_rows(batch)[1]] == ['{"a":[2],"b":1}', '{"a":[2],"b":1}', "7"]


def test_a_step_without_observation_is_warned(loaded: Loader) -> None:
    batch, report = loaded([row(0, observation=None, outcome=1)])
    assert batch.observation.tolist() == [-1] and codes(report) == {"observations_missing": 1}
    rejected = row(0, rollout="bad", observation=None, reward="x")
    _, report = loaded([row(0, observation=None, outcome=1), row(1, outcome=1), rejected])
    assert "1 of 2 steps have no observation: one state per group" in {w.sentence for w in report.warnings}


def test_compressed_files_and_windows_line_ends_read_the_same(tmp_path: Path, loaded: Loader) -> None:
    import pyarrow as pa

    plain, _ = loaded([row(0), row(1, outcome=1)])
    data = (tmp_path / "rows.jsonl").read_bytes()
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(data))
    with pa.CompressedOutputStream(str(tmp_path / "b.jsonl.zst"), "zstd") as stream:
        stream.write(data)
    (tmp_path / "c.jsonl").write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n").rstrip())
    for name in ("a.jsonl.gz", "b.jsonl.zst", "c.jsonl"):
        batch, report = load(tmp_path / name, report=True)
        assert batch.equals(plain) and report.read == 2, name


def test_lines_are_read_across_block_borders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded: Loader) -> None:
    rows = [row(s, rollout=r, outcome=0, observation="x" * (s * 7)) for r in "abc" for s in range(20)]
    whole, _ = loaded(rows)
    for size in (1, 13, 100, 1000):
        monkeypatch.setattr("graft_core.formats.source.BLOCK_BYTES", size)
        batch, report = load(tmp_path / "rows.jsonl", report=True)
        assert batch.equals(whole) and report.read == 60
        assert [s.rpartition(":")[2] for s in batch.rollouts.column("source").to_pylist()] == ["1", "21", "41"]


def test_a_json_list_of_rows_is_read_too(tmp_path: Path, loaded: Loader) -> None:
    rows = [row(0, outcome=1), row(1, outcome=1)]
    plain, _ = loaded(rows)
    (tmp_path / "list.json").write_text(json.dumps(rows, indent=1))
    batch, report = load(tmp_path / "list.json", report=True)
    assert batch.equals(plain) and report.formats == ("canonical-list",)


def test_a_header_of_another_version_is_refused(loaded: Loader) -> None:
    with pytest.raises(InputError, match="graft_format is 2; this version reads format 1"):
        loaded([{"graft_format": 2}, row(0)])


def test_a_file_with_a_header_only_is_an_empty_batch(loaded: Loader) -> None:
    batch, report = loaded([{"graft_format": 1}])
    assert (batch.n_rollouts, batch.n_steps, batch.n_groups, report.read) == (0, 0, 0, 0)
