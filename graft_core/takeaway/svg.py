"""A task's graph as one self-contained SVG: the app's positions, colours, shapes and dashes, with key and caption."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from typing import Final, Literal

from graft_core.insight.labels import plain, shorten
from graft_core.insight.palette import NO_VALUE, PAGE, credit_colours, value_colours
from graft_core.insight.structure import FIRST_CODE, GraphPaint, GraphStructure
from graft_core.takeaway._key import draw_key, used_symbols, words
from graft_core.takeaway._shapes import HOLLOW, SCALES, arrow, curve, dash_of, dots, loop, middle_of, shape
from graft_core.takeaway.drawn import LABEL_GAP, check_paint, placed_labels, without_texts

Theme = Literal["light", "dark"]

MARGIN: Final = 90.0
HEAD: Final = 56.0
LEAST_WIDTH: Final = 560.0
INK: Final = {"light": "#31333F", "dark": "#FAFAFA"}
QUIET: Final = {"light": "#5C6069", "dark": "#B4B9C4"}
BORDER: Final = {"light": "#4A4E57", "dark": "#C3C7CF"}
FONT: Final = "system-ui, sans-serif"


def graph_svg(
    structure: GraphStructure, painted: GraphPaint, *, title: str = "", texts: bool = True, theme: Theme = "light"
) -> str:
    """The picture as an SVG document of plain shapes and texts: no script, no style sheet, nothing from elsewhere.

    title: stands above it, usually the task's id. texts: False leaves out everything a rollout said. Raises
    ValueError where `painted` was made for another structure.
    """
    element = graph_element(structure, painted, title=title, texts=texts, theme=theme)
    ET.indent(element)
    return ET.tostring(element, encoding="unicode") + "\n"


def graph_element(
    structure: GraphStructure, painted: GraphPaint, *, title: str = "", texts: bool = True, theme: Theme = "light"
) -> ET.Element:
    """The same as an element, to stand in a page."""
    check_paint(structure, painted)
    shown = structure if texts else without_texts(structure)
    radius = [size * SCALES[kind] for size, kind in zip(shown.node_size.tolist(), shown.node_kind, strict=True)]
    left, right = float(shown.x.min()) - MARGIN, float(shown.x.max()) + MARGIN
    top, bottom = float(shown.y.min()) - MARGIN / 3, float(shown.y.max()) + 0.6 * MARGIN
    width = max(right - left, LEAST_WIDTH)
    dx, dy = (width - (right - left)) / 2 - left, HEAD - top
    at = [(x + dx, y + dy) for x, y in zip(shown.x.tolist(), shown.y.tolist(), strict=True)]
    root = ET.Element(
        "svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "font-family": FONT, "font-size": "12"}
    )
    heading = plain(title) or "Graph of one task"
    ET.SubElement(root, "title").text = shorten(heading, 200)
    ET.SubElement(root, "desc").text = (
        f"{shown.caption}. Nodes are moments, filled by {plain(painted.value_name)}; edges are steps, coloured by "
        f"{plain(painted.credit_name)}, dashed below 0."
    )
    page = ET.SubElement(root, "rect", {"fill": PAGE[theme]})
    words(root, 20, 26, shorten(heading, max(int(width / 9), 20)), INK[theme], 16, font_weight="600")
    words(root, 20, 44, shown.caption, QUIET[theme])
    _edges(root, shown, painted, at, radius, theme)
    _nodes(root, shown, painted, at, theme)
    _labels(root, shown, at, radius, theme)
    numbers = {ord(c) - FIRST_CODE for c, edge in zip(painted.edges, shown.edge_id.tolist(), strict=False) if edge >= 0}
    empty = any(
        ord(c) - FIRST_CODE == NO_VALUE and kind not in HOLLOW for c, kind in zip(painted.nodes, shown.node_kind, strict=True)
    )
    symbols = used_symbols(shown, numbers, empty)
    height = draw_key(
        root, HEAD + bottom - top + 14, painted, symbols, width, theme, QUIET[theme], BORDER[theme], PAGE[theme]
    ) + 6
    size = {"width": f"{width:.0f}", "height": f"{height:.0f}"}
    for element, extra in ((root, {"viewBox": f"0 0 {width:.0f} {height:.0f}"}), (page, {})):
        for name, value in (size | extra).items():
            element.set(name, value)
    return root


def _edges(
    root: ET.Element, shown: GraphStructure, paint: GraphPaint, at: list[tuple[float, float]], radius: list[float], theme: str
) -> None:
    row = {int(node): i for i, node in enumerate(shown.node_id)}
    firm, faint = credit_colours(theme), credit_colours(theme, True)
    group = ET.SubElement(root, "g", {"fill": "none"})
    for i, (src, dst) in enumerate(zip(shown.edge_src.tolist(), shown.edge_dst.tolist(), strict=True)):
        number = ord(paint.edges[i]) - FIRST_CODE if paint.edges else len(firm) - 1
        ink = (faint if shown.edge_thin[i] else firm)[number]
        bend, width, u, v = float(shown.edge_curve[i]), float(shown.edge_width[i]), row[src], row[dst]
        dash = dash_of(number)
        if u == v:
            path, tip, towards = loop(at[u], float(shown.node_size[u]), bend), None, 0.0
        else:
            path, tip, towards = curve(at[u], at[v], bend, radius[v])
        look = {"d": path, "stroke": ink, "stroke-width": f"{width:.2f}"}
        line = ET.SubElement(group, "path", look | ({"stroke-dasharray": dash} if dash else {}))
        _tip(line, shown.edge_tip[i])
        if tip is not None:
            arrow(group, tip, towards, width, ink)
            if shown.edge_length[i] > 1:
                along = math.atan2(at[v][1] - at[u][1], at[v][0] - at[u][0])
                dots(group, middle_of(at[u], at[v], bend), along, max(2.4, 0.8 * width), ink)


def _nodes(
    root: ET.Element, shown: GraphStructure, paint: GraphPaint, at: list[tuple[float, float]], theme: str
) -> None:
    fills = value_colours()
    group = ET.SubElement(root, "g")
    for i, kind in enumerate(shown.node_kind):
        number = ord(paint.nodes[i]) - FIRST_CODE
        fill = PAGE[theme] if kind in HOLLOW or number == NO_VALUE else fills[number]
        _tip(shape(group, kind, *at[i], float(shown.node_size[i]), fill, BORDER[theme]), shown.node_tip[i])


def _tip(element: ET.Element, text: str) -> None:
    """What a reader sees while pointing at it."""
    if text:
        ET.SubElement(element, "title").text = plain(text, keep_lines=True)


def _labels(
    root: ET.Element, shown: GraphStructure, at: list[tuple[float, float]], radius: list[float], theme: str
) -> None:
    """Names below their nodes, the most visited first, as far as none covers another."""
    group = ET.SubElement(
        root, "g", {"text-anchor": "middle", "paint-order": "stroke", "stroke": PAGE[theme], "stroke-width": "3"}
    )
    for i in placed_labels(shown, at, radius):
        words(group, at[i][0], at[i][1] + radius[i] + LABEL_GAP, shown.node_label[i], INK[theme], 11)
