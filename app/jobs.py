"""Live runs as processes of their own: a queue with a quick lane, started, paused, stopped and gone on with by name.

A run is a directory under `base()`; its name is all that the address bar holds, and who knows it may steer it. Each
process holds the reading end of a pipe whose other end only the server has: when the server ends, however it ends, the
pipe closes, and the process stops after its update. What it said last on stderr is kept, so that a run that breaks off
can say why. `graft_app.job` is the program those processes run.
"""

from __future__ import annotations

import atexit
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from graft_app.job import GO_ON, STOP_SECONDS
from graft_core.errors import GraftError, InputError
from graft_core.live import keep

RUNS_VARIABLE: Final = "GRAFT_RUNS"
"""Another folder for live runs than `runs` in the working directory."""
MOST_WAITING: Final = 100
MOST_WAITING_EACH: Final = 3
MOST_PROCESSES: Final = 16
MOST_KEPT: Final = 100
"""Runs started from the page that stay on disk; the oldest go first."""
QUICK_SECONDS: Final = 10.0
"""A run expected to end within this may use the quick lane; one that takes twice as long no longer counts as quick."""
LINES_KEPT: Final = 40
PROGRAM: Final = (sys.executable, "-m", "graft_app.job")

State = Literal["waiting", "starting", "running", "paused", "done", "stopped", "failed", "interrupted", "elsewhere", "unknown"]
ACTIVE: Final = ("waiting", "starting", "running", "paused", "elsewhere")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,80}\Z", re.ASCII)
_OURS: Final = re.compile(r"[a-z0-9-]*-\d{4}-\d{6}-[0-9a-f]{8}\Z", re.ASCII)


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


@dataclass
class Job:
    """One run that was asked for in this server's life."""

    name: str
    words: list[str]
    owner: str
    quick: bool
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    ended: bool = False
    said: deque[str] = field(default_factory=lambda: deque(maxlen=LINES_KEPT))

    @property
    def running(self) -> bool:
        return self.process is not None and not self.ended

    @property
    def waiting(self) -> bool:
        return self.process is None and not self.ended

    def lane(self) -> str:
        late = self.running and time.monotonic() - self.started > 2 * QUICK_SECONDS
        return "quick" if self.quick and not late else "long"


def base() -> Path:
    """The folder of live runs: `GRAFT_RUNS`, else `runs` in the working directory, else one among the user's data."""
    given = os.environ.get(RUNS_VARIABLE)
    if given:
        return Path(given).resolve()
    here = Path.cwd()
    if os.access(here, os.W_OK):
        return here / "runs"
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "graft-lab" / "runs"


def new_name(env: str) -> str:
    """A name that nobody guesses and that says what runs."""
    slug = re.sub(r"[^a-z0-9]+", "-", env.lower()).strip("-")[:30] or "run"
    return f"{slug}-{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(4)}"


