"""What a step's texts say about its kind: the action's verb, and whether an observation reports an error."""

from __future__ import annotations

import re
from typing import Final

import orjson

from graft_core.insight.labels import plain, shorten

EXCERPT: Final = 200
"""Characters of a text that an excerpt shows at most."""

MESSAGE: Final = "(message)"
NO_ACTION: Final = "(no action)"

_VERB_LENGTH = 40
_ERROR_LENGTH = 80
_NAME_KEYS = ("name", "tool", "tool_name", "function", "action", "command")
_LEADING = re.compile(r"[<\[({`*#>\"'\s]*([^\W\d_][\w.\-/]*)")
_DIGITS = re.compile(r"\d+")
_ERROR = re.compile(
    r"\b(?:error|exception|traceback)\b|nothing happens|command not found|no such file|not (?:found|allowed|permitted)"
    r"|permission denied|\binvalid\b|\bfailed to\b|\bunable to\b|segmentation fault|timed out",
    re.IGNORECASE,
)
_HEAD = 300  # an error report says so at its beginning; a page that mentions errors further down is no report
_LINE = 200  # and in a line of its own, not in the middle of a paragraph


def excerpt(text: str, length: int = EXCERPT) -> str:
    """The beginning of a text as one line without control characters, at most `length` characters."""
    return shorten(plain(text[: 4 * length]), length)


def verb(action: str) -> str:
    """What kind of action a text is: its tool name or first word in lower case.

    "click[buy now]" -> "click", 'book {"a":1}' -> "book", '{"name":"book"}' -> "book", a sentence to a person ->
    "(message)", an empty text -> "(no action)".
    """
    text = action.strip()
    if not text:
        return NO_ACTION
    if text.startswith("{"):
        named = _json_name(text)
        if named:
            return shorten(plain(named), _VERB_LENGTH)
    if _is_prose(text):
        return MESSAGE
    match = _LEADING.match(text)
    word = match.group(1) if match else text.split()[0]
    return shorten(plain(word).rstrip(".,:;").lower() or MESSAGE, _VERB_LENGTH)


def _json_name(text: str) -> str:
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ""
    for key in _NAME_KEYS:
        value = data.get(key)
        value = value.get("name") if isinstance(value, dict) else value
        if isinstance(value, str) and value.strip():
            return value.split()[0].lower()
    return ""


def _is_prose(text: str) -> bool:
    """Whether a text speaks to a person: five words or more, most of letters only, written as a sentence."""
    words = text[:400].split()
    if len(words) < 5:
        return False
    spoken = sum(word.strip("*#.,:;!?()\"'`-–—’$").replace("'", "").replace("’", "").isalpha() for word in words)
    sentence = text[0].isupper() or text[0] in "*#\"'" or text.rstrip()[-1] in ".?!"
    return sentence and spoken >= 0.5 * len(words)


def error_text(observation: str) -> str:
    """The line in which an observation reports an error, digits masked so that equal errors are equal; else "".

    "Error: flight HAT136 not available" -> "Error: flight HAT# not available". Only the beginning is looked at.
    """
    for line in observation[:_HEAD].splitlines():
        if _ERROR.search(line[:_LINE]):
            return shorten(_DIGITS.sub("#", plain(line)), _ERROR_LENGTH)
    return ""
