"""Texts of a finding card: cleaned, redacted, cut to a length, and compared with what they were taken from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from graft_core.errors import UsageError
from graft_core.insight.labels import READ, plain, shorten

MARK: Final = "[redacted]"
CUT: Final = "…"

_UNKNOWN = re.compile(re.escape(MARK) + "|" + CUT)
_HALF_MARK = re.compile(r"\[[redact]{0,8}…$")


@dataclass(frozen=True)
class Redaction:
    """What must not be read on a card. everything: every text of the data; else texts: each of these, wherever it stands,
    whatever its case and white space. names: (name in the data, how the card calls it), for a card that is checked."""

    texts: tuple[str, ...] = ()
    everything: bool = False
    names: tuple[tuple[str, str], ...] = ()

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        cleaned = sorted({plain(text) for text in self.texts}, key=len, reverse=True)
        if not cleaned:
            return None
        words = (r"\s+".join(re.escape(word) for word in text.split(" ")) for text in cleaned)
        return re.compile("|".join(words), re.IGNORECASE)

    @cached_property
    def _longest(self) -> int:
        return max((len(plain(text)) for text in self.texts), default=0)

    def hides(self, text: str) -> bool:
        """Whether something of this text has to be hidden (of the whole text, however long)."""
        if self.everything:
            return bool(text)
        pieces = (text[at : at + READ] for at in range(0, len(text), READ - min(self._longest * 4, READ // 2)))
        return self._pattern is not None and any(self._pattern.search(plain(piece)) for piece in pieces)

    def word(self, text: str) -> str:
        """A name (of a task, rollout or file): itself where nothing is hidden in it."""
        for name, shown in self.names:
            if name == text:
                return shown
        if not self.hides(text):
            return text
        return MARK if self.everything or self._pattern is None else self._pattern.sub(MARK, plain(text))

    def excerpt(self, text: str, length: int, keep_lines: bool = False) -> str:
        """The beginning of a text without control characters, redacted first and then cut: no half of a hidden word stays.

        length 0: not cut (beyond the 2,000 characters that are looked at).
        """
        if self.everything:
            return MARK if text else ""
        cleaned = plain(text, keep_lines)
        if self._pattern is not None:
            if len(text) > READ:
                cleaned = cleaned[: max(len(cleaned) - self._longest, 0)] + CUT
            cleaned = self._pattern.sub(MARK, cleaned)
        found = shorten(cleaned, length) if length else cleaned
        return found if self._pattern is None else _HALF_MARK.sub(CUT, found)


def redaction(texts: str | Sequence[str] = (), everything: bool = False) -> Redaction:
    """From what callers say: "all", one text, or several. Raises `UsageError` for an empty text."""
    if texts == "all":
        return Redaction((), True)
    chosen = (texts,) if isinstance(texts, str) else tuple(texts)
    if any(not plain(text) for text in chosen):
        raise UsageError("redact: one of the texts is empty; expected the words to hide")
    return Redaction(chosen, everything)


def matches(shown: str, whole: str) -> bool:
    """Whether `shown` can come from `whole` by redacting and cutting: its visible pieces occur there in order."""
    pieces = _UNKNOWN.split(shown)
    if len(pieces) == 1:
        return shown == whole
    first, *between, last = pieces
    if not (whole.startswith(first) and whole.endswith(last) and len(first) + len(last) <= len(whole)):
        return False
    at, end = len(first), len(whole) - len(last)
    for piece in between:
        found = whole.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True
