"""Open: a file or folder under the allowed folders, or an upload; what it holds, and what makes a task and a success."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from graft_app import batch as table
from graft_app import cache, paths, urlstate
from graft_app.views import opening
from graft_app.views.text import count, literal
from graft_core.errors import GraftError
from graft_core.rollouts import LoadReport, RolloutBatch
from graft_core.sizes import size_words

HEIGHT = 330
MOST_SHOWN = 300
UPLOAD_MB = paths.LARGEST_UPLOAD // 1_000_000
BROWSED = "open_browsed"
KEPT = "open_kept_uploads"


def look(word: str) -> None:
    urlstate.write("look", word)


def go(root: int, relative: str) -> None:
    st.session_state[BROWSED] = (root, relative)


def root_name(number: int, root: Path) -> str:
    """What a folder is called on screen; where it is kept is nobody's business."""
    if paths.given() or number > 1:
        return root.name or "/"
    return ("working directory", "sample data")[number]


def typing() -> None:
    """A path as text."""
    text = st.text_input("Path", placeholder="runs/today.jsonl", max_chars=paths.LONGEST_PATH, key="typed_path")
    if text and text != st.session_state.get("typed_taken"):
        st.session_state["typed_taken"] = text
        try:
            look(paths.typed(text).word)
        except GraftError as error:
            st.error(opening.said(error))


def browser() -> None:
    """Folders and files with their sizes; a click on a file shows what it holds."""
    folders = {number: root for number, root in enumerate(paths.roots()) if root.is_dir()}
    if not folders:
        st.caption("The app was started with files only; `graft app FOLDER` lets you look around in a folder here.")
        return
    root, relative = st.session_state.get(BROWSED, (next(iter(folders)), ""))
    root = root if root in folders else next(iter(folders))
    try:
        place = paths.inside(root, relative)
        below, files = paths.listing(place)
    except GraftError as error:
        st.error(opening.said(error))
        place = paths.inside(root, "")
        below, files = [], []
    if len(folders) > 1:
        chosen = st.selectbox(
            "Folder", list(folders), index=list(folders).index(root), format_func=lambda n: root_name(n, folders[n]),
            key=f"root {root}", label_visibility="collapsed",
        )
        if chosen != root:
            go(chosen, "")
            st.rerun()
    with st.container(height=HEIGHT, gap=None):
        if place.relative:
            up = place.relative.rpartition("/")[0]
            st.button(f"back from {literal(place.relative, 80)}", key="up", on_click=go, args=(root, up), type="tertiary",
                      icon=":material/arrow_upward:")  # fmt: skip
        for item in below[:MOST_SHOWN]:
            inner = f"{place.relative}/{item.name}".lstrip("/")
            st.button(literal(item.name, 60), key=f"dir_{inner}", on_click=go, args=(root, inner), type="tertiary",
                      icon=":material/folder:")  # fmt: skip
        for item in files[:MOST_SHOWN]:
            inner = f"{place.relative}/{item.name}".lstrip("/")
            label = f"{literal(item.name, 60)} :gray[{size_words(item.size or 0)}]"
            st.button(label, key=f"file_{inner}", on_click=look, args=(f"r{root}:{inner}",), type="tertiary",
                      icon=":material/description:")  # fmt: skip
        if not below and not files:
            st.caption("Nothing here that could be opened.")
    if max(len(below), len(files)) > MOST_SHOWN:
        st.caption(f"the first {MOST_SHOWN} folders and files; the others by their path")
    if files:
        st.button(
            f"Take all of {literal(place.relative.rpartition('/')[2] or root_name(root, folders[root]), 40)} as one batch",
            on_click=look, args=(place.word,), key="whole_folder",
        )


def uploading() -> None:
    """Files from the reader's own computer, kept until the app ends."""
    files = st.file_uploader(
        "Or upload", accept_multiple_files=True, max_upload_size=UPLOAD_MB, key="uploads",
        help=f"At most {UPLOAD_MB} MB a file; several files are one batch. They stay in a temporary folder of the app, the "
        f"latest {paths.MOST_UPLOADS} uploads at most, and go when it ends.",
    )
    if not files:
        return
    kept: set[tuple[str, ...]] = st.session_state.setdefault(KEPT, set())
    ids = tuple(file.file_id for file in files)
    if ids in kept:
        return
    kept.add(ids)
    try:
        path = paths.keep((file.name, file.getvalue()) for file in files)
    except GraftError as error:
        st.error(opening.said(error))
        return
    known = st.session_state.setdefault(table.UPLOADED, [])
    name = files[0].name if len(files) == 1 else f"{len(files)} uploaded files"
    known.append(table.Entry(f"u{len(known) + 1}", str(path), name))
    look(known[-1].word)


