"""The picture on a card: the moment, what was done there, and where that led. One self-contained SVG, text as text."""

from __future__ import annotations

import math
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from graft_core.insight.labels import labels, plain
from graft_core.insight.palette import (
    CREDIT_STEPS,
    NO_CREDIT,
    NO_VALUE,
    PAGE,
    credit_colours,
    credit_numbers,
    value_colours,
    value_numbers,
)

WIDTH: Final = 900
HEAD, ROW, FOOT = 64, 66, 62
FROM_X, LINE_X, TO_X = 95, 320, 640
INK, QUIET, OUTLINE, BAND = "#31333F", "#5C6069", "#4A4E57", "#F3D9A0"
FONT: Final = "system-ui, sans-serif"
Point = tuple[float, float]
DIAMOND: Final[list[Point]] = [(0, -1), (1, 0), (0, 1), (-1, 0)]
SQUARE: Final[list[Point]] = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
DASHES = {"negative": "7 4", "undefined": "1.5 4"}


def svg(card: Mapping[str, Any]) -> str:
    """The picture of a card's moment, coloured as in the app's light theme. Made from the card's own data alone."""
    here, claim = card["moment"], card["claim"]
    ways = here["actions"]
    hidden = here["actions_total"] - len(ways)
    height = HEAD + ROW * max(len(ways), 2) + FOOT
    picture = ET.Element(
        "svg",
        {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {WIDTH} {height}", "width": str(WIDTH), "height": str(height),
         "role": "img", "font-family": FONT, "font-size": "13"},
    )  # fmt: skip
    ET.SubElement(picture, "title").text = plain(claim["title"])
    ET.SubElement(picture, "desc").text = plain(claim["sentence"])
    ET.SubElement(picture, "rect", {"width": str(WIDTH), "height": str(height), "fill": PAGE["light"]})
    _text(picture, 20, 28, claim["title"], size=16, bold=True)
    _text(picture, 20, 48, _fit(_place(card["finding"]), 110), ink=QUIET)
    names = labels([here["text"], *(way["to"]["text"] for way in ways)])[1:]
    middle = HEAD + ROW * max(len(ways), 2) / 2
    for at, (way, name) in enumerate(zip(ways, names, strict=True)):
        y = HEAD + ROW * (at + 0.5) + (ROW / 2 if len(ways) == 1 else 0)
        _way(picture, way, name, middle, y, here, claim["value_word"])
    _node(picture, FROM_X, middle, "ordinary", here["value"], here["value_limits"], 17)
    for number, line in enumerate(_lines(here["text"], 26, 3)):
        _text(picture, FROM_X, middle + 36 + 15 * number, line, anchor="middle", size=12)
    _text(picture, FROM_X, middle - 26, f"{claim['value_word']} {_number(here['value'])}", anchor="middle", size=12, bold=True)
    _legend(picture, height, here, hidden, claim["value_word"])
    ET.indent(picture)
    return ET.tostring(picture, encoding="unicode") + "\n"


def _way(
    picture: ET.Element, way: Mapping[str, Any], name: str, from_y: float, y: float, here: Mapping[str, Any], word: str
) -> None:
    ink, dash = _ink(way["credit"], here["credit_limit"])
    bend = f"C {FROM_X + 140} {from_y:.1f} {FROM_X + 110} {y:.1f} {LINE_X} {y:.1f}"
    path = f"M {FROM_X + 18} {from_y:.1f} {bend} L {TO_X - 24} {y:.1f}"
    if way["chosen"]:
        ET.SubElement(picture, "path", {"d": path, "fill": "none", "stroke": BAND, "stroke-width": "13"})
    width = 1.5 + 4.5 * min(math.log1p(way["count"] or 0) / math.log1p(max(here["visits"] or 1, 10)), 1.0)
    line = {"d": path, "fill": "none", "stroke": ink, "stroke-width": f"{width:.1f}"}
    ET.SubElement(picture, "path", line | _dashed(dash))
    ET.SubElement(picture, "path", {"d": f"M {TO_X - 16} {y:.1f} l -12 -6 l 0 12 z", "fill": ink})
    _text(picture, LINE_X, y - 9, _fit(way["action"] or "(no action)", 36 if way["chosen"] else 40), bold=way["chosen"])
    how_often = f"{way['count']} ×, credit {_signed(way['credit'])}, {way['succeeded']} succeeded, {way['failed']} failed"
    _text(picture, LINE_X, y + 18, how_often, size=12, ink=QUIET)
    to = way["to"]
    _node(picture, TO_X, y, to["kind"], to["value"], here["value_limits"], 12)
    ends = {"success": "ends in success", "failure": "ends in failure", "unknown": "ends, outcome unknown"}.get(to["kind"])
    where = "back to the same moment" if way["back"] else ends or name or "(no text)"
    _text(picture, TO_X + 24, y - 2, where)
    _text(picture, TO_X + 24, y + 14, f"{word} {_number(to['value'])}", size=12, ink=QUIET)


