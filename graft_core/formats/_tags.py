"""What the environment executed, inside what a model said: the last action tag, or what follows the last thought."""

from __future__ import annotations

import re
from typing import Final

CLOSED: Final = re.compile(r"<action>((?:(?!<action>).)*?)</action>", re.DOTALL)
OPENED: Final = "<action>"
THOUGHT_END: Final = "</think>"


def parsed_action(text: str) -> str:
    """What the environment executed: the text in the last <action>...</action>.

    Without a closed tag: what follows the last opened one; without any: what follows the last </think>; else all of it.
    """
    closed = CLOSED.findall(text)
    if closed:
        return str(closed[-1]).strip()
    if OPENED in text:
        return text.rpartition(OPENED)[2].strip()
    after = text.rpartition(THOUGHT_END)[2].removesuffix("</action>").strip()
    return after or text.strip()


def executed(text: str) -> str:
    """`parsed_action` where the text has a tag or a thought, else the text as it is."""
    return parsed_action(text) if OPENED in text or THOUGHT_END in text else text
