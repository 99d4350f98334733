"""The address bar as the one source of what is on screen.

Every choice is a query parameter in the words of the command line. A widget bound here takes its value from the
address on every run and writes it back when a person changes it, so that a copied address, the back button and a
reload all show the same thing. Streamlit's own binding would write screen labels into the address instead of words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from graft_app.views.text import literal
from graft_core.errors import GraftError

MIRROR = "url_mirror"
PAGE = "url_page"


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
    if word is not None:
        st.query_params[name] = word
    elif name in st.query_params:
        del st.query_params[name]
    st.session_state[MIRROR] = {key: st.query_params[key] for key in st.query_params}


def bind(name: str, value: Any, default: Any, to_word: Callable[[Any], str] = str) -> dict[str, Any]:
    """`key` and `on_change` for a widget that shows `value` and writes its choice to the address."""
    key = f"url_{name}"
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value  # setting what is there already would overrule a change that is on its way

    def changed() -> None:
        chosen = st.session_state[key]
        write(name, None if chosen is None or chosen == default else to_word(chosen))

    return {"key": key, "on_change": changed}
