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
"""What stands in more than this share of the distinct texts says nothing about any of them."""

_WORDS = 120
_SHORT = 12  # a beginning of at most this many characters leaves room for what is rarest
_WORTH_SKIPPING = 3
_NEARLY_RAREST = 3  # standing alone, a clause this many times as common as the rarest tells as much, and comes earlier
_STOPS = " ,;:."
_ENOUGH = 4  # distinct texts from which "most of them" means something
# Sentences, lines, the parts of a WebShop page, the members of a JSON object.
_CLAUSE_END = re.compile(r"(?<=[.!?;])\s+|\n+|\s*\[SEP\]\s*|,\s*(?=[\"'{\[])")
_JSON_KEYS = re.compile(r"^([{\[]*\"[^\"]{1,40}\":\s*)+")
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
    """One label of at most 24 characters per text: what it begins with and what sets it apart from the others.

    Texts are cut into clauses. A clause that most of the distinct texts share says nothing, nor do the first words
    of a clause when most texts have them: among states of one kind "You are in the hall. The door is open. You
    carry a mug." becomes "hall · a mug". A text without anything of its own keeps its beginning.
    """
    clauses = [_clauses(text) for text in texts]
    distinct = {tuple(each) for each in clauses}
    if len(distinct) < _ENOUGH:
        return [shorten(" ".join(each).rstrip(_STOPS), LABEL_LENGTH) for each in clauses]
    shared = Counter(clause for each in distinct for clause in set(each))
    spread = Counter(word for each in distinct for word in set(" ".join(each).split(" ")))
    most = COMMON_SHARE * len(distinct)
    common = {word for word, count in spread.items() if count > most}
    return [_label(each, shared, common, most) for each in clauses]


def _clauses(text: str) -> list[str]:
    words = 0
    kept = []
    for clause in _CLAUSE_END.split(plain(text, keep_lines=True)):
        if clause and words < _WORDS:
            kept.append(clause)
            words += clause.count(" ") + 1
    return kept


def _label(clauses: list[str], shared: Counter[str], common: set[str], most: float) -> str:
    if not clauses:
        return ""
    at = next((at for at, clause in enumerate(clauses) if shared[clause] <= most), 0)
    first, begin = clauses[at], _from_own_word(clauses[at], common)
    joined = len(begin) <= _SHORT
    rare = min(shared[clause] for clause in clauses) * (1 if joined else _NEARLY_RAREST)
    telling = next(clause for clause in clauses if shared[clause] <= rare)
    if shared[first] > rare:
        apart = _own_words(telling, common)
        return shorten(f"{begin} · {apart}" if joined else apart, LABEL_LENGTH)
    after = clauses[at + 1] if at + 1 < len(clauses) else ""
    if joined and first.endswith(("!", "?", ".")) and 0 < shared[after] <= most:
        begin = f"{begin.rstrip(first[-1])}{first[-1]} {after}"
    return shorten(begin, LABEL_LENGTH)


def _from_own_word(clause: str, common: set[str]) -> str:
    """The clause from its first word that is not common, unless that saves little or leaves nothing."""
    words = _without_key(clause).split(" ")
    own = next((at for at, word in enumerate(words) if _own(word, common)), 0)
    skipped = sum(map(len, words[:own]))
    return " ".join(words[own:] if skipped > _WORTH_SKIPPING else words)


def _own_words(clause: str, common: set[str]) -> str:
    words = _without_key(clause).split(" ")
    return " ".join([word for word in words if _own(word, common)] or words)


def _own(word: str, common: set[str]) -> bool:
    return word not in common and word.rstrip(_STOPS) not in common


def _without_key(clause: str) -> str:
    """The value of a JSON member without brackets and key; any other clause without its full stop."""
    value = _JSON_KEYS.sub("", clause)
    return value.rstrip(_STOPS if value == clause else _STOPS + "}]") or clause


def _visible(char: str) -> str:
    if char.isspace():
        return " "
    return "" if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn") else char
