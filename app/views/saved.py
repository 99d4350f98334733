"""Saved views: the present page and address under a name, to be opened again, deleted and shared."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import streamlit as st

from graft_app import samedata, urlstate
from graft_app.batch import Opened
from graft_app.views.opening import said
from graft_app.views.text import count, literal
from graft_core.errors import GraftError
from graft_core.insight.saved_views import LONGEST_NAME, View, as_json, from_json, remove, save, saved, view
from graft_core.takeaway.names import file_name, stem

NOT_KEPT = ("file", urlstate.DATA, "look", "run")
"""Words that say which data are open; a view keeps the data's SHA-256 instead."""
MESSAGE, UNDO, EDITS = "views_message", "views_undo", "views_edits"
LARGEST_MB = 5


def menu(opened: Opened) -> None:
    """A small menu in the line above the page."""
    with st.container(width="content"):
        _menu(opened)


@st.fragment
def _menu(opened: Opened) -> None:
    with st.popover("Views", icon=":material/bookmarks:", on_change="rerun", key="views_menu") as box:
        if not box.open:
            return
        message = st.session_state.pop(MESSAGE, None)
        if message:
            st.info(message)
        try:
            views = saved(opened.path)
        except (GraftError, OSError) as error:
            st.warning(f"{said(error)} It is kept under another name when the next view is saved.")
            views = {}
        _new(opened)
        for one in views.values():
            _line(opened, one)
        gone = st.session_state.get(UNDO)
        if gone is not None and gone[0] == opened.path:
            label = f"Undo: put “{literal(gone[1].name, 40)}” back"
            st.button(label, icon=":material/undo:", on_click=_put_back, args=(opened,))
        _share(opened, views.values())


def _new(opened: Opened) -> None:
    key = f"view_name {st.session_state.get(EDITS, 0)}"  # a new form after each change
    with st.form(f"form {key}", border=False):
        st.text_input(
            "Save this view as", max_chars=LONGEST_NAME, placeholder="a name", key=key,
            help="The page and everything chosen on it, beside the data. A name that is there already gets the new view.",
        )
        st.form_submit_button("Save", icon=":material/bookmark_add:", on_click=_save, args=(opened, key))


def _save(opened: Opened, key: str) -> None:
    page = str(st.session_state.get(urlstate.PAGE, "")).lower()
    words = {name: st.query_params[name] for name in st.query_params if name not in NOT_KEPT}
    _keep(opened, lambda: [view(st.session_state[key], page, words, _data())], "Saved.")


def _data() -> str:
    return str(st.session_state.get(urlstate.OF_DATA) or "0" * samedata.DIGITS)


def _keep(opened: Opened, make: Callable[[], Iterable[View]], message: str) -> None:
    """Save what `make` gives, and remember what to say of it: callbacks write nothing themselves."""
    try:
        save(opened.path, make())
    except (GraftError, OSError) as error:
        message = said(error)
    st.session_state[MESSAGE] = message
    st.session_state[EDITS] = st.session_state.get(EDITS, 0) + 1


def _line(opened: Opened, one: View) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.button(literal(one.name, LONGEST_NAME), key=f"view_open_{one.name}", type="tertiary", help=f"opens {one.page}"):
            here = {"file": st.query_params["file"]} if "file" in st.query_params else {}
            st.session_state[urlstate.MIRROR] = {}  # a view is a whole address: nothing of this page goes along
            st.switch_page(f"screens/{one.page}.py", query_params={**one.words, **here, urlstate.DATA: one.sha256})
        other = "" if _data().startswith(one.sha256) or one.sha256.startswith(_data()) else " :orange-badge[other data]"
        st.markdown(f":gray[{one.page} · {literal(one.at[:10])}]{other}", width="content")
        st.button(
            "Delete", icon=":material/delete:", key=f"view_delete_{one.name}", type="tertiary", on_click=_delete,
            args=(opened, one),
        )


def _delete(opened: Opened, one: View) -> None:
    try:
        remove(opened.path, one.name)
    except (GraftError, OSError) as error:
        st.session_state[MESSAGE] = said(error)
    else:
        st.session_state[UNDO] = (opened.path, one)


def _put_back(opened: Opened) -> None:
    _, one = st.session_state.pop(UNDO)
    _keep(opened, lambda: [one], f"“{literal(one.name, 40)}” is back.")


def _share(opened: Opened, views: Iterable[View]) -> None:
    kept = list(views)
    if kept:
        st.download_button(
            f"Share {count(len(kept), 'view')} as a file", lambda: as_json(kept),
            file_name(stem(opened.batch.name), "views", ending="json"), "application/json", icon=":material/share:",
            on_click="ignore", key="views_share",
        )
    key = f"views_file {st.session_state.get(EDITS, 0)}"
    st.file_uploader(
        "Add views from a file", type="json", max_upload_size=LARGEST_MB, key=key, on_change=_add, args=(opened, key)
    )


def _add(opened: Opened, key: str) -> None:
    file = st.session_state[key]
    if file is not None:
        _keep(opened, lambda: from_json(file.getvalue()).values(), "Added.")
