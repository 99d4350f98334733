"""`graft app [PATH ...]`: open the web app on rollouts; without a path on the sample data."""

from __future__ import annotations

import argparse

from graft_core.commands._common import Command
from graft_core.errors import InputError


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files or directories to offer; none: the sample data")
    parser.add_argument("--port", type=int, metavar="N", help="port (default: 8501 or the next free one)")
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default 127.0.0.1, this machine only)"
    )


def _run(given: argparse.Namespace) -> int:
    try:
        from graft_app.server import run
    except ImportError as error:
        raise InputError(f"the app is not installed ({error}); expected: pip install 'graft-lab[app]'") from None
    status: int = run(given.paths, port=given.port, host=given.host)
    return status


COMMAND = Command("app", "open the app in the browser", _arguments, _run, rank=1)
