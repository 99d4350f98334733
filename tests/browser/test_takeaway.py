"""What was taken away, opened from disk in a real Chromium: it draws, asks for nothing and runs no rollout text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import graft_core as gc
from graft_app import server
from graft_core.insight import Findings
from graft_core.provenance import provenance
from graft_core.takeaway.drawn import drawn
from graft_core.takeaway.html import graph_html
from graft_core.takeaway.report import report_html
from graft_core.takeaway.svg import graph_svg

sys.path.append(str(Path(__file__).resolve().parents[1] / "graft_core" / "support"))
import hostile

MENUS = """
from graft_app import batch as table
from graft_app.views import takeaway
from graft_core.settings import LOOK
from graft_core.takeaway.drawn import drawn

opened = table.choose()
found = opened.findings(LOOK)
takeaway.graph_menu(opened, LOOK, found, 0, *drawn(found, 0))
takeaway.findings_menu(opened, LOOK, found)
"""
INKED = """() => {
  const canvas = document.querySelector("#graph canvas");
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3]) colours.add(pixels.slice(at, at + 3).join());
  return colours.size;
}"""


@pytest.fixture(scope="module")
def evil_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile.write(tmp_path_factory.mktemp("evil"))


@pytest.fixture(scope="module")
def evil(evil_file: Path) -> Findings:
    return gc.findings(gc.load(str(evil_file)), shuffles=20)


@pytest.fixture
def from_disk(page: Page, watch: Any, tmp_path: Path) -> Callable[..., Page]:
    """`from_disk("name.html", text)` opens a file; afterwards that was the only request, and nothing complained."""

    def go(name: str, text: str) -> Page:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        page.goto(path.as_uri())
        page.wait_for_timeout(400)
        assert set(watch.requests) == {path.as_uri()}
        assert watch.console_errors == [] and watch.page_errors == [] and watch.dialogs == []
        watch.requests.clear()
        return page

    return go


def test_the_standalone_page_draws_and_shows_texts_as_text(evil: Findings, from_disk: Callable[..., Page], watch: Any) -> None:
    structure, painted = drawn(evil, 0)
    page = from_disk("graph.html", graph_html(structure, painted, title=hostile.TEXTS[0]))
    page.wait_for_selector(f'#graph[data-drawn="{structure.node_id.size}"]')
    assert page.evaluate(INKED) > 20
    expect(page.locator("h1")).to_have_text(hostile.TEXTS[0])
    assert page.title() == hostile.TEXTS[0]
    where = page.evaluate("network.getPositions()")
    for node, x, y in zip(structure.node_id.tolist(), structure.x.tolist(), structure.y.tolist(), strict=True):
        assert where[str(node)] == pytest.approx({"x": x, "y": y}, abs=1)
    at = page.evaluate("(id) => network.canvasToDOM(network.getPosition(id))", structure.node_id.tolist()[0])
    frame = page.locator("#graph").bounding_box()
    assert frame is not None
    page.mouse.move(frame["x"] + at["x"], frame["y"] + at["y"])
    page.mouse.move(frame["x"] + at["x"] + 1, frame["y"] + at["y"])
    tip = page.locator(".vis-tooltip")
    expect(tip).to_be_visible()
    assert "<script>alert(document.domain)</script>" in tip.inner_text()
    assert page.locator("img, iframe, a, form, object, embed, video, link, base").count() == 0
    assert page.locator("script").count() == 3 and watch.requests == []


def test_a_script_that_got_into_the_page_would_not_run(evil: Findings, from_disk: Callable[..., Page], watch: Any) -> None:
    """The policy is a second wall: were the escaping broken, the browser would still refuse."""
    page = from_disk("graph.html", graph_html(*drawn(evil, 0)))
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.broken = true";
          document.body.append(script);
          const image = new Image();
          image.src = "/x.png";
          image.setAttribute("onerror", "window.broken = true");
          document.body.append(image);
        }"""
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.broken") is None
    assert any("Content Security Policy" in text for text in watch.console_errors)
    watch.requests.clear()


def test_the_report_is_a_page_without_scripts(evil: Findings, evil_file: Path, from_disk: Callable[..., Page]) -> None:
    page = from_disk("report.html", report_html(evil, provenance([str(evil_file)], {}), [0, 1]))
    assert page.locator("script, img, iframe, a, form, object, embed, video, link, base").count() == 0
    assert page.locator("svg").count() == 2
    expect(page.locator("h2").last).to_have_text("How this was made")
    page.set_viewport_size({"width": 1093, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box = page.locator("svg").first.bounding_box()
    assert box is not None and box["width"] > 400 and box["height"] > 100


def test_the_picture_is_a_document_of_shapes(evil: Findings, from_disk: Callable[..., Page]) -> None:
    structure, painted = drawn(evil, 1)
    page = from_disk("graph.svg", graph_svg(structure, painted, title=hostile.TEXTS[13]))
    assert page.evaluate("document.documentElement.localName") == "svg"
    assert page.evaluate("document.querySelectorAll('script, a, image, use, foreignObject, style').length") == 0
    assert page.evaluate("document.querySelectorAll('g > path').length") == structure.edge_id.size


def test_a_notebook_shows_the_graph_in_a_sealed_frame(evil: Findings, from_disk: Callable[..., Page], watch: Any) -> None:
    shown = gc.show(evil.graph, 0)
    page = from_disk("notebook.html", f"<!DOCTYPE html><title>cell</title>{shown._repr_html_()}")
    inside = page.frames[1]
    inside.wait_for_selector("#graph[data-drawn]")
    assert inside.evaluate("(() => { try { return parent.document.title; } catch { return 'sealed'; } })()") == "sealed"


def test_downloads_in_the_app(
    start_script: Callable[..., Any], visit: Callable[..., Page], settle: Callable[[Page], None], evil_file: Path,
    tmp_path: Path,
) -> None:
    script = tmp_path / "menus.py"
    script.write_text(MENUS, encoding="utf-8")
    page = visit(start_script(script, {server.PATHS_VARIABLE: json.dumps([str(evil_file)])}))
    page.get_by_role("button", name="Take away").first.click()
    settle(page)
    for label, ending in (("SVG", ".svg"), ("GraphML", ".graphml"), ("CSV", ".csv"), ("Parquet", ".parquet")):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=label, exact=False).first.click()
        got = waiting.value
        assert got.suggested_filename.endswith(ending) and Path(got.path()).stat().st_size > 1000
    page.get_by_text("Leave texts out").click()
    page.wait_for_timeout(1500)  # until the buttons belong to the new run
    settle(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="SVG").first.click()
    assert "onerror" not in Path(waiting.value.path()).read_text(encoding="utf-8").partition("</title>")[2].partition("<g")[2]
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Take away").last.click()
    settle(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Report").click()
    assert Path(waiting.value.path()).read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
