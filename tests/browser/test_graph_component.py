"""The graph component in a real browser: clicks, colours, keys, themes, hostile text, and what it asks of the net."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from graph_hands import Draw, ask, at_rest, click, move_lambda, said, settled, spot, zoom_in
from graph_picture import FIND
from playwright.sync_api import Page, expect


def all_colours(page: Page) -> dict[str, str]:
    return {str(node): ask(page, "colour", "node", int(node)) for node in ask(page, "positions")}


@pytest.mark.parametrize("n", [300, 2000])
def test_first_paint_click_and_recolour_times_are_printed(page: Page, draw: Draw, n: int) -> None:
    cold = draw(f"n={n}&max=2000")
    seconds = draw(f"n={n}&max=2000")
    assert len(ask(page, "positions")) > 0.95 * n
    begun = time.perf_counter()
    click(page, "node", 0)
    said(page, "selected: node 0")
    clicked = time.perf_counter() - begun
    before = ask(page, "colour", "node", 41)
    begun = time.perf_counter()
    move_lambda(page)
    page.wait_for_function("old => window.pictures[0].graftGraph.colour('node', 41) !== old", arg=before)
    recoloured = time.perf_counter() - begun
    print(
        f"\n{n} nodes: first paint {cold:.2f} s (data made on the way), {seconds:.2f} s (again); "
        f"click to page {clicked:.2f} s; lambda to colour {recoloured:.2f} s"
    )


def test_a_click_selects_a_node_an_edge_and_nothing(page: Page, draw: Draw) -> None:
    draw("n=12")
    click(page, "node", 6)
    said(page, "selected: node 6")
    click(page, "edge", 4)
    said(page, "selected: edge 4")
    corner = page.evaluate("() => { const b = window.pictures[0].getBoundingClientRect(); return [b.x, b.y]; }")
    page.mouse.click(corner[0] + 6, corner[1] + 6)
    said(page, "selected: nothing")


def test_edges_answer_clicks_on_their_middles(page: Page, draw: Draw) -> None:
    """Curves, parallel edges and self loops: wherever a middle lies apart from the others, the click names the edge."""
    draw("n=12")
    middles = {n: spot(page, "edge", n) for n in range(30)}
    apart = [n for n, (x, y) in middles.items() if all(abs(x - a) + abs(y - b) > 22 for m, (a, b) in middles.items() if m != n)]
    found = {}
    for n in apart:
        page.keyboard.press("Escape")
        page.mouse.click(*middles[n])
        page.wait_for_function("() => window.pictures[0].graftGraph.current() !== null")
        found[n] = ask(page, "current")
    assert len(found) >= 5
    wrong = {n: what for n, what in found.items() if what != {"kind": "edge", "id": n}}
    assert len(wrong) <= 1, wrong  # a crossing edge may run through one of the middles


def test_new_colours_move_nothing(page: Page, draw: Draw) -> None:
    draw("n=60")
    zoom_in(page, 12)
    places, view, colours = ask(page, "positions"), ask(page, "view"), all_colours(page)
    edges = [ask(page, "colour", "edge", n) for n in range(40)]
    move_lambda(page, 2)
    page.wait_for_function("old => window.pictures[0].graftGraph.colour('node', 12) !== old", arg=colours["12"])
    settled(page)
    assert ask(page, "positions") == places
    assert ask(page, "view") == view
    changed = sum(colours[node] != colour for node, colour in all_colours(page).items())
    assert changed > 30
    assert sum(ask(page, "colour", "edge", n) != edges[n] for n in range(40)) > 20


def test_a_negative_edge_is_dashed_and_a_positive_one_is_not(page: Page, draw: Draw) -> None:
    draw("n=60")
    dashes = {n: ask(page, "dashes", n) for n in range(20)}
    inks = {n: ask(page, "colour", "edge", n) for n in range(20)}
    assert dashes[3] and dashes[3] != dashes[4]  # edge 3 has no credit: dotted
    assert inks[3] == "#969696"
    assert dashes[5] is False and inks[5] == "#969696"  # edge 5 has credit 0
    red = {n: int(ink[1:3], 16) > int(ink[5:7], 16) for n, ink in inks.items() if n % 5 and n != 3}
    assert any(red.values()) and not all(red.values())
    assert all(bool(dashes[n]) is is_red for n, is_red in red.items())


def test_the_wheel_scrolls_the_page_and_zooms_only_with_ctrl(page: Page, draw: Draw) -> None:
    page.set_viewport_size({"width": 1093, "height": 760})
    draw("n=60")
    page.mouse.move(*spot(page, "node", 0))
    before = ask(page, "view")["scale"]
    page.mouse.wheel(0, 200)
    page.wait_for_function("() => document.querySelector('[data-testid=stMain]').scrollTop > 100")
    assert ask(page, "view")["scale"] == before
    zoom_in(page, 0)
    assert ask(page, "view")["scale"] > before


def test_the_keyboard_walks_along_edges(page: Page, draw: Draw) -> None:
    draw("n=60")
    picture = page.get_by_role("application")
    picture.focus()
    picture.press("ArrowRight")
    said(page, "selected: node 0")  # the start
    picture.press("ArrowDown")
    expect(page.get_by_text(re.compile("selected: edge"))).to_be_visible()
    first = ask(page, "current")
    picture.press("ArrowDown")
    second = ask(page, "current")
    assert second["kind"] == "edge" and second != first
    picture.press("ArrowUp")
    assert ask(page, "current") == first
    picture.press("ArrowRight")
    expect(page.get_by_text(re.compile("selected: node [1-9]"))).to_be_visible()
    assert page.evaluate("() => window.pictures[0].contains(window.pictures[0].getRootNode().activeElement)")
    picture.press("ArrowLeft")
    said(page, "selected: node 0")
    picture.press("Escape")
    said(page, "selected: nothing")
    picture.press("x")
    said(page, "flips: 1")
    picture.press("x")
    said(page, "flips: 2")


def test_the_page_selects_a_node_and_brings_it_into_view(page: Page, draw: Draw) -> None:
    draw("n=300")
    zoom_in(page, 0, times=6)
    wanted = max(ask(page, "positions").items(), key=lambda item: item[1]["x"])[0]
    width = page.evaluate("() => window.pictures[0].clientWidth")
    assert ask(page, "screen", "node", int(wanted))["x"] > width  # outside the picture
    box = page.get_by_label("select node")
    box.fill(wanted)
    box.press("Enter")
    page.wait_for_function("id => window.pictures[0].graftGraph.current()?.id === id", arg=int(wanted))
    assert 0 < at_rest(page, int(wanted)) < width
    click(page, "node", int(wanted))
    said(page, f"selected: node {wanted}")


def test_two_pictures_share_a_structure_and_a_selection(page: Page, draw: Draw) -> None:
    draw("n=60&panels=2")
    assert page.evaluate("() => window.pictures.length") == 2
    assert ask(page, "positions") == ask(page, "positions", picture=1)
    click(page, "node", 20)
    said(page, "selected: node 20")
    page.wait_for_function("() => window.pictures[1].graftGraph.current()?.id === 20")


def test_hostile_text_stays_text(page: Page, draw: Draw, watch: Any) -> None:
    draw("n=60&hostile=1")
    for node in (0, 3, 6, 9, 12):
        page.mouse.move(*spot(page, "node", node))
        page.wait_for_timeout(350)
    for edge in (0, 4, 8):
        page.mouse.move(*spot(page, "edge", edge))
        page.wait_for_timeout(350)
    page.mouse.move(*spot(page, "node", 0))
    tip = page.locator(".vis-tooltip").first
    expect(tip).to_contain_text("<img src=x onerror")
    click(page, "node", 0)
    said(page, "selected: node 0")
    assert page.evaluate("() => window.__ran") is None
    assert watch.page_errors == []
    assert page.locator(".graft-panel img, .graft-panel script").count() == 0


def test_a_graph_in_a_hidden_tab_is_fitted_when_it_appears(page: Page, graphs: str) -> None:
    page.goto(f"{graphs}/?n=60&tab=1")
    settled(page)
    page.get_by_role("tab", name="graph").click()
    page.wait_for_function(FIND)
    page.wait_for_timeout(300)
    xs = [ask(page, "screen", "node", int(node))["x"] for node in ask(page, "positions")]
    assert min(xs) > 0 and max(xs) < 1300 and max(xs) - min(xs) > 700


def test_resizing_fits_again_until_the_reader_moves_the_view(page: Page, draw: Draw) -> None:
    draw("n=60")
    page.set_viewport_size({"width": 900, "height": 800})
    page.wait_for_timeout(600)
    xs = [ask(page, "screen", "node", int(node))["x"] for node in ask(page, "positions")]
    assert min(xs) > 0 and max(xs) < 800
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")


def test_a_change_of_theme_keeps_the_view_and_changes_the_inks(page: Page, draw: Draw) -> None:
    page.emulate_media(color_scheme="light")
    draw("n=60")
    zoom_in(page, 12)
    view = ask(page, "view")
    assert ask(page, "theme") == "light"
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("() => window.pictures[0].graftGraph.theme() === 'dark'")
    assert ask(page, "view") == view


def test_the_picture_downloads_as_png(page: Page, draw: Draw) -> None:
    draw("n=60")
    with page.expect_download() as loading:
        page.get_by_role("button", name="PNG").click()
    saved = Path(loading.value.path()).read_bytes()
    assert saved[:8] == b"\x89PNG\r\n\x1a\n" and len(saved) > 10_000
    assert loading.value.suggested_filename == "graph.png"


def test_buttons_zoom_and_fit_without_motion_where_none_is_wanted(page: Page, draw: Draw) -> None:
    page.emulate_media(reduced_motion="reduce")
    draw("n=60")
    before = ask(page, "view")["scale"]
    page.get_by_role("button", name="Zoom in").click()
    assert ask(page, "view")["scale"] == pytest.approx(1.25 * before)  # at once
    page.get_by_role("button", name="Fit").click()
    assert ask(page, "view")["scale"] == pytest.approx(before)


def test_only_a_change_of_colour_travels(page: Page, graphs: str) -> None:
    sizes: list[int] = []
    page.on(
        "websocket",
        lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame))),
    )
    page.goto(f"{graphs}/?n=300")
    page.wait_for_function(FIND)
    settled(page)
    first = sum(sizes)
    sizes.clear()
    move_lambda(page)
    page.wait_for_timeout(800)
    recolour = sum(sizes)
    sizes.clear()
    page.get_by_role("button", name="unrelated").click()
    page.wait_for_timeout(800)
    print(f"\n300 nodes: first load {first / 1024:.0f} KB, recolour {recolour / 1024:.1f} KB, other {sum(sizes) / 1024:.1f} KB")
    assert first > 100_000
    assert recolour < 15 * 1024
    assert sum(sizes) < 15 * 1024


def test_a_picture_that_goes_is_taken_down_and_comes_back(page: Page, draw: Draw, watch: Any) -> None:
    draw("n=60")
    click(page, "node", 5)
    said(page, "selected: node 5")
    for _ in range(3):
        page.get_by_text("away", exact=True).click()
        expect(page.locator(".graft-graph canvas")).to_have_count(0)
        assert page.evaluate("() => window.pictures[0].graftGraph.ready()") is False  # the old one is closed
        page.get_by_text("away", exact=True).click()
        page.wait_for_function(FIND)
        expect(page.locator(".graft-graph canvas")).to_have_count(1)
    assert watch.page_errors == []


def test_another_graph_under_the_same_key_replaces_the_first(page: Page, draw: Draw, watch: Any) -> None:
    draw("n=240")
    click(page, "node", 100)
    said(page, "selected: node 100")
    many = len(ask(page, "positions"))
    page.get_by_text("smaller", exact=True).click()
    page.wait_for_function("() => Object.keys(window.pictures[0].graftGraph.positions()).length < 100")
    said(page, "selected: nothing")  # a selection belongs to its graph
    xs = [ask(page, "screen", "node", int(node))["x"] for node in ask(page, "positions")]
    assert min(xs) > 0 and max(xs) < page.evaluate("() => window.pictures[0].clientWidth")
    page.get_by_text("smaller", exact=True).click()
    page.wait_for_function("n => Object.keys(window.pictures[0].graftGraph.positions()).length === n", arg=many)
    expect(page.locator(".graft-graph canvas")).to_have_count(1)
    assert watch.page_errors == []
