"""What a mask would merge, shown before it is trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from row_batches import batch_of, walk

from graft_core.states.preview import preview, segments


def test_preview_lists_the_largest_merges() -> None:
    rows = walk("a", "room-1:x room-2:x hall:x room-1:x", 1.0) + walk("b", "room-3:x hall:x lift-7:x lift-8:x", 0.0)
    rows += walk("c", "room-9:x", 0.0, group="other")  # another task: nothing to merge with
    shown = preview(batch_of(rows), ["masked:number"])
    assert (shown["merged_keys"], shown["steps"]) == (2, 6)
    rooms, lifts = shown["merges"]
    assert (rooms["steps"], rooms["rollouts"], rooms["distinct"], rooms["group_id"]) == (4, 2, 3, "g")
    assert [(t["text"], t["steps"]) for t in rooms["texts"]] == [("room-1", 2), ("room-2", 1), ("room-3", 1)]
    assert rooms["texts"][1]["segments"] == [{"text": "room-", "equal": True}, {"text": "2", "equal": False}]
    assert lifts["distinct"] == 2
    assert preview(batch_of(rows), ["masked:uuid"])["merges"] == []


def test_segments_are_the_whole_text() -> None:
    pairs = [("", ""), ("a b", ""), ("a  b\n", "a c\n"), ("x " * 900, "y x " * 900), ("日本 語", "日本 文"), ("same", "same")]
    for mine, theirs in pairs:
        found = segments(mine, theirs)
        assert "".join(s["text"] for s in found) == mine
        assert all(s["text"] in theirs for s in found if s["equal"])


def session_rows(path: Path) -> list[dict[str, Any]]:
    """The tool outputs of the recorded counter sessions, as observations of one task."""
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(path.read_text().splitlines()):
        items = json.loads(line)["response"]["output"]
        outputs = [i["output"] for i in items if i.get("type") == "function_call_output"]
        made = walk(f"r{number}", " ".join("x:y" for _ in outputs), 1.0)
        for row, output in zip(made, outputs, strict=False):
            row["observation"] = output
        rows += made
    return rows


def test_preview_shows_the_session_counters_that_a_mask_would_merge(test_data: Path) -> None:
    batch = batch_of(session_rows(test_data / "nemo_gym" / "example_session_state_mgmt_rollouts.jsonl"))
    shown = preview(batch, ["masked:number"], texts=10)
    assert shown["merged_keys"] >= 1
    counters = [t["text"] for m in shown["merges"] for t in m["texts"]]
    assert any("count" in text for text in counters) and len(set(counters)) >= 3
    assert preview(batch, ["masked:step-counter"])["merges"] == []
