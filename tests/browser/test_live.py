"""Live in a real Chromium: a run grows, stops, outlives a reload and goes on; pages follow it; a finding is checked."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import graft_core as gc
from graft_core.live import keep

Visit = Callable[..., Page]
LONG = 60_000


@pytest.fixture
def live(
    page: Page, visit: Visit, start_app: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Page, Path]:
    """The Live page of a server whose runs lie in a folder of the test."""
    runs = tmp_path_factory.getbasetemp() / "live_runs"
    page.set_default_timeout(LONG)
    visit(start_app([], {"GRAFT_RUNS": str(runs)}), "live")
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


def drawn(page: Page) -> str:
    """The curve as it is on screen."""
    picture = page.get_by_test_id("stVegaLiteChart").first.locator("canvas, svg").first
    return str(picture.evaluate("c => c.toDataURL?.() ?? c.outerHTML"))


def curve_moves(page: Page, before: str) -> None:
    deadline = time.monotonic() + LONG / 1000
    while drawn(page) == before:
        assert time.monotonic() < deadline, "the curve stands still"
        time.sleep(0.2)


def rollouts(page: Page) -> int:
    """How many rollouts the line above the page tells of."""
    found = re.search(r"([\d,]+) rollouts", page.get_by_test_id("stMain").inner_text())
    return int(found[1].replace(",", "")) if found else 0


def grows(page: Page, before: int) -> int:
    page.wait_for_function(
        """n => { const found = /([\\d,]+) rollouts/.exec(document.querySelector('[data-testid="stMain"]')?.innerText ?? '');
               return found && Number(found[1].replaceAll(',', '')) > n; }""",
        arg=before, timeout=LONG,
    )  # fmt: skip
    return rollouts(page)


def grow(run: Path) -> None:
    """Let a paused run make some updates."""
    done = keep.read_json(run / keep.STATUS)["done"]
    keep.ask(run, "resume")
    until(lambda: (keep.read_json(run / keep.STATUS).get("done") or 0) > done + 2, "the run stands still")
    keep.ask(run, "pause")


def gone(pid: int) -> bool:
    """Whether a process is over; one that nobody has asked about yet is over too."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


def until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LONG / 1000
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


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
    before, curve = done(page), drawn(page)
    picture_past(page, picture_past(page, 0))
    more_than(page, before)
    curve_moves(page, curve)
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


def test_pages_follow_the_run_and_a_reload_brings_it_back(
    page: Page, visit: Visit, start_app: Callable[..., Any], settle: Callable[[Page], None], root: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The app was started on a file elsewhere: the run has an address all the same."""
    runs = tmp_path_factory.getbasetemp() / "live_runs_followed"
    page.set_default_timeout(LONG)
    visit(start_app([root / "sample_data" / "household.jsonl"], {"GRAFT_RUNS": str(runs)}), "live")
    fill(page, "Updates", 2000)
    fill(page, "Group size", 4)
    settle(page)
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url("**run=key-door-**")
    run = runs / page.url.rpartition("run=")[2]
    take_away = page.get_by_role("button", name="Look at all rollouts of this run")
    take_away.wait_for()
    keep.ask(run, "pause")  # from here on it grows when the test says so
    take_away.click()
    expect(page.get_by_text("live · updated").first).to_be_visible(timeout=LONG)
    assert "file=live" in page.url
    before = rollouts(page)
    grow(run)
    grows(page, before)
    page.goto(page.url.replace("/?", "/graph?") + "&sel=e3&at=2")
    expect(page.get_by_text("Step · ").or_(page.get_by_text("Why ")).first).to_be_visible(timeout=LONG)
    before = rollouts(page)
    grow(run)
    grows(page, before)
    assert "at=2" in page.url and "sel=e" in page.url  # the step is still chosen
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("live · paused").first).to_be_visible(timeout=LONG)
    before = rollouts(page)
    grow(run)
    page.wait_for_timeout(2500)
    assert rollouts(page) == before
    page.get_by_role("button", name="Follow").click()
    grows(page, before)
    keep.ask(run, "stop")
    until(lambda: keep.read_json(run / keep.STATUS)["state"] == "stopped", "the run does not stop")
    expect(page.get_by_text("live ·")).to_have_count(0, timeout=LONG)


def test_a_finding_is_checked_by_rollout(
    page: Page, visit: Visit, start_app: Callable[..., Any], root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    runs = tmp_path_factory.getbasetemp() / "live_runs_followed"
    app = start_app([root / "sample_data" / "household.jsonl"], {"GRAFT_RUNS": str(runs)})
    batch = gc.load(root / "sample_data" / "household.jsonl")
    found = gc.findings(batch, gc.Settings())
    step = next(int(p) for p in found.good if batch.group_ids[int(batch.group[batch.step_rollout[p]])] == "cool glass")
    page.set_default_timeout(LONG)
    visit(app, f"graph?task=cool+glass&sel=e{int(found.graph.edge[step])}&at={int(batch.order[step])}")
    page.get_by_role("button", name="Check by rollout: play on from here 64 times").click()
    expect(page.get_by_text("64 fresh rollouts each, played on by")).to_be_visible(timeout=LONG)
    said = page.get_by_test_id("stAlert").last.inner_text()
    assert re.search(r"(Confirmed|Contradicted|Not decided)\. After this action \d+ of 64 succeed", said), said
    expect(page.get_by_role("button", name="Play on 256 times")).to_be_visible()
    page.reload()  # what was found is remembered as long as the server runs
    expect(page.get_by_text("64 fresh rollouts each, played on by")).to_be_visible(timeout=LONG)


def test_a_quick_run_of_a_second_visitor_does_not_wait_for_a_long_one(
    live: tuple[Page, Path], chromium: Browser, settle: Callable[[Page], None]
) -> None:
    page, runs = live
    page.get_by_role("button", name="Clean keys").click()
    page.wait_for_url("**run=key-door-**")
    name = page.url.rpartition("run=")[2]
    more_than(page, 0)
    other = chromium.new_page()
    try:
        other.goto(page.url.partition("?")[0])
        settle(other)
        fill(other, "Updates", 2)
        fill(other, "Seeds", 2)
        settle(other)
        other.get_by_role("button", name="Start", exact=True).click()
        expect(other.get_by_role("button", name="20 more updates")).to_be_visible(timeout=LONG)
    finally:
        other.close()
    status = keep.read_json(runs / name / keep.STATUS)
    assert status["state"] == "running" and status["done"] < status["total"]  # the long one is not over
    page.set_viewport_size({"width": 1093, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 1093
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Continue")).to_be_visible(timeout=LONG)
    until(lambda: gone(int(status["pid"])), "a run that was stopped leaves its process behind")


def test_no_process_outlives_a_server_that_is_killed(
    page: Page, visit: Visit, start_app: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    runs = tmp_path_factory.getbasetemp() / "live_runs_killed"
    app = start_app([], {"GRAFT_RUNS": str(runs)})
    page.set_default_timeout(LONG)
    visit(app, "live")
    page.get_by_role("button", name="Clean keys").click()
    page.wait_for_url("**run=key-door-**")
    name = page.url.rpartition("run=")[2]
    more_than(page, 0)
    pid = int(keep.read_json(runs / name / keep.STATUS)["pid"])
    assert not gone(pid)
    app.process.kill()
    app.process.wait()
    until(lambda: gone(pid), "the run outlives its server")
    assert keep.read_json(runs / name / keep.STATUS)["state"] == "stopped"
    rows = keep.read_curve(runs / name / "graft_td" / "seed-0")
    assert [row["update"] for row in rows] == list(range(1, len(rows) + 1))
