"""Inspect AI logs: archives and JSON, scores, attachments, images, and what goes wrong with archives."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from sample_files import EVAL, header, inspect_eval, inspect_json, sample
from step_rows import codes

from graft_core.errors import InputError
from graft_core.formats import limits, load
from graft_core.rollouts import LoadReport, RolloutBatch, batch_rows


def log(folder: Path, *samples: Any, **more: Any) -> tuple[RolloutBatch, LoadReport]:
    (folder / "log.json").write_text(json.dumps(inspect_json(*samples, **more)))
    return load(folder / "log.json", report=True)


def archive(folder: Path, members: dict[str, Any], cut: slice = slice(None)) -> tuple[RolloutBatch, LoadReport]:
    (folder / "log.eval").write_bytes(inspect_eval(members)[cut])
    return load(folder / "log.eval", report=True)


def test_samples_are_tasks_and_epochs_are_rollouts(tmp_path: Path) -> None:
    batch, report = log(tmp_path, sample("a", 1), sample("a", 2, "I"), sample(7, 1, "P"))
    assert batch.group_ids == ["a", "7"] and batch.rollout_ids == ["1", "2", "1"] and not report.warnings
    steps = batch_rows(batch)[1][:2]
    assert [s["observation"] for s in steps] == ["question", "files"]
    assert [s["action"] for s in steps] == ['bash {"cmd":"ls"}', "answer"]
    assert steps[0]["action_text"] == 'look\nbash {"cmd":"ls"}'
    rollout = batch_rows(batch)[0][0]
    assert rollout["task_family"] == "quiz" and json.loads(rollout["metadata"])["scores"] == {"match": "C"}
    assert batch.rollouts.column("source")[2].as_py().endswith("log.json[2]")


@pytest.mark.parametrize(
    ("value", "outcome", "success"),
    [
        ("C", 1.0, 1.0), ("I", 0.0, 0.0), ("P", 0.5, 0.0), ("N", 0.0, 0.0), (0.25, 0.25, 0.0), (3, 3.0, 1.0), (True, 1.0, 1.0),
        ("yes", 1.0, 1.0), ("0.5", 0.5, 0.0), ({"f1": 0.5, "em": 0}, 0.5, 0.0), ({"only": "C"}, 1.0, 1.0),
    ],
)  # fmt: skip
def test_scores(tmp_path: Path, value: Any, outcome: float, success: float) -> None:
    batch, report = log(tmp_path, sample(value=value))
    assert batch.outcome.tolist() == [outcome] and batch.success.tolist() == [success]
    assert ("scores_several" in codes(report)) == (isinstance(value, dict) and len(value) > 1)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"value": None}, "no_outcome"),
        ({"value": "?"}, "score_unreadable"),
        ({"value": [1, 2]}, "score_unreadable"),
        ({"error": {"message": "sandbox died"}}, "infrastructure_error"),
    ],
)
def test_unknown_is_not_failure(tmp_path: Path, more: dict[str, Any], code: str) -> None:
    batch, report = log(tmp_path, sample(**more), sample(2))
    assert batch.rollouts.column("outcome").to_pylist() == [None, 1.0] and codes(report) == {code: 1}


def test_a_score_that_is_nan_is_rejected(tmp_path: Path) -> None:
    batch, report = log(tmp_path, sample(value=float("nan")), sample(2))
    assert batch.group_ids == ["2"] and report.rejected == 1 and "outcome is nan" in report.rejections[0].reason


def test_several_scores_and_a_rule_that_names_one(tmp_path: Path) -> None:
    two = sample(scores={"match": {"value": "I"}, "judge": {"value": 0.9}})
    batch, report = log(tmp_path, two, sample(2))
    assert batch.success.tolist() == [0.0, 1.0] and codes(report) == {"scores_several": 1}
    batch, report = load(tmp_path / "log.json", success_when="scores.judge >= 0.95", report=True)
    assert batch.success.tolist() == [0.0, 1.0] and "1 have no such value and keep what the file says" in report.notes[-1]
    assert load(tmp_path / "log.json", success_when="scores.judge >= 0.5").success.tolist() == [1.0, 1.0]


def test_attachments_and_images(tmp_path: Path) -> None:
    picture, words = "data:image/png;base64,QUJDREVGR0hJSktMTU5P", "0" * 32
    content = [{"type": "text", "text": f"see attachment://{words}"}, {"type": "image", "image": f"attachment://{'1' * 32}"}]
    messages = [
        {"role": "user", "content": content},
        {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "ok"}]},
    ]
    held = {words: "the text", "1" * 32: picture}
    inline = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "see the text"}, {"type": "image_url", "image_url": {"url": picture}}],
        }
    ]
    batch, report = log(
        tmp_path,
        sample(messages=messages, attachments=held),
        sample(2, messages=messages),
        sample(3, messages=inline + messages[1:]),
    )
    seen = [s["observation"] for s in batch_rows(batch)[1]]
    assert seen[0].startswith("see the text\n[image ") and seen[2] == seen[0], "the picture counts, not how it is referred to"
    assert seen[1] == f"see attachment://{words}\n{seen[1].partition(chr(10))[2]}" and codes(report)["attachment_missing"] == 2
    assert [(s["action"], s["action_text"]) for s in batch_rows(batch)[1]] == [("ok", "hm\nok")] * 3


def test_an_attachment_that_is_named_too_often_stays_a_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graft_core.formats.source.FEWEST_EXPANDED", 0)
    messages = [{"role": "user", "content": f"attachment://{'0' * 32} " * 5000}, {"role": "assistant", "content": "ok"}]
    batch, report = log(tmp_path, sample(messages=messages, attachments={"0" * 32: "x" * 100_000}))
    assert batch.n_steps == 1 and 0 < codes(report)["attachment_missing"] < 5000
    assert len(batch.text(int(batch.observation[0]))) <= 200 * (tmp_path / "log.json").stat().st_size + 250_000


def test_members_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    batch, report = archive(tmp_path, {**EVAL, "samples/10_epoch_1.json": sample(10)})
    assert list(zip(batch.rollouts.column("group_id").to_pylist(), batch.rollout_ids, strict=True)) == [
        ("1", "1"), ("1", "2"), ("2", "1"), ("10", "1"),
    ]  # fmt: skip
    assert batch.outcome.tolist() == [1.0, 0.5, 0.0, 1.0] and any("out of order" in n for n in report.notes)
    assert batch.rollouts.column("source")[0].as_py().endswith("log.eval[samples/1_epoch_1.json]")


def test_a_log_that_is_still_being_written(tmp_path: Path) -> None:
    members = {n: v for n, v in EVAL.items() if n != "header.json"}
    batch, report = archive(tmp_path, members)
    assert batch.n_rollouts == 3 and batch_rows(batch)[0][0]["task_family"] == "quiz"
    assert any("not finished" in n for n in report.notes) and not report.warnings
    batch, report = archive(tmp_path, {n: v for n, v in members.items() if n.startswith("samples/")})
    assert batch.n_rollouts == 3 and codes(report) == {"file_damaged": 1}


def test_an_archive_that_is_cut_off(tmp_path: Path) -> None:
    whole = len(inspect_eval(EVAL))
    batch, report = archive(tmp_path, EVAL, slice(0, whole - 150))
    assert batch.n_rollouts == 3 and codes(report)["file_damaged"] == 1, "only the list at the end is missing"
    members = {"header.json": header(), "samples/1_epoch_1.json": sample(1), "samples/2_epoch_1.json": sample(2)}
    after = inspect_eval(members).index(b"samples/2_epoch")
    batch, report = archive(tmp_path, members, slice(0, after + 60))
    assert batch.group_ids == ["1"] and (report.read, report.rejected) == (2, 1)


def test_a_member_that_is_damaged_costs_only_itself(tmp_path: Path) -> None:
    members = {"header.json": header(), "samples/1_epoch_1.json": sample(1), "samples/2_epoch_1.json": b'{"id": 2, "mess'}
    members["samples/3_epoch_1.json"] = sample(3)
    data = bytearray(inspect_eval(members, zipfile.ZIP_STORED))
    data[data.index(b'"question"')] ^= 1
    (tmp_path / "log.eval").write_bytes(data)
    batch, report = load(tmp_path / "log.eval", report=True)
    assert batch.group_ids == ["3"] and report.rejected == 2
    assert ["CRC" in r.reason for r in report.rejections] == [True, False]


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FEWEST_EXPANDED", 1 << 20)
    batch, report = archive(tmp_path, {**EVAL, "samples/9_epoch_1.json": b'{"id": 9, "messages": [' + b" " * (1 << 24) + b"]}"})
    assert batch.n_rollouts == 3 and report.rejected == 1 and "far more than text" in report.rejections[0].reason
    monkeypatch.setattr(limits, "MOST_MEMBERS", 3)
    with pytest.raises(InputError, match="more than 3 members"):
        archive(tmp_path, EVAL)


def test_the_same_run_as_json_and_as_archive_is_kept_and_told(tmp_path: Path) -> None:
    log(tmp_path, sample(1, 1), sample(1, 2, "I"))
    archive(
        tmp_path, {"header.json": header(), "samples/1_epoch_1.json": sample(1, 1), "samples/1_epoch_2.json": sample(1, 2, "I")}
    )
    batch, report = load(tmp_path, report=True)
    assert batch.group_ids == ["log.eval/1", "log.json/1"] and batch.lengths.tolist() == [2] * 4
    assert codes(report) == {"group_ids_reused": 2, "duplicate_rollouts": 2}
    log(tmp_path, sample(1, 1), sample(1, 2, "I"), **header(run_id="another"))
    assert "duplicate_rollouts" not in codes(load(tmp_path, report=True)[1]), "another run that went the same way"


def test_a_listing_of_logs_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "logs.json").write_text(json.dumps({"a.eval": header(), "b.eval": header()}))
    with pytest.raises(InputError, match=r"logs.json: this is a listing of Inspect logs"):
        load(tmp_path / "logs.json")
    log(tmp_path, sample())
    assert codes(load(tmp_path, report=True)[1]) == {"file_skipped": 1}


def test_samples_that_cannot_be_used(tmp_path: Path) -> None:
    batch, report = log(tmp_path, 5, {"id": 1}, sample(messages=[1]), sample(float("inf")), sample(4), sample(4))
    assert batch.rollout_ids == ["1", "1#2"] and report.rejected == 4 and codes(report) == {"rollout_ids_renamed": 1}


def test_another_archive_is_refused_by_its_members(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(inspect_eval({"notes.txt": b"hello"}))
    with pytest.raises(InputError, match=r"a zip archive with the members notes.txt; expected one of"):
        load(tmp_path / "x.zip")
