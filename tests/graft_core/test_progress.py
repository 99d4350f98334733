"""How far a read has got: a line on a terminal, nothing anywhere else."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from graft_core.commands._progress import ReadingLine, size_words, time_words

ROW = '{"group_id": "g", "rollout_id": "r%d", "step": 0, "observation": "%s", "action": "a", "outcome": 1}\n'


def called(words: list[str], terminal: bool) -> tuple[bytes, bytes]:
    """Standard output and standard error of the command, the latter a terminal or a pipe."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    command = [sys.executable, "-c", "import sys; from graft_core.cli import main; sys.exit(main())", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        told = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # a terminal whose other end was closed
                break
            if not part:
                break
            told += part
        out = process.communicate()[0]
        assert process.returncode == 0, told
    os.close(ours)
    return out, told


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(ROW % (i, "o" * 20_000) for i in range(200)))  # 4 MB: several blocks
    return path


def test_a_terminal_is_told_and_the_output_stays_clean(rows: Path, tmp_path: Path) -> None:
    out, told = called(["inspect", str(rows), "--json"], terminal=True)
    assert b"\rreading: 0 % of 4 MB" in told and told.rstrip(b" ").endswith(b"\r"), "the line is taken away"
    silent, nothing = called(["inspect", str(rows), "--json"], terminal=False)
    assert silent == out and out.startswith(b"{") and nothing == b""


def test_every_command_that_loads_tells(rows: Path, tmp_path: Path) -> None:
    for words in (["findings"], ["credit", "--estimator", "grpo"], ["convert", "-o", str(tmp_path / "out.parquet")]):
        assert b"\rreading: " in called([words[0], str(rows), *words[1:]], terminal=True)[1], words


def test_the_time_left_follows_from_what_was_read() -> None:
    now, stream = [0.0], io.StringIO()
    line = ReadingLine(stream, clock=lambda: now[0])
    for second, done in ((0.0, 0), (10.0, 250), (10.05, 260), (30.0, 500), (50.0, 1000)):
        now[0] = second
        line(done * 10**6, 1000 * 10**6)
    said = [part.rstrip() for part in stream.getvalue().split("\r")]
    assert said == [
        "", "reading: 0 % of 1.0 GB", "reading: 25 % of 1.0 GB, about 30 s left", "reading: 50 % of 1.0 GB, about 30 s left",
        "read 1.0 GB, putting the rollouts together",
    ], "a quarter in 10 s: 30 s more; not more often than can be read"  # fmt: skip
    line.clear()
    assert stream.getvalue().endswith("\r") and stream.getvalue().split("\r")[-2].strip() == ""


def test_words() -> None:
    assert [size_words(n) for n in (12, 4_000, 5_300_000, 1_200_000_000)] == ["12 bytes", "4 kB", "5 MB", "1.2 GB"]
    assert [time_words(s) for s in (0.2, 59.6, 300)] == ["1 s", "60 s", "5 min"]
