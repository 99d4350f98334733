"""`graft live` and `graft probe` as a person calls them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from graft_core.cli import main
from graft_core.live import keep, process

LIVE = ["live", "--env", "key-door", "--updates", "2", "--seeds", "2", "--group-size", "4", "--turns", "20", "--evaluate", "4"]


def test_live_prints_a_table_and_leaves_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LIVE, "--graph-key", "no-key", "-o", str(tmp_path / "run")]) == 0
    said = capsys.readouterr()
    assert "key-door, tabular policy, 1 x 4 rollouts of at most 20 turns, 2 updates, step size 3" in said.out
    assert [line.split()[0] for line in said.out.splitlines()[2:5]] == ["graft_td", "path_gae", "grpo"]
    assert "seed 1 grpo: update 2/2" in said.err
    assert main(["inspect", str(tmp_path / "run" / "graft_td" / "seed-0"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rollouts"] == 8


def test_live_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LIVE, "--json", "--estimator", "path_gae", "--lam", "0.5", "--loss", "step", "--step-size", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"][0]["seeds"] == 2
    assert found["settings"]["estimators"]["path_gae"]["lam"] == 0.5
    assert found["settings"]["update"]["step_size"] == 2.0
    assert found["settings"]["loss"] == "step"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--env", "frozen-lak"], 2, "unknown environment 'frozen-lak'"),
        (["--estimator", "gepo"], 2, "unknown estimator 'gepo'"),
        (["--seeds", "0"], 2, "--seeds '0': expected at least one seed"),
        (["--seeds", "1,1"], 2, "none twice"),
        (["--seeds", "many"], 2, "--seeds 'many'"),
        (["--graph-key", "nonsense"], 2, "graph key 'nonsense'"),
        (["--policy", "./nowhere/model"], 1, "no such folder"),
        (["--record", "some"], 2, "record: 'some'"),
        (["--loss", "mean"], 2, "loss: 'mean'"),
        (["--ratio", "word"], 2, "ratio: 'word' is not allowed, expected one of sequence, token"),
        (["--step-sizes", "1"], 2, "expected at least two numbers above 0"),
        (["--step-size", "-1"], 2, "step-size: -1.0 is not allowed"),
        (["--epochs", "0"], 2, "epochs: 0 is not allowed"),
        (["--evaluate", "-1"], 2, "evaluate -1"),
        (["--turns", "0"], 2, "turns: 0 is not allowed"),
        (["--outcome", "money"], 2, "outcome: 'money' is not allowed, expected one of success, return"),
        (["--spread", "nan"], 2, "spread: nan is not allowed"),
        (["--env", "toy-text:Blackjack-v1"], 2, "graft: toy-text 'Blackjack-v1': expected FrozenLake-vN"),
        (["--estimator", "grpo", "--lam", "0.5"], 2, "--lam: none of the estimators named has it"),
    ],
)
def test_wrong_words_are_one_sentence(
    arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*LIVE, *arguments]) == status
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_both_ratios_are_the_same_for_a_tabular_policy(capsys: pytest.CaptureFixture[str]) -> None:
    rows = []
    for ratio in ("sequence", "token"):
        assert main([*LIVE, "--json", "--estimator", "grpo", "--epochs", "2", "--ratio", ratio]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["settings"]["update"]["ratio"] == ratio
        rows.append({k: v for k, v in found["rows"][0].items() if k != "seconds"})
    assert rows[0] == rows[1]


def test_the_table_shows_the_curves_with_bands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LIVE, "--json", "--estimator", "grpo", "--seeds", "3"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert {len(row["curve"][k]) for k in ("success", "low", "high")} == {2}
    assert row["curve"]["success"][0] == pytest.approx(row["start"])
    assert main([*LIVE, "--estimator", "grpo", "--seeds", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("success by update"))
    assert lines[at].split()[3:] == ["1", "2"] and lines[at + 1].startswith("grpo")
    assert f"[{row['curve']['low'][1]:.2f}, {row['curve']['high'][1]:.2f}]" in lines[at + 1]


def test_going_on_needs_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LIVE, "--estimator", "grpo", "-o", str(tmp_path / "run")]) == 0
    first = capsys.readouterr().out
    assert main(["live", "--resume", "-o", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.split() == first.split()
    assert main(["live", "--resume", "-o", str(tmp_path / "none")]) == 1
    assert "holds no live run" in capsys.readouterr().err
    assert main(["live"]) == 2
    assert "expected --env NAME" in capsys.readouterr().err


def test_probe_check_export_and_import(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = str(root / "sample_data" / "household.jsonl")
    step = ["--step", "cool glass/r7/10", "--tries", "8"]
    assert main(["probe", "check", sample, "--env", "household", *step, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["policy"] == "counts"
    assert found["checks"][0]["taken"]["tries"] == 8
    assert found["by_certainty"][0]["checks"] == 1
    assert main(["probe", "check", sample, "--env", "household", "--tries", "8", "--limit", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len({line.split(":")[0] for line in lines[:3]}) == 3 and lines[5].startswith("stated that the")
    assert lines[7].split()[1] == "to" and lines[7].split()[3] == "%" and lines[-4].startswith("expected: the share")
    assert main(["probe", "check", sample, "--env", "household", "--tries", "8", "--beyond-luck"]) in (0, 1)
    said = capsys.readouterr()
    assert "stated that the" in said.out or "that is beyond luck to check" in said.err
    assert main(["probe", "export", sample, *step, "-o", str(tmp_path / "p.jsonl")]) == 0
    probe = json.loads((tmp_path / "p.jsonl").read_text())
    lines = [{"probe_id": probe["probe_id"], "action": a, "outcome": o} for a, o in ((None, 0), (probe["action"], 1))]
    (tmp_path / "o.jsonl").write_text("\n".join(map(json.dumps, lines)))
    capsys.readouterr()
    assert main(["probe", "import", str(tmp_path / "p.jsonl"), str(tmp_path / "o.jsonl")]) == 0
    said = capsys.readouterr().out
    assert "cool glass/r7/10" in said and "sign is right" in said
    assert probe["stated"] is None or probe["stated"]["error"] > 0
    assert main(["probe", "check", sample, "--env", "household", "--step", "x/y/1"]) == 2
    assert "GROUP/ROLLOUT/STEP" in capsys.readouterr().err
    assert main(["probe", "check", sample, "--env", "key-door", *step]) == 1


def test_a_run_in_its_own_process_is_seen_and_stops_when_asked(tmp_path: Path) -> None:
    run = tmp_path / "run"
    pid = process.start(run, [*LIVE[1:], "--updates", "500"])
    assert _wait(lambda: process.status(run).get("update", 0) > 1)
    assert process.status(run)["pid"] == pid and process.is_alive(pid)
    assert main(["live", "--resume", "-o", str(run)]) == 2  # two at one run would spoil it
    keep.ask(run, "stop")
    assert _wait(lambda: not process.is_alive(pid))
    assert process.status(run)["state"] == "stopped"
    assert "stopped as asked" in process.log_file(run).read_text()
    at = process.status(run)["update"]
    assert process.start(run) != pid
    assert _wait(lambda: process.status(run).get("update", 0) > at)
    keep.ask(run, "stop")
    assert _wait(lambda: process.status(run)["state"] == "stopped")


def test_a_run_is_not_left_behind_and_a_killed_one_is_known(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    run = tmp_path / "run"
    pid = process.start(run, [*LIVE[1:], "--updates", "500"], stop_with=other.pid)
    assert _wait(lambda: process.status(run).get("update", 0) > 1)
    other.communicate(b"\n")
    assert _wait(lambda: not process.is_alive(pid))
    assert process.status(run)["state"] == "stopped"
    pid = process.start(run, [*LIVE[1:], "--updates", "500"])
    assert _wait(lambda: process.status(run).get("pid") == pid)
    os.kill(pid, signal.SIGKILL)
    assert _wait(lambda: not process.is_alive(pid))
    assert process.status(run)["state"] == "killed"


def _wait(until: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if until():
            return True
        time.sleep(0.02)
    return False
