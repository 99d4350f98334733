"""The report: complete, without a script, and hostile texts as text."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import hostile
import pytest

import graft_core as gc
import graft_sample_data
from graft_core.insight import Findings
from graft_core.provenance import provenance
from graft_core.takeaway.report import report_html

TAGS = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "pre", "div", "table", "caption", "thead", "tbody", "tr",
    "th", "td", "svg", "desc", "rect", "text", "g", "path", "circle", "polygon", "line",
}  # fmt: skip


def test_it_says_what_the_findings_say(sample: Findings, read: Any) -> None:
    path = graft_sample_data.paths()[0]
    made = report_html(sample, provenance([path], sample.settings.to_words()))
    seen = read(made)
    said = "\n".join(seen.words)
    assert "8 tasks, 64 rollouts: 26 succeeded, 38 failed, 0 of unknown outcome; 1,027 steps." in said
    assert "142 good steps in failed rollouts" in said and "would be found if outcomes were dealt at random" in said
    assert hashlib.sha256(Path(path).read_bytes()).hexdigest() in said
    assert f"graft-lab {gc.__version__}" in said and "graft findings household.jsonl" in said
    assert seen.tags.count("svg") == 6 and seen.tags.count("table") == 4
    best = sample.merged_rows(sample.good, 1)[0]
    assert f"{best['rollout_id']}/{best['step']}" in said and best["action"] in said
    assert str(Path(path).parent) not in made


def test_it_has_no_script_and_loads_nothing(evil: Findings, evil_file: Path, read: Any) -> None:
    seen = read(report_html(evil, provenance([str(evil_file)], {}), [0, 1]))
    assert set(seen.tags) <= TAGS and not seen.scripts
    names = {name for _, name, _ in seen.attributes}
    assert not [n for n in names if n.startswith("on")] and not names & {"src", "href", "style", "srcdoc", "action"}
    policy = next(v for t, n, v in seen.attributes if t == "meta" and n == "content" and "default-src" in v)
    assert policy.startswith("default-src 'none'; script-src 'none';")
    said = "\n".join(seen.words)
    assert "<script>alert(document.domain)</script>" in said and "\u202e" not in said
    assert len(max(seen.words, key=len)) < 1500  # a text of 100 kB is cut


def test_texts_can_be_left_out(evil: Findings, evil_file: Path, read: Any) -> None:
    travels = provenance([str(evil_file)], {})
    bare = report_html(evil, travels, [0], texts=False)
    for sign in ("onload", "' /C calc", "constructor", "ontoggle"):
        assert sign in report_html(evil, travels, [0]) and sign not in bare


def test_tasks_are_chosen_by_name_or_not_at_all(sample: Findings, read: Any) -> None:
    travels = provenance([], {})
    assert read(report_html(sample, travels, [])).tags.count("svg") == 0
    assert "Task heat mug" in report_html(sample, travels, ["heat mug"])
    with pytest.raises(gc.UsageError, match="no task 'x'"):
        report_html(sample, travels, ["x"])


def test_a_batch_without_steps_or_findings(tmp_path: Path, read: Any) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"group_id":"g","rollout_id":"r","step":null,"outcome":1}\n')
    said = "\n".join(read(report_html(gc.findings(gc.load(str(path)), shuffles=0), provenance([str(path)], {}))).words)
    assert "1 task, 1 rollout: 1 succeeded" in said and "0 good steps" in said and said.count("None.") == 2


def test_the_hostile_file_name_is_text(evil: Findings, evil_file: Path, read: Any) -> None:
    seen = read(report_html(evil, provenance([str(evil_file)], {}), []))
    assert "img" not in seen.tags and hostile.HOST not in "".join(v for _, _, v in seen.attributes)
    assert any("=cmd <img src=x onerror=alert(1)>" in word for word in seen.words)
