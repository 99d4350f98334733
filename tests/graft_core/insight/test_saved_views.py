"""Saved views: kept beside the data, shared as a file, and never taken from a file that holds something else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from closed_folders import close

import graft_core as gc
from graft_core.errors import InputError, UsageError
from graft_core.insight import saved_views
from graft_core.insight.saved_views import as_json, from_json, remove, save, saved, view

SHA = "ab" * 8
WORDS = {"task": "cool apple", "lam": "0.5"}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: Path) -> Path:
    monkeypatch.setattr(saved_views, "user_folder", lambda: tmp_path / "home")
    (tmp_path / "batch").mkdir()
    return Path(shutil.copy(vectors / "hand.jsonl", tmp_path / "batch"))


def test_views_are_kept_beside_the_data_in_their_order(data: Path) -> None:
    one, two = view("first", "graph", WORDS, SHA), view("second", "findings", {}, SHA)
    save(data, [one])
    save(data, [two])
    assert saved(data) == {"first": one, "second": two}
    assert sorted(p.name for p in data.parent.iterdir()) == ["hand.jsonl", "hand.jsonl.graft-views.json"]
    newer = view("first", "compare", {}, SHA)
    save(data, [newer])
    assert saved(data)["first"] == newer
    remove(data, "first")
    remove(data, "nobody")
    assert list(saved(data)) == ["second"]


def test_the_file_of_views_is_no_data(data: Path) -> None:
    before = gc.load(data.parent).n_steps
    save(data, [view("v", "graph", WORDS, SHA)])
    save(data.parent, [view("w", "graph", WORDS, SHA)])
    assert (data.parent / ".graft-views.json").exists()
    batch, report = gc.load(data.parent, report=True)
    assert batch.n_steps == before and not report.warnings and [Path(f).name for f in report.files] == ["hand.jsonl"]


def test_shared_views_are_the_same_elsewhere(data: Path) -> None:
    one = view("  a   name ", "rollouts", {**WORDS, "rollout": "<b>:red[x]"}, SHA)
    assert one.name == "a name"
    assert from_json(as_json([one])) == {"a name": one}


def shared(**changed: object) -> bytes:
    one = {"name": "x", "page": "graph", "words": {}, "sha256": SHA, "at": "", **changed}
    return json.dumps({"graft_views": 1, "views": [one]}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"{", b'{"graft_views": 2, "views": []}', b'{"graft_views": 1, "views": {}}',
        b'{"graft_views": 1, "views": [{}]}', b'{"graft_views": 1, "views": [3]}', shared(page="http://a"),
        shared(words={"A b": "1"}), shared(words={"a": 1}), shared(words=[]), shared(sha256="../.."), shared(name=""),
        shared(at=None),
    ],
)  # fmt: skip
def test_another_file_is_refused_in_one_sentence(content: bytes) -> None:
    with pytest.raises(InputError, match="not a file of views"):
        from_json(content)


def test_names_and_words_have_limits() -> None:
    for name in ("", "   ", "x" * 81):
        with pytest.raises(UsageError, match="name of 1 to 80"):
            view(name, "graph", {}, SHA)
    with pytest.raises(UsageError, match="words"):
        view("x", "graph", {"task": "x" * 4001}, SHA)
    with pytest.raises(UsageError, match="pages"):
        view("x", "../graph", {}, SHA)


def test_a_broken_file_is_set_aside_not_overwritten(data: Path) -> None:
    place = saved_views.places(data)[0]
    place.write_text("mine, not yours")
    with pytest.raises(InputError):
        saved(data)
    save(data, [view("v", "graph", {}, SHA)])
    assert list(saved(data)) == ["v"]
    assert place.with_name(place.name + ".broken-1").read_text() == "mine, not yours"


def test_where_the_folder_cannot_be_written_to_the_users_own_is_used(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    close(data.parent, monkeypatch)
    save(data, [view("v", "graph", WORDS, SHA)])
    assert list(saved(data)) == ["v"]
    assert not saved_views.places(data)[0].exists()
    namesake = data.parent.parent / data.name
    assert saved_views.places(namesake)[1] != saved_views.places(data)[1]
    remove(data, "v")
    assert saved(data) == {}
