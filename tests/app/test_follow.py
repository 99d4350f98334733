"""Pages that follow a run: what counts as being written, and that a choice survives while the graph grows."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import graft_core as gc
from graft_app import cache, follow, server
from graft_core.errors import InputError
from graft_core.insight import Findings
from graft_core.insight.findings import findings
from graft_core.live import keep
from graft_core.live.run import LiveSettings, run_live
from graft_core.settings import Settings


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded rollouts of a small live run."""
    run = tmp_path_factory.mktemp("follow") / "run"
    settings = LiveSettings("key-door", estimators={"graft_td": {}}, group_size=6, updates=4, seeds=(0,), turns=20, loss="sum")
    run_live(settings, run)
    return run


@pytest.fixture
def growing(finished: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of it that says it is still running, with only the first update there."""
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    alive(run)
    seed = run / "graft_td" / "seed-0"
    for file in (*sorted((seed / "steps").iterdir())[1:], seed / keep.RESULT):
        file.unlink()
    follow._READ.clear()
    yield seed
    follow._READ.clear()


def alive(run: Path, state: str = "running", pid: int | None = None) -> None:
    keep.write_json(run / keep.STATUS, {"state": state, "pid": os.getpid() if pid is None else pid, "time": time.time()})


def add(seed: Path, finished: Path, number: int, lines: int | None = None) -> None:
    """The next update arrives, or its first lines."""
    name = f"steps/{number:06d}.jsonl"
    (seed / name).write_text("".join((finished / "graft_td/seed-0" / name).read_text().splitlines(True)[:lines]))


def test_what_counts_as_being_written(growing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = growing.parents[1]
    for place in (run, growing):
        assert follow.being_written(str(place))
    alive(run, "paused")
    assert follow.being_written(str(growing))
    keep.write_json(growing / keep.RESULT, {"update": 4})  # this seed is through, the run goes on with others
    assert not follow.being_written(str(growing)) and follow.being_written(str(run))
    keep.write_json(growing / keep.RESULT, {"update": 3})  # the run was made longer since
    assert follow.being_written(str(growing))
    alive(run, "done")
    assert not follow.being_written(str(growing)) and not follow.being_written(str(run))
    alive(run, pid=2**22 + 7)  # killed
    assert not follow.being_written(str(growing))
    (run / keep.STATUS).write_text("{")
    assert not follow.being_written(str(growing))
    assert not follow.being_written(str(growing / "steps" / "000001.jsonl"))
    assert not follow.being_written(str(tmp_path / "nowhere"))
    outside = tmp_path / "outside"
    with gc.record(outside) as recorder:
        recorder.step("g", "r", 0, "a", "b")
    assert follow.being_written(str(outside))
    monkeypatch.setattr(follow, "QUIET", -1.0)
    assert not follow.being_written(str(outside))


def found_in(seed: Path, group_by: str | None) -> Findings:
    return findings(gc.load(seed, group_by=group_by), Settings())


@pytest.mark.parametrize("group_by", [None, "column:observation"])
def test_what_is_chosen_is_found_again_in_a_graph_that_has_grown(growing: Path, finished: Path, group_by: str | None) -> None:
    moved = 0
    for number, lines in ((2, 60), (2, None), (3, None)):
        old = found_in(growing, group_by)
        add(growing, finished, number, lines)
        new = found_in(growing, group_by)
        place = {
            (new.batch.rollouts.column("source")[int(new.batch.step_rollout[p])].as_py(), int(new.batch.step_index[p])): p
            for p in range(new.batch.n_steps)
        }
        for p in range(old.batch.n_steps):
            row = int(old.batch.step_rollout[p])
            now = place[old.batch.rollouts.column("source")[row].as_py(), int(old.batch.step_index[p])]
            edge = f"e{int(new.graph.edge[now])}"
            moved += edge != f"e{int(old.graph.edge[p])}"
            assert follow.renumbered(old, new, str(int(old.batch.order[p]))) == str(int(new.batch.order[now]))
            assert follow.renumbered(old, new, f"e{int(old.graph.edge[p])}") == edge
            assert follow.renumbered(old, new, f"n{int(old.graph.src[p])}") == f"n{int(new.graph.src[now])}"
    assert moved > 0  # else this would show nothing
    for word in ("", "e", "n99999", "x3", "e-1", "e1.5"):
        assert follow.renumbered(old, new, word) is None


def until_read(path: str, on_disk: cache.Stamp) -> tuple[cache.Stamp, follow.Kept] | None:
    """What the looks of the next seconds find."""
    for _ in range(200):
        found = follow.newer(path, on_disk)
        if found is not None:
            return found
        time.sleep(0.02)
    return None


def test_new_steps_are_read_once_and_nothing_else_counts(
    growing: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    load = follow.load

    def read(path: str, **more: Any) -> Any:
        reads.append(path)
        return load(path, **more)

    monkeypatch.setattr(follow, "load", read)
    path, first = str(growing), cache.stamp(str(growing))
    (growing / "curve.jsonl").write_text("{}\n")
    assert follow.newer(path, first) is None and not reads
    add(growing, finished, 2)
    found = until_read(path, first)
    assert found is not None and found[1][0].n_rollouts == 12
    assert follow.newer(path, first) is not None and len(reads) == 1  # another visitor gets the same
    assert follow.newer(path, found[0]) is None
    add(growing, finished, 3)
    third = until_read(path, found[0])
    assert third is not None and third[1][0].n_rollouts == 18 and len(reads) == 2


def test_what_cannot_be_read_now_is_read_at_a_later_look(
    growing: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, first = str(growing), cache.stamp(str(growing))
    add(growing, finished, 2)

    def fail(path: str, **more: object) -> None:
        raise InputError("being written")

    with monkeypatch.context() as broken:
        broken.setattr(follow, "load", fail)
        assert follow.newer(path, first) is None
    found = until_read(path, first)
    assert found is not None and found[1][0].n_rollouts == 12


def words(test: AppTest) -> str:
    return "\n".join(str(getattr(element, "value", "")) for kind in ("markdown", "caption") for element in test.get(kind))


def test_a_page_shows_new_steps_and_keeps_what_is_chosen(
    growing: Path, finished: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(server.PATHS_VARIABLE, json.dumps([str(growing)]))
    monkeypatch.setattr(follow, "LEAST", 0.0)
    test = AppTest.from_file(str(server.MAIN), default_timeout=60)
    old = found_in(growing, "column:observation")
    add(growing, finished, 2)
    grown = found_in(growing, "column:observation")
    (growing / "steps" / "000002.jsonl").unlink()
    names = [f"e{edge}" for edge in range(old.graph.n_edges)]
    chosen = next(name for name in names if follow.renumbered(old, grown, name) != name)  # one that gets another number
    test.query_params["group_by"], test.query_params["sel"] = "column:observation", chosen
    test.run()
    assert "live · updated" in words(test) and "6 rollouts" in words(test)
    next(b for b in test.button if b.key == "follow_off").click().run()
    add(growing, finished, 2)
    test.run()
    assert "live · paused" in words(test) and "6 rollouts" in words(test)
    next(b for b in test.button if b.key == "follow_on").click().run()
    for _ in range(100):
        if "12 rollouts" in words(test):
            break
        time.sleep(0.05)
        test.run()
    assert "12 rollouts" in words(test)
    assert test.query_params["sel"] == follow.renumbered(old, grown, chosen)
    alive(growing.parents[1], "done")
    add(growing, finished, 3)
    test.run()
    assert "live ·" not in words(test) and "18 rollouts" in words(test)
    assert not test.exception


def test_data_that_do_not_grow_are_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(server.PATHS_VARIABLE, json.dumps([str(root / "sample_data" / "household.jsonl")]))
    test = AppTest.from_file(str(server.MAIN), default_timeout=60)
    test.run()
    assert "live ·" not in words(test)
