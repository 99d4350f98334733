"""Hands on the graph of a page: where things are, and how to reach them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

Draw = Callable[..., float]
"""`draw("n=60")` opens a made-up drawing and returns the seconds until it was painted."""


def settled(page: Page) -> None:
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')


def ask(page: Page, question: str, *arguments: Any, picture: int = 0) -> Any:
    """One question to the picture's inspector."""
    return page.evaluate(
        "([picture, question, given]) => window.pictures[picture].graftGraph[question](...given)",
        [picture, question, list(arguments)],
    )


def spot(page: Page, kind: str, number: int) -> tuple[float, float]:
    """Where a node or the middle of an edge is on the page."""
    at = ask(page, "screen", kind, number)
    corner = page.evaluate("() => { const b = window.pictures[0].getBoundingClientRect(); return [b.x, b.y]; }")
    return corner[0] + at["x"], corner[1] + at["y"]


def click(page: Page, kind: str, number: int) -> None:
    page.mouse.click(*spot(page, kind, number))


def at_rest(page: Page, node: int) -> float:
    """Where a node is, left to right, once the view has stopped moving."""
    last = None
    while (at := ask(page, "screen", "node", node)) != last:
        last = at
        page.wait_for_timeout(150)
    return float(at["x"])


def said(page: Page, words: str) -> None:
    expect(page.get_by_text(words, exact=True)).to_be_visible()


def move_lambda(page: Page, times: int = 1) -> None:
    slider = page.get_by_role("slider", name="lambda")
    slider.focus()
    for _ in range(times):
        slider.press("ArrowRight")


def zoom_in(page: Page, node: int, times: int = 1) -> None:
    """Ctrl + wheel over a node."""
    page.mouse.move(*spot(page, "node", node))
    page.keyboard.down("Control")
    for _ in range(times):
        page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    page.wait_for_timeout(300)
