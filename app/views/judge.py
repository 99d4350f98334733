"""Judging a finding and taking it away: keep, reject, comment, undo, and a card that others can verify."""

from __future__ import annotations

import io
import zipfile

import streamlit as st

from graft_app import cache
from graft_app.batch import Opened
from graft_app.views import check
from graft_app.views.text import literal
from graft_core.errors import GraftError
from graft_core.insight.cards import Card, make_card
from graft_core.insight.notes import Notes
from graft_core.settings import Settings

VERDICTS = ("keep", "reject")
LABELS = {"keep": "Keep", "reject": "Reject"}


def _key(opened: Opened, position: int) -> tuple[str, str, int]:
    batch = opened.batch
    row = int(batch.step_rollout[position])
    return batch.group_ids[int(batch.group[row])], batch.rollout_ids[row], int(batch.step_index[position])


def show(opened: Opened, settings: Settings, position: int) -> None:
    """The panel under an explained step."""
    check.show(opened, settings, position)
    with st.expander("My verdict, and a card to take away", icon=":material/bookmark:"):
        try:
            _verdict(opened, _key(opened, position))
        except (GraftError, OSError) as error:
            st.error(literal(str(error), 400))
        _card(opened, settings, position)


def _verdict(opened: Opened, key: tuple[str, str, int]) -> None:
    notes = Notes.open(opened.path, cache.sha256_of(*opened.source))
    for message in notes.messages:
        st.warning(literal(message, 400))
    note = notes.get(key)
    edits = st.session_state.setdefault("note_edits", 0)  # a new form after each change, which shows what is saved now
    widget = f"{key[0]}/{key[1]}/{key[2]} {edits} {note.at if note else ''}"
    with st.form(f"note {widget}", border=False):
        verdict = st.segmented_control(
            "Verdict", VERDICTS, format_func=lambda v: LABELS[v], default=note.verdict if note else None,
            key=f"verdict {widget}",
        )
        comment = st.text_area(
            "Comment", note.comment if note else "", height=80, max_chars=10_000, key=f"comment {widget}"
        )
        if st.form_submit_button("Save", icon=":material/save:"):
            notes.set(key, verdict="keep" if verdict == "keep" else "reject" if verdict == "reject" else None, comment=comment)
            st.session_state["note_edits"] += 1
            st.rerun()
    if notes.can_undo and st.button("Undo the last change", icon=":material/undo:"):
        notes.undo()
        st.session_state["note_edits"] += 1
        st.rerun()
    counts = notes.counts()
    st.caption(
        f"{counts['keep']} kept, {counts['reject']} rejected, {counts['comments']} with a comment; saved in "
        f"{literal(notes.place.name, 80)}"
    )


def _card(opened: Opened, settings: Settings, position: int) -> None:
    hide = st.text_input("Leave out of the card", placeholder="text to redact, or: all", key="redact")
    what = "Markdown, JSON and a picture; graft verify checks it"
    if not st.button("Make a finding card", icon=":material/badge:", help=what):
        return
    found = cache.chance_of(*opened.source, settings) if settings.estimator == "graft_td" else opened.findings(settings)
    redact = "all" if hide == "all" else [hide] if hide else ()
    card = make_card(found, position, opened.report.files, path=opened.path, group_by=opened.group_by, redact=redact)
    st.image(card.svg())
    st.download_button(
        "Download the card", _zipped(card), f"{card.name}.zip", "application/zip", icon=":material/download:", on_click="ignore"
    )
    st.caption(f"`graft verify {card.name}.json` beside the data prints “reproduced”.")


def _zipped(card: Card) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{card.name}.json", card.json())
        archive.writestr(f"{card.name}.md", card.markdown())
        archive.writestr(f"{card.name}.svg", card.svg())
    return packed.getvalue()
