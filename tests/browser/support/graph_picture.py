"""Questions to the graph on a page, which draws on a canvas: its own inspector answers them."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

FIND = """() => {
  const found = [];
  const look = (root) => root.querySelectorAll("*").forEach((element) => {
    if (element.graftGraph) found.push(element);
    if (element.shadowRoot) look(element.shadowRoot);
  });
  look(document);
  window.pictures = found;
  return found.length > 0 && found.every((element) => element.graftGraph.ready());
}"""


def ask(page: Page, question: str, *given: Any) -> Any:
    """The answer of the first picture, once it is drawn."""
    page.wait_for_function(FIND)
    return page.evaluate("([q, given]) => window.pictures[0].graftGraph[q](...given)", [question, list(given)])


def wait_for(page: Page, question: str, answer: Any) -> None:
    """Waits until the first picture gives an answer."""
    ask(page, question)
    page.wait_for_function("([q, answer]) => window.pictures[0].graftGraph[q]() === answer", arg=[question, answer])
