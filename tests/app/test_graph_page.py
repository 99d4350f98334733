"""The graph page by its address: shapes, search, marked rollouts, two pictures, and words that mean nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from app_pages import Open
from streamlit.testing.v1 import AppTest

import graft_core as gc
import graft_sample_data

PAGE = "graph"


def told(page: AppTest, rank: int = 0) -> dict[str, Any]:
    """What the picture with this rank is told: its selection, paths and rings."""
    sent = [json.loads(element.proto.json) for element in page.get("bidi_component") if element.proto.json]
    return [message for message in sent if "paths" in message][rank]


def test_marked_rollouts_have_paths_and_win_over_the_step(opened: Open) -> None:
    page = opened(task="cool apple", at="0", mark="3", mark2="5")
    assert [path["name"] for path in told(page)["paths"]] == ["r4 · failed · 20 steps", "r6 · failed · 20 steps"]
    assert page.selectbox(key="url_mark").value == 3 and page.selectbox(key="url_mark2").value == 5
    assert [path["name"] for path in told(opened(task="cool apple", at="0"))["paths"]] == ["r1 · succeeded · 11 steps"]


def test_marks_of_another_task_and_words_without_meaning_are_left_alone(opened: Open) -> None:
    page = opened(task="cool apple", mark="63", mark2="x" * 40, nodes="7", panels="9", sel="n99999999", find="\x00[")
    assert told(page)["paths"] == [] and told(page)["selection"] is None and told(page)["found"] == []
    assert len([m for m in page.get("bidi_component") if m.proto.json]) == 1
    page = opened(shape="cube")
    assert any("shape in the address was not usable" in warning.value for warning in page.warning)


def test_another_task_forgets_what_was_marked(opened: Open) -> None:
    page = opened(task="cool apple", mark="3", mark2="5", find="kitchen", shape="tree")
    page.selectbox(key="url_task").select_index(1).run()
    assert "mark" not in page.query_params and "mark2" not in page.query_params
    assert page.query_params["find"] == "kitchen" and page.query_params["shape"] == "tree"


@pytest.mark.parametrize("shape", ["merged", "tree", "lanes"])
def test_a_search_says_how_many_moments_match(opened: Open, shape: str) -> None:
    page = opened(task="cool apple", find="KITCHEN", shape=shape)
    assert "moments match" in told(page)["note"]
    assert len(told(page)["found"]) >= 10
    assert told(opened(task="cool apple", find="no such words", shape=shape))["note"] == "no moment matches"


def test_next_leads_from_match_to_match_and_around(opened: Open) -> None:
    page = opened(task="cool apple", find="kitchen")
    seen = []
    for _ in range(3):
        page.button(key="find 1").click().run()
        seen.append(page.query_params["sel"])
    assert len(set(seen)) == 3
    page.button(key="find -1").click().run()
    assert page.query_params["sel"] == seen[1]


def test_both_shows_two_pictures_with_one_selection(opened: Open) -> None:
    page = opened(task="cool apple", panels="2", sel="n3", side="b")
    one, other = told(page, 0), told(page, 1)
    assert one["selection"] == other["selection"] == {"kind": "node", "id": 3}
    assert one["link"] == other["link"] and one["version"] == other["version"]
    assert (one["title"], other["title"]) == ("A · graph TD", "B · GRPO") and one["edges"] != other["edges"]


def test_colours_of_a_moment_do_not_depend_on_the_shape(opened: Open) -> None:
    graph = gc.build_graph(gc.load(graft_sample_data.paths()[0]))
    ends = {shape: told(opened(task="cool apple", shape=shape)) for shape in ("merged", "lanes")}
    assert set(ends["lanes"]["nodes"]) == set(ends["merged"]["nodes"])
    assert ends["lanes"]["scales"] == ends["merged"]["scales"]
    assert len(ends["lanes"]["edges"]) == int((graph.batch.group[graph.batch.step_rollout] == 0).sum())


def test_one_step_and_unknown_outcomes_have_a_picture_in_every_shape(opened: Open, tmp_path: Path) -> None:
    line = {"group_id": "g", "rollout_id": "r", "step": 0, "observation": "a", "action": "go", "next_observation": "b"}
    file = tmp_path / "one.jsonl"
    file.write_text(json.dumps(line | {"outcome": None}) + "\n")
    for shape in ("merged", "tree", "lanes"):
        page = opened(file, shape=shape)
        assert len(told(page)["nodes"]) == 2 and len(told(page)["edges"]) == 1
