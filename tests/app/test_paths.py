"""Which paths the app opens: nothing outside the folders it was started with, whatever the word looks like."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from graft_app import paths, server
from graft_core.errors import InputError

SECRET = "the quick brown secret"


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An allowed folder `in` beside a forbidden one `out`, with every kind of way from one to the other."""
    allowed, forbidden = tmp_path / "in", tmp_path / "out"
    for folder in (allowed / "sub" / "deep", allowed / ".hidden", forbidden, tmp_path / "in-beside"):
        folder.mkdir(parents=True)
    for place in (allowed / "a.jsonl", allowed / "sub" / "b.jsonl", allowed / "sub" / "name with spaces é.jsonl"):
        place.write_text("{}\n")
    for place in (forbidden / "secret.jsonl", allowed / ".hidden" / "x.jsonl", tmp_path / "in-beside" / "x.jsonl"):
        place.write_text(SECRET)
    (allowed / ".env").write_text(SECRET)
    (allowed / "link.jsonl").symlink_to(forbidden / "secret.jsonl")
    (allowed / "linked").symlink_to(forbidden)
    (allowed / "up").symlink_to("..")
    (allowed / "passwd").symlink_to("/etc/passwd")
    (allowed / "loop").symlink_to("loop")
    (allowed / "dangling").symlink_to(forbidden / "gone")
    (allowed / "to_hidden.jsonl").symlink_to(allowed / ".env")
    (allowed / "zero").symlink_to("/dev/zero")
    (allowed / "fine.jsonl").symlink_to(allowed / "a.jsonl")
    os.mkfifo(allowed / "pipe")
    monkeypatch.setenv(server.PATHS_VARIABLE, json.dumps([str(allowed)]))
    return allowed


REFUSED = [
    "../out/secret.jsonl", "..", "../", "sub/../../out/secret.jsonl", "sub/../a.jsonl", "./../out/secret.jsonl", "sub/..",
    "....//out/secret.jsonl", "..\\out\\secret.jsonl", "sub\\..\\..\\out\\secret.jsonl", "..%2fout%2fsecret.jsonl",
    "%2e%2e/out/secret.jsonl", "%252e%252e/out/secret.jsonl", "..%c0%afout/secret.jsonl", "．．/out/secret.jsonl",
    "‥/out/secret.jsonl", "..;/out/secret.jsonl", "/etc/passwd", "//etc/passwd", "/", "//", "///", "~/.ssh/id_rsa", "~",
    "~root", "$HOME", "\\\\server\\share\\x.jsonl", "//server/share/x.jsonl", "\\\\?\\C:\\x", "\\\\.\\pipe\\x",
    "C:\\Windows\\win.ini", "C:/Windows/win.ini", "c:x.jsonl", "file:///etc/passwd", "http://example.org/x.jsonl",
    "a.jsonl\0.txt", "\0", "../out/secret.jsonl\0a.jsonl", "a.jsonl\n../out/secret.jsonl", "link.jsonl", "linked/secret.jsonl",
    "linked", "up/out/secret.jsonl", "up", "passwd", "loop", "loop/a.jsonl", "dangling", "zero", "pipe", ".env",
    ".hidden/x.jsonl", "sub/.git", "to_hidden.jsonl", "gone.jsonl", "a.jsonl/b.jsonl", "x" * 5000, "a/" * 900,
    "/dev/stdin", "/proc/self/environ", "a.jsonl::$DATA", "../in-beside/x.jsonl",
]  # fmt: skip


@pytest.mark.parametrize("word", REFUSED)
def test_a_way_out_is_refused_and_nothing_of_it_is_said(yard: Path, word: str) -> None:
    with pytest.raises(InputError) as refused:
        paths.inside(0, word)
    sentence = str(refused.value)
    assert sentence in (paths.OUTSIDE, paths.MISSING, paths.HIDDEN, paths.NO_FILE)
    assert SECRET not in sentence
    with pytest.raises(InputError):
        paths.from_word(f"r0:{word}")


@pytest.mark.parametrize("word", REFUSED)
def test_what_is_typed_cannot_lead_out_either(yard: Path, word: str) -> None:
    for text in (word, f"{yard}/{word}"):
        try:
            found = str(paths.typed(text).path)
        except InputError as refused:
            found = str(refused)
        assert SECRET not in found
        assert found in (str(yard), paths.OUTSIDE, paths.MISSING, paths.HIDDEN, paths.NO_FILE)  # yard: ".../in" + "//"


@pytest.mark.parametrize(
    "word", ["", "r", "r0", "0:a.jsonl", "r1:a.jsonl", "r-1:a.jsonl", "r99999999:a", "r²:a.jsonl", "x0:a", "R0:a"]
)
def test_a_word_that_names_no_folder_is_refused(yard: Path, word: str) -> None:
    with pytest.raises(InputError):
        paths.from_word(word)


