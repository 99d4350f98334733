"""How far a long read has got, as one line on the terminal that goes when it is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TextIO

from graft_core import sizes

AGAIN: Final = 0.1
"""Seconds between two looks of the line."""

TIME_KNOWN: Final = 0.02
"""Share that must have been read before a time left is named."""

size_words = partial(sizes.size_words, tenths=False)  # a line that is written anew ten times a second must not flicker


@dataclass
class ReadingLine:
    """Writes "reading: 45 % of 1.2 GB, about 12 s left" over itself; call it with bytes read and bytes in all."""

    stream: TextIO
    clock: Callable[[], float] = time.monotonic
    start: float = field(init=False)
    last: float = field(init=False, default=-1.0)
    width: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.start = self.clock()

    def __call__(self, done: int, total: int) -> None:
        now = self.clock()
        if now - self.last < AGAIN:
            return
        self.last, share = now, done / max(total, 1)
        words = f"reading: {100 * share:.0f} % of {size_words(total)}"
        if share >= 1:
            words = f"read {size_words(total)}, putting the rollouts together"
        elif share >= TIME_KNOWN:
            words += f", about {time_words((now - self.start) * (1 - share) / share)} left"
        self._write(words)

    def clear(self) -> None:
        """Take the line away."""
        if self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()

    def _write(self, words: str) -> None:
        self.stream.write("\r" + words.ljust(self.width))
        self.stream.flush()
        self.width = max(self.width, len(words))


def reading_line() -> ReadingLine | None:
    """The line, where standard error is a terminal; else nothing is written."""
    return ReadingLine(sys.stderr) if sys.stderr.isatty() else None


def time_words(seconds: float) -> str:
    """A time left for people."""
    return f"{max(1, round(seconds))} s" if seconds < 100 else f"{round(seconds / 60)} min"