def _node(
    picture: ET.Element, x: float, y: float, kind: str, value: float | None, limits: list[float], radius: float
) -> None:
    number = int(value_numbers(math.nan if value is None else value, (limits[0], limits[1])))
    fill = PAGE["light"] if number == NO_VALUE or kind == "unknown" else value_colours()[number]
    look = {"fill": fill, "stroke": OUTLINE, "stroke-width": "1.4"}
    if kind == "ordinary":
        ET.SubElement(picture, "circle", {"cx": f"{x}", "cy": f"{y:.1f}", "r": f"{radius}", **look})
        return
    corners = {"success": _star(), "failure": DIAMOND}.get(kind, SQUARE)
    size = radius * {"success": 1.3, "failure": 1.2}.get(kind, 0.95)
    points = " ".join(f"{x + size * cx:.1f},{y + size * cy:.1f}" for cx, cy in corners)
    ET.SubElement(picture, "polygon", {"points": points, **look})


def _star() -> list[Point]:
    turns = [(math.pi * (tenth / 5 - 0.5), 0.45 if tenth % 2 else 1.0) for tenth in range(10)]
    return [(reach * math.cos(turn), reach * math.sin(turn)) for turn, reach in turns]


def _ink(credit: float | None, limit: float) -> tuple[str, str]:
    number = int(credit_numbers(np.nan if credit is None else credit, limit))
    dash = DASHES["undefined"] if number == NO_CREDIT else DASHES["negative"] if number < CREDIT_STEPS else ""
    return credit_colours("light")[number], dash


def _dashed(dash: str) -> dict[str, str]:
    return {"stroke-dasharray": dash} if dash else {}


def _legend(picture: ET.Element, height: int, here: Mapping[str, Any], hidden: int, word: str) -> None:
    y = height - 22
    low, high = here["value_limits"]
    for step, fill in enumerate(value_colours()[::4]):
        ET.SubElement(picture, "rect", {"x": str(20 + 9 * step), "y": str(y - 11), "width": "9", "height": "12", "fill": fill})
    _text(picture, 134, y, f"{word} {low:g} to {high:g}", size=12, ink=QUIET)
    end = here["credit_limit"]
    for x, credit, meaning in ((330, end, "better than usual here"), (530, -end, "worse (dashed)")):
        ink, dash = _ink(credit, end)
        line = {"x1": str(x), "y1": str(y - 4), "x2": str(x + 34), "y2": str(y - 4), "stroke": ink, "stroke-width": "3"}
        ET.SubElement(picture, "line", line | _dashed(dash))
        _text(picture, x + 42, y, meaning, size=12, ink=QUIET)
    ET.SubElement(picture, "rect", {"x": "690", "y": str(y - 10), "width": "34", "height": "12", "fill": BAND})
    _text(picture, 732, y, "the step of the card", size=12, ink=QUIET)
    if hidden > 0:
        more = f"and {hidden} more that {'was' if hidden == 1 else 'were'} done here"
        _text(picture, LINE_X, y - 24, more, size=12, ink=QUIET)


def _place(finding: Mapping[str, Any]) -> str:
    outcome = "unknown outcome" if finding["outcome"] is None else f"outcome {finding['outcome']:g}"
    return f"task {finding['group_id']}, rollout {finding['rollout_id']} ({outcome}), step {finding['step']}"


def _text(
    picture: ET.Element, x: float, y: float, text: str, *,
    size: int = 13, ink: str = INK, bold: bool = False, anchor: str = "start",
) -> None:
    look = {"x": f"{x:g}", "y": f"{y:.1f}", "fill": ink, "font-size": str(size)}
    look |= {"font-weight": "600"} if bold else {}
    look |= {"text-anchor": anchor} if anchor != "start" else {}
    ET.SubElement(picture, "text", look).text = plain(text)  # no control characters: XML has no way to write them


def _wide(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _fit(text: str, columns: int) -> str:
    """As much of a text as fits into so many columns (wide characters take two)."""
    flat, used = plain(text), 0
    for at, char in enumerate(flat):
        used += _wide(char)
        if used > columns:
            return flat[: max(at - 1, 1)].rstrip() + "…"
    return flat


def _lines(text: str, columns: int, most: int) -> list[str]:
    """A text broken at blanks into at most so many lines."""
    lines: list[str] = [""]
    for word in plain(text).split(" "):
        joined = f"{lines[-1]} {word}".strip()
        if sum(map(_wide, joined)) <= columns or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(word)
    kept = [_fit(line, columns) for line in lines[:most]]
    if len(lines) > most:
        kept[-1] = _fit(kept[-1] + " " + "…", columns) if not kept[-1].endswith("…") else kept[-1]
    return kept


def _number(value: float | None) -> str:
    return "unknown" if value is None or math.isnan(value) else f"{value:.2f}".replace("-", "−")


def _signed(value: float | None) -> str:
    return "undefined" if value is None or math.isnan(value) else f"{value:+.2f}".replace("-", "−")
