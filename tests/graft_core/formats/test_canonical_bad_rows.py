"""Rows that cannot be used: rejected with place and reason, while the rest loads."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from step_rows import codes, row

from graft_core.errors import InputError
from graft_core.formats import load
from graft_core.formats.rows import LISTED_REJECTIONS
from graft_core.rollouts import LoadReport, RolloutBatch, batch_rows

Loader = Callable[..., tuple[RolloutBatch, LoadReport]]
GOOD = [row(0, rollout="good", outcome=1), row(1, rollout="good", outcome=1)]


def test_a_broken_line_in_the_middle_is_rejected_with_its_number(loaded: Loader) -> None:
    batch, report = loaded([GOOD[0], '{"group_id": "g", "rollout_id": "r", "st', GOOD[1]])
    assert batch.n_steps == 2 and (report.read, report.accepted, report.rejected) == (3, 2, 1)
    (rejection,) = report.rejections
    assert rejection.where.endswith("rows.jsonl:2") and "no valid JSON" in rejection.reason


def test_a_torn_last_line_and_blank_lines(loaded: Loader) -> None:
    batch, report = loaded(["", GOOD[0], "", GOOD[1], "   ", '{"group_id": "g", "rollout_'])
    assert batch.n_steps == 2 and (report.read, report.rejected) == (3, 1)
    assert report.rejections[0].where.endswith(":6")


def test_a_broken_first_line_does_not_hide_the_rest(loaded: Loader) -> None:
    batch, report = loaded(['{"torn', *GOOD])
    assert batch.n_steps == 2 and report.rejections[0].where.endswith(":1")


@pytest.mark.parametrize("line", ["[1, 2]", "3", "null", '"text"'])
def test_lines_that_are_no_objects_are_rejected(loaded: Loader, line: str) -> None:
    batch, report = loaded([GOOD[0], line, GOOD[1]])
    assert batch.n_steps == 2 and report.rejected == 1 and "expected an object" in report.rejections[0].reason


@pytest.mark.parametrize(
    ("field", "first", "second", "words"),
    [
        ("outcome", 0.0, 1.0, ["0.0 at", "1.0 at"]),
        ("success", True, False, ["true at", "false at"]),
        ("terminated", True, False, ["true at", "false at"]),
        ("truncated", True, False, ["true at", "false at"]),
    ],
)
def test_rows_that_disagree_reject_their_rollout_and_name_both_lines(
    loaded: Loader, field: str, first: Any, second: Any, words: list[str]
) -> None:
    bad = [row(0, rollout="bad", **{field: first}), row(1, rollout="bad", **{field: second})]
    batch, report = loaded([GOOD[0], bad[0], GOOD[1], bad[1]])
    assert batch.rollout_ids == ["good"] and (report.read, report.accepted, report.rejected) == (4, 2, 2)
    (rejection,) = report.rejections
    assert rejection.records == 2 and "'bad'" in rejection.reason and field in rejection.reason
    assert "rows.jsonl:2" in rejection.reason and "rows.jsonl:4" in rejection.reason
    assert all(word in rejection.reason for word in words)


def test_a_declaring_row_that_disagrees_with_the_last_step(loaded: Loader) -> None:
    bad = [row(0, rollout="bad", truncated=False), row(None, rollout="bad", truncated=True)]
    _, report = loaded([*GOOD, *bad])
    assert report.rejected == 2 and ":3" in report.rejections[0].reason and ":4" in report.rejections[0].reason


@pytest.mark.parametrize("field", ["outcome", "reward"])
@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400])
def test_numbers_that_are_not_finite_reject_the_rollout(loaded: Loader, field: str, word: str) -> None:
    line = json.dumps(row(1, rollout="bad") | {"outcome": 1, field: 123456}).replace("123456", word)
    batch, report = loaded([row(0, rollout="bad", outcome=1), line, *GOOD])
    assert batch.rollout_ids == ["good"] and report.rejected == 2
    assert field in report.rejections[0].reason and report.rejections[0].where.endswith(":2")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"reward": "much"}, "reward is 'much', expected a number"),
        ({"reward": [1]}, "reward is [1], expected a number"),
        ({"success": "maybe"}, "expected true or false"),
        ({"step": 1.5}, "expected a whole number"),
        ({"step": 10**30}, "expected a"),
        ({"action": None}, "no action"),
    ],
)
def test_values_of_the_wrong_kind_reject_the_rollout(loaded: Loader, change: dict[str, Any], reason: str) -> None:
    batch, report = loaded([*GOOD, row(0, rollout="bad"), row(1, rollout="bad") | change])
    assert batch.rollout_ids == ["good"] and report.rejected == 2 and reason in report.rejections[0].reason


def test_a_row_without_rollout_id_is_rejected_alone(loaded: Loader) -> None:
    batch, report = loaded([*GOOD, row(0, rollout=None)])
    assert batch.n_steps == 2 and report.rejected == 1 and "rollout_id is missing" in report.rejections[0].reason


def test_booleans_and_numbers_as_text_are_accepted_and_counted(loaded: Loader) -> None:
    rows = [row(0, reward="0.5", outcome="True", success="false"), row(1, reward=True, outcome=1, success=0)]
    batch, report = loaded(rows)
    assert batch.reward.tolist() == [0.5, 1.0] and batch.outcome.tolist() == [1.0] and batch.success.tolist() == [0.0]
    assert codes(report) == {"numbers_from_text": 5} and report.repaired == 2 and report.accepted == 2


def test_optional_values_of_the_wrong_kind_are_left_out_with_a_warning(loaded: Loader) -> None:
    batch, report = loaded([row(0, outcome=1, logprob="low", admissible="a, b", advantage=float("nan"), train_step="late")])
    step = batch_rows(batch)[1][0]
    assert step["logprob"] is None and step["admissible"] is None and step["advantage"] is None
    assert codes(report) == {"fields_unusable": 4} and report.rejected == 0


def test_lone_surrogates_are_escaped_stay_distinct_and_can_be_written(loaded: Loader, tmp_path: Path) -> None:
    from graft_core.formats import write_jsonl, write_parquet

    lines = [json.dumps(row(s, outcome=1)).replace(f'"o{s}"', f'"broken \\ud83{s}"') for s in (0, 1)]
    batch, report = loaded([*lines, row(2, outcome=1, observation="fine \U0001f600")])
    assert [s["observation"] for s in batch_rows(batch)[1]] == ["broken \\ud830", "broken \\ud831", "fine \U0001f600"]
    assert codes(report) == {"surrogates_replaced": 2} and report.repaired == 2
    write_parquet(batch, tmp_path / "x.parquet")
    write_jsonl(batch, tmp_path / "x.jsonl")
    assert load(tmp_path / "x.parquet").equals(batch) and load(tmp_path / "x.jsonl").equals(batch)


def test_bytes_that_are_no_utf8_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "latin.jsonl").write_bytes(json.dumps(row(0, outcome=1, observation="caf?")).encode().replace(b"?", b"\xe9"))
    batch, report = load(tmp_path / "latin.jsonl", report=True)
    assert batch_rows(batch)[1][0]["observation"] == "caf\\udce9" and "surrogates_replaced" in codes(report)


def test_a_file_without_one_usable_record_says_why(loaded: Loader) -> None:
    with pytest.raises(InputError, match=r"none of its 2 records can be used: .*rows.jsonl:1.*reward is nan"):
        loaded([json.dumps(row(0)).replace('"action"', '"reward": NaN, "action"'), row(1)])


def test_many_rejections_are_counted_and_not_all_listed(loaded: Loader) -> None:
    n = LISTED_REJECTIONS + 50
    _, report = loaded([*GOOD, *["{broken"] * n])
    assert report.rejected == n and len(report.rejections) == LISTED_REJECTIONS + 1
    assert sum(r.records for r in report.rejections) == n and "not listed" in report.rejections[-1].reason


def test_damaged_files_never_raise_anything_but_one_sentence(tmp_path: Path) -> None:
    """Cut, overwrite, repeat and swap bytes: either a batch whose report adds up, or an `InputError`."""
    rows = [row(s, rollout=f"r{r}", outcome=r, reward=0.5, metadata={"k": [1, None]}) for r in range(4) for s in range(3)]
    data = ("".join(json.dumps(r) + "\n" for r in rows)).encode()
    chance = random.Random(0)
    path, usable = tmp_path / "damaged.jsonl", 0
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(chance.randrange(1, 6)):
            at, length = chance.randrange(len(damaged)), chance.randrange(1, 30)
            damaged[at : at + length] = chance.choice(
                [b"", bytes([chance.randrange(256)]), b"\n", b"null", b"1e999", b'"', b"{" * 200, b"9" * 50, b"\\ud800"]
            )
        path.write_bytes(bytes(damaged))
        try:
            batch, report = load(path, report=True)
        except InputError:
            continue
        usable += 1
        assert report.read == report.accepted + report.rejected and sum(r.records for r in report.rejections) == report.rejected
        assert batch.n_steps <= report.accepted
    assert usable > 100


def test_deep_nesting_is_rejected_not_crashed_on(loaded: Loader) -> None:
    deep = json.dumps(row(0, rollout="deep", metadata=1)).replace(
        '"metadata": 1', '"metadata": ' + "[" * 100_000 + "]" * 100_000
    )
    batch, report = loaded([*GOOD, deep])
    assert batch.n_steps == 2 and report.rejected == 1
