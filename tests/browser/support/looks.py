"""What can be measured of how a page looks: contrast, clipped words, sideways scroll, motion."""

from __future__ import annotations

import re
from dataclasses import dataclass

from playwright.sync_api import Page

MEASURE = """() => {
  const drop = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const ink = drop.getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) {
      ink.clearRect(0, 0, 1, 1);
      ink.fillStyle = "rgba(0,0,0,0)";
      ink.fillStyle = colour;
      ink.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = ink.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const linear = (share) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4);
  const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, weight, at) => sum + weight * linear(c[at] / 255), 0);
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const parent = (e) => e.assignedSlot ?? e.parentElement ?? e.getRootNode().host ?? null;
  const beneath = (e) => (e.matches('[data-testid="stSliderThumbValue"]') ? parent(parent(e)) : parent(e));   // it floats
  const chain = (element) => {
    const all = [];
    for (let e = element; e; e = beneath(e)) all.push(e);
    return all;
  };
  const ground = (element) => chain(element).reverse()
    .reduce((below, e) => over(rgba(getComputedStyle(e).backgroundColor), below), [255, 255, 255]);
  const seen = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true })
    && element.getClientRects().length > 0;
  const weak = [], clipped = [];
  let texts = 0, least = 99;
  const judge = (element, words, colour, needed) => {
    const shade = chain(element).reduce((all, e) => all * Number(getComputedStyle(e).opacity), 1);
    const [r, g, b, a] = rgba(colour);
    const below = ground(element);
    const found = contrast(over([r, g, b, a * shade], below), below);
    texts += 1;
    least = Math.min(least, found);
    if (found < needed) weak.push(`${found.toFixed(2)} "${words.trim().slice(0, 50)}" in ${element.localName}`);
  };
  const CONTROL = "button, label, summary, a, [role=tab], [data-testid=stMetric]";
  const look = (root) => root.querySelectorAll("*").forEach((element) => {
    if (element.shadowRoot) look(element.shadowRoot);
    if (["SCRIPT", "STYLE", "NOSCRIPT", "CANVAS"].includes(element.tagName) || element.closest("canvas")) return;
    if (!seen(element)) return;
    const style = getComputedStyle(element);
    const off = element.closest(":disabled, [aria-disabled=true]");
    const words = Array.from(element.childNodes).filter((n) => n.nodeType === 3).map((n) => n.textContent).join("");
    if (words.trim() && !off) {
      const needed = element.matches('[data-testid="stIconMaterial"]') ? 3 : 4.5;
      judge(element, words, element instanceof SVGElement ? style.fill : style.color, needed);
    }
    if (element.matches("input:not([type=range]), textarea") && !off) {
      const inside = element.value ? style.color : getComputedStyle(element, "::placeholder").color;
      if (element.value || element.placeholder) judge(element, element.value || element.placeholder, inside, 4.5);
    }
    const cut = element.clientWidth > 1 && element.scrollWidth > element.clientWidth + 1 && style.overflowX !== "visible";
    if (cut && words.trim() && element.closest(CONTROL)) {
      clipped.push(`"${words.trim().slice(0, 60)}" ${element.scrollWidth} in ${element.clientWidth}`);
    }
  });
  document.getAnimations().forEach((each) => { try { each.finish(); } catch { each.cancel(); } });
  look(document.body);
  const tables = Array.from(document.querySelectorAll("[style*='--gdg-text-dark']"), (e) => {
    const read = (name) => rgba(getComputedStyle(e).getPropertyValue(name).trim());
    const page = ground(e);
    const on = (text, back) => { const below = over(read(back), page); return contrast(over(read(text), below), below); };
    return Math.min(on("--gdg-text-dark", "--gdg-bg-cell"), on("--gdg-text-header", "--gdg-bg-header"));
  });
  const root = document.documentElement, main = document.querySelector('[data-testid="stMain"]');
  const sideways = Math.max(root.scrollWidth - innerWidth, main.scrollWidth - main.clientWidth);
  return { texts, least, weak, clipped, tables, sideways };
}"""


@dataclass(frozen=True)
class Seen:
    """texts: pieces of text measured; least: the lowest contrast; weak, clipped: what is too faint or cut; tables: the lowest
    contrast in each table; sideways: pixels that a page is too wide."""

    texts: int
    least: float
    weak: list[str]
    clipped: list[str]
    tables: list[float]
    sideways: int


def measured(page: Page) -> Seen:
    """How the page looks now."""
    return Seen(**page.evaluate(MEASURE))


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, "#rrggbb" or "rgb(r, g, b)", from 1 to 21 (WCAG 2.1, relative luminance).

    Of its own, since it checks the colours that the package chose with one of its own.
    """
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = re.findall("[0-9a-fA-F]{2}", colour) if colour.startswith("#") else re.findall("[0-9.]+", colour)
    shares = [int(part, 16) / 255 if colour.startswith("#") else float(part) / 255 for part in parts[:3]]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return float(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
