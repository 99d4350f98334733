"""OpenHands event histories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sample_files import EVENTS, FLAT, OPENHANDS, lines
from step_rows import codes

from graft_core.formats import load
from graft_core.formats.openhands import event_steps
from graft_core.rollouts import LoadReport, RolloutBatch, batch_rows


def output(folder: Path, *records: Any) -> tuple[RolloutBatch, LoadReport]:
    (folder / "output.jsonl").write_bytes(lines(list(records)))
    return load(folder / "output.jsonl", report=True)


def test_records_of_three_writers(tmp_path: Path) -> None:
    batch, report = output(tmp_path, *OPENHANDS)
    assert batch.group_ids == ["a__b-1", "a__b-2", "o/r#5"] and batch.lengths.tolist() == [2, 2, 2]
    assert batch.success.tolist()[1:] == [1.0, 0.0] and batch.success[0] != batch.success[0]
    assert codes(report) == {"no_outcome": 1} and report.formats == ("openhands",)
    steps = batch_rows(batch)[1]
    for a, b in zip(steps[:2], steps[2:4], strict=True):
        assert (a["observation"], a["action"], a["action_text"]) == (b["observation"], b["action"], b["action_text"])
    assert [(s["observation"], s["action"]) for s in steps[:2]] == [
        ("the issue", 'run {"command":"ls"}'),
        ("files", 'finish {"outputs":{}}'),
    ]
    assert steps[0]["action_text"] == 'look\nrun {"command":"ls"}'
    assert all(r["terminated"] for r in batch_rows(batch)[0])


def test_observations_belong_to_their_cause() -> None:
    events = [
        {"id": 1, "source": "agent", "action": "run", "args": {"command": "a"}},
        {"id": 2, "source": "agent", "action": "run", "args": {"command": "b"}},
        {"id": 3, "observation": "run", "content": "from b", "cause": 2},
        {"id": 4, "observation": "run", "content": "from a", "cause": 1},
        {"id": 5, "source": "agent", "action": "message", "args": {"content": "well?", "wait_for_response": True}},
        {"id": 6, "source": "user", "action": "message", "args": {"content": "go on"}},
        {"id": 7, "observation": "error", "content": "lost", "cause": 99},
    ]
    steps, final, finished = event_steps(events)
    assert [s["observation"] for s in steps] == ["", "from a", "from b"] and steps[2]["action"] == "well?"
    assert final == "go on\n\nlost" and not finished


def test_events_without_a_source_and_pairs_of_old() -> None:
    pairs: list[Any] = [[FLAT[0], {"observation": "null", "content": ""}], [FLAT[1], FLAT[2]], FLAT[3]]
    flat = [event for entry in pairs for event in (entry if isinstance(entry, list) else [entry])]
    assert event_steps(flat)[0] == event_steps(FLAT)[0]
    ask = {"action": "message", "content": "which?", "wait_for_response": True}
    assert [s["action"] for s in event_steps([FLAT[0], ask])[0]] == ["which?"]


def test_a_list_of_events(tmp_path: Path) -> None:
    (tmp_path / "basic.json").write_text(json.dumps(EVENTS, indent=1))
    batch, report = load(tmp_path / "basic.json", report=True)
    assert batch.lengths.tolist() == [2] and report.read == 1 and codes(report) == {"group_missing": 1, "no_outcome": 1}


@pytest.mark.parametrize(
    ("more", "outcome", "code"),
    [
        ({"success": False, "error": "runtime died"}, None, {"infrastructure_error": 1}),
        ({"error": "stuck in a loop"}, None, {"infrastructure_error": 1}),
        ({"success": True, "error": "late warning"}, 1.0, {}),
        ({"report": {"resolved": False}}, 0.0, {}),
        ({}, None, {"no_outcome": 1}),
    ],
)
def test_verdicts(tmp_path: Path, more: dict[str, Any], outcome: float | None, code: dict[str, int]) -> None:
    batch, report = output(tmp_path, {"instance_id": "i", "history": EVENTS, **more})
    assert [None if v != v else v for v in batch.outcome.tolist()] == [outcome] and codes(report) == code


def test_odd_records(tmp_path: Path) -> None:
    batch, report = output(
        tmp_path, OPENHANDS[0], OPENHANDS[0], {"instance_id": "x"}, {"instance_id": "y", "history": []},
        {"instance_id": "z", "history": [{"action": ["run"], "args": None}, {"observation": {}, "content": None, "cause": []}]},
    )  # fmt: skip
    assert batch.rollout_ids == ["output", "output#2", "output", "output"] and batch.lengths.tolist() == [2, 2, 0, 1]
    assert (report.read, report.rejected) == (5, 1)
