"""The app in a real Chromium, from the first screen to a copied address."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graph_picture import ask
from playwright.sync_api import Page, expect

import graft_core as gc
import graft_sample_data


def edges_of(task: str) -> list[int]:
    """Edge numbers of a task of the sample data."""
    graph = gc.build_graph(gc.load(graft_sample_data.paths()[0]))
    group = graph.batch.group_ids.index(task)
    return [e for e in range(graph.n_edges) if graph.node_group[graph.edge_src[e]] == group][:40]


def edge_colours(page: Page, edges: list[int]) -> list[str]:
    return [ask(page, "colour", "edge", e) for e in edges]


def click(page: Page, kind: str, number: int) -> None:
    at = ask(page, "screen", kind, number)
    corner = page.evaluate("() => { const b = window.pictures[0].getBoundingClientRect(); return [b.x, b.y]; }")
    page.mouse.click(corner[0] + at["x"], corner[1] + at["y"])


def choose_row(page: Page, row: int) -> None:
    box = page.get_by_test_id("stDataFrame").locator("canvas").first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 18, box["y"] + 35 * (row + 1) + 17)


def test_opens_on_the_sample_data_and_a_row_leads_to_its_graph(visit: Callable[..., Page], app: Any) -> None:
    page = visit(app)
    expect(page.get_by_text("142 good steps in failed rollouts")).to_be_visible()
    expect(page.get_by_test_id("stDataFrame").locator("canvas").first).to_be_visible()
    choose_row(page, 0)
    page.wait_for_url("**at=**")
    page.get_by_role("button", name="Graph").click()
    page.wait_for_url("**/graph?**sel=e*")
    expect(page.get_by_text("open microwave", exact=True)).to_be_visible()
    assert ask(page, "current")["kind"] == "edge"


def test_lambda_recolours_and_no_node_moves(visit: Callable[..., Page], app: Any, settle: Callable[[Page], None]) -> None:
    page = visit(app, "graph?a=path_gae&task=cool+apple")
    before, places = edge_colours(page, edges_of("cool apple")), ask(page, "positions")
    slider = page.get_by_role("slider").first
    slider.focus()
    for _ in range(12):
        slider.press("ArrowLeft")
    page.wait_for_url("**lam=0.35**")
    settle(page)
    assert edge_colours(page, edges_of("cool apple")) != before
    assert ask(page, "positions") == places


def test_flip_by_key_shows_the_other_credit(visit: Callable[..., Page], app: Any, settle: Callable[[Page], None]) -> None:
    page = visit(app, "graph?task=cool+apple")
    before, places = edge_colours(page, edges_of("cool apple")), ask(page, "positions")
    click(page, "node", 0)
    page.wait_for_url("**sel=n0**")
    page.keyboard.press("x")
    page.wait_for_url("**side=b**")
    settle(page)
    assert edge_colours(page, edges_of("cool apple")) != before
    assert ask(page, "positions") == places


def test_a_node_click_shows_its_actions(visit: Callable[..., Page], app: Any) -> None:
    page = visit(app, "graph?task=cool+apple")
    click(page, "node", 0)
    expect(page.get_by_text("Rollouts through it:")).to_be_visible()
    expect(page.get_by_text("chance", exact=True)).to_be_visible()


def test_a_copied_address_restores_the_view(visit: Callable[..., Page], app: Any) -> None:
    page = visit(app, "graph?a=path_gae&lam=0.35&task=heat+mug&side=b&sel=n55")
    chosen, colours = ask(page, "current"), edge_colours(page, edges_of("heat mug"))
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    assert ask(page, "current") == chosen
    assert edge_colours(page, edges_of("heat mug")) == colours


def test_the_address_survives_the_navigation(visit: Callable[..., Page], app: Any) -> None:
    page = visit(app, "?a=path_gae&lam=0.35")
    page.get_by_role("link", name="Graph").click()
    page.wait_for_url("**/graph?**lam=0.35**")
    assert "a=path_gae" in page.url


def test_no_sideways_scroll_at_1093(visit: Callable[..., Page], app: Any, page: Page) -> None:
    page.set_viewport_size({"width": 1093, "height": 800})
    for where in ("", "graph?task=cool+apple&sel=n0"):
        visit(app, where)
        assert page.evaluate("document.documentElement.scrollWidth") <= 1093


def test_the_time_to_a_graph_of_300_nodes_is_printed(
    start_app: Callable[..., Any], visit: Callable[..., Page], tmp_path_factory: Any
) -> None:
    """On a batch whose first task has about 300 moments; 3 s are promised on two quiet cores."""
    import orjson

    path = Path(tmp_path_factory.mktemp("big")) / "big.jsonl"
    rows = []
    for r in range(32):
        for t in range(20):
            row = {"group_id": "big", "rollout_id": f"r{r}", "step": t, "observation": f"room {t} {(r * 7 + t * r) % 17}"}
            rows.append({**row, "action": f"go {r % 5}", "outcome": float(r % 3 == 0)})
    path.write_bytes(b"\n".join(orjson.dumps(row) for row in rows))
    app = start_app([path])
    visit(app, "graph")  # the first visit starts the server's compiled code
    begun = time.perf_counter()
    page = visit(app, "graph")
    n = len(ask(page, "positions"))
    seconds = time.perf_counter() - begun
    print(f"\n{n} nodes: graph visible after {seconds:.2f} s")
    assert 250 <= n <= 350
