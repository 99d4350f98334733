"""Texts that mean harm, everywhere a rollout or a file can carry them: text on every page, and text in what is taken away.

The `page` fixture adds to each test that no dialog opened and that no request left this machine.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import hostile
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, expect
from walk import cells_of, go_to, made_from_text, texts_of

import graft_core as gc
from graft_app.views.text import one_line
from graft_core.cli import main
from graft_core.takeaway.guard import FORMULA, visible

Visit = Callable[..., Page]
LONG = 90_000
HANDLERS = "Array.from(document.querySelectorAll('*')).flatMap((e) => e.getAttributeNames().filter((n) => /^on/i.test(n)))"
HOST = hostile.HOST.encode()
CODE, TEXT = '[data-testid="stCode"] code', '[data-testid="stText"]'
SHOWN = 400  # characters of a text that every place shows which shows whole texts
EVERY = tuple(text.replace("\ud800", "\\ud800").replace("\udfff", "\\udfff") for text in hostile.EVERY)
"""The texts as a batch holds them: halves of characters, which are no text, are written out."""


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that is named as badly as what it holds."""
    return hostile.write(tmp_path_factory.mktemp("evil"), of=hostile.everywhere())


@pytest.fixture(scope="module")
def graph(evil: Path) -> gc.TrajectoryGraph:
    return gc.build_graph(gc.load(str(evil)))


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose files bear the texts as names and hold records that are rejected with the texts in the reason."""
    folder = tmp_path_factory.mktemp("names")
    for text in hostile.EVERY:
        if "\ud800" not in text:
            row = {"group_id": text, "rollout_id": text, "step": text}
            (folder / file_name(text)).write_text(json.dumps(row) + "\n", encoding="utf-8")
    (folder / "fine.jsonl").write_text(json.dumps(hostile.everywhere()[0]) + "\n", encoding="utf-8")
    return folder


def file_name(text: str) -> str:
    """The text as far as a file system takes it."""
    return text.replace("/", "\u2215").replace("\0", "")[:60] + ".jsonl"


@pytest.fixture
def look(page: Page, start_app: Callable[..., Any], visit: Visit, evil: Path, named: Path) -> Callable[..., Page]:
    """`look("graph", sel="n0")` opens a page on the texts."""
    page.set_default_timeout(LONG)
    return lambda where="", **words: visit(start_app([evil, named]), f"{where}?{urlencode(words)}")


def innocent(page: Page) -> None:
    """Nothing on the page was made from a text."""
    assert made_from_text(page) == []


def missing(wanted: list[str], found: list[str]) -> list[str]:
    """The wanted texts with whose beginning none of those on the page begins."""
    stand = [flat(text) for text in found]
    return [text for text in wanted if not any(one.startswith(flat(text)[:SHOWN]) for one in stand)]


def stands(page: Page, wanted: list[str], selector: str) -> None:
    """Waits until the wanted texts stand in elements of a kind."""
    begun = time.monotonic()
    while (gone := missing(wanted, texts_of(page, selector))) and time.monotonic() < begun + 20:
        page.wait_for_timeout(50)
    assert gone == []


def flat(text: str) -> str:
    """As a page holds it: a browser knows one line end, and no control marks are shown."""
    return " ".join(visible(text).split())


def tables(page: Page, n: int = 1) -> None:
    """Waits for tables with cells."""
    page.wait_for_function(
        """n => Array.from(document.querySelectorAll('canvas [role="grid"]'))
              .filter(e => e.querySelector('[role="gridcell"]')).length >= n""",
        arg=n, timeout=LONG,
    )  # fmt: skip


def test_findings_show_tasks_rollouts_and_actions_as_text(look: Callable[..., Page], graph: gc.TrajectoryGraph) -> None:
    """In the table, and in the line of the chosen finding, which is Markdown."""
    page = look(list="lost")
    tables(page)
    innocent(page)
    cells = cells_of(page)
    assert cells[0] in {one_line(text, 40) for text in (*EVERY, "long")}
    assert cells[3] in {one_line(text) for text in EVERY}
    expect(page.get_by_text(re.compile("=cmd <img src=x onerror")).first).to_be_visible()
    batch, said = graph.batch, '[data-testid="stMarkdown"] p'
    for number in (*range(3, len(hostile.TEXTS), 8), *range(len(hostile.TEXTS), len(EVERY), 3)):
        group = batch.group_ids.index(EVERY[number])
        failed = int(((batch.group == group) & (batch.success == 0)).nonzero()[0][0])
        go_to(page, f"/?{urlencode({'list': 'lost', 'at': int(batch.order[batch.offsets[failed]])})}")
        stands(page, [f"{one_line(EVERY[number], 30)} · {one_line(batch.rollout_ids[failed], 24)}"], said)
    innocent(page)


def test_what_is_searched_for_is_text(look: Callable[..., Page]) -> None:
    text = hostile.TEXTS[9]
    page = look(list="lost", q=text)
    tables(page)
    assert page.get_by_role("textbox", name="Search").input_value() == text
    innocent(page)


def test_every_text_as_moment_and_as_step_of_the_graph(look: Callable[..., Page], graph: gc.TrajectoryGraph) -> None:
    """The tables beside the picture begin with the first ones; the panel shows one after the other."""
    page = look("graph", task="long")
    page.get_by_text("The same as tables").click()
    tables(page, 2)
    innocent(page)
    assert set(cells_of(page)) >= {one_line(text) for text in EVERY[:5]}
    group = graph.batch.group_ids.index("long")
    of_edge = graph.node_group[graph.edge_src]
    for kind, letter, owners in (("node", "n", graph.node_group[: graph.n_ordinary]), ("edge", "e", of_edge)):
        for number in (owners == group).nonzero()[0].tolist()[::8]:
            go_to(page, f"/graph?{urlencode({'task': 'long', 'sel': f'{letter}{number}'})}")
            expect(page.get_by_text(re.compile(rf"{kind} {number}$")).first).to_be_visible()
            first = int(((graph.src if kind == "node" else graph.edge) == number).nonzero()[0][0])
            texts = graph.batch.observation if kind == "node" else graph.batch.action
            stands(page, [graph.batch.text(int(texts[first]))], CODE)
    innocent(page)


@pytest.mark.parametrize("first", [0, 40])
def test_a_transcript_shows_what_was_seen_done_and_said(
    look: Callable[..., Page], graph: gc.TrajectoryGraph, first: int
) -> None:
    page = look("rollouts", task="long", rollout="through", whole="1", at=str(first))
    last = min(first + 40, len(EVERY))
    stands(page, list(EVERY[first:last]), TEXT)
    stands(page, [EVERY[(t + 7) % len(EVERY)] for t in range(first, last)], CODE)
    innocent(page)


def test_figures_and_two_rollouts_side_by_side_hold_text_only(look: Callable[..., Page]) -> None:
    page = look("rollouts", task="long", rollout="through", beside=EVERY[10], at="3")
    plot = page.locator(".js-plotly-plot .nsewdrag").first
    expect(plot).to_be_visible(timeout=LONG)
    box = plot.bounding_box()
    assert box is not None
    for part in (0.2, 0.5, 0.8):
        page.mouse.move(box["x"] + part * box["width"], box["y"] + 150)
        expect(page.locator(".hoverlayer text").first).to_be_attached()
        innocent(page)
    for menu in ("Task", "Rollout", "Beside it"):
        page.get_by_role("combobox", name=re.compile(f"{menu}$")).click()
        page.locator('[role="option"]').first.wait_for()
        innocent(page)
        page.keyboard.press("Escape")


def test_rules_and_merges_show_their_texts_as_text(look: Callable[..., Page]) -> None:
    page = look("states")
    tables(page, 2)
    page.get_by_text("The largest merges").wait_for()
    innocent(page)
    titles = texts_of(page, '[data-testid="stExpander"] summary')
    assert sum(any(title.endswith(f" · {one_line(text, 60)}") for text in EVERY) for title in titles) >= 5
    assert missing([EVERY[0]], texts_of(page, CODE)) == []


def test_two_settings_side_by_side(look: Callable[..., Page]) -> None:
    page = look("compare", at="12", rows="most")
    tables(page)
    expect(page.get_by_role("button", name="Transcript")).to_be_visible(timeout=LONG)
    innocent(page)
    assert set(cells_of(page)) & {one_line(text) for text in EVERY}


def test_files_their_names_and_what_was_rejected(look: Callable[..., Page], named: Path) -> None:
    page = look("open", look="1")
    tables(page)
    innocent(page)
    names = " ".join(texts_of(page, "button"))
    plain = [path.name for path in named.iterdir() if not re.search("[\0-\x1f\x7f]", path.name)]
    wanted = [name for name in plain if name[0] not in ".\\"]  # others are refused for their name
    assert len(wanted) > 60
    assert [name for name in wanted if one_line(name, 60) not in names] == []
    page = look("open", look="0")
    expect(page.get_by_text("First rollout, as it was understood")).to_be_visible(timeout=LONG)
    stands(page, list(EVERY[:3]), TEXT)
    innocent(page)


@pytest.mark.parametrize("where", ["", "graph", "compare", "rollouts", "states", "live", "open"])
def test_words_of_a_foreign_address_are_text(look: Callable[..., Page], where: str) -> None:
    image, icon, link = hostile.TEXTS[9], hostile.MARKDOWN[0], hostile.TEXTS[34]
    of_step = {"task": link, "rollout": icon, "sel": image, "box": link, "at": icon}
    page = look(where, a=image, rules=icon, lam=link, run=image, look=icon, file=f"r1:{image}", success_when=link, **of_step)
    expect(page.get_by_test_id("stAlert").first).to_be_visible()
    innocent(page)


def test_a_grouping_of_a_foreign_address_is_text(look: Callable[..., Page]) -> None:
    page = look(group_by=hostile.MARKDOWN[0])
    expect(page.get_by_test_id("stAlert").first).to_be_visible()
    innocent(page)


def take(page: Page, button: Any) -> tuple[str, bytes]:
    """What a button gives."""
    with page.expect_download(timeout=LONG) as waiting:
        button.click()
    return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()


def take_all(page: Page, n: int) -> dict[str, bytes]:
    """What the download buttons of the menu give, n at the least. A browser asks after the tenth file that one page gives."""
    buttons = page.get_by_test_id("stPopoverBody").get_by_test_id("stDownloadButton").get_by_role("button")
    files: dict[str, bytes] = {}
    while True:
        page.get_by_role("button", name="Take away").click()
        expect(buttons.nth(n - 1)).to_be_visible(timeout=LONG)
        innocent(page)
        begun, total = len(files), buttons.count()
        files |= dict(take(page, buttons.nth(number)) for number in range(begun, min(begun + 8, total)))
        if len(files) == total:
            return files
        page.reload()


def words_of(line: str) -> list[str]:
    """What a shell hands to the program `graft`."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    done = subprocess.run([bash, "-c", f"graft() {{ printf '%s\\0' \"$@\"; }}; {line}"], capture_output=True, check=True)
    return [word.decode() for word in done.stdout.split(b"\0")[:-1]]


