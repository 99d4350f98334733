"""The pages as scripts: what they say on good, odd and wrong input, and what the address bar holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from app_pages import Open, step, words, write

import graft_core as gc
from graft_app import batch as table
from graft_app import server
from graft_core.insight.teach import teach
from graft_core.insight.why import position_of_row, why


def test_opens_on_the_sample_data(opened: Open) -> None:
    test = opened()
    said = words(test)
    assert "8 tasks · 64 rollouts · 26 succeeded · 2 tasks teach nothing" in said
    assert "142 good steps in failed rollouts" in said
    assert test.dataframe[0].value["times"].sum() == 142


def test_hand_shows_its_one_good_step(opened: Open, vectors: Path) -> None:
    test = opened(vectors / "hand.jsonl")
    frame = test.dataframe[0].value
    assert list(frame["step"]) == ["r1/0"]
    assert frame["GRPO"].iloc[0] == pytest.approx(-0.866, abs=1e-3)


def test_the_address_sets_the_widgets_and_widgets_set_the_address(opened: Open) -> None:
    test = opened(a="path_gae", lam="0.5")
    assert test.selectbox(key="url_a").value == "path_gae"
    assert test.slider(key="url_lam").value == 0.5
    test.slider(key="url_lam").set_value(0.25).run()
    assert test.query_params["lam"] == "0.25"
    test.slider(key="url_lam").set_value(0.95).run()
    assert "lam" not in test.query_params
    test.selectbox(key="url_rules").set_value("history:2").run()
    assert test.query_params["rules"] == "history:2"
    assert not test.exception


@pytest.mark.parametrize(
    ("name", "word", "says"),
    [
        ("lam", "7", "from 0 to 1"), ("a", "grppo", "did you mean"), ("rules", "exakt", "did you mean"),
        ("file", "9", "files 0 to 0"),
    ],
)
def test_a_wrong_word_in_the_address_is_a_message(opened: Open, name: str, word: str, says: str) -> None:
    test = opened(**{name: word})
    assert says in test.warning[0].value
    assert "142 good steps" in words(test)


def test_search_and_support_filter_the_list(opened: Open) -> None:
    test = opened(q="microwave", seen="3")
    frame = test.dataframe[0].value
    assert 0 < len(frame) < 142
    assert all(int(cell.split()[0]) >= 3 for cell in frame["seen by"])


def test_webshop_warns_before_any_number(opened: Open, test_data: Path) -> None:
    test = opened(test_data / "verl_agent_webshop")
    assert test.warning[0].value.startswith("The file does not say which rollouts belong to one task")
    assert len(test.warning) == 2
    assert "order" in test.warning[1].value
    assert any("one task (group)" in i.value for i in test.info)
    assert not test.dataframe
    chosen = opened(test_data / "verl_agent_webshop", group_by="file")
    assert chosen.dataframe


def test_tau_bench_finds_44(opened: Open, test_data: Path) -> None:
    test = opened(test_data / "tau_bench" / "gpt-4o-airline.json")
    assert "44 good steps in failed rollouts" in words(test)


def test_graph_page_tells_what_lambda_changes_and_lists_conflicts(opened: Open, vectors: Path) -> None:
    test = opened(vectors / "conflicts.jsonl", page="graph")
    said = words(test)
    assert "What λ changes here" in said
    assert any("final state" in box.label for box in test.expander)


def test_graph_page_shows_a_chosen_node_and_edge(opened: Open, vectors: Path) -> None:
    test = opened(vectors / "hand.jsonl", page="graph", sel="n0")
    assert "visits" in [m.label for m in test.metric]
    assert {"back", "left", "door"} & set(test.dataframe[0].value["action"])
    test = opened(vectors / "hand.jsonl", page="graph", sel="e0", at="0")
    assert "after" in [m.label for m in test.metric]


@pytest.mark.parametrize("selection", ["n999", "e-1", "x3", "n", "e²"])
def test_a_selection_that_does_not_exist_is_ignored(opened: Open, vectors: Path, selection: str) -> None:
    test = opened(vectors / "hand.jsonl", page="graph", sel=selection, at="99999")
    assert "Choose a moment or a step" in words(test)


def test_a_missing_and_a_broken_file_are_one_sentence(opened: Open, tmp_path: Path, vectors: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"")
    test = opened(empty, vectors / "hand.jsonl")
    assert "empty" in test.error[0].value.lower()
    assert test.selectbox(key="url_file").value == 0
    gone = opened(tmp_path / "gone.jsonl")
    assert "gone\\.jsonl" in gone.error[0].value


def test_hostile_text_is_text(opened: Open, tmp_path: Path) -> None:
    bad = "<img src=x onerror=alert(1)> [link](javascript:alert(1)) $x$ :red[no] `code`"
    rows = [
        {**step("a", 0, bad, bad, 1.0), "group_id": bad}, {**step("b", 0, bad, "y", 0.0), "group_id": bad},
        {**step("b", 1, bad, bad, 0.0), "group_id": bad},
    ]
    test = opened(write(tmp_path / "bad.jsonl", *rows), page="graph", sel="n0")
    for element in test.markdown:
        assert "<img" not in element.value.replace("\\<img", "")
        assert not element.allow_html


def test_a_verdict_is_saved_beside_the_data_and_undone(opened: Open, tmp_path: Path, vectors: Path) -> None:
    path = tmp_path / "hand.jsonl"
    path.write_bytes((vectors / "hand.jsonl").read_bytes())
    test = opened(path, page="graph", sel="e0")
    test.text_area[0].set_value("worth a look")
    next(b for b in test.button if b.label == "Save").click().run()
    saved = json.loads((tmp_path / "hand.jsonl.graft-notes.json").read_text())
    assert "worth a look" in json.dumps(saved)
    next(b for b in test.button if b.label.startswith("Undo")).click().run()
    assert test.text_area[0].value == ""
    assert not test.exception


def test_a_card_is_made_for_the_chosen_step(opened: Open, tmp_path: Path, vectors: Path) -> None:
    path = tmp_path / "hand.jsonl"
    path.write_bytes((vectors / "hand.jsonl").read_bytes())
    test = opened(path, page="graph", sel="e0")
    next(b for b in test.button if b.label == "Make a finding card").click().run()
    assert not test.exception
    assert any("graft verify" in c.value for c in test.caption)


def test_step_rewards_that_do_not_sum_to_the_outcome_are_said(opened: Open, vectors: Path) -> None:
    test = opened(vectors / "scores.jsonl", rewards="dense")
    assert any("do not sum to the outcome" in w.value for w in test.warning)
    assert "chance needs rewards" in words(test)


def test_the_line_above_counts_silent_tasks_as_the_list_does(opened: Open, test_data: Path) -> None:
    """On these files some tasks are silent only because nothing merges there: outcomes alone would count two fewer."""
    path = test_data / "tau_bench" / "gpt-4o-airline.json"
    found = gc.findings(gc.load(path), shuffles=0)
    silent = teach(found.batch, found.graph).silent
    assert silent > teach(found.batch).silent
    said = words(opened(path, list="nothing"))
    assert f"{silent} tasks teach nothing" in said and f"{silent} of 50 tasks teach nothing" in said


def test_warnings_say_what_happened_and_what_it_means(opened: Open) -> None:
    test = opened()
    (warning,) = test.warning
    assert warning.value.startswith("4 moments merge steps by an empty, error or no\\-op observation")
    assert "so credit can leak between them" in warning.value
    assert not opened(rules="guard").warning


def test_reading_a_large_file_can_be_stopped_and_taken_up(
    opened: Open, vectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "PROGRESS_FROM", 1)
    path = vectors / "hand.jsonl"
    test = opened(path)
    assert test.dataframe and not any(b.key == "stop_reading" for b in test.button)
    test.session_state[table.STOPPED] = {str(path)}
    test.run()
    assert "reading was stopped" in test.error[0].value and not test.dataframe
    test.button(key="read_again").click().run()
    assert test.dataframe and not test.error


def test_the_expert_drawer_makes_its_widgets_when_it_opens(opened: Open) -> None:
    test = opened(sinks="merge")
    assert not any(box.key == "url_sinks" for box in test.selectbox)
    test.session_state["drawer_expert"] = True
    test.run()
    assert test.selectbox(key="url_sinks").value == "merge"
    test.selectbox(key="url_sinks").set_value("bootstrap").run()
    assert test.query_params["sinks"] == "bootstrap" and not test.exception


def test_the_chosen_finding_is_told_beneath_the_list(opened: Open) -> None:
    found = gc.findings(gc.load(server.given_paths()[0]), shuffles=0)
    rows = found.merged_rows(found.good)
    row = rows[3]
    test = opened(at=str(row["row"]))
    said = words(test)
    assert f"{row['group_id']} · {row['rollout_id']}" in said
    assert f"{row['credit']:+.2f}".replace("+", "\\+").replace(".", "\\.") + f" {row['action']}" in said
    assert "lost here" in said and "**FAILED" in said
    first = why(found, position_of_row(found.batch, row["row"])).sentences[0].text
    assert first.rstrip(".") in said.replace("\\", "")
    elsewhere = words(opened(at="99999"))  # a step that is in no list: the first row is told
    assert f"{rows[0]['group_id']} · {rows[0]['rollout_id']}" in elsewhere
