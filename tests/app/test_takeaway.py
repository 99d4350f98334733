"""The menus that take things away: what they offer, what the files hold, and what stays at home."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

import graft_core as gc
import graft_sample_data
from graft_app import server
from graft_app.views import takeaway
from graft_core.insight.cards import data_sha256
from graft_core.insight.notes import Notes

PAGE = """
from graft_app import batch as table
from graft_app.views import takeaway
from graft_core.settings import LOOK
from graft_core.takeaway.drawn import drawn

opened = table.choose()
found = opened.findings(LOOK)
takeaway.graph_menu(opened, LOOK, found, 0, *drawn(found, 0))
takeaway.findings_menu(opened, LOOK, found, "good", found.merged_rows(found.good))
takeaway.rows_menu(opened, "odd", found.rows(found.good[:3]), {"left": takeaway.settings_words(LOOK)})
"""
Files = dict[str, Callable[[], str | bytes]]


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[AppTest, Files]]:
    """`offered(path, key=value)` runs both menus open, with widgets set; returns the page and each file's maker."""

    own = takeaway._button

    def go(path: Path | str, **state: object) -> tuple[AppTest, Files]:
        files: Files = {}

        def button(label: str, name: str, make: Callable[[], str | bytes], note: str | None = None) -> None:
            files[name] = make
            own(label, name, make, note)

        monkeypatch.setattr(takeaway, "_button", button)
        monkeypatch.setenv(server.PATHS_VARIABLE, json.dumps([str(path)]))
        test = AppTest.from_string(PAGE, default_timeout=60)
        for key, value in {"takeaway_graph": True, "takeaway_findings": True, "takeaway_odd": True, **state}.items():
            test.session_state[key] = value
        test.run()
        assert not test.exception, test.exception
        return test, files

    return go


@pytest.fixture
def sample() -> str:
    return str(graft_sample_data.paths()[0])


def test_a_closed_menu_computes_nothing(offered: Callable[..., tuple[AppTest, Files]], sample: str) -> None:
    test, files = offered(sample, takeaway_graph=False, takeaway_findings=False, takeaway_odd=False)
    assert files == {} and not test.get("download_button")


def test_every_format_is_offered_under_a_safe_name(offered: Callable[..., tuple[AppTest, Files]], sample: str) -> None:
    test, files = offered(sample)
    assert list(files) == [
        "household-cool-apple.svg", "household-cool-apple.html", "household-cool-apple.graphml",
        "household-cool-apple-steps.csv", "household-cool-apple-steps.jsonl", "household-cool-apple-steps.parquet",
        "household-cool-apple-steps.meta.json",
        "household-report.html", "household-good.csv", "household-good.jsonl", "household-good.parquet",
        "household-good.meta.json",
        "household-steps.csv", "household-steps.jsonl", "household-steps.parquet", "household-steps.meta.json",
        "household-weights-good-graft-td.jsonl", "household-weights-good-graft-td.meta.json", "household-odd.csv",
        "household-odd.jsonl", "household-odd.parquet", "household-odd.meta.json",
    ]  # fmt: skip
    assert len(test.get("download_button")) == len(files)


def test_files_hold_what_they_say(offered: Callable[..., tuple[AppTest, Files]], sample: str) -> None:
    _, files = offered(sample)
    made = {name: text.encode() if isinstance(text := make(), str) else text for name, make in files.items()}
    assert made["household-cool-apple.svg"].startswith(b"<svg ")
    page = made["household-cool-apple.html"]
    assert page.startswith(b"<!DOCTYPE html>") and b"vis-network" in page
    assert made["household-steps.jsonl"].count(b"\n") == 1027
    assert 0 < made["household-cool-apple-steps.jsonl"].count(b"\n") < 1027
    assert made["household-weights-good-graft-td.jsonl"].count(b"\n") == 142
    digest = hashlib.sha256(Path(sample).read_bytes()).hexdigest()
    assert digest.encode() in made["household-report.html"]
    kept = json.loads(pq.read_table(io.BytesIO(made["household-steps.parquet"])).schema.metadata[b"graft"])
    assert kept["input"] == [{"file": "household.jsonl", "sha256": digest}] and kept["version"]


def test_settings_version_and_hash_travel_with_every_table(
    offered: Callable[..., tuple[AppTest, Files]], sample: str
) -> None:
    _, files = offered(sample, takeaway_train=True)
    digest = hashlib.sha256(Path(sample).read_bytes()).hexdigest()
    for name, make in files.items():
        if name.endswith(".parquet"):
            beside = json.loads(files[name.replace(".parquet", ".meta.json")]())
            assert json.loads(pq.read_table(io.BytesIO(make())).schema.metadata[b"graft"]) == beside  # type: ignore[arg-type]
        if name.endswith(".meta.json"):
            kept = json.loads(make())
            assert kept["tool"] == "graft-lab" and kept["version"] == gc.__version__
            assert kept["input"] == [{"file": "household.jsonl", "sha256": digest}]
    steps, weights, odd = (json.loads(files[f"household-{n}.meta.json"]()) for n in ("steps", "weights-good-graft", "odd"))
    assert steps["settings"]["estimators"]["graft_td"]["gamma"] == 0.99 and steps["settings"]["sinks"] == "split"
    assert weights["settings"]["estimator"] == "graft" and weights["settings"]["estimators"]["graft"]["lam"] == 0.95
    assert odd["settings"]["left"] == steps["settings"]