def strings_of(lines: str) -> list[str]:
    """The strings of Python lines, which are read and not run."""
    return [node.value for node in ast.walk(ast.parse(lines)) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def no_formula(data: bytes) -> None:
    """No cell of a CSV file begins as a formula, numbers aside."""
    rows = list(csv.reader(io.StringIO(data.decode(), newline="")))
    cells = [cell for row in rows for cell in row if not re.fullmatch(r"-?[\d.]+(e-?\d+)?", cell)]
    assert len(rows) > 1 and not [cell for cell in cells if cell.lstrip().startswith(FORMULA)]
    assert any(cell.startswith("'") for cell in cells)


def open_from_disk(page: Page, watch: Any, folder: Path, files: dict[str, bytes]) -> list[str]:
    """Opens what a browser would show. It asks for nothing, holds no element or handler of a text; returns the names."""
    opened = {name: data for name, data in files.items() if name.endswith((".svg", ".html"))}
    for name, data in opened.items():
        path = folder / name
        path.write_bytes(data)
        watch.requests.clear()
        page.goto(path.as_uri())
        page.wait_for_timeout(300)
        assert set(watch.requests) == {path.as_uri()} and watch.page_errors == []
        watch.requests.clear()
        kinds = page.evaluate("Array.from(document.querySelectorAll('*'), (e) => e.localName)")
        assert not set(kinds) & {"a", "img", "image", "iframe", "object", "embed", "form", "link", "base", "video", "use"}
        assert kinds.count("script") == (3 if name.endswith(".html") and "report" not in name else 0)
        assert page.evaluate(HANDLERS) == []
    return list(opened)


def test_what_the_graph_page_gives_away(look: Callable[..., Page], watch: Any, evil: Path, tmp_path: Path) -> None:
    page = look("graph", task="long", sel="e0", at="0")
    png = take(page, page.get_by_role("button", name="PNG", exact=True))[1]
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and HOST not in png
    files = take_all(page, 6)
    words, lines = page.get_by_test_id("stPopoverBody").locator("code").all_inner_texts()
    assert words_of(words)[:2] == ["findings", evil.name]
    assert {evil.name, "long"} <= set(strings_of(lines))
    page.keyboard.press("Escape")
    page.get_by_text("My verdict, and a card to take away").click()
    page.get_by_role("button", name="Make a finding card").click()
    name, packed = take(page, page.get_by_role("button", name="Download the card"))
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        card = {inner: archive.read(inner) for inner in archive.namelist()}
    assert name.endswith(".zip") and {Path(inner).suffix for inner in card} == {".json", ".md", ".svg"}
    no_formula(next(data for inner, data in files.items() if inner.endswith(".csv")))
    ET.fromstring(next(data for inner, data in files.items() if inner.endswith(".graphml")))
    said = [json.loads(line) for line in next(d for n, d in files.items() if n.endswith(".jsonl")).split(b"\n")[:-1]]
    kept = pq.read_table(io.BytesIO(next(d for n, d in files.items() if n.endswith(".parquet")))).to_pylist()
    for rows in (said, kept):
        assert {row["observation"] for row in rows} >= set(EVERY) and {row["action"] for row in rows} >= set(EVERY)
    assert len(open_from_disk(page, watch, tmp_path, {**files, **card})) == 3


def test_what_findings_and_compare_give_away(look: Callable[..., Page], watch: Any, evil: Path, tmp_path: Path) -> None:
    page = look("compare", rows="most")
    files = take_all(page, 3)
    page = look(list="lost")
    files |= take_all(page, 8)
    assert words_of(page.get_by_test_id("stPopoverBody").locator("code").first.inner_text())[:2] == ["findings", evil.name]
    tables_made = [data for name, data in files.items() if name.endswith(".csv")]
    assert len(tables_made) == 3
    for data in tables_made:
        no_formula(data)
    rows = next(data for name, data in files.items() if name.endswith("lost.jsonl")).split(b"\n")[:-1]
    assert {json.loads(line)["group_id"] for line in rows} == {*EVERY, "long"}  # one failed rollout in each
    assert len(open_from_disk(page, watch, tmp_path, files)) == 1


def test_the_command_line_loses_nothing(evil: Path, tmp_path: Path) -> None:
    """What programs read is not guarded: it is read back equal."""
    batch = gc.load(str(evil))
    for ending in ("jsonl", "parquet"):
        out = tmp_path / f"again.{ending}"
        assert main(["convert", str(evil), "-o", str(out)]) == 0
        again = gc.load(str(out))
        for name in ("group_ids", "rollout_ids"):
            assert getattr(again, name) == getattr(batch, name)
        for name in ("observation", "action", "action_text"):
            both = [[of.text(int(t)) for t in getattr(of, name)] for of in (batch, again)]
            assert both[0] == both[1]
        for column in ("metadata", "task_family"):
            assert again.rollouts.column(column).to_pylist() == batch.rollouts.column(column).to_pylist()
    made = {}
    for ending in ("jsonl", "csv", "parquet"):
        out = tmp_path / f"credit.{ending}"
        assert main(["credit", str(evil), "--estimator", "graft_td", "-o", str(out)]) == 0
        made[ending] = out
    wanted = [(batch.group_ids[int(batch.group[r])], batch.rollout_ids[r]) for r in batch.step_rollout_rows.tolist()]
    with made["csv"].open(encoding="utf-8", newline="") as file:
        by_csv = [(row["group_id"], row["rollout_id"]) for row in csv.DictReader(file)]
    lines = made["jsonl"].read_text(encoding="utf-8").split("\n")[:-1]
    by_line = [(row["group_id"], row["rollout_id"]) for row in map(json.loads, lines)]
    by_column = [(row["group_id"], row["rollout_id"]) for row in pq.read_table(made["parquet"]).to_pylist()]
    assert by_csv == by_line == by_column == wanted
