"""Where a run or a check is, in one word: what its process, its status file and its last words say."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from graft_core.errors import GraftError
from graft_core.live import keep
from graft_core.live.process import is_alive

if TYPE_CHECKING:
    from graft_app.jobs import Job

State = Literal["waiting", "starting", "running", "paused", "done", "stopped", "failed", "interrupted", "elsewhere", "unknown"]
ACTIVE: Final = ("waiting", "starting", "running", "paused", "elsewhere")


@dataclass(frozen=True)
class View:
    """Where a run is: its state, why it broke off, how many are before it in the queue, and its own status file."""

    state: State
    why: str = ""
    before: int = 0
    status: dict[str, Any] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        return self.state in ACTIVE


def status_of(folder: Path) -> dict[str, Any]:
    """What a run says of itself; nothing where it says nothing that can be read."""
    try:
        found = keep.read_json(folder / keep.STATUS)
    except GraftError:
        return {}
    return found if isinstance(found, dict) else {}


def view_of_check(job: Job) -> View:
    """A check that was started."""
    if job.running:
        return View("running" if job.told else "starting", status=job.told)
    if "check" in job.told:
        return View("done", status=job.told)
    code = job.process.returncode if job.process else None
    if (code is not None and code < 0) or (job.process is None and not job.said):
        return View("stopped")
    lines = [line for line in job.said if line]
    return View("failed", lines[-1].removeprefix("graft: ") if lines else f"it ended with exit status {code} and said nothing")


def view_of_ended(job: Job, status: dict[str, Any]) -> View:
    """A run of this server that is over."""
    code = job.process.returncode if job.process else None
    mine = status.get("state") if status.get("pid") == job.pid else None
    if mine in ("done", "stopped"):
        return View("done" if mine == "done" else "stopped", status=status)
    if (job.process is None and not job.said) or (job.stopped and code is not None and code < 0):
        return View("stopped", status=status)
    if code is not None and code < 0:
        return View("interrupted", f"ended by signal {-code}; only the unfinished update is lost", status=status)
    lines = [line for line in job.said if line]
    why = lines[-1].removeprefix("graft: ") if lines else f"it ended with exit status {code} and said nothing"
    return View("failed", why, status=status)


def view_of_stranger(folder: Path, status: dict[str, Any]) -> View:
    """A run that this server did not start: from an earlier one, or from the command line."""
    state = status.get("state")
    if state in ("running", "paused"):
        alive = _alive(status.get("pid")) and time.time() - float(status.get("time") or 0) < 3600
        return View("elsewhere" if alive else "interrupted", status=status)
    if state in ("done", "stopped", "failed"):
        return View(state, str(status.get("why") or ""), status=status)
    return View("interrupted" if (folder / keep.LIVE).is_file() else "unknown", status=status)


def _alive(pid: Any) -> bool:
    """Whether a number that a file names is that of a running process; asking would end it where there are no signals."""
    return os.name == "posix" and isinstance(pid, int) and pid > 1 and is_alive(pid)
