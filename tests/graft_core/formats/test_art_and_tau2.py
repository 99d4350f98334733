"""ART trajectory groups and tau2-bench simulations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from more_files import ART, TAU2, art, simulation
from step_rows import codes
from written import column, document, lines, read

from graft_core.errors import InputError
from graft_core.formats import load


@pytest.mark.parametrize("shape", ["list", "lists", "lines", "one"])
def test_groups_are_the_nesting(tmp_path: Path, shape: str) -> None:
    value: Any = ART
    if shape == "lists":
        value = [g["trajectories"] for g in ART]
    path = tmp_path / "groups.json"
    if shape == "lines":
        lines(path, *ART)
    else:
        document(path, ART[0] if shape == "one" else value)
    rollouts, steps, report = read(path)
    groups = 1 if shape == "one" else 2
    assert report.formats == ("art",) and (report.read, report.accepted) == (2 * groups, 2 * groups) and not codes(report)
    assert len(set(column(rollouts, "group_id"))) == groups and column(rollouts, "outcome") == [0, 1] * groups
    assert column(steps[:2], "action") == ['find {"a":"x","b":1}', "Booked."], "what the model said are Choices"
    assert json.loads(rollouts[0]["metadata"])["metrics"] == {"turns": 2}


def test_art_exceptions_and_broken_members(tmp_path: Path) -> None:
    groups = [{"trajectories": [art(), {"reward": 1}, "x"], "exceptions": ["boom", "boom"]}, {"nothing": 1}]
    rollouts, _, report = read(document(tmp_path / "g.json", groups))
    assert len(rollouts) == 1 and (report.read, report.rejected) == (4, 3) and codes(report)["infrastructure_error"] == 2
    assert [r.where.rpartition("[")[2] for r in report.rejections] == ["0/1]", "0/2]", "1]"]


def test_tau2_simulations(tmp_path: Path) -> None:
    rollouts, steps, report = read(document(tmp_path / "r.json", TAU2))
    assert report.formats == ("tau2-bench",) and not codes(report) and len(rollouts) == 4
    assert column(rollouts, "group_id") == ["0", "0", "1", "1"] and column(rollouts, "rollout_id") == ["0", "1", "0", "1"]
    assert column(rollouts, "success") == [False, True, False, True] and all(column(rollouts, "terminated"))
    assert column(steps[:3], "action") == ["Hi! How can I help you today?", 'get {"a":2,"z":1}', "Turn it on, please."]
    assert column(steps[:3], "observation") == ["", "my phone is off", "line ok"]
    assert rollouts[0]["final_observation"] == "done ###STOP###"
    assert not any("secret" in json.dumps(s) for s in steps), "the user's own tools are not seen by the agent"


def test_tau2_endings(tmp_path: Path) -> None:
    reasons = ["user_stop", "max_steps", "too_many_errors", "infrastructure_error", "agent_error"]
    sims = [simulation("0", k, 0.0, reason) for k, reason in enumerate(reasons)]
    rollouts, _, report = read(document(tmp_path / "r.json", {"tasks": [], "simulations": sims}))
    assert column(rollouts, "truncated") == [None, True, True, None, None]
    assert column(rollouts, "outcome") == [0, 0, 0, None, None] and column(rollouts, "success")[3] is None
    assert codes(report) == {"infrastructure_error": 2}


def test_a_folder_of_single_simulations(tmp_path: Path) -> None:
    for trial in (0, 1):
        document(tmp_path / "simulations" / f"{trial}.json", simulation("7", trial, float(trial)))
    rollouts, _, report = read(tmp_path)
    assert column(rollouts, "group_id") == ["7", "7"] and column(rollouts, "rollout_id") == ["0", "1"] and not codes(report)


def test_several_results_of_one_turn_are_taken_apart(tmp_path: Path) -> None:
    both = {
        "role": "tool",
        "tool_messages": [{"role": "tool", "content": "a"}, {"role": "tool", "content": "b", "requestor": "user"}],
    }
    sim = simulation(messages=[{"role": "user", "content": "q"}, {"role": "assistant", "content": "x"}, both])
    assert read(document(tmp_path / "r.json", sim))[0][0]["final_observation"] == "a"


def test_tau2_simulations_that_cannot_be_read(tmp_path: Path) -> None:
    sims = [simulation(), 3, {"id": 1}, simulation(messages=None, ticks=[1])]
    _, _, report = read(document(tmp_path / "r.json", {"tasks": [], "simulations": sims}))
    assert report.rejected == 3 and "voice" in report.rejections[-1].reason
    assert load(document(tmp_path / "e.json", {"tasks": [], "simulations": []})).n_rollouts == 0
    with pytest.raises(InputError, match="no list of messages"):
        load(document(tmp_path / "f.json", simulation(messages=5)))
