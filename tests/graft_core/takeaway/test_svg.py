"""The SVG says what the picture says, and nothing in it can run, load or hide."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import hostile
import pytest

from graft_core.insight import Findings
from graft_core.insight.palette import NO_CREDIT, credit_numbers, value_colours, value_numbers
from graft_core.insight.picture import picture
from graft_core.insight.sketch import Shape
from graft_core.insight.structure import carried, ink, mean_per_edge
from graft_core.takeaway._shapes import curve
from graft_core.takeaway.drawn import drawn, without_texts
from graft_core.takeaway.svg import graph_svg

SVG = "{http://www.w3.org/2000/svg}"
ALLOWED = {"svg", "title", "desc", "rect", "text", "g", "path", "polygon", "circle", "line"}
LOOKS = {
    "role", "font-family", "font-size", "font-weight", "viewBox", "width", "height", "fill", "stroke", "stroke-width",
    "stroke-dasharray", "stroke-linejoin", "text-anchor", "paint-order", "d", "points", "cx", "cy", "r", "x", "y", "x1", "x2",
    "y1", "y2",
}  # fmt: skip


def texts_of(root: ET.Element) -> str:
    return "\n".join(element.text or "" for element in root.iter())


@pytest.mark.parametrize("texts", [True, False])
@pytest.mark.parametrize("group", [0, 1])
def test_hostile_texts_stay_text(evil: Findings, group: int, texts: bool) -> None:
    structure, painted = drawn(evil, group)
    for title in hostile.TEXTS:
        root = ET.fromstring(graph_svg(structure, painted, title=title, texts=texts))
        for element in root.iter():
            assert element.tag.removeprefix(SVG) in ALLOWED
            assert set(element.attrib) <= LOOKS
            assert not any(re.search(r"url\(|javascript|//", value) for value in element.attrib.values())
    everything = texts_of(root)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\ufeff\u0000-\u0008]", everything)
    assert ("onerror" in everything) == texts


def test_positions_fills_dashes_and_shapes_are_those_of_the_picture(sample: Findings) -> None:
    structure, painted = drawn(sample, 0)
    root = ET.fromstring(graph_svg(structure, painted, title="cool apple"))
    nodes, edges = root.findall(f"{SVG}g")[1], root.findall(f"{SVG}g")[0]
    v, credit = sample.values.v, mean_per_edge(sample.graph, sample.batch.to_rows(sample.credit))
    circles = [e for e in nodes if e.tag == f"{SVG}circle"]
    ordinary = [i for i, kind in enumerate(structure.node_kind) if kind == "ordinary"]
    assert len(circles) == len(ordinary)
    shift = {round(float(c.get("cx")) - structure.x[i], 0) for c, i in zip(circles, ordinary)}  # type: ignore[arg-type]
    assert len(shift) <= 2  # one shift for all, up to rounding
    for circle, i in zip(circles, ordinary):
        assert circle.get("fill") == value_colours()[int(value_numbers(v[structure.node_id[i]]))]
    paths = [e for e in edges if e.tag == f"{SVG}path"]
    numbers = credit_numbers(credit[structure.edge_id], painted.credit_limit)
    dashes = ["1.5 4" if n == NO_CREDIT else "7 4" if n < 20 else None for n in numbers.tolist()]
    assert [p.get("stroke-dasharray") for p in paths] == dashes
    assert {"7 4", None} <= set(dashes)
    assert structure.caption in texts_of(root) and "better than usual here" in texts_of(root)


def test_the_curve_is_the_one_of_the_app() -> None:
    path, tip, towards = curve((0.0, 0.0), (100.0, 0.0), 0.0, 10.0)
    assert path == "M 0.0 0.0 L 89.0 0.0" and tip == (89.0, 0.0) and towards == 0.0
    bent = curve((0.0, 0.0), (100.0, 0.0), 0.5, 10.0)[0]  # reach 75, angle 135 degrees: to the side, 53 along
    assert "Q 53.0 -53.0" in bent


def test_paint_of_another_picture_is_refused(sample: Findings) -> None:
    structure, _ = drawn(sample, 0)
    with pytest.raises(ValueError, match="another structure"):
        graph_svg(structure, drawn(sample, 1)[1])


def test_the_dark_theme_has_a_dark_page(sample: Findings) -> None:
    root = ET.fromstring(graph_svg(*drawn(sample, 0), theme="dark"))
    assert root.find(f"{SVG}rect").get("fill") == "#0E1117"  # type: ignore[union-attr]


@pytest.mark.parametrize("shape", ["merged", "tree", "lanes"])
def test_every_shape_can_leave_with_its_texts_or_without(sample: Findings, shape: Shape) -> None:
    structure = picture(sample.graph, 0, max_nodes=40, shape=shape)
    inks = ink(structure, sample.values.v, carried(structure, sample.credit))
    whole, bare = (ET.fromstring(graph_svg(structure, inks, texts=texts)) for texts in (True, False))
    for root in (whole, bare):
        lines = root.findall(f"{SVG}g")[0]
        assert len(lines.findall(f"{SVG}path")) == structure.edge_id.size
        dotted = (structure.edge_length > 1) & (structure.edge_src != structure.edge_dst)
        assert len(lines.findall(f"{SVG}circle")) == 3 * int(dotted.sum())
    assert "kitchen" in texts_of(whole) and "kitchen" not in texts_of(bare)
    if shape == "lanes":
        assert "r1 · succeeded" in texts_of(bare)
    else:
        assert (structure.edge_length > 1).any() and "several steps in a row" in texts_of(bare)
        assert any(name.endswith(" steps") for name in without_texts(structure).edge_label)