class Jobs:
    """The queue of one server: processes at a time in the long and in the quick lane, and the program they run."""

    def __init__(
        self, folder: Path, long_slots: int | None = None, quick_slots: int | None = None, program: Sequence[str] = PROGRAM
    ) -> None:
        cores = os.cpu_count() or 1
        self.folder, self.program = folder, tuple(program)
        self.slots = {"long": long_slots or max(1, cores // 2), "quick": quick_slots or max(2, cores)}
        self._jobs: dict[str, Job] = {}
        self._lock = threading.RLock()

    # -- asking ----------------------------------------------------------------------------------------------

    def place(self, name: str) -> Path:
        """The directory of a run by its name; `InputError` where the word cannot be one."""
        if not _NAME.match(name):
            raise InputError("a run has a name of letters, digits and dashes")
        found = self.folder / name
        if found.is_symlink():
            raise InputError("this run is a link to another place and is not followed")
        return found

    def view(self, name: str) -> View:
        """Where a run is."""
        folder = self.place(name)
        with self._lock:
            self._start_next()
            job = self._jobs.get(name)
            before = self._before(job) if job else 0
        status = _status(folder)
        if job is None:
            return _view_of_stranger(folder, status)
        if job.waiting:
            return View("waiting", before=before, status=status)
        if job.running:
            known = status.get("state") if status.get("pid") == _pid(job) else None
            return View("paused" if known == "paused" else "running" if known else "starting", status=status)
        return _view_of_ended(job, status)

    def of(self, owner: str) -> list[str]:
        """Names of the runs of one visitor, the latest first."""
        with self._lock:
            return [name for name, job in reversed(self._jobs.items()) if job.owner == owner]

    def on_disk(self) -> list[str]:
        """Names of all live runs in the folder, the latest first."""
        found = [file for file in self.folder.glob(f"*/{keep.LIVE}") if _NAME.match(file.parent.name)]
        return [file.parent.name for file in sorted(found, key=_changed, reverse=True)]

    # -- steering --------------------------------------------------------------------------------------------

    def start(self, env: str, words: Sequence[str], owner: str, quick: bool) -> str:
        """Queue `graft live` with these words; returns the run's name."""
        name = new_name(env)
        self._forget_old()
        self._queue(Job(name, ["live", *words, "-o", str(self.place(name))], owner, quick))
        return name

    def go_on(self, name: str, owner: str, quick: bool, updates: int | None = None) -> None:
        """Queue a run that stopped or broke off, from its last finished update; `updates` makes it longer."""
        folder = self.place(name)
        if self.view(name).active:
            raise InputError("this run is still going on")
        if not (folder / keep.LIVE).is_file():
            raise InputError("this run left nothing to go on with; start a new one")
        self._queue(Job(name, [GO_ON, *([str(updates)] if updates else [])], owner, quick))

    def ask(self, name: str, word: str) -> None:
        """pause, resume or stop; a waiting run that is stopped leaves the queue."""
        folder = self.place(name)
        with self._lock:
            job = self._jobs.get(name)
            if job is not None and job.waiting:
                if word == "stop":
                    job.ended = True
                return
        if folder.is_dir():
            keep.ask(folder, word)
        if job is not None and job.running and word == "stop":
            patience = STOP_SECONDS if folder.is_dir() else 0.0
            timer = threading.Timer(patience, _kill, [job])
            timer.daemon = True
            timer.start()

    def remove(self, name: str) -> None:
        """Delete a run that is over with all it kept."""
        if self.view(name).active:
            raise InputError("this run is still going on; stop it first")
        with self._lock:
            self._jobs.pop(name, None)
        if (self.place(name) / keep.LIVE).is_file():
            shutil.rmtree(self.place(name), ignore_errors=True)

    def close(self) -> None:
        """End everything."""
        with self._lock:
            for job in self._jobs.values():
                if job.waiting:
                    job.ended = True
                _kill(job)

    # -- the queue -------------------------------------------------------------------------------------------

    def _queue(self, job: Job) -> None:
        with self._lock:
            waiting = [other for other in self._jobs.values() if other.waiting]
            if sum(other.owner == job.owner for other in waiting) >= MOST_WAITING_EACH:
                raise InputError(f"{MOST_WAITING_EACH} runs of yours are waiting already; stop one of them first")
            if len(waiting) >= MOST_WAITING:
                raise InputError(f"{MOST_WAITING} runs are waiting already; try again later")
            self._jobs.pop(job.name, None)
            self._jobs[job.name] = job
            self._start_next()

    def _start_next(self) -> None:
        """Start what has a free slot; who has fewer processes goes first, then who came first."""
        while True:
            running = [job for job in self._jobs.values() if job.running]
            busy = [job.lane() for job in running if _status(self.folder / job.name).get("state") != "paused"]
            free = [
                job for job in self._jobs.values()
                if job.waiting and busy.count(job.lane()) < self.slots[job.lane()] and len(running) < MOST_PROCESSES
            ]  # fmt: skip
            if not free:
                return
            self._launch(min(free, key=lambda job: sum(other.owner == job.owner for other in running)))

    def _launch(self, job: Job) -> None:
        command = [*self.program, str(self.folder / job.name), *job.words]
        job.started = time.monotonic()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            job.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            job.said.append(f"the run could not be started: {error.strerror or error}")
            job.ended = True
            return
        threading.Thread(target=self._listen, args=(job, job.process), daemon=True).start()

    def _listen(self, job: Job, process: subprocess.Popen[bytes]) -> None:
        """Keep the last lines of stderr until the process ends, then let the next one start."""
        assert process.stderr is not None and process.stdin is not None
        for line in process.stderr:
            job.said.append(line[:4000].decode("utf-8", "replace").strip())
        process.wait()
        process.stdin.close()
        process.stderr.close()
        with self._lock:
            job.ended = True
            self._start_next()

    def _before(self, job: Job) -> int:
        if not job.waiting:
            return 0
        names = [other.name for other in self._jobs.values() if other.waiting and other.lane() == job.lane()]
        return names.index(job.name)

    def _forget_old(self) -> None:
        """Delete the oldest runs that were started from the page, beyond `MOST_KEPT`."""
        ours = [name for name in self.on_disk() if _OURS.match(name)]
        for name in ours[MOST_KEPT - 1 :]:
            if not self.view(name).active:
                self.remove(name)


def _changed(path: Path) -> float:
    try:
        return path.parent.stat().st_mtime
    except OSError:
        return 0.0


def _status(folder: Path) -> dict[str, Any]:
    try:
        found = keep.read_json(folder / keep.STATUS)
    except GraftError:
        return {}
    return found if isinstance(found, dict) else {}


def _pid(job: Job) -> int:
    return job.process.pid if job.process else -1


def _view_of_ended(job: Job, status: dict[str, Any]) -> View:
    code = job.process.returncode if job.process else None
    mine = status.get("state") if status.get("pid") == _pid(job) else None
    if mine in ("done", "stopped"):
        return View("done" if mine == "done" else "stopped", status=status)
    if job.process is None and not job.said:
        return View("stopped", status=status)
    if code is not None and code < 0:
        return View("interrupted", f"ended by signal {-code}; only the unfinished update is lost", status=status)
    lines = [line for line in job.said if line]
    why = lines[-1].removeprefix("graft: ") if lines else f"it ended with exit status {code} and said nothing"
    return View("failed", why, status=status)


def _view_of_stranger(folder: Path, status: dict[str, Any]) -> View:
    """A run that this server did not start: from an earlier one, or from the command line."""
    state = status.get("state")
    if state in ("running", "paused"):
        alive = _alive(status.get("pid")) and time.time() - float(status.get("time") or 0) < 3600
        return View("elsewhere" if alive else "interrupted", status=status)
    if state in ("done", "stopped", "failed"):
        return View(state, str(status.get("why") or ""), status=status)
    return View("interrupted" if (folder / keep.LIVE).is_file() else "unknown", status=status)


def _alive(pid: Any) -> bool:
    if os.name != "posix" or not isinstance(pid, int) or pid <= 1:
        return False
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def _kill(job: Job) -> None:
    if job.process is not None and job.process.poll() is None:
        job.process.kill()


@cache
def jobs() -> Jobs:
    """The queue of this server; everything in it ends with the server."""
    made = Jobs(base())
    atexit.register(made.close)
    return made
