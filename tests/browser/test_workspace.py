"""Rollouts and Compare in a real Chromium: keys, clicks on bars, brushing, and the way to the graph."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

import graft_core as gc
import graft_sample_data
from graft_core.rollouts import RolloutBatch

Visit = Callable[..., Page]
SLOW = 20_000  # milliseconds; parts of the page arrive one by one on a busy machine


@pytest.fixture
def start(visit: Visit, app: Any) -> Callable[[str], Page]:
    """Opens a page of the app on the sample data."""
    return lambda where: visit(app, where)


def batch() -> RolloutBatch:
    return gc.load(graft_sample_data.paths()[0])


def drawn(page: Page) -> None:
    """Waits for the first figure; its library comes with the first one."""
    expect(page.locator(".js-plotly-plot .nsewdrag").first).to_be_visible(timeout=SLOW)


def centre(page: Page, selector: str, number: int = 0) -> tuple[float, float]:
    target = page.locator(selector).nth(number)
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def asked(page: Page) -> dict[str, str]:
    return {name: words[0] for name, words in parse_qs(urlsplit(page.url).query).items()}


def test_the_menu_leads_to_both_pages(start: Callable[[str], Page]) -> None:
    page = start("")
    for name in ("Compare", "Rollouts"):
        page.get_by_text("More", exact=True).click()
        page.get_by_text(name, exact=True).click()
        page.wait_for_url(f"**/{name.lower()}**")
        drawn(page)


def test_keys_walk_and_a_bar_chooses_its_step(start: Callable[[str], Page], settle: Callable[[Page], None]) -> None:
    found = batch()
    rows = [str(int(r)) for r in found.order[: found.lengths[0]]]
    page = start(f"rollouts?at={rows[0]}")
    drawn(page)
    page.keyboard.press("j")
    page.wait_for_url(f"**at={rows[1]}*")
    settle(page)
    page.keyboard.press("k")
    page.wait_for_url(re.compile(rf"at={rows[0]}(&|$)"))
    settle(page)
    drawn(page)
    page.mouse.click(*centre(page, ".js-plotly-plot .bars .point path", 4))
    page.wait_for_url(re.compile(rf"at={rows[4]}(&|$)"))
    settle(page)
    page.keyboard.press("g")
    page.wait_for_url("**/graph?**")
    assert asked(page)["sel"] == f"e{int(gc.build_graph(found).edge[4])}"
    assert asked(page)["at"] == rows[4]


def test_the_same_moment_of_another_rollout_is_one_key_away(start: Callable[[str], Page]) -> None:
    found = batch()
    page = start("rollouts?at=0")
    expect(page.get_by_role("button", name="Same moment")).to_be_enabled(timeout=SLOW)
    page.keyboard.press("m")
    page.wait_for_url(lambda url: "at=0" not in url and "rollout=" in url)
    graph = gc.build_graph(found)
    position = int((found.order == int(asked(page)["at"])).nonzero()[0][0])
    assert graph.src[position] == graph.src[0]
    assert asked(page)["rollout"] == found.rollout_ids[int(found.step_rollout[position])]


def test_a_brushed_rectangle_and_a_chosen_point_are_in_the_address(
    start: Callable[[str], Page], settle: Callable[[Page], None]
) -> None:
    page = start("compare")
    drawn(page)
    box = page.locator(".js-plotly-plot .nsewdrag").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.55 * box["width"], box["y"] + 0.6 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.97 * box["height"], steps=8)
    page.mouse.up()
    page.wait_for_url("**box=**")
    settle(page)
    assert asked(page)["rows"] == "box"
    across = [float(x) for x in asked(page)["box"].split(",")[:2]]
    a, b = gc.estimate(batch(), "graft_td"), gc.estimate(batch(), "grpo")
    y0, y1 = (float(y) for y in asked(page)["box"].split(",")[2:])
    n = int(((a >= across[0]) & (a <= across[1]) & (b >= y0) & (b <= y1)).sum())
    assert n > 0
    expect(page.get_by_text(f"Brushed steps ({n:,})")).to_be_visible(timeout=SLOW)
    page.reload()
    expect(page.get_by_text(f"Brushed steps ({n:,})")).to_be_visible(timeout=SLOW)


def test_a_row_chooses_its_step_and_its_button_opens_the_graph(start: Callable[[str], Page]) -> None:
    page = start("compare")
    frame = page.get_by_test_id("stDataFrame").first
    expect(frame.locator("canvas").first).to_be_visible(timeout=SLOW)
    drawn(page)  # moves the table
    frame.scroll_into_view_if_needed()
    box = frame.locator("canvas").first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 18, box["y"] + 35 + 17)
    page.wait_for_url("**at=**")
    expect(page.get_by_role("button", name="Transcript")).to_be_visible(timeout=SLOW)
    row = asked(page)["at"]
    page.keyboard.press("g")
    page.wait_for_url("**/graph?**sel=e**")
    assert asked(page)["at"] == row


def test_no_sideways_scroll_at_1093(start: Callable[[str], Page], page: Page) -> None:
    page.set_viewport_size({"width": 1093, "height": 800})
    for where in ("rollouts", "rollouts?rollout=r1&beside=r5", "compare?at=12&a=path_gae&c_rules=history:1"):
        start(where)
        drawn(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 1093
