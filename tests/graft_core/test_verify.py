"""`graft card` and `graft verify`: reproduced, different data and which, or what does not come out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from card_files import ROLLOUT, STEP, TASK, change_card, falsified
from command_line import run

import graft_core as gc
from graft_core.insight.cards import make_card
from graft_core.insight.findings import findings


def test_the_command_writes_three_files_and_says_which(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--task", TASK, "--rollout", ROLLOUT, "--step", str(STEP), "-o", str(place / "new"))
    status, out, err = run(capsys, "card", str(place / "household.jsonl"), *words)
    assert (status, err) == (0, "")
    paths = [Path(line) for line in out.splitlines()]
    assert [p.suffix for p in paths] == [".json", ".md", ".svg"]
    assert sorted((place / "new").iterdir()) == sorted(paths)


def change_data(place: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Edit every row of the data in place."""
    path = place / "household.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        if "group_id" in row:
            change(row)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_card_on_the_sample_data_is_reproduced(card: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "verify", str(card)) == (0, "reproduced\n", "")


def test_the_data_are_found_in_the_working_directory_or_where_they_are_said_to_be(
    card: Path, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    away = tmp_path / "work" / "household.jsonl"
    shutil.move(place / "household.jsonl", away)
    assert run(capsys, "verify", str(card))[:2] == (0, "reproduced\n")
    renamed = tmp_path / "other name.jsonl"
    shutil.move(away, renamed)
    status, out, err = run(capsys, "verify", str(card))
    assert (status, out) == (1, "")
    assert "household.jsonl" in err
    assert err.count("\n") == 1
    assert run(capsys, "verify", str(card), str(renamed))[:2] == (0, "reproduced\n")


def test_the_right_file_is_preferred_to_one_of_the_same_name(
    card: Path, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(place / "household.jsonl", tmp_path / "work")
    change_data(place, lambda row: row.update(outcome=1.0, success=True))
    assert run(capsys, "verify", str(card))[:2] == (0, "reproduced\n")


def test_an_edited_outcome_is_named(card: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def edit(row: dict[str, Any]) -> None:
        if (row["group_id"], row["rollout_id"]) == (TASK, "r3"):
            assert row["outcome"] == 0.0
            row.update(outcome=1.0, success=True)

    change_data(place, edit)
    status, out, err = run(capsys, "verify", str(card))
    lines = out.splitlines()
    assert (status, lines[0], err) == (1, "different data", "")
    assert "household.jsonl has SHA-256" in lines[1]
    assert lines[2].strip() == "outcome of rollout r3 is 1, the card says 0"
    assert any("numbers.credit is" in line for line in lines)


def test_an_edited_text_and_a_missing_rollout_are_named(card: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def edit(row: dict[str, Any]) -> None:
        if (row["group_id"], row["rollout_id"], row["step"]) == (TASK, "r1", 2):
            row["observation"] += " It rains."
        if (row["group_id"], row["rollout_id"]) == (TASK, "r2"):
            row["rollout_id"] = "r2b"
        if (row["group_id"], row["rollout_id"], row["step"]) == (TASK, "r4", 0):
            row["reward"] = 0.5

    change_data(place, edit)
    lines = [line.strip() for line in run(capsys, "verify", str(card))[1].splitlines()]
    assert lines[0] == "different data"
    assert any(line.startswith("a text of rollout r1 differs") for line in lines)
    assert any(line.startswith("a number of rollout r4 differs") for line in lines)
    assert "rollout r2 is missing here" in lines
    assert "rollout r2b is not on the card" in lines
    assert not any("r6" in line for line in lines)


def test_a_change_elsewhere_in_the_file_is_told_apart(card: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def edit(row: dict[str, Any]) -> None:
        if row["group_id"] != TASK:
            row["observation"] += " It rains."

    change_data(place, edit)
    status, out, _ = run(capsys, "verify", str(card))
    assert status == 1
    assert out.startswith("different data\n")
    assert "the rollouts of this task are the card's; the change is elsewhere" in out
    assert "the finding's own numbers are the card's all the same" in out


def test_a_step_that_is_gone_and_data_that_cannot_be_read(card: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change_data(place, lambda row: row.update(rollout_id="x" + row["rollout_id"]))
    status, out, _ = run(capsys, "verify", str(card))
    assert status == 1
    assert f"there is no step {STEP} of rollout {ROLLOUT} of task {TASK} here" in out
    (place / "household.jsonl").write_text("{broken\n")
    status, out, err = run(capsys, "verify", str(card))
    assert (status, err) == (1, "")
    assert out.startswith("different data\n")
    assert "they cannot be loaded" in out


@pytest.mark.parametrize(
    ("keys", "to", "named"),
    [
        (("numbers", "credit"), 0.5, "numbers.credit is 0.33"),
        (("numbers", "value_before"), None, "numbers.value_before is 0.22"),
        (("numbers", "seen_by"), 6, "numbers.seen_by is 5, the card says 6"),
        (("moment", "actions", 1, "credit"), 0.9, "moment.actions[1].credit is -0.19"),
        (("moment", "actions", 0, "chosen"), False, "moment.actions[0].chosen is True, the card says False"),
        (("chance", "p"), 0.001, "chance.p is 0.0"),
        (("certainty", "low"), 0.2, "certainty.low is -"),
        (("finding", "outcome"), 1.0, "finding.outcome is 0"),
        (("claim", "sentence"), "This tool is wonderful.", "claim.sentence is 'Rollout r5"),
        (("evidence", "action"), "solve everything", "evidence.action is 'open microwave', the card says 'solve everything'"),
        (("settings", "options", "grpo", "ddof"), 0, "settings.options.grpo.ddof is 1"),
        (("fingerprint", 2, "outcome"), 1.0, "outcome of rollout r3 is 0, the card says 1"),
    ],
)
def test_a_tampered_card_is_named(
    card: Path, capsys: pytest.CaptureFixture[str], keys: tuple[Any, ...], to: Any, named: str
) -> None:
    out = falsified(card, capsys, keys, to, named)
    assert gc.__version__ in out.splitlines()[-1]
    assert "graft_td" in out.splitlines()[-1]


def test_numbers_may_differ_by_a_billionth_and_not_more(card: Path, capsys: pytest.CaptureFixture[str]) -> None:
    credit = json.loads(card.read_text())["numbers"]["credit"]
    change_card(card, "numbers", "credit", to=credit + 5e-10)
    assert run(capsys, "verify", str(card))[:2] == (0, "reproduced\n")
    change_card(card, "numbers", "credit", to=credit + 2e-9)
    assert run(capsys, "verify", str(card))[0] == 1


def test_json(card: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "verify", str(card), "--json")
    data = json.loads(out)
    assert (status, err) == (0, "")
    assert (data["status"], data["details"], data["card_version"]) == ("reproduced", [], gc.__version__)
    change_data(place, lambda row: row.update(observation=""))
    status, out, _ = run(capsys, "verify", str(card), "--json")
    assert status == 1
    assert json.loads(out)["status"] == "different data"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"not json", "not JSON"),
        (b'{"a": 1}', "graft_card"),
        (b"[1, 2]", "graft_card"),
        (b'{"graft_card": 7}', "format 7"),
        (b'{"graft_card": 1}', "without finding"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 5000, "not JSON"),
    ],
)
def test_a_broken_or_foreign_file_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, said: str
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    status, out, err = run(capsys, "verify", str(path))
    assert (status, out) == (1, "")
    assert said in err
    assert "x.json" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("keys", "to"),
    [
        (("settings", "estimator"), "no_such"), (("settings", "words"), {"nope": "1"}), (("settings", "rules"), 5),
        (("settings", "success_threshold"), "high"), (("finding", "row"), "first"), (("finding", "group_id"), 3),
        (("data", "files"), "x"), (("data", "group_by"), "nonsense:"), (("fingerprint",), [1]),
        (("chance", "shuffles"), 10**12), (("chance", "level"), 7), (("data", "files"), [{"file": "..", "sha256": "x"}]),
        (("moment", "actions"), None), (("evidence",), {}),
    ],
)  # fmt: skip
def test_whatever_stands_on_a_card_there_is_no_traceback(
    card: Path, capsys: pytest.CaptureFixture[str], keys: tuple[Any, ...], to: Any
) -> None:
    change_card(card, *keys, to=to)
    status, out, err = run(capsys, "verify", str(card))
    assert status == 1
    assert (out == "") == bool(err)
    assert err.count("\n") <= 1


def test_a_card_cannot_lead_out_of_the_folders(
    card: Path, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.move(place / "household.jsonl", tmp_path / "household.jsonl")
    for name in ("../household.jsonl", str(tmp_path / "household.jsonl"), "..\\household.jsonl"):
        change_card(card, "data", "files", 0, "file", to=name)
        status, out, err = run(capsys, "verify", str(card))
        assert (status, out) == (1, "")
        assert "not beside it" in err


def test_a_directory_of_files(place: Path, root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lines = (place / "household.jsonl").read_text().splitlines()[1:]
    folder = tmp_path / "batch"
    (folder / "later").mkdir(parents=True)
    half = next(i for i, line in enumerate(lines) if '"heat mug"' in line)
    (folder / "a.jsonl").write_text("\n".join(lines[:half]))
    (folder / "later" / "b.jsonl").write_text("\n".join(lines[half:]))
    words = ("--task", TASK, "--rollout", ROLLOUT, "--step", str(STEP), "-o", str(tmp_path / "cards"))
    status, out, _ = run(capsys, "card", str(folder), *words, "--redact", "microwave")
    assert status == 0
    card = out.splitlines()[0]
    assert [f["file"] for f in json.loads(Path(card).read_text())["data"]["files"]] == ["a.jsonl", "later/b.jsonl"]
    assert run(capsys, "verify", card)[0] == 1  # neither beside the card nor here
    status, out, _ = run(capsys, "verify", card, str(folder))
    assert (status, out.splitlines()[0]) == (0, "reproduced")
    assert "texts are redacted on this card" in out.splitlines()[1]
    (folder / "later" / "b.jsonl").write_text("\n".join(lines[half:-1]))
    (folder / "c.jsonl").write_text(lines[-1])
    out = run(capsys, "verify", card, str(folder))[1]
    assert out.startswith("different data\n")
    assert "later/b.jsonl has SHA-256" in out
    assert "c.jsonl is not on the card" in out
    assert "microwave" not in Path(card).read_text()


def test_grouping_and_estimators_travel(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["card", str(place / "household.jsonl"), "--group-by", "file", "--task", "household", "--rollout"]
    options = ["--estimator", "path_gae", "--baseline", "rloo", "--lam", "0.5", "--gamma", "0.9", "--rule", "history:2"]
    options.append("--no-chance")
    batch = gc.load(place / "household.jsonl", group_by="file")
    rollout = batch.rollout_ids[3]
    status, out, err = run(capsys, *words, rollout, "--step", "2", "-o", str(place), *options)
    assert (status, err) == (0, "")
    card = Path(out.splitlines()[0])
    data = json.loads(card.read_text())
    assert data["data"]["group_by"] == "file"
    assert data["settings"]["words"] == {"estimator": "path_gae", "baseline": "rloo", "lam": "0.5", "gamma": "0.9"}
    assert data["settings"]["rules"] == ["history:2"]
    assert data["chance"] == {"left_out": True}
    assert run(capsys, "verify", str(card))[:2] == (0, "reproduced\n")
    renamed = place / "renamed.jsonl"
    shutil.move(place / "household.jsonl", renamed)
    assert run(capsys, "verify", str(card), str(renamed))[0] == 0


def test_another_success_threshold_travels_too(place: Path, vectors: Path) -> None:
    from dataclasses import replace

    from graft_core.insight.cards import verify_card

    batch = replace(gc.load(vectors / "mixed.jsonl"), success_threshold=0.4, memo={})
    found = findings(batch)
    made = make_card(found, int(found.lost[0]), [vectors / "mixed.jsonl"])
    assert made.data["settings"]["success_threshold"] == 0.4
    assert verify_card(made, [vectors]).details == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--task", "nope", "--rollout", "r1", "--step", "0"], "no task 'nope'"),
        (["--task", TASK, "--rollout", "nope", "--step", "0"], "no rollout 'nope'"),
        (["--task", TASK, "--rollout", "r1", "--step", "999"], "no step 999"),
    ],
)
def test_a_step_that_is_not_there_is_one_sentence(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    status, out, err = run(capsys, "card", str(place / "household.jsonl"), *words, "-o", str(place))
    assert (status, out) == (1, "")
    assert said in err
    assert err.count("\n") == 1
