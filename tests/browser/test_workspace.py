"""Rollouts and Compare in a real Chromium: keys, clicks on bars, brushing, and the way to the graph."""

from __future__ import annotations

import hashlib
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

import graft_core as gc
import graft_sample_data
from graft_core.insight.saved_views import from_json, saved
from graft_core.rollouts import RolloutBatch

Visit = Callable[..., Page]
WIDGET_BYTES = 15_000
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


class Relay:
    """A way to the app that counts the bytes its server sends."""

    def __init__(self, port: int) -> None:
        self.port, self.sent = port, 0
        self.door = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.door.getsockname()[1]}"

    def quiet(self, page: Page) -> int:
        """Bytes sent once nothing has come for half a second."""
        before = -1
        while self.sent != before:
            before = self.sent
            page.wait_for_timeout(500)
        return before

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                browser, _ = self.door.accept()
                server = socket.create_connection(("127.0.0.1", self.port))
                for pair in ((browser, server, False), (server, browser, True)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        with source, suppress(OSError):
            while part := source.recv(65536):
                target.sendall(part)
                self.sent += len(part) if counted else 0
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def relay(app: Any) -> Iterator[Relay]:
    made = Relay(urlsplit(app.url).port or 0)
    yield made
    made.door.close()


WHERE = {
    "findings": "", "graph": "graph?task=cool+apple", "compare": "compare", "rollouts": "rollouts?at=5",
    "two rollouts": "rollouts?rollout=r1&beside=r5", "states": "states", "live": "live", "open": "open",
}


def test_a_widget_that_changes_nothing_shown_moves_little(
    page: Page, relay: Relay, settle: Callable[[Page], None]
) -> None:
    """Opening the expert drawer runs a whole page again; where there is none the page is run again as it is.

    The first page comes twice: the browser then has the code that draws a drawer's widgets.
    """
    moved = {}
    for name, where in [("findings", ""), *WHERE.items()]:
        page.goto(f"{relay.url}/{where}")
        page.wait_for_selector('[data-testid="stAppViewContainer"]')
        settle(page)
        before = relay.quiet(page)  # figures and their libraries come after the script's end
        drawer = page.get_by_role("button", name="Expert")
        if drawer.count():
            drawer.first.click()
            expect(page.get_by_text("offer all estimators")).to_be_visible()
        else:
            page.keyboard.press("r")
        settle(page)
        moved[name] = relay.quiet(page) - before
    print("\nbytes over the wire for a widget that changes nothing shown: " + ", ".join(f"{k} {v:,}" for k, v in moved.items()))
    assert all(0 < n <= WIDGET_BYTES for n in moved.values()), moved


def test_an_address_of_other_data_says_so(start: Callable[[str], Page], settle: Callable[[Page], None]) -> None:
    page = start("graph?task=heat+mug&sel=n55&a=path_gae&data=00112233445566ff")
    expect(page.get_by_text("This address was made on other data")).to_be_visible()
    own = hashlib.sha256(graft_sample_data.paths()[0].read_bytes()).hexdigest()[:16]
    assert asked(page) == {"a": "path_gae", "data": own}
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_text("This address was made on other data")).to_have_count(0)


def test_the_way_back_leads_out_of_the_app(start: Callable[[str], Page], page: Page, settle: Callable[[Page], None]) -> None:
    """The app writes the data's hash into the address; that must not bring the reader back for ever."""
    page.goto("about:blank")
    start("")
    page.wait_for_url("**data=**")
    for _ in range(2):
        page.go_back()
        if page.url == "about:blank":
            break
        settle(page)
    assert page.url == "about:blank"


def test_a_view_is_saved_opened_and_taken_back(
    start_app: Callable[..., Any], visit: Callable[..., Page], settle: Callable[[Page], None], tmp_path_factory: Any
) -> None:
    path = shutil.copy(graft_sample_data.paths()[0], tmp_path_factory.mktemp("views"))
    app = start_app([path])
    page = visit(app, "rollouts?at=76&a=path_gae&lam=0.5")
    page.get_by_role("button", name="Views").click()
    page.get_by_placeholder("a name").fill("the <b>turn</b>")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    page = visit(app, "compare?c_a=gigpo")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("button", name="the <b>turn</b>").first.click()
    page.wait_for_url("**/rollouts?**")
    settle(page)
    got = asked(page)
    assert {name: got[name] for name in ("at", "a", "lam")} == {"at": "76", "a": "path_gae", "lam": "0.5"}
    assert "c_a" not in got
    drawn(page)
    page.get_by_role("button", name="Views").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Share 1 view").click()
    shared = Path(waiting.value.path())
    assert list(from_json(shared.read_bytes())) == ["the <b>turn</b>"]
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    copy = shared.with_name("views.json")
    shutil.copy(shared, copy)
    page.locator('input[type="file"]').set_input_files(copy)
    expect(page.get_by_text("Added.")).to_be_visible()
    assert list(saved(path)) == ["the <b>turn</b>"]
