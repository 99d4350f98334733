"""Live runs as processes of their own: a queue with a quick lane, started, paused, stopped and gone on with by name.

A run is a directory under `base()`; its name is all that the address bar holds, and who knows it may steer it. Each
process holds the reading end of a pipe whose other end only the server has: when the server ends, however it ends, the
pipe closes, and the process stops after its update. What it said last on stderr is kept, so that a run that breaks off
can say why. `graft_app.job` is the program those processes run.

Checks by rollout wait in the same queue. They keep nothing on disk: what they find is remembered as long as the server runs.
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
from typing import IO, Any, Final

import orjson

from graft_app.job import GO_ON, NO_RUN, STOP_SECONDS
from graft_app.jobview import View, status_of, view_of_check, view_of_ended, view_of_stranger
from graft_core.errors import InputError
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
NOTES_KEPT: Final = 4
CHECKS_KEPT: Final = 300
"""Checks that are remembered; the oldest go first."""
PROGRAM: Final = (sys.executable, "-m", "graft_app.job")

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,80}\Z", re.ASCII)
_NOTE: Final = re.compile(r" weights on | has no chat template| ran out of memory")
"""Lines that the page shows as long as the run is known: which device is used, and what a model said of itself."""
_FOLDER: Final = re.compile(r"\S*/\S*: ")  # where a model lies is nobody's business
_PART: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}\Z", re.ASCII)
_OURS: Final = re.compile(r"[a-z0-9-]*-\d{4}-\d{6}-[0-9a-f]{8}\Z", re.ASCII)


@dataclass
class Job:
    """One run or check that was asked for in this server's life. told: what a check said last of itself; notes: see `_NOTE`."""

    name: str
    words: list[str]
    owner: str
    quick: bool
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    ended: bool = False
    stopped: bool = False  # somebody asked for it
    said: deque[str] = field(default_factory=lambda: deque(maxlen=LINES_KEPT))
    check: bool = False
    told: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else -1

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

    def recorded(self, word: str) -> Path:
        """The run directory behind `NAME/ESTIMATOR/seed-N`, where rollouts of a live run lie. `InputError` says why not."""
        parts = word.split("/")
        if len(parts) != 3 or not _NAME.match(parts[0]) or not _PART.match(parts[1]) or not _PART.match(parts[2]):
            raise InputError("expected live:RUN/ESTIMATOR/seed-N")
        found = self.place(parts[0]) / parts[1] / parts[2]
        if not found.is_dir():
            raise InputError("this live run is gone: it was deleted, or the app was started elsewhere")
        if not found.resolve().is_relative_to(self.folder.resolve()):
            raise InputError("this run is a link to another place and is not followed")
        return found

    def view(self, name: str) -> View:
        """Where a run is."""
        folder = self.place(name)
        with self._lock:
            self._start_next()
            job = self._jobs.get(name)
            before = self._before(job) if job else 0
        status = status_of(folder)
        if job is None:
            return view_of_stranger(folder, status)
        if job.waiting:
            return View("waiting", before=before, status=status)
        if job.running:
            known = status.get("state") if status.get("pid") == job.pid else None
            return View("paused" if known == "paused" else "running" if known else "starting", status=status)
        return view_of_ended(job, status)

    def of(self, owner: str) -> list[str]:
        """Names of the runs of one visitor, the latest first."""
        with self._lock:
            return [name for name, job in reversed(self._jobs.items()) if job.owner == owner and not job.check]

    def view_check(self, key: str) -> View:
        """Where a check is: `status` says how far it is ({"done", "total"}) or what came out ({"check"})."""
        with self._lock:
            self._start_next()
            job = self._jobs.get(_check_name(key))
            if job is None:
                return View("unknown")
            if job.waiting:
                return View("waiting", before=self._before(job))
            return view_of_check(job)

    def checks_by(self, key: str, owner: str) -> bool:
        """Whether this visit asked for a check."""
        with self._lock:
            job = self._jobs.get(_check_name(key))
            return job is not None and job.owner == owner

    def notes(self, name: str) -> list[str]:
        """What a run of this server said of its model and device."""
        with self._lock:
            job = self._jobs.get(name)
            return list(job.notes) if job else []

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

    def check(self, key: str, words: Sequence[str], owner: str, quick: bool) -> None:
        """Queue a check by rollout; who asks for one that is under way or done shares it."""
        with self._lock:
            old = [name for name, job in self._jobs.items() if job.check and job.ended]
            for name in old[: max(0, len(old) - CHECKS_KEPT)]:
                del self._jobs[name]
            if not self.view_check(key).active and "check" not in self.view_check(key).status:
                self._queue(Job(_check_name(key), list(words), owner, quick, check=True))

    def cancel_check(self, key: str) -> None:
        """End a check, whatever it is doing."""
        self.ask(_check_name(key), "stop")

    def ask(self, name: str, word: str) -> None:
        """pause, resume or stop; a waiting run that is stopped leaves the queue."""
        folder = self.place(name)
        with self._lock:
            job = self._jobs.get(name)
            if job is not None and job.waiting:
                if word == "stop":
                    job.ended = True
                return
            if job is not None and word == "stop":
                job.stopped = True
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
            busy = [job.lane() for job in running if status_of(self.folder / job.name).get("state") != "paused"]
            free = [
                job for job in self._jobs.values()
                if job.waiting and busy.count(job.lane()) < self.slots[job.lane()] and len(running) < MOST_PROCESSES
            ]  # fmt: skip
            if not free:
                return
            self._launch(min(free, key=lambda job: sum(other.owner == job.owner for other in running)))

    def _launch(self, job: Job) -> None:
        command = [*self.program, NO_RUN if job.check else str(self.folder / job.name), *job.words]
        job.started = time.monotonic()
        try:
            if not job.check:
                self.folder.mkdir(parents=True, exist_ok=True)
            heard = subprocess.PIPE if job.check else subprocess.DEVNULL
            job.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=heard, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            job.said.append(f"the run could not be started: {error.strerror or error}")
            job.ended = True
            return
        threading.Thread(target=self._listen, args=(job, job.process), daemon=True).start()

    def _listen(self, job: Job, process: subprocess.Popen[bytes]) -> None:
        """Keep the last lines of stderr until the process ends, then let the next one start."""
        assert process.stderr is not None and process.stdin is not None
        told = threading.Thread(target=_hear, args=(job, process.stdout), daemon=True) if process.stdout is not None else None
        if told is not None:
            told.start()
        for line in process.stderr:
            said = line[:4000].decode("utf-8", "replace").strip()
            job.said.append(said)
            if _NOTE.search(said):
                job.notes = list(dict.fromkeys([*job.notes, _FOLDER.sub("", said)]))[-NOTES_KEPT:]
        process.wait()
        if told is not None:
            told.join()
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


def _check_name(key: str) -> str:
    return f"check-{key}"


def _json(line: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _hear(job: Job, stream: IO[bytes]) -> None:
    """Keep what a check tells of itself."""
    with stream:
        for line in stream:
            job.told = _json(line) or job.told


def _changed(path: Path) -> float:
    try:
        return path.parent.stat().st_mtime
    except OSError:
        return 0.0


def _kill(job: Job) -> None:
    if job.process is not None and job.process.poll() is None:
        job.process.kill()


@cache
def jobs() -> Jobs:
    """The queue of this server; everything in it ends with the server."""
    made = Jobs(base())
    atexit.register(made.close)
    return made
