"""The best step size of each estimator: what is tried, what is chosen, and that it is reported on fresh seeds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graft_core.cli import main
from graft_core.errors import UsageError
from graft_core.live import keep, step_sizes
from graft_core.live.policy import UpdateOptions
from graft_core.live.run import LiveSettings, Progress, Stopped, job_folder, load_settings, run_live
from graft_core.live.step_sizes import best, step_sizes_of, trial, trial_folder
from graft_core.live.table import table_text

SMALL = LiveSettings(
    "key-door", estimators={"path_gae": {}, "grpo": {}}, group_size=6, updates=3, seeds=(0, 1), turns=40, loss="sum",
    update=UpdateOptions(9.0, 1), evaluate=16, step_sizes=(3.0, 0.1),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _two_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_sizes, "SEEDS", 2)


def untimed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


def test_the_best_is_chosen_on_other_seeds_and_run_on_fresh_ones(tmp_path: Path) -> None:
    told: list[Progress] = []
    rows = run_live(SMALL, tmp_path / "run", told.append)
    assert [(p.done, p.total) for p in told[-1:]] == [(2 * 3 * (2 + 2 * 2),) * 2]
    assert [p.trying for p in told] == [0.1] * 12 + [3.0] * 12 + [None] * 12
    assert {p.seed for p in told if p.trying} == {1_000_000, 1_000_001} and {p.seed for p in told if not p.trying} == {0, 1}
    # the same by ordinary runs: each size with the seeds of the trial, then the best with the run's own
    for size in (0.1, 3.0):
        plain = replace(SMALL, update=UpdateOptions(size, 1), seeds=(1_000_000, 1_000_001), step_sizes=())
        run_live(plain, tmp_path / f"{size}")
    for row in rows:
        by_size = {}
        for size in (0.1, 3.0):
            folders = [job_folder(tmp_path / f"{size}", row["estimator"], seed) for seed in (1_000_000, 1_000_001)]
            end = np.mean([keep.read_json(folder / "result.json")["success"] for folder in folders])
            area = np.mean([[line["success"] for line in keep.read_curve(folder)] for folder in folders])
            by_size[size] = (end, area)
        assert [one["step_size"] for one in row["tried"]] == [0.1, 3.0]
        for one in row["tried"]:
            assert (one["end"], one["area"]) == pytest.approx(by_size[one["step_size"]])
        assert row["step_size"] == max(by_size, key=lambda size: by_size[size])
        straight = replace(SMALL, update=UpdateOptions(row["step_size"], 1), step_sizes=())
        (again,) = [r for r in run_live(straight, tmp_path / f"again {row['estimator']}") if r["estimator"] == row["estimator"]]
        assert row["ends"] == again["ends"] and row["curve"] == again["curve"]
    text = table_text(rows, SMALL)
    assert "the best of 2 tried (0.1, 3) by mean end success over 2 other seeds" in text
    assert "the best lies at the edge of what was tried" in text


def test_a_stop_while_trying_changes_nothing(tmp_path: Path) -> None:
    straight = run_live(SMALL, tmp_path / "straight")
    for stop in (5, 14, 27):
        told: list[Progress] = []
        with pytest.raises(Stopped):
            run_live(SMALL, tmp_path / "run", told.append, lambda told=told, stop=stop: bool(told) and told[-1].done >= stop)
    settings = load_settings(tmp_path / "run")
    assert settings == SMALL and settings.step_sizes == (0.1, 3.0)
    assert untimed(run_live(settings, tmp_path / "run")) == untimed(straight)
    kept = keep.load_checkpoint(job_folder(trial_folder(tmp_path / "run", 0.1), "grpo", 1_000_000))
    assert kept is not None and kept.update == 3
    with pytest.raises(UsageError, match=r"other settings \(updates was 3, is 4\)"):
        run_live(replace(SMALL, updates=4), tmp_path / "run")
    with pytest.raises(UsageError, match=r"other settings \(step_sizes was \[0.1, 3.0\], is \[0.1, 3.0, 9.0\]\)"):
        run_live(replace(SMALL, step_sizes=(0.1, 3.0, 9.0)), tmp_path / "run")


def test_ties_go_to_the_larger_area_then_to_the_smaller_step() -> None:
    def row(size: float, end: float, area: float, seeds: int = 2) -> dict[str, Any]:
        return {"step_size": size, "end": end, "area": area, "seeds": seeds}

    assert best([row(1, 0.9, 0.5), row(2, 0.9, 0.6), row(3, 0.8, 0.9)]) == 2
    assert best([row(1, 0.9, 0.6), row(2, 0.9, 0.6)]) == 1
    assert best([row(1, 0.9, 0.6), row(2, 0.9, 0.6, seeds=1)]) is None and best([]) is None
    assert trial(SMALL, 0.1).update.step_size == 0.1 and trial(SMALL, 0.1).step_sizes == ()


def test_sizes_that_make_no_difference_have_no_edge(tmp_path: Path) -> None:
    rows = run_live(replace(SMALL, group_size=1, seeds=(0,), updates=1, estimators={"grpo": {}}), tmp_path / "run")
    assert rows[0]["step_size"] == 0.1 and not rows[0]["at_edge"]  # one rollout per group: GRPO's credit is 0


def test_words_of_the_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert step_sizes_of("1,0.5", 3.0) == (0.5, 1.0)
    assert step_sizes_of("search", 3.0) == (0.3, 0.9, 3.0, 9.0, 30.0)
    for word in ("1", "1,1", "0,1", "-1,2", "1,inf", "some", "1,nan"):
        with pytest.raises(UsageError, match="expected"):
            step_sizes_of(word, 3.0)
    with pytest.raises(UsageError, match="seeds: 1000000 is kept for trying step sizes"):
        replace(SMALL, seeds=(1_000_000,))
    words = ["live", "--env", "key-door", "--updates", "2", "--seeds", "1", "--group-size", "4", "--turns", "20"]
    assert main([*words, "--step-sizes", "1,3", "--step-size", "1"]) == 2
    assert "expected one of them" in capsys.readouterr().err
    assert main([*words, "--step-sizes", "3,1", "--estimator", "grpo"]) == 0
    said = capsys.readouterr()
    assert "step size 1 or 3" in said.out and "trying step size 1, seed 1000001 grpo: update 2/2" in said.err
