"""Shapes and curves of a drawn graph as SVG: what the app's picture shows, point for point."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from typing import Final

from graft_core.insight.palette import CREDIT_STEPS, NO_CREDIT

Point = tuple[float, float]

SCALES: Final = {"start": 1.15, "root": 1.0, "ordinary": 1.0, "success": 1.3, "failure": 1.2, "unknown": 0.95}
HOLLOW: Final = ("unknown", "root")
NEGATIVE_DASH, UNDEFINED_DASH = "7 4", "1.5 4"
_TRIANGLE: Final[list[Point]] = [(1, 0), (-0.72, -0.95), (-0.72, 0.95)]
_DIAMOND: Final[list[Point]] = [(0, -1), (1, 0), (0, 1), (-1, 0)]
_SQUARE: Final[list[Point]] = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
_ARROW: Final[list[Point]] = [(0, 0), (-1, -0.5), (-1, 0.5)]


def dash_of(number: int) -> str:
    """Dash pattern of a palette number: dashed below zero, dotted where undefined, else none."""
    return UNDEFINED_DASH if number == NO_CREDIT else NEGATIVE_DASH if number < CREDIT_STEPS else ""


def shape(parent: ET.Element, kind: str, x: float, y: float, radius: float, fill: str, border: str) -> ET.Element:
    """One node; the kind is told by its outline, not by colour."""
    look = {"fill": fill, "stroke": border, "stroke-width": "2" if kind in HOLLOW else "1.2"}
    size = radius * SCALES[kind]
    if kind == "ordinary":
        return ET.SubElement(parent, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": f"{size:.1f}", **look})
    corners = {"success": _star(), "failure": _DIAMOND, "unknown": _SQUARE}.get(kind, _TRIANGLE)
    return ET.SubElement(parent, "polygon", {"points": _points(corners, (x, y), size), "stroke-linejoin": "round", **look})


def curve(start: Point, end: Point, bend: float, radius: float) -> tuple[str, Point, float]:
    """Path of an edge that ends at the border of its target, where it arrives, and its direction there (radians).

    `bend` as in `GraphStructure.edge_curve`: a quadratic curve whose control point lies to the side.
    """
    (x0, y0), (x1, y1) = start, end
    control = _control(start, end, bend)
    towards = math.atan2(y1 - control[1], x1 - control[0])
    tip = (x1 - (radius + 1) * math.cos(towards), y1 - (radius + 1) * math.sin(towards))
    middle = f"L {tip[0]:.1f} {tip[1]:.1f}" if not bend else f"Q {control[0]:.1f} {control[1]:.1f} {tip[0]:.1f} {tip[1]:.1f}"
    return f"M {x0:.1f} {y0:.1f} {middle}", tip, towards


def loop(centre: Point, size: float, rank: float) -> str:
    """A self loop: a circle around a point of the node's border; several stand around the node."""
    angle = math.pi / 4 + rank * math.pi / 3
    x, y = centre[0] + size * math.cos(angle), centre[1] - size * math.sin(angle)
    r = size * 0.9 + 3
    return f"M {x + r:.1f} {y:.1f} A {r:.1f} {r:.1f} 0 1 1 {x - r:.1f} {y:.1f} A {r:.1f} {r:.1f} 0 1 1 {x + r:.1f} {y:.1f}"


def arrow(parent: ET.Element, tip: Point, towards: float, width: float, ink: str) -> None:
    """An arrow head at the end of an edge."""
    size = 5.0 + 1.2 * width
    turned = [(size * (px * math.cos(towards) - py * math.sin(towards)),
               size * (px * math.sin(towards) + py * math.cos(towards))) for px, py in _ARROW]  # fmt: skip
    ET.SubElement(parent, "polygon", {"points": _points(turned, tip, 1.0), "fill": ink})


def dots(parent: ET.Element, middle: Point, towards: float, radius: float, ink: str) -> None:
    """Three dots on a line that stands for several steps."""
    for shift in (-3 * radius, 0.0, 3 * radius):
        x, y = middle[0] + shift * math.cos(towards), middle[1] + shift * math.sin(towards)
        ET.SubElement(parent, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": f"{radius:.1f}", "fill": ink})


def middle_of(start: Point, end: Point, bend: float) -> Point:
    """The point halfway along an edge."""
    (x0, y0), (x1, y1), (x, y) = start, end, _control(start, end, bend)
    return (x0 + 2 * x + x1) / 4, (y0 + 2 * y + y1) / 4


def _control(start: Point, end: Point, bend: float) -> Point:
    (x0, y0), (x1, y1) = start, end
    if not bend:
        return (x0 + x1) / 2, (y0 + y1) / 2
    reach = (0.5 + 0.5 * abs(bend)) * math.hypot(x1 - x0, y1 - y0)
    angle = (0.5 + 0.5 * bend) * math.pi - math.atan2(y1 - y0, x1 - x0)
    return x0 + reach * math.sin(angle), y0 + reach * math.cos(angle)


def _points(corners: list[Point], at: Point, size: float) -> str:
    return " ".join(f"{at[0] + size * x:.1f},{at[1] + size * y:.1f}" for x, y in corners)


def _star() -> list[Point]:
    turns = [(math.pi * (tenth / 5 - 0.5), 0.45 if tenth % 2 else 1.0) for tenth in range(10)]
    return [(reach * math.cos(turn), reach * math.sin(turn)) for turn, reach in turns]