def looked_at() -> table.Entry:
    """What is being looked at: a choice of this page, else what is on the table."""
    word = st.query_params.get("look") or st.query_params.get("file") or "0"
    try:
        return table.entry_of(word)
    except (GraftError, ValueError) as error:
        urlstate.write("look", None)
        st.warning(opening.said(error), icon=":material/link_off:")
        return table.entries()[0]


def use(entry: table.Entry, group_by: str | None, success_when: str | None) -> None:
    """Put a batch on the table, and show its findings."""
    table.put_on_menu(entry)
    urlstate.write_all(dict.fromkeys(("look", *table.OF_A_FILE)))
    urlstate.write("file", None if entry.word == "0" else entry.word)
    urlstate.write("group_by", group_by)
    urlstate.write("success_when", success_when)
    st.switch_page("screens/findings.py", query_params={name: st.query_params[name] for name in st.query_params})


def inspect(entry: table.Entry) -> None:
    """Format, choices, report and first rollout of one entry."""
    on_disk = cache.stamp(entry.path)
    on_table = (st.query_params.get("file") or "0") == entry.word
    group_by = st.query_params.get("group_by") if on_table else None
    rule = st.query_params.get("success_when") if on_table else None
    size = size_words(sum(n for _, _, n in on_disk))
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"#### {literal(entry.name, 80)} :gray[{size}]", width="content")
        place = st.container()
    if entry.word.startswith("u"):
        st.caption("An upload lasts as long as this visit: the address cannot bring it back.")
    try:
        raw, report = table.read(entry.path, on_disk, None, None)
    except (GraftError, OSError) as error:
        st.error(opening.said(error), icon=":material/error:")
        return
    opening.format_view(report)
    total = st.container()
    group_by, rule = choices(entry, on_disk, raw, group_by, rule)
    preview(total, place, entry, on_disk, group_by, rule)
    with st.expander(_report_title(report), expanded=bool(report.warnings or report.rejected)):
        opening.report_view(report)
    with st.expander("First rollout, as it was understood", expanded=True):
        opening.first_rollout(raw)


def choices(
    entry: table.Entry, on_disk: cache.Stamp, raw: RolloutBatch, group_by: str | None, rule: str | None
) -> tuple[str | None, str | None]:
    """What makes a task and what is a success; what is in force on the table is chosen at first."""
    won = raw.success
    with st.expander("Success", expanded=bool((won != 1).all()), icon=":material/flag:"):
        rule = opening.success(raw, rule, entry.word)
    try:
        ways = cache.candidates_of(entry.path, on_disk, rule)
    except GraftError:
        ways = cache.candidates_of(entry.path, on_disk, None)
    with st.expander("Tasks", expanded=raw.groups_assumed, icon=":material/workspaces:"):
        if raw.groups_assumed:
            st.markdown("The file names no task. Choose what rollouts must share to be tries of the same task.")
        group_by = opening.grouping(ways, group_by, raw.groups_assumed, entry.word)
    return group_by, rule


def preview(
    total: st.delta_generator.DeltaGenerator, place: st.delta_generator.DeltaGenerator, entry: table.Entry,
    on_disk: cache.Stamp, group_by: str | None, rule: str | None,
) -> None:  # fmt: skip
    """What the choices make of the batch, and the button that takes it."""
    try:
        batch, _ = table.read(entry.path, on_disk, group_by, rule)
    except (GraftError, OSError) as error:
        total.error(opening.said(error), icon=":material/error:")
        place.button("Use this batch", type="primary", disabled=True)
        return
    words = opening.batch_words(batch) + (" · tasks are only assumed" if batch.groups_assumed else "")
    total.markdown(words)
    if place.button("Use this batch", type="primary", icon=":material/check:"):
        use(entry, group_by, rule)


def _report_title(report: LoadReport) -> str:
    said = [f"{report.rejected:,} rejected"] if report.rejected else []
    said += [count(len(report.warnings), "warning")] if report.warnings else []
    return f"Report: {', '.join(said) or 'nothing to remark'}"


left, right = st.columns([1, 2.2], gap="medium")
with left:
    st.markdown("#### Open my rollouts")
    browser()
    typing()
    uploading()
with right, table.sentences():
    inspect(looked_at())
