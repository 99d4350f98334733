"""Whole numbers beyond 64 bits, which JSON parsers round to floats: different ones stay different."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from step_rows import codes, row

from graft_core.errors import UsageError
from graft_core.formats import load, write_jsonl, write_parquet
from graft_core.formats.jsonio import has_long_numbers, loads
from graft_core.rollouts import LoadReport, RolloutBatch, batch_rows

Loader = Callable[..., tuple[RolloutBatch, LoadReport]]
LONG = 2**64 + 1


def observations(batch: RolloutBatch) -> list[str]:
    return [s["observation"] for s in batch_rows(batch)[1]]


@pytest.mark.parametrize("start", [str(LONG)[:-1], str(-(2**63) - 1)[:-1], "1" + "0" * 40, "9" * 299, "9" * 5000])
def test_observations_that_differ_in_the_last_digit_are_two_states(loaded: Loader, start: str) -> None:
    digits = [start + "9", start + "8"]
    for frame, text in (("%s", "%s"), ('{"id": %s}', '{"id":%s}'), ("[ %s]", "[%s]"), ("[1,%s]", "[1,%s]")):
        lines = [json.dumps(row(i, outcome=1)).replace(f'"o{i}"', frame % word) for i, word in enumerate(digits)]
        batch, report = loaded([*lines, row(2, outcome=1)])
        seen = [word.replace('"', "") for word in observations(batch)[:2]]
        assert seen == [(text % word).replace('"', "") for word in digits], "exact, not rounded"
        assert report.rejected == 0 and not report.warnings


def test_actions_and_metadata_keep_them_through_every_file(loaded: Loader, tmp_path: Path) -> None:
    rows = [row(i, outcome=1, action={"id": LONG + i}, metadata={"seed": LONG + i}, job=LONG - i) for i in range(2)]
    batch, _ = loaded(rows)
    write_jsonl(batch, tmp_path / "copy.jsonl")
    write_parquet(batch, tmp_path / "copy.parquet")
    (tmp_path / "list.json").write_text(json.dumps(rows))
    for other in (batch, load(tmp_path / "copy.jsonl"), load(tmp_path / "copy.parquet"), load(tmp_path / "list.json")):
        steps = batch_rows(other)[1]
        assert [s["action"] for s in steps] == [f'{{"id":{LONG + i}}}' for i in range(2)]
        assert [json.loads(s["metadata"]) for s in steps] == [{"seed": LONG + i, "job": LONG - i} for i in range(2)]


@pytest.mark.parametrize("field", ["rollout_id", "group_id"])
def test_long_ids_are_kept_as_they_are(loaded: Loader, field: str) -> None:
    batch, report = loaded([row(0, outcome=1) | {field: LONG + i} for i in range(2)])
    found = batch.rollout_ids if field == "rollout_id" else batch.group_ids
    assert found == [str(LONG), str(LONG + 1)] and report.rejected == 0


@pytest.mark.parametrize("field", ["rollout_id", "group_id"])
def test_ids_that_are_large_floats_are_rejected_with_the_reason(loaded: Loader, field: str) -> None:
    _, report = loaded([row(0, outcome=1), row(1, outcome=1, rollout="bad") | {field: 1e30}])
    reason = f"{field} is the number 1e+30, too large to be exact; write ids as text"
    assert report.rejected == 1 and reason in report.rejections[0].reason


def test_other_fields_of_the_line_are_read_as_ever(loaded: Loader) -> None:
    more: dict[str, Any] = {"reward": 0.1, "logprob": -1e-7, "admissible": ["é", "😀"], "valid": True}
    plain, _ = loaded([row(0, **more)])
    batch, report = loaded([row(0, **more, metadata=LONG)])
    names = ["observation", "action", "valid", "admissible", "reward", "logprob"]
    before, after = batch_rows(plain)[1][0], batch_rows(batch)[1][0]
    assert [after[n] for n in names] == [before[n] for n in names] and set(codes(report)) <= {"no_outcome"}


def test_digits_in_fractions_and_texts_change_nothing() -> None:
    assert not has_long_numbers(b'{"reward": 0.00012345678901234567, "ns": 1700000000000000000}')
    assert loads(b'["12345678901234567890123", 1e30]') == (["12345678901234567890123", 1e30], False)


@given(st.recursive(st.integers(-(2**80), 2**80) | st.text() | st.floats(allow_nan=False), st.lists, max_leaves=9))
def test_any_json_text_is_read_like_the_standard_library_reads_it(value: Any) -> None:
    for separators in ((", ", ": "), (",", ":")):
        data = json.dumps([value], separators=separators, allow_nan=True)
        if "Infinity" not in data and "\\ud" not in data:
            assert loads(data.encode())[0] == json.loads(data)


@pytest.mark.parametrize("digits", [20, 299, 5000])
def test_metadata_with_long_numbers_can_be_asked_for_groups_and_success(loaded: Loader, tmp_path: Path, digits: int) -> None:
    lines = [json.dumps(row(0, None, f"r{i}", outcome=1, kind=i % 2, metadata="LONG")) for i in range(2)]
    lines = [line.replace('"LONG"', f'{{"seed": {"7" * digits}{i}, "mark": {i}}}') for i, line in enumerate(lines)]
    batch, _ = loaded(lines, group_by="column:seed", success_when="mark >= 1")
    assert batch.group_ids == ["7" * digits + "0", "7" * digits + "1"] and batch.success.tolist() == [0.0, 1.0]
    with pytest.raises(UsageError, match=r"there are .*seed"):
        loaded(lines, group_by="column:nope")
    texts = [f'{{"seed":{"7" * digits}}}'] * 2
    table = pa.table({"rollout_id": ["a", "b"], "action": ["x", "y"], "metadata": texts, "kind": [1, 2]})
    pq.write_table(table, tmp_path / "a.parquet")
    found = [json.loads(s["metadata"], parse_int=str) for s in batch_rows(load(tmp_path / "a.parquet"))[1]]
    held = {"seed": "7" * digits} if digits < 4000 else {"metadata": texts[0]}  # what no parser takes stays as it is written
    assert found == [{**held, "kind": "1"}, {**held, "kind": "2"}]
