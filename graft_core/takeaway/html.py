"""A task's graph as one HTML page that needs no network: to keep, to send, or to see in a notebook."""

from __future__ import annotations

import base64
import hashlib
import html
import math
import os
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import orjson

from graft_core.credit import estimate, estimators
from graft_core.errors import GraftError
from graft_core.exports import replace_with
from graft_core.graph import TrajectoryGraph
from graft_core.insight.labels import plain
from graft_core.insight.palette import CREDIT_STEPS, NO_CREDIT, NO_VALUE, PAGE, credit_colours, value_colours
from graft_core.insight.picture import picture
from graft_core.insight.structure import FIRST_CODE, GraphPaint, GraphStructure
from graft_core.options import GAMMA
from graft_core.settings import LOOK, Settings
from graft_core.takeaway import _key
from graft_core.takeaway._page import add, page, rendered, table
from graft_core.takeaway._shapes import HOLLOW, NEGATIVE_DASH, SCALES, UNDEFINED_DASH
from graft_core.takeaway.drawn import check_paint, group_code, painted, placed_labels, without_texts
from graft_core.takeaway.svg import BORDER, FONT, QUIET
from graft_core.values import solve_values

LIBRARY: Final = "lib/vis-9.1.2/vis-network.min.js"
NO_PYVIS: Final = "the interactive page needs pyvis, which brings vis-network: pip install 'graft-lab[app]'"
MOST_ROWS: Final = 2000


def graph_html(structure: GraphStructure, painted: GraphPaint, *, title: str = "", texts: bool = True) -> str:
    """The picture as a page to pan and zoom, with key, caption and the same as a table.

    vis-network comes from the installed pyvis and stands in the page; nothing is loaded from elsewhere, and a content
    security policy lets no script run but the page's own two. Positions are given, nothing moves by itself. title:
    stands above the graph. texts: False leaves out everything a rollout said. Raises ValueError where `painted` was
    made for another structure, GraftError where pyvis is missing.
    """
    check_paint(structure, painted)
    shown = structure if texts else without_texts(structure)
    heading = plain(title) or "Graph of one task"
    library, drawing = _library(), _own("page.js")
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in (library, drawing))
    document, body = page(heading, _own("page.css"), allowed)
    add(body, "h1", heading[:300])
    add(body, "p", f"{shown.caption}. Drag to pan, wheel or + and − to zoom, arrow keys to move.", class_="quiet")
    add(body, "div", id="graph", class_="graph", role="img", **{"aria-label": "graph; the table below says the same"})
    body.append(_key_element(shown, painted))
    _twin(body, shown, painted)
    data = ET.SubElement(body, "script", {"type": "application/json", "id": "data"})
    data.text = _json(_message(shown, painted))
    ET.SubElement(body, "script").text = library
    ET.SubElement(body, "script").text = drawing
    return rendered(document)


