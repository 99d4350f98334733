"""Short labels and tooltips from rollout text, which may be long, hostile or nearly the same everywhere."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

LABEL_LENGTH: Final = 24
TOOLTIP_LENGTH: Final = 300
READ: Final = 2000
"""Characters of a text that are looked at; the rest cannot reach a label or a tooltip."""

COMMON_SHARE: Final = 0.6
"""A leading word that stands in more than this share of the texts says nothing about any of them."""

_WORDS = 60
_ENOUGH = 4  # distinct texts from which "most of them" means something
_SPACES = re.compile(r"\s+")


def plain(text: str, keep_lines: bool = False) -> str:
    """Text without control, format (bidirectional, zero-width), surrogate and private-use characters.

    White space is squeezed to single blanks; with `keep_lines` line breaks stay.
    """
    lines = text[:READ].splitlines() if keep_lines else [text[:READ]]
    cleaned = (_SPACES.sub(" ", "".join(_visible(char) for char in line)).strip() for line in lines)
    return "\n".join(line for line in cleaned if line)


def shorten(text: str, length: int) -> str:
    """At most `length` characters, cut at a word where that costs little, with an ellipsis for what is missing."""
    if len(text) <= length:
        return text
    head = text[: length - 1]
    at_word = head.rsplit(" ", 1)[0]
    return (at_word if len(at_word) >= 0.6 * length else head).rstrip(" ,;:.") + "…"


def tooltip(text: str) -> str:
    """The first 300 characters, lines kept."""
    return shorten(plain(text, keep_lines=True), TOOLTIP_LENGTH)


def labels(texts: Sequence[str]) -> list[str]:
    """One label of at most 24 characters per text: its first words that do not stand in most of the texts.

    "You are in the hall. You see a mug" among many of that kind becomes "hall. mug"; a text without a word of its
    own keeps its first words.
    """
    words = [plain(text).split(" ")[:_WORDS] for text in texts]
    distinct = {tuple(each) for each in words}
    spread = Counter(word for each in distinct for word in set(each))
    few = len(distinct) < _ENOUGH
    common = set() if few else {word for word, count in spread.items() if count > COMMON_SHARE * len(distinct)}
    own = [[word for word in each if word not in common] or each for each in words]
    return [shorten(" ".join(each).rstrip(" ,;:."), LABEL_LENGTH) for each in own]


def _visible(char: str) -> str:
    if char.isspace():
        return " "
    return "" if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn") else char
