"""Notes on findings: saved, tied to the data, never lost to another writer, a broken file or a read-only folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from closed_folders import close

import graft_core as gc
from graft_core.errors import InputError, UsageError
from graft_core.insight import _note_file, _note_place
from graft_core.insight.notes import Notes

KEY = ("cool apple", "r5", 4)
OTHER = ("cool apple", "r6", 0)
SHA = "a" * 64


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data file in a folder of its own; the user's data folder is a temporary one."""
    monkeypatch.setattr(_note_place, "user_folder", lambda: tmp_path / "home" / "graft-lab")
    folder = tmp_path / "batch"
    folder.mkdir()
    path = folder / "rollouts.jsonl"
    path.write_text("{}\n")
    return path


@pytest.fixture
def read_only(data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, in a folder where nothing can be created, whoever runs the test."""
    close(data.parent, monkeypatch)
    return data


def test_a_note_is_saved_beside_the_data_and_read_again(data: Path) -> None:
    notes = Notes.open(data, SHA)
    assert notes.get(KEY) is None
    notes.set(KEY, "keep", "opened the fridge first — naïve?\n<b>not bold</b>")
    assert (data.parent / "rollouts.jsonl.graft-notes.json").is_file()
    again = Notes.open(data, SHA)
    note = again.get(KEY)
    assert note is not None
    assert (note.verdict, note.comment) == ("keep", "opened the fridge first — naïve?\n<b>not bold</b>")
    assert note.at
    assert again.counts() == {"keep": 1, "reject": 0, "comments": 1}
    assert [(r["group_id"], r["rollout_id"], r["step"]) for r in again.as_rows()] == [KEY]
    assert again.messages == ()
    assert sorted(p.name for p in data.parent.iterdir()) == ["rollouts.jsonl", "rollouts.jsonl.graft-notes.json"]


def test_neither_verdict_nor_comment_takes_a_note_back(data: Path) -> None:
    notes = Notes.open(data, SHA)
    notes.set(KEY, "reject")
    notes.set(KEY)
    assert notes.get(KEY) is None
    assert Notes.open(data, SHA).all() == {}


def test_undo_goes_back_change_by_change_also_later(data: Path) -> None:
    notes = Notes.open(data, SHA)
    assert notes.undo() is None
    notes.set(KEY, "keep")
    notes.set(OTHER, "reject", "luck")
    notes.set(KEY, "reject", "changed my mind")
    notes.set(KEY, "reject", "changed my mind")  # no change, nothing to undo
    later = Notes.open(data, SHA)
    assert later.undo() == KEY
    assert later.get(KEY).verdict == "keep"  # type: ignore[union-attr]
    assert later.undo() == OTHER
    assert later.get(OTHER) is None
    assert later.undo() == KEY
    assert later.all() == {}
    assert not later.can_undo
    assert later.undo() is None


def test_only_the_last_changes_are_remembered(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_note_file, "CHANGES_KEPT", 3)
    notes = Notes.open(data, SHA)
    for number in range(5):
        notes.set(KEY, None, f"comment {number}")
    assert [notes.undo() for _ in range(4)] == [KEY, KEY, KEY, None]
    assert notes.get(KEY).comment == "comment 1"  # type: ignore[union-attr]


def test_two_writers_do_not_lose_each_others_notes(data: Path) -> None:
    one, two = Notes.open(data, SHA), Notes.open(data, SHA)
    one.set(KEY, "keep")
    two.set(OTHER, "reject")  # opened before the first note was saved
    assert set(Notes.open(data, SHA).all()) == {KEY, OTHER}
    one.reload()
    assert set(one.all()) == {KEY, OTHER}


WRITER = """
import sys
from graft_core.insight.notes import Notes
notes = Notes.open(sys.argv[1], sys.argv[2])
for step in range(25):
    notes.set(("g", sys.argv[3], step), "keep")
"""


def test_processes_that_write_at_the_same_time_keep_all_notes(data: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(data), SHA]
    running = [subprocess.Popen([*command, name], stderr=subprocess.PIPE) for name in ("a", "b", "c")]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    expected = {("g", name, step) for name in ("a", "b", "c") for step in range(25)}
    assert set(Notes.open(data, SHA).all()) == expected
    assert sorted(p.name for p in data.parent.iterdir()) == ["rollouts.jsonl", "rollouts.jsonl.graft-notes.json"]


def test_other_data_at_the_same_path_says_so_and_loses_nothing(data: Path) -> None:
    Notes.open(data, SHA).set(KEY, "keep", "about the old file")
    changed = Notes.open(data, "b" * 64)
    assert changed.all() == {}
    assert len(changed.messages) == 1
    assert "1 note " in changed.messages[0]
    assert "rollouts.jsonl" in changed.messages[0]
    changed.set(KEY, "reject")
    back = Notes.open(data, SHA)
    assert back.get(KEY).comment == "about the old file"  # type: ignore[union-attr]
    assert back.undo() == KEY  # its own last change, not that of the other data
    assert Notes.open(data, "b" * 64).get(KEY).verdict == "reject"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "content",
    [b"{half", b"[]", b'{"graft_notes": 99, "data": {}}', b'{"graft_notes": 1, "data": {"x": {"notes": [{"step": "no"}]}}}',
     b'{"graft_notes": 1}', b"\xff\xfe\x00"],
)  # fmt: skip
def test_a_broken_file_is_named_kept_and_never_overwritten(data: Path, content: bytes) -> None:
    place = data.parent / "rollouts.jsonl.graft-notes.json"
    place.write_bytes(content)
    notes = Notes.open(data, SHA)
    assert notes.all() == {}
    assert len(notes.messages) == 1
    assert place.name in notes.messages[0]
    assert "\n" not in notes.messages[0]
    assert place.read_bytes() == content  # looking changes nothing
    notes.set(KEY, "keep")
    kept = data.parent / "rollouts.jsonl.graft-notes.json.broken-1"
    assert kept.read_bytes() == content
    assert any(kept.name in message for message in notes.messages)
    assert Notes.open(data, SHA).get(KEY) is not None
    place.write_bytes(content)
    Notes.open(data, SHA).set(KEY, "keep")
    assert (data.parent / "rollouts.jsonl.graft-notes.json.broken-2").read_bytes() == content
    assert kept.read_bytes() == content


def test_a_read_only_folder_sends_notes_to_the_users_own(read_only: Path) -> None:
    notes = Notes.open(read_only, SHA)
    notes.set(KEY, "keep", "here")
    assert [p.name for p in read_only.parent.iterdir()] == ["rollouts.jsonl"]
    assert notes.place.parent == _note_place.user_folder() / "notes"
    assert any("your own data folder" in message for message in notes.messages)
    assert Notes.open(read_only, SHA).get(KEY).comment == "here"  # type: ignore[union-attr]
    other = Notes.open(read_only, "b" * 64)
    assert other.all() == {}
    assert any("other SHA-256" in message for message in other.messages)


def test_equal_names_in_the_users_own_folder_do_not_mix(read_only: Path, tmp_path: Path) -> None:
    Notes.open(read_only, SHA).set(KEY, "keep")
    namesake = tmp_path / "another" / "rollouts.jsonl"
    namesake.parent.mkdir()
    namesake.write_text("[]")
    notes = Notes.open(namesake, "b" * 64)
    assert notes.all() == {}
    assert notes.messages == ()  # the notes in the same file are on data at another path


def test_notes_that_came_with_read_only_data_can_be_overruled_but_stay(read_only: Path) -> None:
    place = read_only.parent / "rollouts.jsonl.graft-notes.json"
    theirs = {KEY: _note_file.Note("keep", "from a colleague"), OTHER: _note_file.Note("reject")}
    came = _note_file.Section("rollouts.jsonl", "", theirs)
    _note_file.write_sections(place, {SHA: came})
    before = place.read_bytes()
    notes = Notes.open(read_only, SHA)
    assert notes.get(KEY).comment == "from a colleague"  # type: ignore[union-attr]
    notes.set(KEY)
    assert notes.get(KEY) is None
    assert Notes.open(read_only, SHA).get(KEY) is None
    assert Notes.open(read_only, SHA).get(OTHER) is not None
    assert notes.undo() == KEY
    assert notes.get(KEY).comment == "from a colleague"  # type: ignore[union-attr]
    assert place.read_bytes() == before


def test_nowhere_to_save_is_one_clear_error(read_only: Path, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where a folder should be")
    with pytest.raises(InputError, match=r"could not be saved: .*rollouts\.jsonl\.graft-notes\.json"):
        Notes.open(read_only, SHA).set(KEY, "keep")


def test_notes_on_a_directory_are_inside_it_and_no_rollouts(tmp_path: Path, root: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes((root / "sample_data" / "household.jsonl").read_bytes())
    Notes.open(folder, SHA).set(KEY, "keep")
    assert sorted(p.name for p in folder.iterdir()) == [".graft-notes.json", "a.jsonl"]
    _, report = gc.load(folder, report=True)
    assert len(report.files) == 1
    assert [w.code for w in report.warnings] == []


def test_a_lock_left_behind_does_not_lock_for_ever(data: Path) -> None:
    lock = data.parent / ".rollouts.jsonl.graft-notes.json.lock"
    lock.touch()
    os.utime(lock, (1_000_000, 1_000_000))
    notes = Notes.open(data, SHA)
    notes.set(KEY, "keep")
    assert notes.get(KEY) is not None
    assert not lock.exists()


def test_wrong_notes_are_refused(data: Path) -> None:
    notes = Notes.open(data, SHA)
    with pytest.raises(UsageError, match="expected keep or reject"):
        notes.set(KEY, "maybe")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="10,000"):
        notes.set(KEY, None, "x" * 10_001)
    with pytest.raises(UsageError, match="SHA-256"):
        Notes.open(data, "")


def test_hostile_ids_and_comments_survive_as_text(data: Path) -> None:
    key = ("../../etc\x00", '"},{"', 3)
    Notes.open(data, SHA).set(key, None, "half a pair: \ud800 and \u202e")
    note = Notes.open(data, SHA).get(key)
    assert note is not None
    assert note.comment == "half a pair: ? and \u202e"
    json.loads((data.parent / "rollouts.jsonl.graft-notes.json").read_text())


def test_the_user_folder_is_the_platforms_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert _note_place.user_folder() == tmp_path / "xdg" / "graft-lab"
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/to/be/ignored")
    assert _note_place.user_folder() == tmp_path / ".local" / "share" / "graft-lab"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert _note_place.user_folder() == tmp_path / "Library" / "Application Support" / "graft-lab"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert _note_place.user_folder() == tmp_path / "local" / "graft-lab"
