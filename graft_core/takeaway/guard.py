"""Text that leaves the program: nothing hides in it, and no spreadsheet takes it for a formula."""

from __future__ import annotations

import re
from typing import Any, Final

FORMULA: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r")
"""What a formula can begin with, the full-width forms included."""

HIDDEN: Final = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
NOT_IN_XML: Final = re.compile("[\u0000-\u0008\u000b\u000c\u000e-\u001f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML 1.0 has no way to write (its production 2, Char)."""


def visible(text: str) -> str:
    """The text with control and direction marks shown as a replacement sign, so that nothing hides in it."""
    return HIDDEN.sub("\ufffd", text)


def xml_text(text: str) -> str:
    """The text with what XML cannot hold replaced; everything else stays as it is."""
    return NOT_IN_XML.sub("\ufffd", text)


def guard(value: Any) -> Any:
    """A cell that a spreadsheet will not take for a formula; anything but text is returned as it is."""
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return "'" + shown if shown.startswith(FORMULA) or shown.lstrip().startswith(FORMULA) else shown
