"""One call of `graft`."""

from __future__ import annotations

import pytest

from graft_core.cli import main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """(exit status, stdout, stderr) of one call; argparse leaves by SystemExit."""
    try:
        status = main(list(words))
    except SystemExit as stop:
        status = int(stop.code or 0)
    out, err = capsys.readouterr()
    return status, out, err
