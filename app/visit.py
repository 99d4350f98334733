"""Who is looking: a word for this visit, and whether other machines reach the app."""

from __future__ import annotations

import secrets

import streamlit as st

from graft_app.server import is_loopback

OWNER = "live_owner"


def owner() -> str:
    """A word for this visit; the queue of runs and checks is fair between visits."""
    return str(st.session_state.setdefault(OWNER, secrets.token_hex(8)))


def open_to_others() -> bool:
    """Whether other machines reach this app."""
    return not is_loopback(str(st.get_option("server.address") or ""))
