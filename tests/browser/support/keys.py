"""Going through a page by keyboard: where the focus is, whether it is seen, and how many stops a control is away."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page

FOCUSED = """async () => {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  if (!element || element === document.body || element === document.documentElement) return null;
  const parent = (e) => e.assignedSlot ?? e.parentElement ?? e.getRootNode().host ?? null;
  const table = element.closest("canvas");
  const labels = Array.from(element.labels ?? [], (label) => label.textContent).join(" ");
  const by = element.getAttribute("aria-labelledby")?.split(" ")
    .map((id) => element.getRootNode().getElementById?.(id)?.textContent ?? "").join(" ");
  const own = table ? table.closest("[data-testid=stDataFrame]")?.textContent : element.textContent;
  const name = element.getAttribute("aria-label") || by || labels || own || element.title || element.placeholder || "";
  const near = [element];
  for (let e = parent(element); e && near.length < 5; e = parent(e)) near.push(e);
  near.push(...Array.from((parent(element) ?? element).querySelectorAll("*")).slice(0, 40));
  const look = (e, part) => {
    const style = getComputedStyle(e, part);
    const ring = style.outlineStyle === "none" ? "" : style.outlineWidth + style.outlineColor;
    return [ring, style.boxShadow, style.borderColor, style.backgroundColor, style.color, style.textDecorationLine];
  };
  const looks = () => {
    document.getAnimations().forEach((each) => { try { each.finish(); } catch { each.cancel(); } });
    if (table) return Array.from(parent(table).querySelectorAll("canvas"), (e) => e.toDataURL()).join();
    return JSON.stringify(near.map((e) => [undefined, "::before", "::after"].map((part) => look(e, part))));
  };
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  let seen = false;
  for (let turn = 0; turn < 3 && !seen; turn += 1) {   // what is drawn follows a few frames later, on a busy machine more
    for (let wait = 0; wait < 1 + 5 * turn; wait += 1) await frame();
    const on = looks();
    element.blur();
    seen = looks() !== on;
    for (let wait = 0; wait < 12 && !seen; wait += 1) seen = await frame().then(() => looks() !== on);
    element.focus({ focusVisible: true, preventScroll: true });
  }
  const box = (table ?? element).getBoundingClientRect();
  const plain = element.type === "range" ? "slider" : element.localName;
  const role = table ? "table" : element.getAttribute("role") ?? plain;
  return { role, name: name.replace(/\\s+/g, " ").trim().slice(0, 80), seen, big: box.width > 1 && box.height > 1,
    inside: box.bottom > 0 && box.top < innerHeight };
}"""
MOST = 90


@dataclass(frozen=True)
class Stop:
    """Where the focus is. seen: something on screen changes with it; big, inside: it has a size and lies in the window."""

    role: str
    name: str
    seen: bool
    big: bool
    inside: bool

    def __str__(self) -> str:
        return f"{self.role} {self.name}"


def focused(page: Page) -> Stop | None:
    """The element with the focus, None for none."""
    found: dict[str, Any] | None = page.evaluate(FOCUSED)
    return Stop(**found) if found else None


def tab_to(page: Page, wanted: str, key: str = "Tab", most: int = MOST) -> list[Stop]:
    """Presses Tab or another key until an element is reached whose role and name match; returns the stops up to it."""
    stops: list[Stop] = []
    for _ in range(most):
        page.keyboard.press(key)
        stop = focused(page)
        if stop is None:
            continue
        stops.append(stop)
        if re.search(wanted, str(stop)):
            return stops
    raise AssertionError(f"{wanted!r} is not reached by {key}: {[str(stop) for stop in stops]}")
