"""The key under an exported picture: two colour scales, and every shape and line the picture uses."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from graft_core.insight.labels import plain
from graft_core.insight.palette import CREDIT_STEPS, NO_CREDIT, credit_colours, value_colours
from graft_core.insight.structure import GraphPaint, GraphStructure, legend
from graft_core.takeaway._shapes import dash_of, dots, shape

ROW, COLUMN = 20, 250
SHAPES = ("start", "ordinary", "success", "failure", "unknown", "root", "empty")


def words(parent: ET.Element, x: float, y: float, text: str, ink: str, size: int = 12, **look: str) -> None:
    """One line of text, cleaned of what XML cannot hold and of marks that turn text around."""
    attributes = {"x": f"{x:.1f}", "y": f"{y:.1f}", "fill": ink, "font-size": str(size)}
    attributes |= {name.replace("_", "-"): value for name, value in look.items()}
    ET.SubElement(parent, "text", attributes).text = plain(text)


def used_symbols(shown: GraphStructure, numbers: set[int], empty: bool) -> list[tuple[str, str]]:
    """The entries of the legend that this picture needs; numbers: palette numbers of its edges; empty: a node has no value."""
    needed = set(shown.node_kind)
    needed |= {"positive"} if any(CREDIT_STEPS < n < NO_CREDIT for n in numbers) else set()
    needed |= {"negative"} if any(n < CREDIT_STEPS for n in numbers) else set()
    needed |= {"zero"} if CREDIT_STEPS in numbers else set()
    needed |= {"undefined"} if NO_CREDIT in numbers else set()
    occurs = {"empty": empty, "thin": bool(shown.edge_thin.any()), "chain": bool((shown.edge_length > 1).any())}
    needed |= {symbol for symbol, there in occurs.items() if there}
    return [entry for entry in legend() if entry[0] in needed]


def draw_key(
    parent: ET.Element, y: float, paint: GraphPaint, symbols: list[tuple[str, str]], width: float,
    theme: str, ink: str, border: str, page: str,
) -> float:
    """Draw the key from height `y` on; returns the height below it."""
    low, high = paint.value_limits
    _scale(parent, 20, y, value_colours()[::2], f"{paint.value_name} {low:.3g} to {high:.3g}", ink)
    inks = credit_colours(theme)[: 2 * CREDIT_STEPS + 1]
    end = f"{paint.credit_limit:.3g}"
    _scale(parent, 20, y + ROW, inks, f"{paint.credit_name} −{end} to +{end}, dashed below 0", ink)
    columns = max(int((width - 40) // COLUMN), 1)
    top = y + 2 * ROW + 6
    for at, (symbol, meaning) in enumerate(symbols):
        x, line = 20 + COLUMN * (at % columns), top + ROW * (at // columns)
        _sample(parent, symbol, x, line - 4, theme, border, page)
        words(parent, x + 38, line, meaning, ink)
    return top + ROW * -(-len(symbols) // columns)


def _scale(parent: ET.Element, x: float, y: float, fills: tuple[str, ...], meaning: str, ink: str) -> None:
    step = 120 / len(fills)
    for at, fill in enumerate(fills):
        where = {"x": f"{x + step * at:.2f}", "y": f"{y - 10:.1f}", "width": f"{step + 0.3:.2f}", "height": "11"}
        ET.SubElement(parent, "rect", {**where, "fill": fill})
    words(parent, x + 128, y, meaning, ink)


def _sample(parent: ET.Element, symbol: str, x: float, y: float, theme: str, border: str, page: str) -> None:
    fills = value_colours()
    if symbol in SHAPES:
        fill = {"success": fills[-1], "failure": fills[0], "ordinary": fills[24], "start": fills[24]}.get(symbol, page)
        shape(parent, "ordinary" if symbol == "empty" else symbol, x + 15, y, 6.5, fill, border)
        return
    firm, faint = credit_colours(theme), credit_colours(theme, True)
    number = {"positive": 2 * CREDIT_STEPS, "negative": 0, "undefined": NO_CREDIT}.get(symbol, CREDIT_STEPS)
    ink = faint[2 * CREDIT_STEPS] if symbol == "thin" else firm[number]
    line = {"x1": f"{x:.1f}", "y1": f"{y:.1f}", "x2": f"{x + 30:.1f}", "y2": f"{y:.1f}", "stroke": ink, "stroke-width": "2.6"}
    dash = "" if symbol == "thin" else dash_of(number)
    ET.SubElement(parent, "line", line | ({"stroke-dasharray": dash} if dash else {}))
    if symbol == "chain":
        dots(parent, (x + 15, y), 0.0, 2.6, ink)
