"""Live in a real Chromium: a run is started, its curve and graph grow, it stops, outlives a reload and goes on."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from graft_core.live import keep

Visit = Callable[..., Page]
LONG = 60_000


@pytest.fixture
def live(visit: Visit, start_app: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[Page, Path]:
    """The Live page of a server whose runs lie in a folder of the test."""
    runs = tmp_path_factory.getbasetemp() / "live_runs"
    page = visit(start_app([], {"GRAFT_RUNS": str(runs)}), "live")
    return page, runs


def done(page: Page) -> int:
    """Updates that the progress bar tells of."""
    found = re.search(r"([\d,]+) of [\d,]+ updates", page.get_by_test_id("stProgress").inner_text())
    return int(found[1].replace(",", "")) if found else 0


def more_than(page: Page, n: int) -> None:
    page.wait_for_function(
        """n => { const found = /([\\d,]+) of [\\d,]+ updates/.exec(
               document.querySelector('[data-testid="stProgress"]')?.innerText ?? '');
               return found && Number(found[1].replaceAll(',', '')) > n; }""",
        arg=n, timeout=LONG,
    )  # fmt: skip


def fill(page: Page, label: str, value: int) -> None:
    box = page.get_by_role("spinbutton", name=label)
    box.fill(str(value))
    box.press("Enter")


def picture_past(page: Page, n: int) -> int:
    """Waits until the picture holds rollouts of an update after `n`; returns the latest one's number."""
    return int(
        page.wait_for_function(
            """n => { for (const e of document.querySelectorAll('[data-testid="stCaptionContainer"]')) {
                   const found = /updates? (?:\\d+ to )?(\\d+): \\d+ of/.exec(e.innerText);
                   if (found && Number(found[1]) > n) return found[1]; } }""",
            arg=n, timeout=LONG,
        ).json_value()
    )  # fmt: skip


def test_start_grow_stop_reload_and_continue(live: tuple[Page, Path], settle: Callable[[Page], None]) -> None:
    page, runs = live
    fill(page, "Updates", 2000)
    settle(page)
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url("**run=key-door-**")
    name = page.url.rpartition("run=")[2]
    assert "/" not in name
    more_than(page, 0)
    expect(page.get_by_test_id("stVegaLiteChart").first).to_be_visible(timeout=LONG)
    expect(page.get_by_text("Latest rollouts of")).to_be_visible(timeout=LONG)
    before = done(page)
    picture_past(page, picture_past(page, 0))
    more_than(page, before)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Continue")).to_be_visible(timeout=LONG)
    stopped = done(page)
    assert keep.read_json(runs / name / keep.STATUS)["state"] == "stopped"
    page.reload()
    expect(page.get_by_role("button", name="Continue")).to_be_visible(timeout=LONG)
    assert done(page) == stopped
    page.get_by_role("button", name="Continue").click()
    more_than(page, stopped)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Delete")).to_be_visible(timeout=LONG)
    rows = keep.read_curve(runs / name / "graft_td" / "seed-0")
    assert [row["update"] for row in rows] == list(range(1, len(rows) + 1))
    page.get_by_role("button", name="Look at all rollouts of this run").click()
    expect(page.get_by_text("in failed rollouts").first).to_be_visible(timeout=LONG)
    assert "file=" in page.url


def test_a_quick_run_ends_with_a_table_and_an_unknown_environment_with_a_sentence(
    live: tuple[Page, Path], settle: Callable[[Page], None]
) -> None:
    page, _ = live
    fill(page, "Updates", 3)
    settle(page)
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("button", name="20 more updates")).to_be_visible(timeout=LONG)
    expect(page.get_by_text("All used one step size")).to_be_visible()
    page.get_by_role("combobox", name=re.compile("Environment")).fill("nowhere")
    page.keyboard.press("Enter")
    settle(page)
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_text("The run broke off")).to_be_visible(timeout=LONG)
    expect(page.get_by_text("unknown environment 'nowhere'")).to_be_visible()


def test_nothing_outlives_the_server(live: tuple[Page, Path]) -> None:
    page, runs = live
    page.get_by_role("button", name="Clean keys").click()
    page.wait_for_url("**run=key-door-**")
    name = page.url.rpartition("run=")[2]
    more_than(page, 0)
    status = keep.read_json(runs / name / keep.STATUS)
    os.kill(int(status["pid"]), 0)  # it is a process of its own
    page.set_viewport_size({"width": 1093, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 1093
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Continue")).to_be_visible(timeout=LONG)
    with pytest.raises(ProcessLookupError):
        os.kill(int(status["pid"]), 0)
