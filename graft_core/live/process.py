"""A live run in a process of its own: start it, see whether it lives, ask it to pause or stop. For pages and notebooks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graft_core.errors import InputError
from graft_core.live import keep

_STARTED: dict[int, subprocess.Popen[bytes]] = {}
"""What this process started, so that the end of a child is seen."""


def is_alive(pid: int) -> bool:
    """Whether a process of this number runs; a child that has ended does not."""
    if pid in _STARTED:
        return _STARTED[pid].poll() is None
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def start(run: str | os.PathLike[str], arguments: Sequence[str] = (), stop_with: int | None = None) -> int:
    """Start `graft live ... -o RUN` in the background and return its process number; what it prints goes to RUN.log.

    arguments: those of `graft live` without -o; none = go on with a run that was begun. stop_with: the run stops after the
    present update when this process is gone (default: the calling one), so that nothing is left behind.
    """
    path = Path(run)
    owner = os.getpid() if stop_with is None else stop_with
    command = [sys.executable, "-m", "graft_core.cli", "live", *(arguments or ["--resume"])]
    command += ["-o", str(path), "--stop-with", str(owner)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with log_file(path).open("ab") as log:
            made = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    except OSError as error:
        raise InputError(f"{path}: the run cannot be started ({error.strerror or error})") from error
    _STARTED[made.pid] = made
    return made.pid


def log_file(run: Path) -> Path:
    """Where a started run prints."""
    return run.with_name(f"{run.name}.log")


def status(run: str | os.PathLike[str]) -> dict[str, Any]:
    """What the run's status says, `state` set to `killed` where it claims to run but its process is gone; {} before it begins.

    States: running, paused, stopped, done, failed (`why` says the reason), killed.
    """
    found: dict[str, Any] = keep.read_json(Path(run) / keep.STATUS) or {}
    if found.get("state") in ("running", "paused") and not is_alive(int(found.get("pid", 0))):
        found["state"] = "killed"
    return found
