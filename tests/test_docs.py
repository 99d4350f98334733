"""What the documents say is true: pages are up to date, examples load, commands run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import graft_core as gc
from graft_core.cli import main, parser

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = "…"  # a line of a shortened output: one or more lines are not shown


def test_the_page_of_estimators_is_built_from_the_registry() -> None:
    made_by = "python -m graft_core.credit._page > docs/estimators.md"
    # a process of its own: other tests register estimators of their own here
    page = subprocess.run([sys.executable, "-m", "graft_core.credit._page"], capture_output=True, text=True, check=True).stdout
    assert (ROOT / "docs" / "estimators.md").read_text() == page, f"run: {made_by}"


def test_the_file_in_the_readme_loads(tmp_path: Path) -> None:
    block = re.search(r"```json\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert block is not None
    path = tmp_path / "readme.jsonl"
    path.write_text(block.group(1))
    batch, report = gc.load(path, report=True)
    assert (batch.n_rollouts, batch.n_steps, report.rejected) == (2, 4, 0)
    assert not report.warnings
    assert len(block.group(1).splitlines()) <= 10


def test_the_python_in_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    (tmp_path / "my_rollouts.jsonl").write_bytes((vectors / "hand.jsonl").read_bytes())
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def readme_commands() -> list[str]:
    """Every `graft ...` line of the README, without its comment."""
    lines = re.findall(r"^    (graft .*)$", (ROOT / "README.md").read_text(), re.M)
    return [line.split("#")[0].strip() for line in lines]


def test_the_commands_in_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("my_rollouts.jsonl", "more_rollouts/a.jsonl", "results.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((vectors / "hand.jsonl").read_bytes())
    commands = readme_commands()
    assert len(commands) >= 5
    for command in commands:
        words = shlex.split(command)[1:]
        if words[0] == "app":
            assert parser().parse_args(words).command == "app"
        else:
            assert main(words) == 0, command


def test_every_subcommand_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    names = [name for action in parser()._actions if action.choices for name in action.choices]
    assert {"app", "inspect", "findings", "credit", "convert", "card", "verify"} <= set(names)
    for name in names:
        with pytest.raises(SystemExit) as stop:
            main([name, "--help"])
        assert stop.value.code == 0
    assert "show this help" in capsys.readouterr().out


def console_blocks() -> list[tuple[str, list[str]]]:
    """(command, lines it prints) for every `$ ` line of the worked example."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", (ROOT / "docs" / "worked-example.md").read_text(), re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def test_the_worked_example_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sample_data").mkdir()
    (tmp_path / "sample_data" / "household.jsonl").write_bytes((ROOT / "sample_data" / "household.jsonl").read_bytes())
    monkeypatch.chdir(tmp_path)
    commands = console_blocks()
    assert len(commands) == 6
    for command, lines in commands:
        words = [
            match for word in shlex.split(command)[1:]
            for match in (sorted(str(p) for p in tmp_path.glob(word)) if "*" in word else [word])
        ]
        assert main(words) == 0, command
        printed = capsys.readouterr().out.splitlines()
        pattern = "".join("(?:.*\n)+" if line == LEFT_OUT else re.escape(line) + "\n" for line in lines)
        assert re.fullmatch(pattern, "".join(line + "\n" for line in printed)), f"{command} prints\n" + "\n".join(printed)
    cards = "\n".join(path.read_text() for path in (tmp_path / "cards").glob("*.md"))
    said = " ".join((ROOT / "docs" / "worked-example.md").read_text().split())
    for line in re.findall(r"^- (.*)$", cards, re.M):
        sentence = line.split("; here ")[-1] if "γ V(s′)" in line else line
        if "reached this moment" in line or "γ V(s′)" in line:
            assert sentence in said, sentence
