"""The command line: answers, exit statuses, and one clear sentence for wrong input."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from command_line import run

from graft_core import __version__


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version")[1].split()[-1] == __version__


def test_credit_writes_one_row_per_step_in_file_order(capsys: pytest.CaptureFixture[str], vectors: Path) -> None:
    status, out, _ = run(
        capsys, "credit", str(vectors / "hand.jsonl"), "--estimator", "graft_td", "--estimator", "grpo", "--values"
    )
    rows = [json.loads(line) for line in out.splitlines()]
    expected = json.loads((vectors / "hand.expected.json").read_text())["steps"]
    assert status == 0
    assert [(r["group_id"], r["rollout_id"], r["step"]) for r in rows] == [
        (e["group_id"], e["rollout_id"], e["step"]) for e in expected
    ]
    for row, answer in zip(rows, expected, strict=True):
        assert row["graft_td"] == pytest.approx(answer["split/visits"]["td"], abs=1e-8)
        assert row["value"] == pytest.approx(answer["split/visits"]["value"], abs=1e-8)
        assert row["grpo"] == pytest.approx(answer["grpo"], abs=1e-6)


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_undefined_is_null_or_empty_and_provenance_travels(
    capsys: pytest.CaptureFixture[str], vectors: Path, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"credit.{suffix}"
    status, _, _ = run(
        capsys, "credit", str(vectors / "mixed.jsonl"), "--estimator", "graft_td", "--gamma", "0.9", "-o", str(out)
    )
    expected = json.loads((vectors / "mixed.expected.json").read_text())["steps"]
    if suffix == "parquet":
        table = pq.read_table(out)
        column = table.column("graft_td").to_pylist()
        travels = json.loads(table.schema.metadata[b"graft"])
    else:
        text = out.read_text()
        rows = list(csv.DictReader(text.splitlines())) if suffix == "csv" else [json.loads(x) for x in text.splitlines()]
        column = [None if r["graft_td"] in (None, "") else float(r["graft_td"]) for r in rows]
        travels = json.loads((tmp_path / "credit.meta.json").read_text())
    assert status == 0
    assert [x is None for x in column] == [e["split/visits"]["td"] is None for e in expected]
    assert sum(x is None for x in column) > 0
    assert travels["version"] == __version__
    assert travels["settings"]["estimators"]["graft_td"]["gamma"] == 0.9
    assert len(travels["input"][0]["sha256"]) == 64
    assert not list(tmp_path.glob("*.part"))


def test_how_the_input_was_loaded_travels_with_the_credit(
    capsys: pytest.CaptureFixture[str], vectors: Path, tmp_path: Path
) -> None:
    out = tmp_path / "credit.jsonl"
    status, _, _ = run(
        capsys, "credit", str(vectors / "mixed.jsonl"), "--estimator", "grpo", "--group-by", "file",
        "--success-when", "outcome>=0.123456789", "-o", str(out),
    )  # fmt: skip
    settings = json.loads((tmp_path / "credit.meta.json").read_text())["settings"]
    assert status == 0
    assert settings["group_by"] == "file"
    assert settings["success_when"] == "outcome >= 0.123456789"


def test_all_estimators_with_a_line_for_each_that_is_absent(capsys: pytest.CaptureFixture[str], vectors: Path) -> None:
    from graft_core.credit import estimators

    status, out, err = run(capsys, "credit", str(vectors / "hand.jsonl"), "--estimator", "all")
    columns = set(json.loads(out.splitlines()[0])) - {"group_id", "rollout_id", "step"}
    absent = {line.split()[3].rstrip(":") for line in err.splitlines() if line.startswith("graft: no column")}
    assert status == 0
    assert columns | absent == set(estimators())
    assert not columns & absent


def test_an_option_applies_to_those_that_have_it_and_must_have_one(
    capsys: pytest.CaptureFixture[str], vectors: Path
) -> None:
    path = str(vectors / "hand.jsonl")
    assert run(capsys, "credit", path, "--estimator", "grpo", "--estimator", "graft", "--lam", "0.5")[0] == 0
    status, _, err = run(capsys, "credit", path, "--estimator", "grpo", "--lam", "0.5")
    assert status == 2
    assert "--lam" in err
    assert "grpo" in err


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["credit", "HAND", "--estimator", "graft_td", "--gamma", "1.5"], 2, "0 up to 1"),
        (["credit", "HAND", "--estimator", "graft", "--lam", "-0.1"], 2, "from 0 to 1"),
        (["credit", "HAND", "--estimator", "graft", "--reach", "far"], 2, "path, instances, distinct, expectation"),
        (["credit", "HAND", "--estimator", "grppo"], 2, "did you mean 'grpo'"),
        (["credit", "HAND"], 2, "--estimator"),
        (["credit", "HAND", "--estimator", "grpo", "-o", "x.txt"], 2, ".parquet"),
        (["credit", "HAND", "--estimator", "graft_td", "--rule", "exakt"], 2, "did you mean 'exact'"),
        (["credit", "HAND", "--estimator", "graft_td", "--rule", "history:2", "--rule", "exact"], 2, "before"),
        (["inspect", "NOWHERE"], 1, "nowhere.jsonl"),
        (["findings", "NOWHERE", "--json"], 1, "nowhere.jsonl"),
        (["convert", "HAND", "-o", "x.xlsx"], 2, ".jsonl or .parquet"),
        (["inspect", "HAND", "--group-by", "planet"], 2, "file"),
    ],
)
def test_wrong_input_is_one_sentence(
    capsys: pytest.CaptureFixture[str], vectors: Path, tmp_path: Path, words: list[str], status: int, says: str
) -> None:
    names = {"HAND": str(vectors / "hand.jsonl"), "NOWHERE": str(tmp_path / "nowhere.jsonl")}
    got, out, err = run(capsys, *[names.get(word, word) for word in words])
    assert got == status
    assert says in err
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in err
    assert out == ""


def broken(tmp_path: Path, name: str, content: bytes) -> str:
    path = tmp_path / name
    path.write_bytes(content)
    return str(path)


def test_unusable_files_are_explained(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 1234\n"
    for name, content, says in (
        ("empty.jsonl", b"", "empty"),
        ("results.jsonl", lfs, "Git LFS"),
        ("notes.txt", b"dear diary\n", "notes.txt"),
    ):
        status, _, err = run(capsys, "inspect", broken(tmp_path, name, content))
        assert status == 1, name
        assert says.lower() in err.lower(), err
        assert len(err.strip().splitlines()) == 1, err


def test_a_broken_line_is_counted_and_the_rest_loads(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, vectors: Path
) -> None:
    lines = (vectors / "hand.jsonl").read_bytes().splitlines(keepends=True)
    lines.insert(4, b'{"group_id": "g0", "rollout\n')
    status, out, _ = run(capsys, "inspect", broken(tmp_path, "torn.jsonl", b"".join(lines)), "--json")
    facts = json.loads(out)
    assert status == 0
    assert (facts["read"], facts["accepted"], facts["rejected"]) == (11, 10, 1)
    assert (facts["rollouts"], facts["steps"]) == (4, 10)
    assert facts["rejections"][0]["where"].endswith("torn.jsonl:5")


def test_inspect_json_has_its_top_level(capsys: pytest.CaptureFixture[str], vectors: Path) -> None:
    _, out, _ = run(capsys, "inspect", str(vectors / "mixed.jsonl"), "--json")
    facts = json.loads(out)
    for key in (
        "rollouts", "groups", "group_sizes", "steps", "successes", "failures", "unknown", "mixed_groups", "accepted",
        "repaired", "rejected", "warnings",
    ):  # fmt: skip
        assert key in facts
    assert facts["rollouts"] == facts["successes"] + facts["failures"] + facts["unknown"]
    assert facts["unknown"] > 0


def test_tau_bench_counts(capsys: pytest.CaptureFixture[str], test_data: Path) -> None:
    _, out, _ = run(capsys, "inspect", str(test_data / "tau_bench" / "gpt-4o-airline.json"), "--json")
    facts = json.loads(out)
    assert (facts["rollouts"], facts["groups"], facts["group_sizes"]) == (200, 50, {"4": 50})
    assert (facts["steps"], facts["successes"], facts["mixed_groups"]) == (2454, 84, 26)
    assert facts["graph"]["shared"] == pytest.approx(0.371, abs=0.001)


def test_webshop_counts_and_warnings(capsys: pytest.CaptureFixture[str], test_data: Path) -> None:
    folder = str(test_data / "verl_agent_webshop")
    _, out, _ = run(capsys, "inspect", folder, "--json")
    facts = json.loads(out)
    assert (facts["rollouts"], facts["steps"], facts["successes"]) == (128, 1256, 49)
    assert {"group_missing", "order_doubtful"} <= {w["code"] for w in facts["warnings"]}
    assert facts["graph"] is None
    status, out, err = run(capsys, "findings", folder)
    assert (status, out) == (1, "")
    assert "--group-by" in err
    status, out, _ = run(capsys, "findings", folder, "--group-by", "file", "--json")
    assert status == 0
    assert json.loads(out)["groups"] == 4


def test_findings_on_hand_and_on_tau_bench(
    capsys: pytest.CaptureFixture[str], vectors: Path, test_data: Path
) -> None:
    _, out, _ = run(capsys, "findings", str(vectors / "hand.jsonl"), "--json")
    hand = json.loads(out)
    assert hand["good_steps"] == 1
    assert [(f["rollout_id"], f["step"]) for f in hand["findings"]] == [("r1", 0)]
    _, out, _ = run(capsys, "findings", str(test_data / "tau_bench" / "gpt-4o-airline.json"), "--json")
    assert json.loads(out)["good_steps"] == 44


def test_convert_keeps_everything(capsys: pytest.CaptureFixture[str], vectors: Path, tmp_path: Path) -> None:
    import graft_core as gc

    parquet, jsonl = tmp_path / "a.parquet", tmp_path / "b.jsonl"
    assert run(capsys, "convert", str(vectors / "mixed.jsonl"), "-o", str(parquet))[0] == 0
    assert run(capsys, "convert", str(parquet), "-o", str(jsonl))[0] == 0
    first, middle, last = (gc.load(p) for p in (vectors / "mixed.jsonl", parquet, jsonl))
    assert first.equals(middle)
    assert first.equals(last)


@pytest.mark.parametrize("command", [["credit", "--estimator", "grpo"], ["convert"]])
def test_the_input_is_never_overwritten(
    capsys: pytest.CaptureFixture[str], vectors: Path, tmp_path: Path, command: list[str]
) -> None:
    path = tmp_path / "self.jsonl"
    path.write_bytes((vectors / "hand.jsonl").read_bytes())
    status, _, err = run(capsys, command[0], str(path), *command[1:], "-o", str(tmp_path / "." / "self.jsonl"))
    assert status == 2
    assert "one of the input files" in err
    assert path.read_bytes() == (vectors / "hand.jsonl").read_bytes()


def test_doubtful_order_and_rejected_records_are_said_beside_the_credit(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, vectors: Path, test_data: Path
) -> None:
    folder = str(test_data / "verl_agent_webshop")
    status, out, err = run(capsys, "findings", folder, "--group-by", "file", "--json", "--shuffles", "1")
    assert status == 0
    assert "unreliable" in err
    assert "order_doubtful" in {w["code"] for w in json.loads(out)["warnings"]}
    lines = (vectors / "hand.jsonl").read_bytes() + b"{broken\n"
    _, _, err = run(capsys, "credit", broken(tmp_path, "brk.jsonl", lines), "--estimator", "grpo")
    assert "1 of 11 records were rejected" in err


def test_a_file_without_steps_has_undefined_shares(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    row = b'{"group_id": "g", "rollout_id": "r", "step": null, "outcome": 1}\n'
    _, out, _ = run(capsys, "inspect", broken(tmp_path, "none.jsonl", row), "--json")
    graph = json.loads(out)["graph"]
    assert graph["merge_rate"] is None
    assert graph["shared"] is None


def test_wrong_outputs_and_numbers_of_shuffles(capsys: pytest.CaptureFixture[str], vectors: Path, tmp_path: Path) -> None:
    path = str(vectors / "hand.jsonl")
    for words, says in (
        (["credit", path, "--estimator", "grpo", "-o", str(tmp_path / "no" / "x.csv")], "does not exist"),
        (["findings", path, "--shuffles", "99999999999"], "from 0 to 100000"),
    ):
        status, _, err = run(capsys, *words)
        assert status == 2
        assert says in err
        assert ".part" not in err
