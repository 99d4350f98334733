"""The address bar as the one source of what is on screen.

Every choice is a query parameter in the words of the command line. A widget bound here takes its value from the
address on every run and writes it back when a person changes it, so that a copied address, the back button and a
reload all show the same thing. Streamlit's own binding would write screen labels into the address instead of words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from graft_app.views.text import literal
from graft_core.errors import GraftError

MIRROR = "url_mirror"
PAGE = "url_page"
SHOWN = "url_shown"  # on which page each widget was shown last
DATA = "data"
OF_DATA = "url_data"
"""Word of the address for the data on the table, and where this visit keeps it."""

OF_A_TASK = ("sel", "at", "rollout", "beside", "mark", "mark2")
"""Words of the address that mean something in one task only."""


def carry_over(page: str) -> None:
    """Keep the address's parameters when the page changes: Streamlit drops them on a click in the navigation."""
    mirror: dict[str, str] = st.session_state.get(MIRROR, {})
    if st.session_state.get(PAGE, page) != page:
        for name, word in mirror.items():
            if name not in st.query_params:
                st.query_params[name] = word
    st.session_state[PAGE] = page
    st.session_state[MIRROR] = {name: st.query_params[name] for name in st.query_params}


def read(name: str, parse: Callable[[str], Any], default: Any) -> Any:
    """The parameter's value, or the default where it is absent or not allowed (with a message that says why)."""
    word = st.query_params.get(name)
    if word is None:
        return default
    try:
        return parse(word)
    except (GraftError, ValueError, LookupError, OverflowError, RecursionError) as error:
        reason = str(error) if isinstance(error, (GraftError, ValueError)) else f"{word[:80]!r} is not known here"
        write(name, None)
        st.warning(f"{name} in the address was not usable: {literal(reason, 400)}", icon=":material/link_off:")
        return default


def whole(word: str, below: int) -> int | None:
    """The number a word names if it is a plain one below a bound; else None. Long words are not even read."""
    number = int(word) if word.isascii() and word.isdigit() and len(word) < 19 else -1
    return number if 0 <= number < below else None


def write(name: str, word: str | None) -> None:
    """Set a parameter, or take it away with None."""
    write_all({name: word})


def write_all(words: Mapping[str, str | None]) -> None:
    """Set or take away several parameters at once: one entry in the browser's history. What data they are about comes along."""
    if DATA in words:  # the data changed, or are about to
        st.session_state[OF_DATA] = words[DATA]
    before = {key: st.query_params[key] for key in st.query_params}
    wanted = {**before, **words}
    after = {key: word for key, word in wanted.items() if word is not None}
    if after != before:
        if DATA not in words and st.session_state.get(OF_DATA):
            after[DATA] = st.session_state[OF_DATA]
        st.query_params.from_dict(after)
    st.session_state[MIRROR] = after


def bind(name: str, value: Any, default: Any, to_word: Callable[[Any], str] = str) -> dict[str, Any]:
    """`key` and `on_change` for a widget that shows `value` and writes its choice to the address."""
    key, page = f"url_{name}", st.session_state.get(PAGE)
    shown: dict[str, Any] = st.session_state.setdefault(SHOWN, {})
    if key not in st.session_state or st.session_state[key] != value or shown.get(key) != page:
        st.session_state[key] = value  # setting what is there already would overrule a change that is on its way
    shown[key] = page  # but a browser that comes from another page begins with the widget's first option unless it is told

    def changed() -> None:
        chosen = st.session_state[key]
        write(name, None if chosen is None or chosen == default else to_word(chosen))

    return {"key": key, "on_change": changed}
