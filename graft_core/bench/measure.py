"""Clocks, peak memory, and running one measurement in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from graft_core.errors import InputError


@dataclass(frozen=True)
class Spent:
    """Seconds by the wall clock, of this process's CPU time (all its threads), and of that in user mode.

    What is missing from `user` went to the kernel, almost all for memory that was touched for the first time.
    """

    wall: float
    cpu: float
    user: float

    def as_dict(self) -> dict[str, float]:
        return {"wall": self.wall, "cpu": self.cpu, "user": self.user}


def timed(work: Callable[..., Any], *given: Any, **named: Any) -> tuple[Spent, Any]:
    """How long work(*given, **named) took, and what it gave."""
    wall, cpu, user = time.perf_counter(), time.process_time(), _user_time()
    result = work(*given, **named)
    return Spent(time.perf_counter() - wall, time.process_time() - cpu, _user_time() - user), result


def best(spent: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The smallest of each clock over several runs of the same work."""
    runs = list(spent)
    return {clock: min(run[clock] for run in runs) for clock in runs[0]}


def _user_time() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return os.times().user
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def peak_memory() -> int:
    """The largest resident size this process has had, in bytes.

    Linux keeps it per program (`VmHWM`); `ru_maxrss` would also count what the parent held when it started this one.
    """
    try:
        with open("/proc/self/status", encoding="ascii") as stream:
            for line in stream:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def in_child(task: str, environment: Mapping[str, str] | None = None, **given: Any) -> dict[str, Any]:
    """Run a task of `graft_core.bench.tasks` in a new process and return what it prints.

    `process_wall` is added: the seconds from start to end of the process.
    """
    command = [sys.executable, "-m", "graft_core.bench", task, orjson.dumps(given).decode()]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, env={**os.environ, **(environment or {})}, check=False)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise InputError(f"the measurement {task!r} did not end well: {last[0]}")
    found: dict[str, Any] = orjson.loads(done.stdout.splitlines()[-1])
    return {"process_wall": time.perf_counter() - started, **found}
