"""The Rollouts page as a script: what it shows of a rollout, where its buttons lead, and odd input."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from app_pages import Open, step, words, write
from streamlit.testing.v1 import AppTest

import graft_core as gc
from graft_app import server
from graft_core.insight.align import align_rollouts
from graft_core.insight.findings import findings

PAGE = "rollouts"


def steps_shown(test: AppTest) -> list[str]:
    return [b.label for b in test.button if b.label.startswith("Step ")]


def press(test: AppTest, key: str) -> AppTest:
    test.button(key=f"way_{key}").click().run()
    assert not test.exception, test.exception
    return test


def test_shows_every_step_of_a_short_rollout_with_its_numbers(opened: Open, vectors: Path) -> None:
    path = vectors / "hand.jsonl"
    found = findings(gc.load(path))
    test = opened(path, rollout="r1")
    row = found.batch.rollout_ids.index("r1")
    start, end = found.batch.offsets[row : row + 2].tolist()
    assert steps_shown(test) == [f"Step {int(s)}" for s in found.batch.step_index[start:end]]
    codes = [c.value for c in test.get("code")]
    assert all(found.batch.text(int(a)) in codes for a in found.batch.action[start:end])
    first = f"{found.values.v[found.graph.src[start]]:.2f} → {found.values.v[found.graph.dst[start]]:.2f}"
    assert first in words(test)


def figure(test: AppTest) -> list[dict[str, Any]]:
    return list(json.loads(test.get("plotly_chart")[0].proto.spec)["data"])


def test_the_sign_of_a_bar_reads_without_colour(opened: Open) -> None:
    found = findings(gc.load(server.given_paths()[0]))
    start, end = found.batch.offsets[4:6].tolist()
    test = opened(at=str(int(found.batch.order[start])))
    bars = [trace for trace in figure(test) if trace["type"] == "bar"]
    for trace, credit in zip(bars, (found.credit[start:end], found.baseline[start:end]), strict=True):
        assert trace["marker"]["pattern"]["shape"] == ["/" if x < -1e-9 else "" for x in credit]
        assert {c for c, x in zip(trace["marker"]["color"], credit, strict=True) if x > 1e-9} <= {"#0072B2"}


def test_aligned_bars_stand_in_their_rows(opened: Open) -> None:
    batch = gc.load(server.given_paths()[0])
    rows = align_rollouts(gc.build_graph(batch), 1, 4)
    test = opened(task=batch.group_ids[0], rollout=batch.rollout_ids[1], beside=batch.rollout_ids[4])
    left, right = (array(trace["x"]) for trace in figure(test) if trace["type"] == "bar")
    assert left == [i for i, row in enumerate(rows) if row.left is not None]
    assert right == [i for i, row in enumerate(rows) if row.right is not None]


def array(data: Any) -> list[Any]:
    """A list from a figure, which may be packed."""
    if isinstance(data, dict):
        return np.frombuffer(base64.b64decode(data["bdata"]), dtype=data["dtype"]).tolist()
    return list(data)


def test_opens_the_first_rollout_with_a_good_step(opened: Open) -> None:
    test = opened()
    found = findings(gc.load(server.given_paths()[0]))
    row = int(found.batch.step_rollout[found.good[0]])
    assert test.selectbox(key="url_rollout").value == row


def test_the_step_in_the_address_decides_before_the_rollout(opened: Open, vectors: Path) -> None:
    batch = gc.load(vectors / "hand.jsonl")
    last = batch.n_rollouts - 1
    at = int(batch.order[batch.offsets[last]])
    test = opened(vectors / "hand.jsonl", rollout=batch.rollout_ids[0], at=str(at))
    assert test.selectbox(key="url_rollout").value == last


def test_keys_walk_along_the_rollout_and_to_the_others(opened: Open) -> None:
    batch = gc.load(server.given_paths()[0])
    start = int(batch.offsets[0])
    test = opened(at=str(int(batch.order[start])))
    assert test.button(key="way_K").disabled
    press(test, "J")
    assert test.query_params["at"] == str(int(batch.order[start + 1]))
    press(test, "K")
    assert test.query_params["at"] == str(int(batch.order[start]))
    press(test, "N")
    assert test.query_params["rollout"] == batch.rollout_ids[1]
    assert "at" not in test.query_params


def test_the_same_moment_and_the_other_action(opened: Open) -> None:
    found = findings(gc.load(server.given_paths()[0]))
    batch, graph = found.batch, found.graph
    test = opened(at=str(int(batch.order[0])))
    press(test, "M")
    at = int(test.query_params["at"])
    position = int((batch.order == at).nonzero()[0][0])
    assert graph.src[position] == graph.src[0]
    assert batch.step_rollout[position] != batch.step_rollout[0]
    press(test, "S")
    other = int((batch.order == int(test.query_params["at"])).nonzero()[0][0])
    assert graph.src[other] == graph.src[0]
    assert graph.pair[other] != graph.pair[position]


def test_two_rollouts_side_by_side(opened: Open) -> None:
    batch = gc.load(server.given_paths()[0])
    rows = align_rollouts(gc.build_graph(batch), 1, 4)
    shared, same = sum(r.shared for r in rows), sum(r.same_action for r in rows)
    assert shared > same
    one, other = batch.rollout_ids[1], batch.rollout_ids[4]
    test = opened(task=batch.group_ids[0], rollout=one, whole="1", beside=other)
    said = words(test)
    assert f"**{one}** and **{other}** share {shared} moment" in said
    assert f"the same action in {same} of them" in said
    assert said.count("same moment, different action") == shared - same
    assert said.count("same moment, same action") == same


def test_a_long_transcript_is_cut_around_the_chosen_step_and_shown_whole_on_demand(opened: Open, tmp_path: Path) -> None:
    path = write(tmp_path / "long.jsonl", *[step("a", i, f"s{i}", "go", 1.0) for i in range(60)])
    test = opened(path, at="30")
    assert steps_shown(test) == [f"Step {i}" for i in range(29, 35)]
    test.toggle(key="url_whole").set_value(True).run()
    assert test.query_params["whole"] == "1"
    assert steps_shown(test) == [f"Step {i}" for i in range(40)]
    last = opened(path, at="59")
    assert steps_shown(last) == ["Step 58", "Step 59"]
    assert "The end: succeeded" in words(last)


def test_long_texts_tool_calls_and_pictures(opened: Open, tmp_path: Path) -> None:
    long = "x" * 5000
    picture = "look [image 0123456789ab]"
    path = write(tmp_path / "t.jsonl", step("a", 0, long, 'book {"seat":"2A"}', 1.0), step("a", 1, picture, "go", 1.0))
    test = opened(path)
    said = words(test)
    assert long not in said
    assert 'book(seat="2A")' in said
    assert "image 0123456789ab: the file keeps its fingerprint" in said
    next(b for b in test.button if b.label == "show all 5,000 characters").click().run()
    assert long in words(test)


@pytest.mark.parametrize(
    ("address", "says"),
    [({"rollout": "zz"}, "no rollout 'zz'"), ({"beside": "zz"}, "no rollout 'zz'"), ({"task": "zz"}, "no task 'zz'")],
)
def test_a_wrong_word_in_the_address_is_a_message(opened: Open, vectors: Path, address: dict[str, str], says: str) -> None:
    test = opened(vectors / "hand.jsonl", **address)
    assert says in test.warning[0].value.replace("\\", "")
    assert steps_shown(test)


def test_another_file_starts_without_the_first_ones_words(opened: Open, vectors: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other.jsonl", step("z", 0, "s", "x", 1.0))
    test = opened(vectors / "hand.jsonl", other, rollout="r1", beside="r2", at="0", lam="0.5")
    test.selectbox(key="url_file").set_value(1).run()
    assert not test.warning
    own = hashlib.sha256(other.read_bytes()).hexdigest()[:16]
    assert dict(test.query_params) == {"file": "1", "lam": "0.5", "data": own}


def test_hostile_text_is_text(opened: Open, tmp_path: Path) -> None:
    bad = "<img src=x onerror=alert(1)> [link](javascript:alert(1)) $x$ :red[no] `code` \u202e"
    rows = [{**step(bad, 0, bad, bad, 1.0), "group_id": bad}, {**step("b", 0, bad, "y", 0.0), "group_id": bad}]
    test = opened(write(tmp_path / "bad.jsonl", *rows), rollout=bad, beside="b")
    for element in test.markdown:
        assert "<img" not in element.value.replace("\\<img", "")
        assert "](java" not in element.value
        assert not element.allow_html
    assert "<img" not in test.get("plotly_chart")[0].proto.spec
    assert "\u202e" not in words(test)
