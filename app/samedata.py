"""The data that an address was made on: its SHA-256 stands in every address, and other data are called so.

A word like `task` or `sel` names something in one file with one content. The address therefore carries `data`, the first
digits of the data's SHA-256. Where it does not fit what was opened, the words that mean nothing there are dropped and one
sentence says so. A recorded run is known by its `run.json`, which names its start and never changes: a run that grows
is the same run.
"""

from __future__ import annotations

import re

import streamlit as st

from graft_app import cache, urlstate
from graft_app.views.text import literal

DIGITS = 16
OF_THE_DATA = ("task", *urlstate.OF_A_TASK, "box")
"""Words of the address that mean nothing for other data."""

SEEN, DIFFERS = "data_seen", "data_differs"
_WORD = re.compile(r"[0-9a-f]{8,64}")


def _word(word: str) -> str:
    if not _WORD.fullmatch(word):
        raise ValueError("expected the first digits of a SHA-256 (0 to 9, a to f)")
    return word


def check(path: str, on_disk: cache.Stamp, name: str) -> None:
    """Write the data's word into the address; where another one stands there, say so and drop what belongs to it."""
    sha256 = cache.data_hash(path, on_disk)
    said = urlstate.read(urlstate.DATA, _word, None)
    if sha256 is None:  # a large file: its hash is still being made
        st.session_state.pop(urlstate.OF_DATA, None)
        st.fragment(_wait, run_every="1s")(path, on_disk)
        return
    own, before = sha256[:DIGITS], st.session_state.get(urlstate.OF_DATA)
    st.session_state[urlstate.OF_DATA] = own
    if said is not None and not sha256.startswith(said):
        dropped = [word for word in OF_THE_DATA if word in st.query_params]
        st.session_state[DIFFERS] = (own, said, dropped)
        urlstate.write_all({**dict.fromkeys(OF_THE_DATA), urlstate.DATA: own})
    elif said is None and (before is None or st.session_state.get(SEEN) != own):
        # once for each choice of data: else the way back, which leads over the address without it, would end here
        urlstate.write(urlstate.DATA, own)
    st.session_state[SEEN] = own
    _say(own, name)


def _wait(path: str, on_disk: cache.Stamp) -> None:
    if cache.data_hash(path, on_disk) is not None:
        st.rerun()


def _say(own: str, name: str) -> None:
    known = st.session_state.get(DIFFERS)
    if known is None:
        return
    if known[0] != own:  # another file was chosen since
        del st.session_state[DIFFERS]
        return
    left = f" What it pointed at there ({', '.join(known[2])}) is left out." if known[2] else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.warning(
            f"This address was made on other data (SHA-256 {known[1][:DIGITS]}…); what is shown is {literal(name, 60)} "
            f"(SHA-256 {own}…).{left}",
            icon=":material/difference:",
        )
        st.button("Dismiss", icon=":material/close:", key="data_dismiss", on_click=lambda: st.session_state.pop(DIFFERS, None))
