"""The States page: rules compared, a wrong composition refused, edits by hand kept beside the data."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from app_pages import Open
from row_batches import walk
from streamlit.testing.v1 import AppTest

import graft_core as gc
from graft_app import server

PAGE = "states"


def words(test: AppTest) -> str:
    return "\n".join(str(e.value) for kind in ("markdown", "caption", "warning", "error") for e in test.get(kind))


def test_the_sample_data_is_described(opened: Open) -> None:
    test = opened()
    frame = test.dataframe[0].value
    assert frame["rule"].iloc[0] == "exact"
    assert frame["moments"].iloc[0] == 383
    assert {"history:1", "prefix", "guard"} <= set(frame["rule"])
    assert "guard keeps them apart" in words(test)


def test_a_wrong_composition_is_refused_and_the_rule_stays(opened: Open) -> None:
    test = opened()
    for word, says in (
        ("history:1+normalised", "before"), ("nope", "unknown"), ("masked:/(/", "masked"), ("edits:/etc/passwd", "beside"),
        ("similarity:0.9@some/model", "folder on this machine"), ("field:nowhere", "nowhere"),
        ("masked:/[0-9]+/", r"written \+\+"),
    ):
        test.text_input(key="composition").set_value(word).run()
        assert not test.exception
        assert says in test.error[0].value, (word, test.error[0].value)
        assert "rules" not in test.query_params


def test_a_rule_that_cannot_be_applied_here_leaves_the_menu(opened: Open) -> None:
    test = opened(rules="visited:no such place")
    assert "no observation of these rollouts is that text" in test.error[0].value
    test.selectbox(key="url_rules").set_value("exact").run()
    assert not test.error and test.dataframe[0].value["rule"].iloc[0] == "exact"


def test_a_composition_is_taken_into_the_address(opened: Open) -> None:
    test = opened()
    test.text_input(key="composition").set_value("normalised+history:1").run()
    assert test.query_params["rules"] == "normalised+history:1"
    assert test.dataframe[0].value["rule"].iloc[0] == "normalised+history:1"


def test_merging_by_hand_is_kept_and_taken_back(opened: Open, tmp_path: Path, vectors: Path) -> None:
    path = tmp_path / "hand.jsonl"
    path.write_bytes((vectors / "hand.jsonl").read_bytes())
    test = opened(path)
    assert test.dataframe[0].value["moments"].iloc[0] == 3
    next(t for t in test.text_input if t.label == "Merge these nodes").set_value("0 1")
    next(b for b in test.button if b.label == "Merge").click().run()
    assert not test.exception
    assert test.dataframe[0].value["moments"].iloc[0] == 2
    assert list((tmp_path / ".graft-edits").glob("edits-*.json"))
    next(b for b in test.button if b.label.startswith("Take back")).click().run()
    assert test.dataframe[0].value["moments"].iloc[0] == 3


@pytest.fixture
def doubtful(tmp_path: Path) -> Path:
    """One task in which the same action at U leads elsewhere, depending on how one came there."""
    rows: list[dict[str, object]] = []
    for number, steps in enumerate(["P:x U:a A:x", "Q:x U:a B:x", "P:x U:b C:x"] * 6):
        rows += walk(f"r{number}", steps, float(number % 2))
    path = tmp_path / "doubtful.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("way", ["In the graph", "Side by side"])
def test_a_suspect_opens_with_two_rollouts_that_go_on_differently(opened: Open, doubtful: Path, way: str) -> None:
    test = opened(doubtful, at="3", mark="7")  # words left from another moment
    next(b for b in test.button if b.label == way).click().run()
    assert not test.exception
    words = {name: test.query_params[name] for name in test.query_params}
    batch = gc.load(doubtful)
    row = int(words["at"])
    assert batch.text(int(batch.steps.column("observation")[row].as_py())) == "U"
    here, beside = words["rollout"], words["beside"]
    assert batch.rollout_ids[int(words["mark"])] == here and batch.rollout_ids[int(words["mark2"])] == beside
    assert int(here[1:]) % 3 + int(beside[1:]) % 3 == 1  # one of the first kind, one of the second
    assert words["sel"].startswith("n") and words["task"] == batch.group_ids[0]
    assert any(b.label == "Same moment" for b in test.button) is (way == "Side by side")


def test_a_mask_is_shown_before_it_is_used(opened: Open, tmp_path: Path) -> None:
    rows = walk("a", "room-1:x hall:x room-2:x", 1.0) + walk("b", "room-3:x hall:x", 0.0)
    path = tmp_path / "rooms.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    test = opened(path, rules="normalised+history:1")
    assert "rules" in test.query_params and not any(b.label.startswith("Use masked") for b in test.button)
    test.session_state["masks"] = True
    test.run()
    assert not test.exception
    assert "room" in words(test) and ":orange-background[" in words(test)
    next(b for b in test.button if b.label.startswith("Use masked")).click().run()
    assert test.query_params["rules"] == "normalised+masked:number+history:1"


def test_many_quiet_tasks_are_one_line(opened: Open, tmp_path: Path) -> None:
    rows = [row for g in range(30) for row in walk(f"r{g}", "A:x B:x", 1.0, group=f"task {g}")]
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    test = opened(path)
    assert [e.label for e in test.expander if "too small to judge" in e.label] == ["30 tasks: too small to judge"]


def test_an_edit_that_cannot_be_made_leaves_the_page(opened: Open, vectors: Path, tmp_path: Path) -> None:
    path = tmp_path / "hand.jsonl"
    path.write_bytes((vectors / "hand.jsonl").read_bytes())
    test = opened(path)
    next(t for t in test.text_input if t.label == "Merge these nodes").set_value("1 1")
    next(b for b in test.button if b.label == "Merge").click().run()
    assert "expected either merge with two or more nodes" in test.error[0].value
    assert "Suspect merges" in words(test)
    assert not (tmp_path / ".graft-edits").exists()


def test_a_number_that_is_no_moment_is_a_sentence(opened: Open, vectors: Path, tmp_path: Path) -> None:
    path = tmp_path / "hand.jsonl"
    path.write_bytes((vectors / "hand.jsonl").read_bytes())
    test = opened(path)
    next(t for t in test.text_input if t.label.startswith("Split")).set_value("99")
    next(b for b in test.button if b.label == "Split").click().run()
    assert "expected a number from 0 to 2" in test.error[0].value


def test_the_time_of_a_rule_change_on_6400_steps_is_printed(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 s is promised for Findings to show another rule, two cores, compiled."""
    from graft_core.environments import make_world
    from graft_core.environments.policies import policy_with_success
    from graft_core.environments.sampler import rows_of, sample_paths
    from graft_core.environments.tables import compile_world

    table = compile_world(make_world("key-door", size=4))
    rows = rows_of(sample_paths(table, policy_with_success(table, 0), 30, 16, 20, 0))[:6400]
    path = tmp_path / "big.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setenv(server.PATHS_VARIABLE, json.dumps([str(path)]))
    test = AppTest.from_file(str(server.MAIN), default_timeout=90).run()
    test.selectbox(key="url_rules").set_value("history:2").run()  # what is compiled on first use is not what is promised
    begun = time.perf_counter()
    test.selectbox(key="url_rules").set_value("history:1").run()
    print(f"\n{len(rows)} steps: another rule on Findings after {time.perf_counter() - begun:.2f} s")
    assert test.query_params["rules"] == "history:1"
    assert not test.exception
