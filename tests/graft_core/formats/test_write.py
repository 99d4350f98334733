"""Writing and reading back: JSONL and Parquet hold the same batch."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from step_rows import Row, codes, row

from graft_core.errors import InputError
from graft_core.formats import load, write_jsonl, write_parquet
from graft_core.rollouts import LoadReport, RolloutBatch, batch_rows

Loader = Callable[..., tuple[RolloutBatch, LoadReport]]


def there_and_back(batch: RolloutBatch, folder: Path) -> None:
    """JSONL -> Parquet -> JSONL -> batch, equal at each station, the two JSONL files byte by byte."""
    write_jsonl(batch, folder / "a.jsonl")
    first = load(folder / "a.jsonl")
    write_parquet(first, folder / "b.parquet")
    second = load(folder / "b.parquet")
    write_jsonl(second, folder / "c.jsonl")
    for other in (first, second, load(folder / "c.jsonl")):
        assert batch_rows(other) == batch_rows(batch)
    assert (folder / "a.jsonl").read_bytes() == (folder / "c.jsonl").read_bytes()


@pytest.mark.parametrize("name", ["conflicts", "grid", "hand", "mixed", "scores", "slip", "wide"])
def test_reference_vectors_survive(vectors: Path, tmp_path: Path, name: str) -> None:
    batch, report = load(vectors / f"{name}.jsonl", report=True)
    expected = json.loads((vectors / f"{name}.expected.json").read_text())["steps"]
    keys = [batch.rollout_ids[r] for r in batch.step_rollout_rows]
    assert keys == [s["rollout_id"] for s in expected]
    assert batch.steps.column("step").to_pylist() == [s["step"] for s in expected]
    assert report.rejected == 0 and not report.warnings
    there_and_back(batch, tmp_path)


def test_mixed_keeps_unknown_outcomes_and_rollouts_without_steps(vectors: Path) -> None:
    batch = load(vectors / "mixed.jsonl")
    lines = [json.loads(line) for line in (vectors / "mixed.jsonl").read_text().splitlines()][1:]
    outcomes = {(r["group_id"], r["rollout_id"]): r["outcome"] for r in lines}
    assert dict(zip(outcomes, batch.rollouts.column("outcome").to_pylist(), strict=True)) == outcomes
    assert int((batch.lengths == 0).sum()) == sum(r["step"] is None for r in lines) > 0
    assert batch.rollouts.column("outcome").null_count > 0


def test_real_files_survive(test_data: Path, tmp_path: Path) -> None:
    there_and_back(load(test_data / "tau_bench"), tmp_path)
    there_and_back(load(test_data / "verl_agent_webshop"), tmp_path)
    _, report = load(tmp_path / "c.jsonl", report=True)
    _, original = load(test_data / "verl_agent_webshop", report=True)
    assert codes(report) == codes(original) and set(codes(report)) == {"group_missing", "order_doubtful"}


def test_every_column_survives(loaded: Loader, tmp_path: Path) -> None:
    full: Row = {
        "reward": 0.1, "success": True, "terminated": False, "truncated": True, "action_text": "say", "state": "s1",
        "admissible": ["x", "", "y"], "valid": True, "logprob": -0.1, "value": 1e-300, "advantage": -2.5, "tokens": [[1], "a"],
        "train_step": 7, "task_family": "heat", "order_doubtful": True, "metadata": {"z": 1, "a": {"b": None}},
    }  # fmt: skip
    batch, _ = loaded(
        [
            row(None, rollout="later", metadata={"note": "declared first"}),
            row(0, **full, outcome=None),
            row(0, rollout="bare"),
            row(0, rollout="later", admissible=[], outcome=0.5, observation=""),
            row(1, **full, outcome=None, final_value=2.0, next_observation="end", next_state="s2"),
            row(None, group="h", rollout="empty", next_observation="seen", final_value=1.0),
        ]
    )
    rollouts, steps = batch_rows(batch)
    assert [r["rollout_id"] for r in rollouts] == ["later", "r", "bare", "empty"], "order of first appearance"
    assert rollouts[1]["final_state"] == "s2" and rollouts[1]["final_value"] == 2.0 and rollouts[1]["order_doubtful"]
    assert steps[0]["admissible"] == ["x", "", "y"] and steps[2]["admissible"] == [] and steps[1]["admissible"] is None
    there_and_back(batch, tmp_path)


def test_an_empty_batch_survives(loaded: Loader, tmp_path: Path) -> None:
    batch, _ = loaded([{"graft_format": 1}])
    there_and_back(batch, tmp_path)
    assert (tmp_path / "a.jsonl").read_bytes() == b'{"graft_format": 1}\n'
    _, report = load(tmp_path / "b.parquet", report=True)
    assert (report.read, report.formats) == (0, ("canonical-parquet",)) and not report.warnings


def test_assumed_groups_stay_assumed(loaded: Loader, tmp_path: Path) -> None:
    batch, report = loaded([{"rollout_id": "r", "step": 0, "observation": "o", "action": "a", "outcome": 1}])
    assert batch.groups_assumed and batch.group_ids == ["rows"] and codes(report) == {"group_missing": 1}
    there_and_back(batch, tmp_path)
    assert load(tmp_path / "b.parquet").groups_assumed


def test_rollouts_that_do_not_appear_in_their_own_order(loaded: Loader, tmp_path: Path) -> None:
    batch, _ = loaded([row(None, rollout=r) for r in "abcd"] + [row(0, rollout=r) for r in "dbca"] + [row(None, rollout="e")])
    assert batch.rollout_ids == list("abcde") and batch.step_rollout_rows.tolist() == [3, 1, 2, 0]
    there_and_back(batch, tmp_path)


texts = st.text(alphabet='ab\u00e9\U0001f600\n"\\', max_size=4)
numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
rollout_rows = st.fixed_dictionaries(
    {
        "group": st.sampled_from(["g", "h"]),
        "outcome": numbers | st.just("absent"),
        "steps": st.integers(0, 3),
        "end": st.booleans(),
    }
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.lists(rollout_rows, min_size=1, max_size=5))
def test_any_batch_survives(tmp_path: Path, data: st.DataObject, rollouts: list[dict[str, Any]]) -> None:
    rows: list[Row] = []
    for index, rollout in enumerate(rollouts):
        for step in range(rollout["steps"]) if rollout["steps"] else [None]:
            made = row(step, rollout["group"], f"r{index}")
            if rollout["outcome"] != "absent":
                made["outcome"] = rollout["outcome"]
            if step is not None:
                made |= {"observation": data.draw(texts), "action": data.draw(texts), "reward": data.draw(numbers)}
                made |= {
                    "truncated": rollout["end"] and step == rollout["steps"] - 1,
                    "valid": data.draw(st.none() | st.booleans()),
                }
                made |= {"metadata": data.draw(st.none() | st.dictionaries(texts, numbers, max_size=2))}
                made |= {"admissible": data.draw(st.none() | st.lists(texts, max_size=3)), "next_observation": data.draw(texts)}
            rows.append(made)
    rows = data.draw(st.permutations(rows))
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    there_and_back(load(tmp_path / "rows.jsonl"), tmp_path)


def test_a_failed_write_leaves_the_old_file(loaded: Loader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, _ = loaded([row(0)])
    target = tmp_path / "out.jsonl"
    target.write_text("old")
    monkeypatch.setattr("graft_core.formats.write.orjson.dumps", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_jsonl(batch, target)
    assert target.read_text() == "old" and not list(tmp_path.glob(".*tmp"))


def test_writing_where_one_cannot_is_one_sentence(loaded: Loader, tmp_path: Path) -> None:
    batch, _ = loaded([row(0)])
    with pytest.raises(InputError, match="cannot be written"):
        write_jsonl(batch, tmp_path / "missing" / "out.jsonl")


def test_two_rollouts_of_one_id_are_not_written(loaded: Loader, tmp_path: Path) -> None:
    batch, _ = loaded([row(0, rollout="a"), row(0, rollout="b")])
    same = batch.rollouts.set_column(1, "rollout_id", pa.array(["a", "a"]))
    with pytest.raises(InputError, match="distinct ids"):
        write_jsonl(RolloutBatch(same, batch.steps, batch.texts), tmp_path / "out.jsonl")


# -- Parquet of other origin ---------------------------------------------------------------------------


def parquet(folder: Path, columns: dict[str, Any]) -> tuple[RolloutBatch, LoadReport]:
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    return load(folder / "rows.parquet", report=True)


def test_parquet_with_other_names_types_and_columns(tmp_path: Path) -> None:
    batch, report = parquet(
        tmp_path,
        {
            "uid": [1, 1], "traj_id": pa.array(["x", "x"]).dictionary_encode(), "step": pa.array([0, 1], pa.int16()),
            "obs": pa.array(["o", "p"], pa.large_string()), "action": [5, 6], "reward": pa.array([0, 1], pa.int8()),
            "done": [False, True], "colour": ["red", None], "info": [{"k": 1}, {"k": 2}], "value": ["0.5", "1"],
            "admissible": [["a", "b"], None],
        },
    )  # fmt: skip
    rollouts, steps = batch_rows(batch)
    assert (rollouts[0]["group_id"], rollouts[0]["outcome"], rollouts[0]["terminated"]) == ("1", 1.0, True)
    assert [(s["observation"], s["action"], s["value"]) for s in steps] == [("o", "5", 0.5), ("p", "6", 1.0)]
    assert [json.loads(s["metadata"]) for s in steps] == [{"colour": "red", "info": {"k": 1}}, {"info": {"k": 2}}]
    assert steps[0]["admissible"] == ["a", "b"] and steps[1]["admissible"] is None
    assert codes(report) == {"aliases_used": 2, "numbers_from_text": 2}
    assert batch.rollouts.column("source")[0].as_py().endswith("rows.parquet, row 1")


def test_parquet_rejects_like_jsonl(tmp_path: Path) -> None:
    names = ["a", "a", "b", "b", "c"]
    batch, report = parquet(
        tmp_path,
        {"group_id": ["g"] * 5, "rollout_id": names, "step": [0, 1, 0, 1, 0], "observation": ["o"] * 5, "action": ["a"] * 5,
         "reward": [0.0, float("nan"), 1.0, None, 1.0], "outcome": [1.0, 1.0, 1.0, 0.0, None]},
    )  # fmt: skip
    assert batch.rollout_ids == ["c"] and batch.rollouts.column("outcome").to_pylist() == [None], (
        "an outcome column says unknown"
    )
    assert (report.read, report.rejected) == (5, 4)
    assert [r.reason.partition(": ")[2][:20] for r in report.rejections] == ["reward is nan, expec", "outcome disagrees wi"]


@pytest.mark.parametrize("kind", [pa.string(), pa.null(), None])
def test_parquet_without_observations_is_told(tmp_path: Path, kind: pa.DataType | None) -> None:
    columns: dict[str, Any] = {"group_id": ["g"] * 2, "rollout_id": ["r", "s"], "step": [0, 0], "action": ["a", "b"]}
    if kind is not None:
        columns["observation"] = pa.nulls(2, kind)
    _, report = parquet(tmp_path, columns | {"outcome": [1, 0]})
    assert codes(report) == {"observations_missing": 2}
    assert report.warnings[0].sentence == "2 of 2 steps have no observation: one state per group"


def test_parquet_with_decimal_columns(tmp_path: Path) -> None:
    def decimals(words: list[str | None], scale: int) -> pa.Array:
        return pa.array([None if w is None else Decimal(w) for w in words], pa.decimal128(38, scale))

    batch, report = parquet(
        tmp_path,
        {
            "group_id": decimals(["7", "7", "7"], 0), "rollout_id": decimals(["1", "1", "1" + "0" * 30], 0),
            "step": decimals(["0", "1", "0"], 0), "action": ["a", "b", "c"], "outcome": decimals(["1.00", "1.00", "0.25"], 2),
            "observation": decimals(["1.00", "12345678901234567890123456789.50", "-0.25"], 2),
            "reward": decimals([None, "0.5", "100"], 1), "success": decimals(["1", None, "0"], 0),
        },
    )  # fmt: skip
    assert batch.group_ids == ["7"] and batch.rollout_ids == ["1", "1" + "0" * 30]
    assert batch.outcome.tolist() == [1.0, 0.25] and batch.success.tolist() == [1.0, 0.0]
    assert [s["observation"] for s in batch_rows(batch)[1]] == ["1", "12345678901234567890123456789.5", "-0.25"]
    assert [s["reward"] for s in batch_rows(batch)[1]] == [None, 0.5, 100.0]
    assert codes(report) == {"numbers_from_text": 2} and report.rejected == 0, "success as 1 and 0"


def test_parquet_with_text_that_is_no_utf8(tmp_path: Path) -> None:
    raw = pa.array([b"caf\xe9", b"fine"], pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    batch, _ = parquet(tmp_path, {"group_id": ["g", "g"], "rollout_id": ["r", "s"], "step": [0, 0], "observation": broken,
                                  "action": ["a", "b"]})  # fmt: skip
    assert [s["observation"] for s in batch_rows(batch)[1]] == ["caf\\udce9", "fine"]


def test_a_broken_parquet_file_is_one_sentence(loaded: Loader, tmp_path: Path) -> None:
    batch, _ = loaded([row(s) for s in range(50)])
    write_parquet(batch, tmp_path / "x.parquet")
    whole = (tmp_path / "x.parquet").read_bytes()
    for name, data in {"cut": whole[:200], "scratched": whole[:40] + b"\0" * 200 + whole[240:]}.items():
        (tmp_path / f"{name}.parquet").write_bytes(data)
        with pytest.raises(InputError, match="broken"):
            load(tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match="a Parquet file with the columns colour"):
        parquet(tmp_path, {"colour": ["red"]})


def test_parquet_decimals_inside_of_other_values_are_numbers(tmp_path: Path) -> None:
    def decimals(*words: str) -> pa.Array:
        return pa.array(list(map(Decimal, words)), pa.decimal128(38, 4))

    inner = pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), decimals("1", "0.5", "-2.25", "1234567890123456789012.5"))
    table = pa.table(
        {
            "rollout_id": ["a", "b"], "action": ["x", "y"], "cost": decimals("0.1", "3"), "costs": inner, "admissible": inner,
            "about": pa.StructArray.from_arrays([decimals("7.25", "-0.3")], ["price"]),
        }
    )  # fmt: skip
    pq.write_table(table, tmp_path / "a.parquet")
    steps = batch_rows(load(tmp_path / "a.parquet"))[1]
    assert [json.loads(s["metadata"]) for s in steps] == [
        {"cost": 0.1, "costs": [1, 0.5], "about": {"price": 7.25}},
        {"cost": 3, "costs": [-2.25, "1234567890123456789012.5"], "about": {"price": -0.3}},
    ], "a number with more digits than a float has stays text, so that none is lost"
    assert [s["admissible"] for s in steps] == [["1", "0.5"], ["-2.25", "1234567890123456789012.5"]]


def test_parquet_columns_that_python_has_no_values_for(tmp_path: Path) -> None:
    times = pa.array([2**62, 0], pa.timestamp("us"))
    named = {"rollout_id": ["a", "b"], "action": ["x", "y"], "when": times, "raw": pa.array([b"\xff\xfe", b"ok"])}
    pq.write_table(pa.table(named), tmp_path / "a.parquet")
    batch, report = load(tmp_path / "a.parquet", report=True)
    found = [json.loads(s["metadata"])["when"] for s in batch_rows(batch)[1]]
    assert found == [2**62, "1970-01-01T00:00:00"] and report.rejected == 0


def test_parquet_with_two_columns_of_one_name_is_one_sentence(tmp_path: Path) -> None:
    names = ["rollout_id", "action", "action"]
    pq.write_table(pa.table([pa.array(["a"])] * 3, names=names), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: two columns have the name 'action'"):
        load(tmp_path / "a.parquet")