def test_what_lies_inside_is_found(yard: Path) -> None:
    assert paths.from_word("r0:a.jsonl").path == yard / "a.jsonl"
    assert paths.from_word("r0:./sub//b.jsonl").word == "r0:sub/b.jsonl"
    assert paths.from_word("r0:sub/name with spaces é.jsonl").path.name == "name with spaces é.jsonl"
    assert paths.from_word("r0:fine.jsonl").path == yard / "a.jsonl"
    assert paths.inside(0, "").path == yard
    assert paths.typed(str(yard / "sub" / "b.jsonl")).word == "r0:sub/b.jsonl"
    assert paths.typed(' "sub/b.jsonl" ').path == yard / "sub" / "b.jsonl"
    assert str(yard) not in paths.from_word("r0:sub/b.jsonl").word


def test_a_folder_lists_only_what_it_would_open(yard: Path) -> None:
    for name in (b"\xff.jsonl", b"line\nbreak.jsonl"):
        Path(os.fsdecode(os.fsencode(yard / "x"))).with_name(os.fsdecode(name)).write_text("{}")
    folders, files = paths.listing(paths.inside(0, ""))
    assert [item.name for item in folders] == ["sub"]
    assert [(item.name, item.size) for item in files] == [("a.jsonl", 3), ("fine.jsonl", 3)]


def test_a_folder_with_a_link_that_leads_out_is_not_taken_whole(yard: Path) -> None:
    with pytest.raises(InputError, match="a link that leads out"):
        paths.check(paths.inside(0, ""))
    assert paths.check(paths.inside(0, "sub")) == (2, 6)


def test_a_folder_with_too_many_files_is_not_taken_whole(yard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "MOST_FILES", 1)
    with pytest.raises(InputError, match="more than 1 files"):
        paths.check(paths.inside(0, "sub"))


def test_a_socket_is_neither_file_nor_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(server.PATHS_VARIABLE, json.dumps([str(tmp_path)]))
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as plug:
        plug.bind("plug")
        with pytest.raises(InputError, match="neither a file nor a folder"):
            paths.inside(0, "plug")


def test_a_given_file_opens_nothing_but_itself(yard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(server.PATHS_VARIABLE, json.dumps([str(yard / "a.jsonl")]))
    assert paths.inside(0, "").path == yard / "a.jsonl"
    for word in ("sub/b.jsonl", "b.jsonl", "../a.jsonl"):
        with pytest.raises(InputError):
            paths.inside(0, word)


def test_without_a_path_the_working_directory_and_the_sample_data_are_open(
    yard: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.delenv(server.PATHS_VARIABLE)
    monkeypatch.chdir(yard)
    assert paths.roots() == [yard, root / "sample_data"]
    assert paths.typed("household.jsonl").word == "r1:household.jsonl"


def test_messages_lose_the_folders_that_files_lie_in(yard: Path) -> None:
    assert paths.shorten(f"{yard}/sub/b.jsonl:3: broken") == "sub/b.jsonl:3: broken"


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "passwd"), ("C:\\x\\y.jsonl", "y.jsonl"), (".bashrc", "bashrc"), ("..", "_"), ("", "_"),
        ("a b\n<c>.jsonl", "a_b_c_.jsonl"), ("x" * 300 + ".jsonl", "x" * 94 + ".jsonl"),
    ],
)  # fmt: skip
def test_an_upload_has_a_harmless_name(name: str, safe: str) -> None:
    assert paths.safe_name(name) == safe


def test_uploads_are_bounded_in_size_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "MOST_UPLOADS", 3)
    monkeypatch.setattr(paths, "LARGEST_UPLOAD", 100)
    with pytest.raises(InputError, match="at most"):
        paths.keep([("a.jsonl", b"x" * 101)])
    kept = [paths.keep([("a.jsonl", bytes([65 + i]))]) for i in range(5)]
    assert [path.exists() for path in kept] == [False, False, True, True, True]
    assert kept[-1].read_bytes() == b"E"
    folder = paths.keep([("a.jsonl", b"1"), ("a.jsonl", b"2")])
    assert sorted(path.read_bytes() for path in folder.iterdir()) == [b"1", b"2"]
    assert paths.shorten(f"{kept[-1]}:3: broken") == "a.jsonl:3: broken"
    monkeypatch.setattr(paths, "MOST_UPLOADED", 2)
    paths.keep([("b.jsonl", b"12")])
    assert not folder.exists()


def test_uploads_go_when_the_process_ends() -> None:
    code = "from graft_app import paths; print(paths.keep([('a.jsonl', b'1')]))"
    path = Path(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
    assert path.name == "a.jsonl"
    assert not path.parents[1].exists()
