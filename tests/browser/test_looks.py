"""How the pages look, measured: contrast, width, clipped words, motion, and signs that read without colour."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from graph_picture import ask, wait_for
from looks import Seen, contrast, measured
from playwright.sync_api import Browser, Page, expect

import graft_core as gc
import graft_sample_data
from graft_core.constants import SIGN_TOLERANCE

PAGES = {
    "findings": "", "tasks that teach nothing": "?list=nothing", "a moment": "graph?task=cool+apple&sel=n0",
    "a step": "graph?task=cool+apple&sel=e2", "compare": "compare?at=12", "rollouts": "rollouts",
    "two rollouts": "rollouts?rollout=r1&beside=r5", "states": "states", "live": "live", "open": "open",
}  # fmt: skip
WIDTHS, THEMES = (1093, 1920), ("light", "dark")
TEXT, EDGE = 4.5, 2.9
GROUND = "getComputedStyle(document.querySelector('[data-testid=\"stApp\"]')).backgroundColor"


@pytest.fixture(scope="module")
def shared(chromium: Browser) -> Iterator[Page]:
    """One page for all measurements."""
    context = chromium.new_context(viewport={"width": 1093, "height": 900}, locale="en-US")
    context.set_default_timeout(20_000)
    yield context.new_page()
    context.close()


@pytest.fixture
def show(shared: Page, app: Any, settle: Callable[[Page], None]) -> Callable[[str], Page]:
    """Opens an address, waits for it and for the figures and tables that come after it."""

    def go(where: str) -> Page:
        shared.emulate_media(color_scheme="light", reduced_motion="no-preference")
        shared.set_viewport_size({"width": 1093, "height": 900})
        shared.goto(f"{app.url}/{where}")
        settle(shared)
        shared.wait_for_function("() => !document.querySelector('[data-testid=\"stSkeleton\"]')")
        return shared

    return go


def dress(page: Page, theme: str) -> None:
    """Light or dark, as the system wishes."""
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.wait_for_function(f"() => getComputedStyle(document.querySelector('.stApp')).colorScheme === '{theme}'")


def at_rest(page: Page, wanted: Callable[[Seen], bool]) -> Seen:
    """What is measured once the page has followed a change of width or theme; the last look where it never is as wanted."""
    begun = time.monotonic()
    while not wanted(seen := measured(page)) and time.monotonic() < begun + 8:
        page.wait_for_timeout(150)
    return seen


def good(seen: Seen) -> bool:
    """Everything a page has to be."""
    return not seen.weak and not seen.clipped and seen.sideways <= 0 and all(least >= TEXT for least in seen.tables)


@pytest.mark.parametrize("name", PAGES)
def test_words_can_be_read_and_nothing_is_cut_off(show: Callable[[str], Page], name: str) -> None:
    page = show(PAGES[name])
    page.wait_for_timeout(300)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for theme in THEMES:
            dress(page, theme)
            seen = at_rest(page, good)
            tables = min(seen.tables, default=float("nan"))
            print(
                f"\n{name}, {width} px, {theme}: {seen.texts} texts, lowest contrast {seen.least:.2f}, in tables {tables:.2f}, "
                f"{seen.sideways} px too wide"
            )
            assert seen.texts > 20
            assert seen.weak == [] and seen.clipped == [] and seen.sideways <= 0
            assert all(least >= TEXT for least in seen.tables)


def test_edges_stand_out_and_their_sign_reads_without_colour(show: Callable[[str], Page]) -> None:
    page = show("graph?task=cool+apple")
    graph = gc.build_graph(gc.load(graft_sample_data.paths()[0]))
    credit = gc.estimate(graph.batch, "graft_td")[graph.batch.order]
    count = np.bincount(graph.edge, minlength=graph.n_edges)
    mean = np.bincount(graph.edge, weights=credit, minlength=graph.n_edges) / count
    edges = np.flatnonzero(graph.node_group[graph.edge_src] == graph.batch.group_ids.index("cool apple")).tolist()
    for theme in THEMES:
        dress(page, theme)
        wait_for(page, "theme", theme)
        ground = page.evaluate(GROUND)
        lowest = min(contrast(ask(page, "colour", "edge", edge), ground) for edge in edges)
        print(f"\n{theme}: {len(edges)} edges, lowest contrast {lowest:.2f} on {ground}")
        assert lowest >= EDGE
    dashed = {edge for edge in edges if ask(page, "dashes", edge)}
    assert dashed == {edge for edge in edges if mean[edge] < -SIGN_TOLERANCE}
    assert 0 < len(dashed) < len(edges)


def test_bars_and_badges_show_their_sign_without_colour(show: Callable[[str], Page]) -> None:
    page = show("rollouts?task=cool+apple&rollout=r1&whole=1")
    expect(page.locator(".bars .point path").first).to_be_attached()
    batch = gc.load(graft_sample_data.paths()[0])
    places = zip(batch.rollout_ids, batch.group.tolist(), strict=True)
    row = list(places).index(("r1", batch.group_ids.index("cool apple")))
    start, end = batch.offsets[row : row + 2].tolist()
    both = [gc.estimate(batch, name)[batch.order][start:end] for name in ("graft_td", "grpo")]
    below = sum(int((credit < -SIGN_TOLERANCE).sum()) for credit in both)
    for theme in THEMES:
        dress(page, theme)
        fills = page.evaluate("Array.from(document.querySelectorAll('.bars .point path'), (e) => getComputedStyle(e).fill)")
        assert sum(fill.startswith("url") for fill in fills) == below > 0  # hatched
        assert all(contrast(fill, page.evaluate(GROUND)) >= EDGE for fill in fills if not fill.startswith("url"))
    badges = [text for text in page.locator(".stMarkdownBadge").all_inner_texts() if text.split()[-1][0] in "+-−"]
    assert len(badges) > 10
    for text in badges:
        assert ("▲" in text, "▼" in text) == (text.split()[-1][0] == "+", text.split()[-1][0] != "+")


def zoomed(page: Page) -> tuple[float, float]:
    """The scale of the picture in the frame after a key that zooms, and at rest."""
    page.evaluate("window.pictures[0].querySelector('.vis-network').focus()")
    page.keyboard.press("+")
    at_once = page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => done(window.pictures[0].graftGraph.view().scale)))"
    )
    page.wait_for_timeout(600)
    return float(at_once), float(ask(page, "view")["scale"])


def test_who_asked_for_less_motion_gets_none(show: Callable[[str], Page]) -> None:
    page = show("graph?task=cool+apple")
    before = float(ask(page, "view")["scale"])
    at_once, later = zoomed(page)
    assert before <= at_once < later  # without the wish the view glides
    page.emulate_media(reduced_motion="reduce")
    at_once, later = zoomed(page)
    assert at_once == pytest.approx(later) and later > before
    slow = """() => Array.from(document.querySelectorAll('*')).filter((e) => {
        const { transitionDuration, animationDuration, animationName } = getComputedStyle(e);
        const long = (words) => words.split(',').some((word) => parseFloat(word) > 0.001);
        return long(transitionDuration) || (animationName !== 'none' && long(animationDuration));
      }).length"""
    page.get_by_role("button", name="Expert").click()
    expect(page.get_by_test_id("stPopoverBody")).to_be_visible()
    running = "document.getAnimations().filter((a) => a.playState === 'running').length"
    quiet = page.evaluate(slow) + page.evaluate(running)
    page.emulate_media(reduced_motion="no-preference")
    print(f"\nelements that would move: {page.evaluate(slow)}, with less motion {quiet}")
    assert quiet == 0 and page.evaluate(slow) > 0
