"""An HTML page as a tree: whatever text goes in comes out as text, and the page can load nothing."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from typing import Any

from graft_core.insight.labels import shorten
from graft_core.takeaway.guard import visible

POLICY = "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
CELL = 300
"""Characters of a text that a table cell shows."""


def page(title: str, style: str, scripts: str = "'none'") -> tuple[ET.Element, ET.Element]:
    """(html, body) of an empty page. scripts: which scripts may run, in the words of a content security policy."""
    html = ET.Element("html", {"lang": "en"})
    head = ET.SubElement(html, "head")
    ET.SubElement(head, "meta", {"charset": "utf-8"})
    policy = f"default-src 'none'; script-src {scripts}; {POLICY}"
    ET.SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": policy})
    ET.SubElement(head, "meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"})
    ET.SubElement(head, "title").text = one_line(title)
    ET.SubElement(head, "style").text = style
    return html, ET.SubElement(html, "body")


def rendered(html: ET.Element) -> str:
    """The page as a document."""
    return "<!DOCTYPE html>\n" + ET.tostring(html, encoding="unicode", method="html") + "\n"


def one_line(text: str, length: int = CELL) -> str:
    """A text on one line, hidden marks shown as a replacement sign, cut with an ellipsis."""
    return shorten(" ".join(visible(text[: 4 * length]).split()), length)


def add(parent: ET.Element, tag: str, text: str = "", **attributes: str) -> ET.Element:
    """A new element with a text, in which nothing hides."""
    made = ET.SubElement(parent, tag, {name.rstrip("_"): value for name, value in attributes.items()})
    made.text = visible(text) or None
    return made


def table(parent: ET.Element, heads: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> ET.Element:
    """A table: numbers to the right, undefined as a dash, texts on one line."""
    made = ET.SubElement(add(parent, "div", class_="scroll"), "table")
    if caption:
        add(made, "caption", caption)
    line = ET.SubElement(ET.SubElement(made, "thead"), "tr")
    for head in heads:
        add(line, "th", head, scope="col")
    body = ET.SubElement(made, "tbody")
    for row in rows:
        line = ET.SubElement(body, "tr")
        for value in row:
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            add(line, "td", cell(value), **({"class_": "number"} if number else {}))
    return made


def cell(value: Any) -> str:
    """What a table shows of a value."""
    if value is None or value != value:
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}".replace("-", "−")
    return one_line(str(value))
