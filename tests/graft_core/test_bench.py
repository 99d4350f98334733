"""The benchmark: its batches are what they claim to be, its peers agree with the library, and its verdicts are right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graft_core.bench import measure, peers, rows, synthetic, tasks
from graft_core.cli import main
from graft_core.commands.bench import _words
from graft_core.credit import estimate
from graft_core.errors import InputError
from graft_core.formats import load
from graft_core.graph import build_graph
from graft_core.values import solve_values


def table(n_steps: int, text_bytes: int = 200, seed: int = 0) -> pa.Table:
    return pa.concat_tables(synthetic.tables(n_steps, text_bytes, seed))


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["bench", *words])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_training_batch_has_16_tasks_of_8_rollouts_with_50_steps_on_average() -> None:
    batch = synthetic.batch_of(table(16 * synthetic.STEPS_OF_TASK))
    assert (batch.n_groups, batch.n_rollouts, batch.n_steps) == (16, 128, 6400)
    assert np.bincount(batch.group).tolist() == [8] * 16
    assert batch.lengths.min() < 50 < batch.lengths.max()
    assert {0.0, 1.0} == set(batch.outcome.tolist())


def test_steps_revisit_places_so_that_the_graph_has_cycles_and_merges() -> None:
    graph = build_graph(synthetic.batch_of(table(20_000)))
    per_task = graph.n_nodes / graph.batch.n_groups
    assert 50 < per_task < 110  # about 76, as 190 k states in 1 M steps
    own = [len(set(visited)) for visited in np.split(graph.src, graph.batch.offsets[1:-1])]
    assert np.mean(np.array(own) / graph.batch.lengths) < 0.8


@pytest.mark.parametrize("size", [200, 2000])
def test_every_observation_has_the_size_asked_for(size: int) -> None:
    assert {len(text) for text in table(800, size)["observation"].to_pylist()} == {size}


def test_the_same_seed_gives_the_same_batch_and_another_one_does_not() -> None:
    assert table(800, seed=3).equals(table(800, seed=3))
    assert not table(800, seed=3).equals(table(800, seed=4))


def test_the_parquet_file_holds_the_same_rollouts_as_the_columns_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthetic, "TASKS_AT_ONCE", 2)  # three row groups
    path = tmp_path / "made.parquet"
    size = synthetic.write_parquet(path, 2000, 60)
    batch = load(path)
    rows_in_memory = table(2000, 60)
    assert batch.equals(synthetic.batch_of(rows_in_memory))
    words = [*rows_in_memory["observation"].to_pylist(), *rows_in_memory["next_observation"].to_pylist()]
    assert size == sum(len(w or "") for w in [*words, *rows_in_memory["action"].to_pylist()])


def test_a_fresh_batch_remembers_nothing() -> None:
    batch = synthetic.batch_of(table(800))
    tasks.five_estimators(batch)
    assert batch.memo
    assert not synthetic.fresh(batch).memo


def test_plain_gigpo_is_the_library_s_gigpo() -> None:
    made = table(1200, seed=5)
    batch = synthetic.batch_of(made)
    names = [made[name].to_pylist() for name in ("group_id", "rollout_id", "observation")]
    plain = peers.plain_gigpo(*names, made["reward"].to_numpy(), made["outcome"].to_numpy())
    assert np.abs(plain).max() > 0.5
    np.testing.assert_allclose(plain, estimate(batch, "gigpo"), atol=1e-12)


def test_swept_values_approach_the_exact_ones() -> None:
    graph = build_graph(synthetic.batch_of(table(1200)))
    v = solve_values(graph, gamma=0.9).v
    np.testing.assert_allclose(peers.sparse_sweeps(graph, 0.9), v, atol=1e-6)
    swept = peers.networkx_values([graph.to_networkx(group) for group in range(3)], 0.9)
    assert len(swept) == graph.n_nodes
    assert max(abs(v[u] - x) for u, x in swept.items()) < 1e-6


def test_pandas_gives_one_number_per_distinct_text() -> None:
    assert peers.pandas_factorize(["b", "a", "b", "c", "a"]).tolist() == [0, 1, 0, 2, 1]


def test_keys_of_the_library_and_of_pandas_agree() -> None:
    assert tasks.keys(1200, 80, repeats=1)["agrees"] is True


def test_peak_memory_counts_what_was_held_and_let_go() -> None:
    before = measure.peak_memory()
    held = np.ones(before // 8 + 4_000_000)
    assert measure.peak_memory() >= before + 30_000_000
    del held
    assert measure.peak_memory() >= before + 30_000_000


def test_a_measurement_that_fails_says_why_in_one_sentence() -> None:
    with pytest.raises(InputError, match=r"'parquet' did not end well: .*absent\.parquet"):
        measure.in_child("parquet", path="absent.parquet")


def growth_lines(small: float, large: float, tmp_path: Path) -> list[rows.Line]:
    """The lines of `growth` for two sizes that took so long."""
    bench = rows.Bench(tmp_path, rows.Sizes(growth=(100, 1000)))
    for n, seconds in ((100, small), (1000, large)):
        spent = {"wall": seconds**1.1, "cpu": seconds**1.2, "user": seconds}
        bench.measured[n, 200] = {"ours": spent, "n": n, "text": 200 * n, "peak": 10**8}
    return list(rows.growth(bench))


def test_growth_compares_each_size_with_the_one_before_by_the_clock_that_grew_least(tmp_path: Path) -> None:
    first, second = growth_lines(0.5, 5.9, tmp_path)
    assert (first.figure, first.met, first.missed) == (None, None, False)
    assert second.figure == pytest.approx(11.8)
    assert (second.met, second.missed) == (True, False)
    assert "15.1x by the wall clock" in second.notes[1]


def test_growth_is_shown_with_its_target_and_in_quick_runs_without(tmp_path: Path) -> None:
    line = growth_lines(0.5, 6.1, tmp_path)[1]
    assert "12.2x" in _words(line)
    assert "<= 12x MISSED" in " ".join(_words(line).split())
    assert "MISSED" not in _words(replace(line, target=None, met=None))


def test_growth_beyond_twelve_times_is_missed(tmp_path: Path) -> None:
    assert growth_lines(0.5, 6.1, tmp_path)[1].missed


def test_the_best_of_several_runs_is_taken_clock_by_clock() -> None:
    assert measure.best([{"wall": 2.0, "cpu": 1.0}, {"wall": 1.5, "cpu": 1.2}]) == {"wall": 1.5, "cpu": 1.0}


def test_the_smaller_of_wall_and_cpu_time_is_judged() -> None:
    assert rows.judged({"wall": 2.0, "cpu": 1.0}) == 1.0
    assert rows.judged({"wall": 1.0, "cpu": 1.8}) == 1.0


@pytest.mark.parametrize(("seconds", "status"), [(0.021, 1), (0.019, 0)])
def test_check_fails_when_a_training_batch_takes_over_20_ms(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, seconds: float, status: int
) -> None:
    spent = {"wall": seconds, "cpu": seconds}
    found = {"ours": spent, "best": spent, "gigpo": spent, "error": 0.0, "n": 6400, "batches": 1}
    monkeypatch.setattr(rows, "in_child", lambda task, **given: found)
    given, out, err = run(capsys, "--check", "--only", "train")
    assert given == status
    assert ("missed: training batch" in err) == bool(status)
    assert ("MISSED" in out) == bool(status)
    assert run(capsys, "--only", "train")[0] == 0  # without --check it only tells


def test_check_does_not_insist_on_rows_beyond_the_three(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(bench: rows.Bench) -> Iterator[rows.Line]:
        yield rows.Line("values", "slow values", 9.0, 9.0, 0.1, met=False)

    monkeypatch.setitem(rows.ROWS, "values", slow)
    status, out, _ = run(capsys, "--check", "--only", "values")
    assert status == 0
    assert "MISSED" in out


@pytest.mark.parametrize("words", [("--check", "--quick"), ("--only", "valves")])
def test_wrong_usage(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    status, _, err = run(capsys, *words)
    assert status == 2
    assert len(err.strip().splitlines()) == 1


def test_no_room_for_a_batch_is_said_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"MB are needed for a batch of .* steps, .* MB are free; TMPDIR"):
        rows.Bench(tmp_path, rows.Sizes()).parquet(10**13, 200, 1)
    assert not list(tmp_path.iterdir())


def test_too_little_memory_for_a_batch_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_free_memory", lambda: 10**8)
    with pytest.raises(InputError, match=r"takes up to 0\.7 GB of memory, 0\.1 GB are free"):
        rows.Bench(tmp_path, rows.Sizes()).parquet(1_000_000, 200, 1)


def test_quick_measures_in_processes_of_their_own_and_judges_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--quick", "--json", "--only", "train", "--only", "growth")
    document: dict[str, Any] = json.loads(out)
    assert status == 0
    assert document["quick"] is True
    assert [line["row"] for line in document["lines"]] == ["train", "growth", "growth"]
    assert all(line["met"] is None and line["wall"] > 0 and line["cpu"] > 0 for line in document["lines"])
    assert document["lines"][1]["peak"] > 50_000_000
    assert document["lines"][0]["peers"][0]["seconds"] > 0
    assert document["machine"]["cores"] >= 1


@pytest.mark.audit
def test_the_second_process_compiles_nothing(tmp_path: Path) -> None:
    first, second = rows.start(rows.Bench(tmp_path, rows.QUICK))
    assert first.notes[0] != "0 functions compiled"
    assert second.notes[0] == "0 functions compiled"
    assert second.met