@dataclass(frozen=True)
class Shown:
    """A graph in a notebook: the last line of a cell shows it; `html` is the page, `save` writes it."""

    html: str
    height: int = 640

    def _repr_html_(self) -> str:
        """A frame of its own: the page cannot reach the notebook, nor the notebook's texts the page."""
        inside = html.escape(self.html, quote=True)
        look = f'width="100%" height="{self.height}" style="border:0"'
        return f'<iframe sandbox="allow-scripts" srcdoc="{inside}" {look}></iframe>'

    def __repr__(self) -> str:
        return f"Shown({len(self.html):,} characters of HTML; .save(path) writes them)"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all; returns its path."""
        place = Path(path)
        replace_with(place, lambda stream: stream.write(self.html.encode()))
        return place


def show(
    graph: TrajectoryGraph, group: int | str = 0, settings: Settings | None = None, *, texts: bool = True, max_nodes: int = 300
) -> Shown:
    """One task's graph for a notebook: value on the nodes, credit A of the settings (default: *Look*) on the edges.

    group: number or id of the task. texts: False leaves out what rollouts said. max_nodes: the least visited nodes above
    it are not drawn. Raises `UsageError` for a task that is not in the batch, GraftError where pyvis is missing.
    """
    batch, chosen = graph.batch, settings or LOOK
    code = group_code(batch, group)
    estimator = estimators()[chosen.estimator]
    gamma = estimator.resolve(chosen.options_for(estimator.name)).get("gamma") or GAMMA.default
    values = solve_values(graph, gamma=gamma, **chosen.value_words)
    options = chosen.options_for(estimator.name)
    credit = estimate(batch, estimator.name, graph=graph, values=values, **chosen.value_words, **options)
    structure = picture(graph, code, max_nodes=max_nodes)
    paint = painted(graph, structure, values.v, credit, estimator.title)
    return Shown(graph_html(structure, paint, title=batch.group_ids[code], texts=texts))


def _message(shown: GraphStructure, paint: GraphPaint) -> dict[str, Any]:
    fills, firm, faint = value_colours(), credit_colours("light"), credit_colours("light", True)
    nodes, edges = [], []
    radius = [size * SCALES[kind] for size, kind in zip(shown.node_size.tolist(), shown.node_kind, strict=True)]
    named = set(placed_labels(shown, list(zip(shown.x.tolist(), shown.y.tolist(), strict=True)), radius))
    for i, kind in enumerate(shown.node_kind):
        number = ord(paint.nodes[i]) - FIRST_CODE
        nodes.append({
            "id": int(shown.node_id[i]), "kind": kind, "x": round(float(shown.x[i]), 1), "y": round(float(shown.y[i]), 1),
            "size": round(radius[i], 1), "label": shown.node_label[i] if i in named else "", "tip": shown.node_tip[i],
            "fill": PAGE["light"] if kind in HOLLOW or number == NO_VALUE else fills[number],
            "outline": BORDER["light"], "border": 2 if kind in HOLLOW else 1.2,
        })  # fmt: skip
    sizes = dict(zip(shown.node_id.tolist(), shown.node_size.tolist(), strict=True))
    for i, number in enumerate(_numbers(shown, paint)):
        src, bend = int(shown.edge_src[i]), float(shown.edge_curve[i])
        dash = UNDEFINED_DASH if number == NO_CREDIT else NEGATIVE_DASH if number < CREDIT_STEPS else ""
        edges.append({
            "id": int(shown.edge_id[i]), "from": src, "to": int(shown.edge_dst[i]),
            "width": round(float(shown.edge_width[i]), 2), "curve": round(bend, 2),
            "tip": shown.edge_tip[i], "ink": (faint if shown.edge_thin[i] else firm)[number],
            "dashes": [float(part) for part in dash.split()],
            "loop": {"size": sizes[src] * 0.9 + 3, "angle": math.pi / 4 + bend * math.pi / 3, "renderBehindTheNode": True},
        })  # fmt: skip
        if not dash:
            del edges[-1]["dashes"]
    return {"nodes": nodes, "edges": edges}


def _numbers(shown: GraphStructure, paint: GraphPaint) -> list[int]:
    """Palette number of each edge; a batch without any credit sends none."""
    return [ord(c) - FIRST_CODE for c in paint.edges] or [NO_CREDIT] * int(shown.edge_id.size)


def _key_element(shown: GraphStructure, paint: GraphPaint) -> ET.Element:
    empty = chr(NO_VALUE + FIRST_CODE) in paint.nodes
    symbols = _key.used_symbols(shown, set(_numbers(shown, paint)), empty)
    key = ET.Element("svg", {"role": "img", "aria-label": "key", "font-family": FONT, "width": "1060"})
    bottom = _key.draw_key(key, 22, paint, symbols, 1060, "light", QUIET["light"], BORDER["light"], PAGE["light"])
    key.set("viewBox", f"0 0 1060 {bottom:.0f}")
    key.set("height", f"{bottom:.0f}")
    frame = ET.Element("div", {"class": "scroll"})
    frame.append(key)
    return frame


def _twin(body: ET.Element, shown: GraphStructure, paint: GraphPaint) -> None:
    """Every drawn step in a table, most travelled first."""
    names = dict(zip(shown.node_id.tolist(), shown.node_label, strict=True))
    signs = [
        "undefined" if n == NO_CREDIT else "better" if n > CREDIT_STEPS else "worse" if n < CREDIT_STEPS else "no difference"
        for n in _numbers(shown, paint)
    ]
    order = sorted(range(shown.edge_id.size), key=lambda i: (-int(shown.edge_count[i]), i))[:MOST_ROWS]
    box = ET.SubElement(body, "details")
    add(box, "summary", "The same as a table")
    rows = (
        (
            shown.first_part(i), names[int(shown.edge_src[i])], shown.edge_label[i], names[int(shown.edge_dst[i])],
            int(shown.edge_count[i]), signs[i],
        )
        for i in order
        if shown.edge_id[i] >= 0
    )
    table(box, ["step", "from", "action", "to", "times", plain(paint.credit_name)], rows)


def _json(data: dict[str, Any]) -> str:
    """JSON that can stand inside a script element: no sign in it can end the element or begin another."""
    text = orjson.dumps(data).decode()
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def _own(name: str) -> str:
    return (resources.files("graft_core.takeaway") / name).read_text("utf-8")


@cache
def _library() -> str:
    """vis-network as pyvis ships it, without its reference to a source map."""
    try:
        source = (resources.files("pyvis") / LIBRARY).read_text("utf-8")
    except (ModuleNotFoundError, FileNotFoundError):
        raise GraftError(NO_PYVIS) from None
    source = re.sub(r"//# sourceMappingURL=.*", "", source)
    return source.replace("\r\n", "\n").replace("\r", "\n").replace("</script", "<\\/script").replace("<!--", "<\\!--")
