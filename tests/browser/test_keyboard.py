"""Every page by keyboard alone: Tab, Shift + Tab, Enter, Space, arrows and the letters that the pages name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from graph_picture import ask
from keys import focused, tab_to
from playwright.sync_api import Page, expect

import graft_core as gc
import graft_sample_data

Start = Callable[[str], Page]
LONG = 40_000
STOPS = {"": 30, "graph?task=cool+apple&sel=e2": 35, "compare?at=12": 30, "rollouts": 25, "states": 30, "live": 25}


@pytest.fixture
def start(page: Page, visit: Callable[..., Page], app: Any, settle: Callable[[Page], None]) -> Start:
    """Opens a page on the sample data; what comes late is there too."""

    def go(where: str) -> Page:
        page.set_default_timeout(LONG)
        visit(app, where)
        page.wait_for_function("() => !document.querySelector('[data-testid=\"stSkeleton\"]')")
        settle(page)
        return page

    return go


def asked(page: Page) -> dict[str, str]:
    return {name: words[0] for name, words in parse_qs(urlsplit(page.url).query).items()}


@pytest.mark.parametrize("where", STOPS)
@pytest.mark.audit  # 31 to 82 stops on each page: minutes on two cores
def test_the_focus_is_seen_at_every_stop_and_caught_at_none(start: Start, where: str) -> None:
    page = start(where)
    page.wait_for_timeout(1000)
    stops = []
    for _ in range(160):
        page.keyboard.press("Tab")
        stop = focused(page)
        if stop is None:
            break
        stops.append(stop)
    else:
        pytest.fail(f"Tab never leaves the page: {[str(stop) for stop in stops[-12:]]}")
    print(f"\n/{where}: {len(stops)} stops")
    assert len(stops) >= STOPS[where]
    assert [str(stop) for stop in stops if not stop.seen] == []
    assert [str(stop) for stop in stops if not (stop.big and stop.inside)] == []
    assert [stop for stop in stops if not stop.name and stop.role in ("button", "input", "combobox", "radio", "slider")] == []
    page.keyboard.press("Shift+Tab")
    back = focused(page)
    assert back is not None and str(back) in {str(stop) for stop in stops}


def test_the_navigation_leads_to_every_page(start: Start) -> None:
    page = start("")
    tab_to(page, "a Graph")
    page.keyboard.press("Enter")
    page.wait_for_url("**/graph**")
    expect(page.get_by_role("combobox", name="Credit A")).to_have_value("graph TD", timeout=LONG)  # as on the page before
    for name in ("Compare", "Rollouts", "States", "Live", "Open"):
        tab_to(page, "button More")
        page.keyboard.press("Enter")
        expect(page.get_by_role("menuitem", name=name, exact=True)).to_be_visible()
        tab_to(page, f"menuitem {name}$", key="ArrowDown", most=8)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/{name.lower()}**")
    tab_to(page, "a Findings")
    page.keyboard.press("Enter")
    expect(page.get_by_text("good steps in failed rollouts").first).to_be_visible(timeout=LONG)


def test_a_finding_is_chosen_and_its_graph_opened(start: Start) -> None:
    page = start("")
    tab_to(page, "Skip to main content", most=2)
    page.keyboard.press("Enter")
    tab_to(page, "button .*Open my rollouts", most=4)  # the navigation was jumped over
    tab_to(page, "table")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Space")
    page.wait_for_url("**at=**")
    row = asked(page)["at"]
    tab_to(page, r"button .*Graph")
    page.keyboard.press("Enter")
    page.wait_for_url("**/graph?**")
    assert asked(page)["at"] == row
    batch = gc.load(graft_sample_data.paths()[0])
    step = int((batch.order == int(row)).nonzero()[0][0])
    assert asked(page)["sel"] == f"e{int(gc.build_graph(batch).edge[step])}"
    assert ask(page, "current")["kind"] == "edge"


def test_lambda_and_the_expert_drawer(start: Start) -> None:
    page = start("?a=path_gae")
    tab_to(page, "slider")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.wait_for_url("**lam=0.8**")
    tab_to(page, "button .*Expert", key="Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("stPopoverBody")).to_be_visible()
    tab_to(page, "offer all estimators")
    page.keyboard.press("Space")
    page.wait_for_url("**all=1**")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("stPopoverBody")).to_be_hidden()
    assert "Expert" in str(focused(page))


def test_a_menu_is_opened_and_answered_by_arrows(start: Start) -> None:
    page = start("states")
    tab_to(page, "combobox Two moments are the same when")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**rules=**")


def test_the_picture_is_walked_flipped_and_left(start: Start, settle: Callable[[Page], None]) -> None:
    page = start("graph?task=cool+apple")
    ask(page, "positions")
    tab_to(page, "application Graph")
    graph = gc.build_graph(gc.load(graft_sample_data.paths()[0]))
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**sel=n**")
    node = int(asked(page)["sel"][1:])
    page.keyboard.press("ArrowDown")
    page.wait_for_url("**sel=e**")
    edge = int(asked(page)["sel"][1:])
    assert graph.edge_src[edge] == node  # the next action from there
    page.keyboard.press("ArrowRight")
    page.wait_for_url(f"**sel=n{int(graph.edge_dst[edge])}**")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(f"**sel=n{node}**")
    page.keyboard.press("x")
    page.wait_for_url("**side=b**")
    settle(page)
    page.keyboard.press("n")
    page.wait_for_url("**at=**")  # the same moment in another rollout
    batch, row = graph.batch, int(asked(page)["at"])
    assert graph.src[int((batch.order == row).nonzero()[0][0])] == node
    settle(page)
    page.keyboard.press("/")
    assert "Find in the graph" in str(focused(page))
    tab_to(page, "application Graph")
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "sel=" not in url)
    assert "application" not in str(tab_to(page, ".", most=3)[-1])  # and out again


def test_a_step_of_a_comparison_is_chosen_and_read(start: Start) -> None:
    page = start("compare")
    expect(page.get_by_test_id("stDataFrame").first.locator("canvas").first).to_be_visible(timeout=LONG)
    tab_to(page, "table")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Space")
    page.wait_for_url("**at=**")
    row = asked(page)["at"]
    expect(page.get_by_role("button", name="Transcript")).to_be_visible(timeout=LONG)
    tab_to(page, "button .*Transcript", key="Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/rollouts?**")
    assert asked(page)["at"] == row


def test_a_rollout_is_read_step_by_step(start: Start, settle: Callable[[Page], None]) -> None:
    page = start("rollouts?at=0")
    batch = gc.load(graft_sample_data.paths()[0])
    rows = batch.order[: batch.lengths[0]].tolist()
    tab_to(page, "button .*StepJ")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"at={rows[1]}(&|$)"))
    settle(page)
    tab_to(page, "button .*RolloutN", most=6)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: f"rollout={batch.rollout_ids[0]}&" not in f"{url}&")


def test_a_run_is_started_and_stopped(
    visit: Callable[..., Page], start_app: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    runs = tmp_path_factory.getbasetemp() / "live_runs"
    page = visit(start_app([], {"GRAFT_RUNS": str(runs)}), "live")
    tab_to(page, "button .*Clean keys")
    page.keyboard.press("Enter")
    page.wait_for_url("**run=key-door-**")
    stop = page.get_by_role("button", name="Stop")
    expect(stop).to_be_visible(timeout=LONG)
    expect(page.get_by_text(re.compile(r"of [\d,]+ updates"))).to_be_visible(timeout=LONG)
    tab_to(page, "button stop ?Stop")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Continue")).to_be_visible(timeout=LONG)


def test_a_file_is_looked_at_and_put_on_the_table(
    visit: Callable[..., Page], start_app: Callable[..., Any], vectors: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.jsonl").write_bytes((vectors / "hand.jsonl").read_bytes())
    (tmp_path / "other.jsonl").write_bytes((vectors / "mixed.jsonl").read_bytes())
    page = visit(start_app([tmp_path]), "open")
    tab_to(page, "button .*other")
    page.keyboard.press("Enter")
    page.wait_for_url("**look=**other.jsonl**")
    expect(page.get_by_role("button", name="Use this batch")).to_be_enabled(timeout=LONG)
    tab_to(page, "button .*Use this batch")
    page.keyboard.press("Enter")
    page.wait_for_url("**file=**other.jsonl**")
    expect(page.get_by_text("other.jsonl").first).to_be_visible(timeout=LONG)
