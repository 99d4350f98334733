"""Pasted back, the command and the Python lines give the same settings and the same findings."""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
from pathlib import Path

import hostile
import pytest

import graft_core as gc
from graft_core import cli
from graft_core.rollouts import LoadReport
from graft_core.settings import LOOK, Settings, train
from graft_core.takeaway.snippet import command, python

CASES = [
    LOOK,
    train(),
    Settings(rules=("normalised", "history:2"), actions="verb", sinks="merge", weighting="distinct", baseline="gigpo"),
    Settings(estimator="graft", given=(("gamma", 0.9), ("lam", 0.5), ("normalise", "none"))),
    Settings(estimator="path_gae", baseline="rloo", prior=2.0, given=(("lam", 0.25),)),
]


def words_of(line: str) -> list[str]:
    """What bash hands to the program."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    done = subprocess.run([bash, "-c", f"graft() {{ printf '%s\\0' \"$@\"; }}; {line}"], capture_output=True, check=True)
    return [word.decode("utf-8", "surrogateescape") for word in done.stdout.split(b"\0")[:-1]]


@pytest.mark.parametrize("settings", CASES)
def test_the_command_is_read_as_the_same_settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    from graft_core.commands import findings as subcommand

    seen: list[Settings] = []

    def stop(batch: object, given: Settings, **more: object) -> None:
        seen.append(given)
        raise gc.InputError("seen")

    monkeypatch.setattr(subcommand, "load_input", lambda given: (None, LoadReport()))
    monkeypatch.setattr(subcommand, "findings", stop)
    with contextlib.redirect_stderr(io.StringIO()):
        cli.main(words_of(command(settings, "elsewhere/data.jsonl")))
    assert seen == [settings]


def test_options_that_neither_estimator_has_are_left_out() -> None:
    settings = Settings(estimator="graft_td", baseline="rloo").with_options(lam=0.5)
    assert "--lam" not in command(settings, "x.jsonl")
    assert "--lam 0.5" in command(settings.with_options(estimator="path_gae"), "x.jsonl")


@pytest.mark.parametrize("text", [t.replace("\0", "") for t in hostile.TEXTS if len(t) < 1000])
def test_hostile_names_are_one_word_of_one_line(text: str) -> None:
    name = text.replace("/", "_")
    line = command(LOOK, f"folder/{name}", text)
    assert line.isprintable()
    flag = [f"--group-by={text}"] if text.startswith("-") else ["--group-by", text]
    assert words_of(line) == ["findings", f"./{name}" if name.startswith("-") else name, *flag]
    assert "folder" not in line


def test_a_name_that_looks_like_an_option() -> None:
    assert words_of(command(LOOK, "-rf.jsonl")) == ["findings", "./-rf.jsonl"]


@pytest.mark.parametrize("settings", CASES)
def test_the_python_lines_run(settings: Settings, vectors: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copy(vectors / "wide.jsonl", tmp_path / "it's <b>.jsonl")
    monkeypatch.chdir(tmp_path)
    batch = gc.load("it's <b>.jsonl")
    text = python(settings, str(tmp_path / "it's <b>.jsonl"), None, batch.group_ids[0])
    assert str(tmp_path) not in text
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, "snippet", "exec"), names)
    assert names["settings"] == settings
    assert names["found"].settings == settings  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", hostile.TEXTS[:49])
def test_hostile_names_are_strings_of_the_python_lines(text: str) -> None:
    import ast

    lines = python(LOOK, text.replace("/", "_"), text, text)
    called = [node for node in ast.walk(ast.parse(lines)) if isinstance(node, ast.Call)]
    names = sorted(ast.unparse(node.func) for node in called)
    assert names == sorted(["gc.load", "gc.Settings", "gc.findings", "print", "found.table", "gc.show"])
    assert lines.replace("\n", "").isprintable()
