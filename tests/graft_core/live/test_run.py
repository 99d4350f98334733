"""Whole runs: the table, going on after a stop or a kill, what is refused, and what is kept when things go wrong."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graft_core as gc
from graft_core.errors import InputError, UsageError
from graft_core.live import keep
from graft_core.live.games import make_game
from graft_core.live.policy import Situation, UpdateOptions
from graft_core.live.run import LiveSettings, Progress, Stopped, job_folder, run_live
from graft_core.live.start import PolicyOptions, make_policy
from graft_core.live.table import first_update_at, interval, table_text

SMALL = LiveSettings(
    "key-door", estimators={"path_gae": {}, "grpo": {}}, rules=make_game("key-door").rules("no-key"), group_size=8, updates=4,
    seeds=(0, 1), turns=60, loss="sum", update=UpdateOptions(3.0, 1), evaluate=16,
)  # fmt: skip


def curves(run: Path, settings: LiveSettings) -> list[Any]:
    """Everything of the curves that does not tell the time."""
    return [
        [{k: v for k, v in row.items() if k not in ("time", "seconds_sampling", "seconds_updating")} for row in rows]
        for name in settings.estimators
        for seed in settings.seeds
        for rows in [keep.read_curve(job_folder(run, name, seed))]
    ]


def states(run: Path, settings: LiveSettings) -> list[Any]:
    found = []
    for name in settings.estimators:
        for seed in settings.seeds:
            kept = keep.load_checkpoint(job_folder(run, name, seed))
            assert kept is not None
            found.append((kept.update, kept.words, {k: v.tobytes() for k, v in kept.arrays.items()}))
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("live") / "whole"
    run_live(SMALL, path)
    return path


def test_a_run_tells_where_it_is_and_ends_with_a_table(tmp_path: Path) -> None:
    told: list[Progress] = []
    rows = run_live(SMALL, tmp_path / "run", told.append)
    assert [(p.done, p.total) for p in told] == [(k, 16) for k in range(1, 17)]
    assert told[-1].seconds_left == 0.0 and told[0].seconds_left > 0
    assert [row["estimator"] for row in rows] == ["path_gae", "grpo"]
    assert all(row["seeds"] == 2 and len(row["ends"]) == 2 for row in rows)
    assert keep.read_json(tmp_path / "run" / "status.json")["state"] == "done"
    assert keep.read_json(tmp_path / "run" / "result.json")["rows"][0]["end"] == rows[0]["end"]
    text = table_text(rows, SMALL)
    assert "path_gae" in text and "16 fresh rollouts per seed after update 4" in text


def test_every_estimator_starts_from_the_same_rollouts(whole: Path) -> None:
    ours, theirs = (gc.load(job_folder(whole, name, 0) / "steps" / "000001.jsonl") for name in SMALL.estimators)
    assert ours.equals(theirs)
    later, others = (gc.load(job_folder(whole, name, 0) / "steps" / "000002.jsonl") for name in SMALL.estimators)
    assert not later.equals(others)


def test_the_first_seeds_rollouts_are_kept_one_file_per_update(whole: Path) -> None:
    folder = job_folder(whole, "path_gae", 0)
    assert [f.name for f in sorted((folder / "steps").iterdir())] == [f"{k:06d}.jsonl" for k in range(1, 5)]
    batch = gc.load(folder)
    assert batch.n_rollouts == 4 * 8
    curve = keep.read_curve(folder)
    per_update = [np.mean(batch.outcome[k * 8 : k * 8 + 8]) for k in range(4)]
    assert per_update == [row["success"] for row in curve]
    assert not (job_folder(whole, "path_gae", 1) / "steps").exists()


def test_stop_and_the_same_command_goes_on_as_if_nothing_had_been(whole: Path, tmp_path: Path) -> None:
    run, told = tmp_path / "run", []

    def stop() -> bool:
        return len(told) in (3, 9)

    for _ in range(2):
        with pytest.raises(Stopped):
            run_live(SMALL, run, told.append, stop)
        assert keep.read_json(run / "status.json")["state"] == "stopped"
        told.append(None)
    run_live(SMALL, run)
    assert curves(run, SMALL) == curves(whole, SMALL)
    assert states(run, SMALL) == states(whole, SMALL)
    assert gc.load(job_folder(run, "grpo", 0)).equals(gc.load(job_folder(whole, "grpo", 0)))


def test_pause_waits_and_resume_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, seen = tmp_path / "run", []

    def tell(progress: Progress) -> None:
        if progress.done == 2:
            keep.ask(run, "pause")

    def sleep(seconds: float) -> None:
        seen.append(keep.read_json(run / "status.json")["state"])
        keep.ask(run, "resume")

    monkeypatch.setattr("graft_core.live.run.time.sleep", sleep)
    run_live(replace(SMALL, seeds=(0,)), run, tell)
    assert seen == ["paused"]
    with pytest.raises(UsageError, match="request 'halt'"):
        keep.ask(run, "halt")


def test_asked_to_stop_by_file(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(Stopped):
        run_live(SMALL, run, lambda p: keep.ask(run, "stop") if p.done == 1 else None)
    assert keep.load_checkpoint(job_folder(run, "path_gae", 0)).update == 1  # type: ignore[union-attr]


def test_a_longer_run_goes_on_and_other_settings_are_refused(whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run_live(replace(SMALL, updates=2), run)
    run_live(SMALL, run)
    assert states(run, SMALL) == states(whole, SMALL)
    with pytest.raises(UsageError, match="other settings \\(turns was 60, is 41\\)"):
        run_live(replace(SMALL, turns=41), run)
    with pytest.raises(UsageError, match=r"other settings \(ratio was 'sequence', is 'token'\)"):
        run_live(replace(SMALL, update=replace(SMALL.update, ratio="token")), run)
    words = keep.read_json(run / "live.json")  # as a version without these settings wrote it
    del words["settings"]["step_sizes"], words["settings"]["update"]["ratio"]
    keep.write_json(run / "live.json", words)
    run_live(SMALL, run)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty and holds no live run"):
        run_live(SMALL, tmp_path / "full")


@pytest.mark.parametrize("field", ["group_size", "groups", "updates", "turns"])
def test_settings_that_make_no_sense_are_refused(field: str) -> None:
    with pytest.raises(UsageError, match=field.replace("_", "-")):
        replace(SMALL, **{field: 0})


COMMAND = [
    sys.executable, "-m", "graft_core.cli", "live", "--env", "key-door", "--graph-key", "no-key",
    "--seeds", "2", "--group-size", "8", "--estimator", "graft_td", "--estimator", "path_gae", "--record", "all",
    "--evaluate", "8", "-o",
]  # fmt: skip


def finished(run: Path) -> int:
    """Updates finished so far, of all estimators and seeds."""
    kept = [keep.load_checkpoint(folder) for folder in run.glob("*/seed-*")]
    return sum(one.update for one in kept if one is not None)


def kill_and_check(run: Path, seed: int, kills: int, updates: int) -> None:
    """Start the run, kill it at random points of its work, and go on; after every kill all files can be read."""
    rng, before = random.Random(seed), 0
    for _ in range(kills):
        command = [*COMMAND, str(run), "--updates", str(updates)]
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while time.monotonic() < until and finished(run) == before:
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.2))
        assert started.poll() is None, "the run ended before it was killed: too short for this test"
        started.send_signal(signal.SIGKILL)
        started.wait()
        done = 0
        for folder in run.glob("*/seed-*"):
            kept = keep.load_checkpoint(folder)
            at = kept.update if kept else 0
            done += at
            curve = keep.read_curve(folder)
            assert [row["update"] for row in curve] in (list(range(1, at + 1)), list(range(1, at + 2)))
            files = sorted((folder / "steps").glob("*.jsonl"))
            assert at <= len(files) <= at + 1  # at most the unfinished update is not whole
            if files:
                batch = gc.load(folder)
                assert not np.isnan(batch.outcome[: 8 * at]).any()
        assert done > before
        before = done
        assert keep.read_json(run / "live.json")["graft_live"] == 1


def finish(run: Path, updates: int) -> None:
    done = subprocess.run([*COMMAND, str(run), "--updates", str(updates)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def same_result(run: Path, other: Path) -> None:
    names = sorted(p.relative_to(run) for p in run.glob("*/seed-*"))
    assert len(names) == 4
    for name in names:
        mine, theirs = keep.load_checkpoint(run / name), keep.load_checkpoint(other / name)
        assert mine is not None and theirs is not None
        assert mine.arrays["logits"].tobytes() == theirs.arrays["logits"].tobytes()
        assert gc.load(run / name).equals(gc.load(other / name))


def test_killed_at_random_points_it_goes_on_and_loses_nothing_finished(tmp_path: Path) -> None:
    kill_and_check(tmp_path / "killed", int(os.environ.get("GRAFT_KILL_SEED", "1")), 3, 40)
    finish(tmp_path / "killed", 40)
    finish(tmp_path / "straight", 40)
    same_result(tmp_path / "killed", tmp_path / "straight")


def test_a_broken_environment_fails_the_run_and_keeps_the_steps(tmp_path: Path) -> None:
    sys.modules.pop("worlds", None)
    import worlds

    class Broken(worlds.Corridor):
        def __init__(self) -> None:
            super().__init__("raises")

    worlds.Broken = Broken
    with pytest.raises(InputError, match="the floor gave way"):
        run_live(replace(SMALL, env="worlds:Broken", rules=("exact",)), tmp_path / "run")
    status = keep.read_json(tmp_path / "run" / "status.json")
    assert status["state"] == "failed" and "the floor gave way" in status["why"]
    assert gc.load(job_folder(tmp_path / "run", "path_gae", 0)).n_steps > 0


def test_a_full_disk_is_one_sentence_and_what_was_finished_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, real = tmp_path / "run", np.savez
    calls: list[int] = []

    def full(stream: Any, **arrays: Any) -> None:
        calls.append(1)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        real(stream, **arrays)

    monkeypatch.setattr("graft_core.live.keep.np.savez", full)
    with pytest.raises(InputError, match="No space left on device"):
        run_live(SMALL, run)
    folder = job_folder(run, "path_gae", 0)
    assert keep.load_checkpoint(folder).update == 2  # type: ignore[union-attr]
    assert sorted(f.name for f in folder.iterdir()) == ["curve.jsonl", "run.json", "state.npz", "steps"]
    monkeypatch.undo()
    assert all(row["seeds"] == 2 for row in run_live(SMALL, run))


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    run_live(replace(SMALL, updates=1, seeds=(0,)), tmp_path / "run")
    file = job_folder(tmp_path / "run", "path_gae", 0) / keep.STATE
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(InputError, match=r"state\.npz: is damaged"):
        run_live(replace(SMALL, updates=2, seeds=(0,)), tmp_path / "run")


def test_a_language_model_stops_and_goes_on_the_same(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `live` is not installed")
    settings = LiveSettings(
        "frozen-lake", PolicyOptions("tiny", device="cpu"), {"path_gae": {}}, group_size=6, updates=3, turns=30, evaluate=0,
        update=UpdateOptions(2e-3, 2, kl=0.01),
    )  # fmt: skip
    run_live(settings, tmp_path / "straight")
    run_live(replace(settings, updates=1), tmp_path / "halved")
    run_live(settings, tmp_path / "halved")
    assert curves(tmp_path / "straight", settings) == curves(tmp_path / "halved", settings)
    assert states(tmp_path / "straight", settings) == states(tmp_path / "halved", settings)


def test_intervals_and_first_times_by_hand() -> None:
    low, high = interval([0.2, 0.4, 0.6])
    assert (low, high) == (0.0, pytest.approx(0.4 + 4.302653 * 0.2 / 3**0.5))
    assert all(np.isnan(interval([0.5])))
    assert first_update_at([{"update": 1, "success": 0.7}, {"update": 2, "success": 0.8}]) == 2
    assert first_update_at([{"update": 1, "success": 0.7}]) is None


def test_a_trained_policy_is_a_start_for_another_run_and_for_probes(whole: Path) -> None:
    folder, game = job_folder(whole, "path_gae", 0), make_game("key-door")
    policy = make_policy(PolicyOptions(str(folder)), game)
    kept = keep.load_checkpoint(folder)
    assert kept is not None
    assert policy.state()[0]["logits"].tobytes() == kept.arrays["logits"].tobytes()


def test_a_tiny_model_is_made_for_any_world_and_kept_whole(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `live` is not installed")
    settings = LiveSettings(
        "household:task=swap", PolicyOptions("tiny", device="cpu"), {"grpo": {}}, group_size=3, updates=1, turns=4, evaluate=0
    )
    told: list[Progress] = []
    run_live(settings, tmp_path / "run", told.append)
    game = make_game(settings.env)
    policy = make_policy(PolicyOptions(str(job_folder(tmp_path / "run", "grpo", 0)), device="cpu"), game)
    words = policy.words(Situation("Put the mug on the shelf.", "", ("look",)))  # type: ignore[attr-defined]
    assert policy.tokenizer.unk_token_id not in policy.tokenizer(words)["input_ids"]  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="expected a model's path"):
        make_policy(PolicyOptions("tiny", device="cpu"), make_game("worlds:Corridor"))
