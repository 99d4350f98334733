"""The menu of saved views: save, open, delete and take back, and say when they were made on other data."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from app_pages import Open, words
from streamlit.testing.v1 import AppTest

from graft_core.insight.saved_views import save, saved, view

NAME = "good <b>one</b> :red[x]"


@pytest.fixture
def data(tmp_path: Path, vectors: Path) -> Path:
    return Path(shutil.copy(vectors / "hand.jsonl", tmp_path))


def menu(test: AppTest) -> AppTest:
    test.session_state["views_menu"] = True
    test.run()
    assert not test.exception, test.exception
    return test


def button(test: AppTest, label: str) -> AppTest:
    next(b for b in test.button if b.label.startswith(label)).click().run()
    assert not test.exception, test.exception
    return menu(test)


def test_a_view_is_saved_with_its_page_words_and_data(opened: Open, data: Path) -> None:
    test = menu(opened(data, page="rollouts", rollout="r1", a="path_gae", lam="0.5"))
    next(box for box in test.text_input if box.label == "Save this view as").set_value(NAME)
    button(test, "Save")
    kept = saved(data)[NAME]
    assert kept.page == "rollouts"
    assert dict(kept.words) == {"rollout": "r1", "a": "path_gae", "lam": "0.5"}
    assert kept.sha256 == hashlib.sha256(data.read_bytes()).hexdigest()[:16]
    assert "other data" not in words(test)


def test_a_view_opens_where_it_was_made(opened: Open, data: Path) -> None:
    own = hashlib.sha256(data.read_bytes()).hexdigest()[:16]
    save(data, [view(NAME, "compare", {"at": "1", "c_a": "path_gae"}, own)])
    test = menu(opened(data, page="findings", q="x"))
    test.button(key=f"view_open_{NAME}").click().run()
    assert not test.exception, test.exception
    assert dict(test.query_params) == {"at": "1", "c_a": "path_gae", "data": own}
    assert test.selectbox(key="url_c_a").value == "path_gae"
    assert not test.warning


def test_a_view_of_other_data_says_so_before_and_after(opened: Open, data: Path) -> None:
    save(data, [view(NAME, "rollouts", {"rollout": "zz", "lam": "0.5", "a": "path_gae"}, "00112233445566ff")])
    test = menu(opened(data))
    assert "other data" in words(test)
    test.button(key=f"view_open_{NAME}").click().run()
    assert "made on other data" in test.warning[0].value
    assert "rollout" not in test.query_params and test.query_params["lam"] == "0.5"


def test_a_deleted_view_can_be_put_back(opened: Open, data: Path) -> None:
    save(data, [view(NAME, "graph", {"sel": "n0"}, "ab" * 8)])
    before = saved(data)
    test = button(menu(opened(data)), "Delete")
    assert saved(data) == {}
    button(test, "Undo")
    assert saved(data) == before
    assert not any(b.label.startswith("Undo") for b in test.button)


def test_a_broken_file_of_views_leaves_the_page_whole(opened: Open, data: Path) -> None:
    data.with_name(data.name + ".graft-views.json").write_text(json.dumps({"graft_views": 7}))
    test = menu(opened(data))
    assert "not a file of views" in test.warning[0].value
    assert test.dataframe
