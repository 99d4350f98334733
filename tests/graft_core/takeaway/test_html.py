"""The standalone page: one document, two known scripts, no way out, texts as data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import hostile
import pytest

import graft_core as gc
from graft_core.insight import Findings
from graft_core.takeaway import html as page
from graft_core.takeaway.drawn import drawn

TAGS = {
    "html", "head", "meta", "title", "style", "body", "h1", "p", "div", "svg", "rect", "text", "circle", "polygon", "line",
    "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "script",
}  # fmt: skip


def test_hostile_texts_make_no_element_attribute_or_script(evil: Findings, read: Any) -> None:
    structure, painted = drawn(evil, 0)
    for title in hostile.TEXTS:
        seen = read(page.graph_html(structure, painted, title=title))
        assert set(seen.tags) <= TAGS
        assert seen.tags.count("script") == 3 and seen.tags.count("style") == 1 and seen.tags.count("title") == 1
        assert not [a for a in seen.attributes if a[1].startswith("on") or a[1] in ("src", "href", "srcdoc", "style", "action")]


def test_only_the_two_own_scripts_may_run(evil: Findings, read: Any) -> None:
    seen = read(page.graph_html(*drawn(evil, 0)))
    policy = next(value for _, name, value in seen.attributes if name == "content" and "default-src" in value)
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in seen.scripts]
    assert policy.startswith("default-src 'none'; ")
    assert set(re.findall(r"'sha256-([^']+)'", policy)) == set(digests[1:])
    assert "unsafe-inline" not in policy.split("style-src")[0] and "http" not in policy
    assert ("script", "type", "application/json") in seen.attributes


def test_the_data_hold_the_texts_and_cannot_leave_their_element(evil: Findings, read: Any) -> None:
    structure, painted = drawn(evil, 0)
    seen = read(page.graph_html(structure, painted))
    assert not set("<>&\u2028\u2029") & set(seen.scripts[0])
    data = json.loads(seen.scripts[0])
    assert [n["tip"] for n in data["nodes"]] == list(structure.node_tip)
    assert any("<script>alert" in e["tip"] for e in data["edges"])
    assert [n["x"] for n in data["nodes"]] == pytest.approx(structure.x.tolist(), abs=0.06)


def test_texts_can_be_left_out(evil: Findings) -> None:
    structure, painted = drawn(evil, 0)
    made = page.graph_html(structure, painted, title="task", texts=False)
    assert "alert(document" not in made and "' /C calc" not in made and "moment 0" in made
    assert structure.caption in made


def test_vis_network_is_the_one_of_pyvis_and_no_map_is_asked_for(sample: Findings, read: Any) -> None:
    library = read(page.graph_html(*drawn(sample, 0))).scripts[1]
    own = (resources.files("pyvis") / page.LIBRARY).read_text("utf-8")
    assert library[:2000] == own[:2000] and "sourceMappingURL" not in library


def test_show_is_a_sealed_frame(evil: Findings, read: Any) -> None:
    shown = gc.show(evil.graph, hostile.TEXTS[9])
    seen = read(shown._repr_html_())
    assert seen.tags == ["iframe"]
    attributes = {name: value for _, name, value in seen.attributes}
    assert attributes["sandbox"] == "allow-scripts" and attributes["srcdoc"] == shown.html
    assert repr(shown).startswith("Shown(") and len(repr(shown)) < 100


def test_show_paints_the_credit_of_the_settings(sample: Findings, read: Any, tmp_path: Path) -> None:
    look = gc.show(sample.graph, "cool apple")
    other = gc.show(sample.graph, 0, gc.Settings(estimator="grpo"))
    inks = [json.loads(read(shown.html).scripts[0])["edges"] for shown in (look, other)]
    assert [e["ink"] for e in inks[0]] != [e["ink"] for e in inks[1]]
    structure, painted = drawn(sample, 0)
    assert look.html == page.graph_html(structure, painted, title="cool apple")
    assert look.save(tmp_path / "graph.html").read_text("utf-8") == look.html


def test_show_says_what_is_wrong(sample: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(gc.UsageError, match="no task 'nowhere'"):
        gc.show(sample.graph, "nowhere")
    with pytest.raises(gc.UsageError, match="tasks are 0 to 7"):
        gc.show(sample.graph, 8)
    page._library.cache_clear()
    monkeypatch.setattr(page, "LIBRARY", "lib/not-there.js")
    with pytest.raises(gc.GraftError, match=r"needs pyvis.*pip install 'graft-lab\[app\]'"):
        gc.show(sample.graph, 0)
    page._library.cache_clear()
