"""What a load of a damaged file may take at most: five seconds of processor time and a gigabyte of memory."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

SECONDS = 5.0
MOST_BYTES = 1_000_000_000
PEAK = Path("/proc/self/clear_refs")
"""Where Linux sets the peak of a process back to what it uses now."""


class TookTooLongError(BaseException):
    """No reader may catch it."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise TookTooLongError(f"more than {SECONDS} s of processor time")


def _kilobytes(name: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1])


@contextmanager
def watched(what: object) -> Iterator[None]:
    """Fails where what stands inside takes longer than `SECONDS` (of the processor: another program may hold it up) or more
    memory than `MOST_BYTES` over what the process has used before. Memory is looked at on Linux only."""
    before = 0
    if PEAK.exists():
        PEAK.write_text("5")
        before = _kilobytes("VmRSS")
    kept = signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, kept)
    if PEAK.exists():
        taken = 1024 * (_kilobytes("VmHWM") - before)
        assert taken < MOST_BYTES, f"{what}: {taken / 1e6:,.0f} MB of memory"