def test_a_list_on_screen_is_taken_away_in_every_format(
    offered: Callable[..., tuple[AppTest, Files]], sample: str
) -> None:
    import pandas as pd

    _, files = offered(sample)
    found = gc.findings(gc.load(sample))
    rows = found.merged_rows(found.good)
    lines = [json.loads(line) for line in files["household-good.jsonl"]().split(b"\n")[:-1]]  # type: ignore[arg-type]
    assert [line["credit"] for line in lines] == [row["credit"] for row in rows]
    assert sum(len(line["steps"]) for line in lines) == found.good.size
    assert lines[0]["steps"][0] == dict(zip(("rollout_id", "step"), rows[0]["steps"][0], strict=True))
    sheet = pd.read_csv(io.BytesIO(files["household-good.csv"]()))  # type: ignore[arg-type]
    assert sheet["credit"].tolist() == pytest.approx([row["credit"] for row in rows])
    assert json.loads(sheet["steps"][0]) == lines[0]["steps"]
    assert pq.read_table(io.BytesIO(files["household-good.parquet"]())).num_rows == len(rows)  # type: ignore[arg-type]


def test_leaving_texts_out_reaches_every_file(offered: Callable[..., tuple[AppTest, Files]], sample: str) -> None:
    said = [b"You are in the", b"open microwave", b"living room"]
    _, full = offered(sample)
    _, bare = offered(sample, takeaway_texts_left_out=True)
    assert list(bare) == list(full)
    for name in full:
        before, after = (text.encode() if isinstance(text := files[name](), str) else text for files in (full, bare))
        if name.endswith(".parquet"):
            assert "observation" not in pq.read_table(io.BytesIO(after)).schema.names
        elif "weights" not in name and not name.endswith(".meta.json"):
            assert any(words in before for words in said), name
            assert not any(words in after for words in said), name


def test_moments_and_edges_are_tables_too(offered: Callable[..., tuple[AppTest, Files]], sample: str) -> None:
    _, files = offered(sample, takeaway_rows_graph="moments", takeaway_rows_findings="edges")
    assert b'"node"' in files["household-cool-apple-moments.csv"]()[:200]  # type: ignore[index]
    assert b'"edge"' in files["household-edges.jsonl"]()[:200]  # type: ignore[index]


def test_weights_of_the_credit_on_screen_for_all_steps(offered: Callable[..., tuple[AppTest, Files]], sample: str) -> None:
    _, files = offered(sample, takeaway_chosen="all")
    rows = [json.loads(line) for line in files["household-weights-all-graft-td.jsonl"]().split(b"\n")[:-1]]  # type: ignore[arg-type]
    assert len(rows) == 1027 and set(rows[0]) == {"group_id", "rollout_id", "step", "weight"}


def test_the_words_name_the_file_and_not_its_folder(offered: Callable[..., tuple[AppTest, Files]], sample: str) -> None:
    test, _ = offered(sample)
    words = [block.value for block in test.code]
    assert words[0] == words[2] == "graft findings household.jsonl"
    assert "gc.show(found.graph, 'cool apple', settings)" in words[1] and "gc.show" not in words[3]
    assert not any(str(Path(sample).parent) in text for text in words)


def test_hostile_rollouts_are_offered_and_made(
    offered: Callable[..., tuple[AppTest, Files]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "graft_core" / "support"))
    import hostile

    test, files = offered(hostile.write(tmp_path))
    for name, make in files.items():
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-."), name
        assert len(make()) > 100
    assert all("\u202e" not in block.value for block in test.code)


def test_the_choice_to_leave_texts_out_outlives_the_closed_menu(
    offered: Callable[..., tuple[AppTest, Files]], sample: str
) -> None:
    test, _ = offered(sample, takeaway_findings=False)
    test.checkbox[0].check().run()
    for is_open in (False, True):
        test.session_state["takeaway_graph"] = is_open
        test.run()
    assert test.checkbox[0].value is True
    test.checkbox[0].uncheck().run()
    assert test.checkbox[0].value is False and test.session_state[takeaway.LEFT_OUT] is False


def test_verdicts_choose_the_steps_to_train_on(
    offered: Callable[..., tuple[AppTest, Files]], sample: str, tmp_path: Path
) -> None:
    path = Path(shutil.copy(sample, tmp_path))
    found = gc.findings(gc.load(str(path)), shuffles=0)
    best = [(row["group_id"], row["rollout_id"], row["step"]) for row in found.rows(found.good[:2])]
    notes = Notes.open(path, data_sha256([path]))
    notes.set(best[0], verdict="keep")
    notes.set(best[1], verdict="reject")
    for which, count in (("kept", 1), ("good", 141)):
        _, files = offered(path, takeaway_chosen=which)
        lines = files[f"household-weights-{which}-graft-td.jsonl"]().split(b"\n")[:-1]  # type: ignore[arg-type]
        keys = [(row["group_id"], row["rollout_id"], row["step"]) for row in map(json.loads, lines)]
        assert len(keys) == count and (best[0] in keys) and best[1] not in keys


def test_the_train_preset_says_how_many_good_steps_it_would_push_down(
    offered: Callable[..., tuple[AppTest, Files]], sample: str
) -> None:
    test, files = offered(sample, takeaway_train=True)
    rows = [json.loads(line) for line in files["household-weights-good-graft.jsonl"]().split(b"\n")[:-1]]  # type: ignore[arg-type]
    below = sum(row["weight"] < 0 for row in rows)
    assert 0 < below < len(rows) == 142
    assert any(text.value.startswith(f"{below} of 142 weights below 0") for text in test.caption)
