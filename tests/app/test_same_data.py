"""The data's SHA-256 in the address: written on every page, checked when an address is opened, quiet while a run grows."""

from __future__ import annotations

import hashlib
from concurrent.futures import Future
from pathlib import Path

import pytest
from app_pages import Open, step, words, write

import graft_core as gc
from graft_app import cache

PAGES = ("findings", "graph", "compare", "rollouts", "states")
MOVED = "made on other data"


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write(tmp_path / "small.jsonl", step("a", 0, "s", "x", 1.0), step("b", 0, "s", "x", 0.0))


@pytest.mark.parametrize("page", PAGES)
def test_every_page_writes_it(opened: Open, small: Path, page: str) -> None:
    test = opened(small, page=page)
    assert test.query_params["data"] == sha(small)[:16]
    assert MOVED not in words(test)


@pytest.mark.parametrize("digits", [8, 16, 64])
def test_the_same_data_keep_what_was_chosen(opened: Open, small: Path, digits: int) -> None:
    test = opened(small, page="graph", sel="n0", at="0", data=sha(small)[:digits])
    assert test.query_params["sel"] == "n0"
    assert not test.warning


def test_other_data_are_called_so_once_and_their_words_dropped(opened: Open, small: Path) -> None:
    foreign = {"task": "elsewhere", "sel": "n0", "at": "1", "rollout": "z", "beside": "y", "box": "0,1,0,1", "mark": "n1"}
    test = opened(small, page="graph", lam="0.5", data="00112233445566ff", **foreign)
    said = test.warning[0].value
    assert MOVED in said and "00112233445566ff" in said and sha(small)[:16] in said and "small\\.jsonl" in said
    assert "task, sel, at" in said
    assert dict(test.query_params) == {"lam": "0.5", "data": sha(small)[:16]}
    assert len(test.warning) == 1  # nothing else complains of words that were dropped
    test.run()
    assert MOVED in test.warning[0].value  # it stays until it is dismissed
    test.button(key="data_dismiss").click().run()
    assert not test.warning


def test_a_file_that_changed_is_other_data(opened: Open, small: Path) -> None:
    before = sha(small)[:16]
    test = opened(small, page="rollouts", rollout="a", at="0")
    write(small, step("a", 0, "other", "x", 1.0), step("b", 0, "s", "y", 0.0), step("c", 0, "s", "y", 0.0))
    test.run()
    assert before in test.warning[0].value
    assert test.query_params["data"] == sha(small)[:16] != before
    assert "at" not in test.query_params


def test_the_other_file_of_the_menu_is_no_surprise(opened: Open, small: Path, tmp_path: Path) -> None:
    second = write(tmp_path / "second.jsonl", step("c", 0, "s", "x", 1.0))
    test = opened(small, second)
    test.selectbox(key="url_file").set_value(1).run()
    assert test.query_params["data"] == sha(second)[:16]
    assert not test.warning
    opened_there = opened(small, second, file="1", data=sha(small)[:16])
    assert MOVED in opened_there.warning[0].value


@pytest.mark.parametrize("word", ["xyz", "1234", "../../etc", "ABCDEF0123456789"])
def test_a_word_that_is_no_hash_is_a_message(opened: Open, small: Path, word: str) -> None:
    test = opened(small, data=word)
    assert "SHA\\-256" in test.warning[0].value
    assert test.query_params["data"] == sha(small)[:16]


def test_a_run_that_grows_stays_the_same_run(opened: Open, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with gc.record(run) as recorder:

        def record(number: int) -> None:
            recorder.train_step(number)
            for name, outcome in (("a", 1.0), ("b", 0.0)):
                recorder.step("g", name, 0, "s", "x")
                recorder.end("g", name, outcome=outcome)
            recorder.flush()

        record(1)
        test = opened(run, page="rollouts", at="0")
        own = test.query_params["data"]
        assert own == sha(run / "run.json")[:16]
        assert "2 rollouts" in words(test)
        record(2)
        test.run()
        later = opened(run, page="rollouts", at="0", data=own)
    assert "4 rollouts" in words(later)
    for page in (test, later):
        assert not page.warning and not page.exception
        assert page.query_params["data"] == own and page.query_params["at"] == "0"


def test_a_large_file_is_hashed_beside_the_page(opened: Open, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting: Future[str] = Future()
    monkeypatch.setattr(cache, "HASHED_AT_ONCE", 0)
    monkeypatch.setattr(cache, "_sha256", lambda *_: waiting)
    test = opened(small, at="0", data="00112233445566ff")
    assert not test.warning and test.query_params["at"] == "0"  # nothing is known yet, and the page is there
    assert "1 rollout" in words(test) or "2 rollouts" in words(test)
    waiting.set_result(sha(small))
    test.run()
    assert MOVED in test.warning[0].value
    assert test.query_params["data"] == sha(small)[:16]


def test_a_changed_widget_brings_it_along(opened: Open, small: Path) -> None:
    test = opened(small)
    del test.query_params["data"]  # as the browser's way back leaves it
    test.run()
    assert "data" not in test.query_params  # not written again, or the way back would end here
    test.selectbox(key="url_rules").set_value("history:1").run()
    assert test.query_params["data"] == sha(small)[:16]


def test_another_grouping_of_the_same_file_keeps_it(opened: Open, test_data: Path) -> None:
    test = opened(test_data / "verl_agent_webshop", group_by="file")
    own = test.query_params["data"]
    next(b for b in test.button if b.label == "Take the grouping back").click().run()
    assert "group_by" not in test.query_params
    assert test.query_params["data"] == own
