"""Rollout text on screen: always text, never markup."""

from __future__ import annotations

import re
import unicodedata

import streamlit as st

from graft_core.takeaway.guard import visible

MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:&^=@\"'])")
LINKED = re.compile(r"(?i)https?|ftp|www|mailto|xmpp")
REPLACED = re.compile(r"(?<=:)(?=[^\s:]+:)|(?<=[-<>~])(?=[-=>])")
"""Where Streamlit reads text for a sign even if it is escaped: `:material/delete:`, `:smile:`, `->`, `>=`."""
JOINER = "\u2060"
DASH = "–"


def one_line(text: str, limit: int = 120) -> str:
    """The text on one line, cut with an ellipsis."""
    flat = " ".join(visible(unicodedata.normalize("NFC", text[: 4 * limit])).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def literal(text: str, limit: int = 120) -> str:
    """One line for use inside Markdown: every sign that could be markup is escaped, no word becomes a link or an icon."""
    escaped = MARKUP.sub(r"\\\1", REPLACED.sub(JOINER, one_line(text, limit)))
    # addresses too are linked after unescaping: an invisible joiner inside the scheme, www or @ keeps them text
    return LINKED.sub(lambda found: found[0][0] + JOINER + found[0][1:], escaped).replace("\\@", JOINER + "\\@")


def block(text: str, limit: int = 4000) -> None:
    """A longer text, as it is, in a fixed-width block; cut on screen only."""
    shown = visible(text)
    st.code(shown[:limit] if shown else "(empty)", language=None, wrap_lines=True)
    if len(shown) > limit:
        st.caption(f"the first {limit:,} of {len(shown):,} characters")


def number(value: float, digits: int = 2, sign: bool = False) -> str:
    """A number for people; undefined is a dash, never 0."""
    if value != value:
        return DASH
    return f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"


def count(n: int, one: str, many: str | None = None) -> str:
    """'1 task', '2 tasks'."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
