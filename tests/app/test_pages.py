"""The pages as scripts: what they say on good, odd and wrong input, and what the address bar holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from graft_app import server

APP = Path(server.MAIN)
Open = Callable[..., AppTest]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Open:
    """`opened([path], page="graph", lam="0.5")` runs one page on files with an address."""

    def go(paths: list[Path] | None = None, page: str = "findings", **address: str) -> AppTest:
        monkeypatch.setenv(server.PATHS_VARIABLE, json.dumps([str(p) for p in paths or []]))
        test = AppTest.from_file(str(APP), default_timeout=60)
        for name, word in address.items():
            test.query_params[name] = word
        test.run()
        if page != "findings":
            test.switch_page(f"screens/{page}.py").run()
        assert not test.exception, test.exception
        return test

    return go


def words(test: AppTest) -> str:
    """All the text of a page."""
    kinds = ("markdown", "caption", "subheader", "warning", "error", "info", "text")
    return "\n".join(str(element.value) for kind in kinds for element in test.get(kind))


def write(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def step(rollout: str, number: int, observation: str, action: str, outcome: float | None, **more: object) -> dict[str, object]:
    row = {"group_id": "g", "rollout_id": rollout, "step": number, "observation": observation, "action": action}
    return {**row, "outcome": outcome, **more}


def test_opens_on_the_sample_data(opened: Open) -> None:
    test = opened()
    said = words(test)
    assert "8 tasks · 64 rollouts · 26 succeeded · 2 tasks teach nothing" in said
    assert "142 good steps in failed rollouts" in said
    assert test.dataframe[0].value["times"].sum() == 142


def test_hand_shows_its_one_good_step(opened: Open, vectors: Path) -> None:
    test = opened([vectors / "hand.jsonl"])
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
    test = opened([test_data / "verl_agent_webshop"])
    assert test.warning[0].value.startswith("no task")
    assert len(test.warning) == 2
    assert "order" in test.warning[1].value
    assert any("one task (group)" in i.value for i in test.info)
    assert not test.dataframe
    chosen = opened([test_data / "verl_agent_webshop"], group_by="file")
    assert chosen.dataframe


def test_tau_bench_finds_44(opened: Open, test_data: Path) -> None:
    test = opened([test_data / "tau_bench" / "gpt-4o-airline.json"])
    assert "44 good steps in failed rollouts" in words(test)


def test_graph_page_tells_what_lambda_changes_and_lists_conflicts(opened: Open, vectors: Path) -> None:
    test = opened([vectors / "conflicts.jsonl"], page="graph")
    said = words(test)
    assert "What λ changes here" in said
    assert any("final state" in box.label for box in test.expander)


def test_graph_page_shows_a_chosen_node_and_edge(opened: Open, vectors: Path) -> None:
    test = opened([vectors / "hand.jsonl"], page="graph", sel="n0")
    assert "visits" in [m.label for m in test.metric]
    assert {"back", "left", "door"} & set(test.dataframe[0].value["action"])
    test = opened([vectors / "hand.jsonl"], page="graph", sel="e0", at="0")
    assert "after" in [m.label for m in test.metric]


@pytest.mark.parametrize("selection", ["n999", "e-1", "x3", "n", "e²"])
def test_a_selection_that_does_not_exist_is_ignored(opened: Open, vectors: Path, selection: str) -> None:
    test = opened([vectors / "hand.jsonl"], page="graph", sel=selection, at="99999")
    assert "Choose a moment or a step" in words(test)


CASES = {
    "one rollout": [step("a", 0, "s", "x", 1.0)],
    "all succeed": [step(r, 0, "s", "x", 1.0) for r in "abc"],
    "all fail": [step(r, 0, "s", "x", 0.0) for r in "abc"],
    "all unknown": [step(r, 0, "s", "x", None) for r in "abc"],
    "no steps": [{"group_id": "g", "rollout_id": r, "step": None, "outcome": 1.0} for r in "ab"],
    "scores": [step("a", 0, "s", "x", 0.3), step("b", 0, "s", "y", 7.5), step("c", 0, "s", "x", -2.0)],
    "cycle": [step("a", i, "s" if i % 2 else "t", "x", 0.0) for i in range(6)] + [step("b", 0, "t", "y", 1.0)],
}


@pytest.mark.parametrize("page", ["findings", "graph"])
@pytest.mark.parametrize("case", CASES)
def test_odd_batches_give_a_sensible_page(opened: Open, tmp_path: Path, case: str, page: str) -> None:
    test = opened([write(tmp_path / "odd.jsonl", *CASES[case])], page=page)
    assert "task" in words(test)
    assert not test.error


def test_a_missing_and_a_broken_file_are_one_sentence(opened: Open, tmp_path: Path, vectors: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"")
    test = opened([empty, vectors / "hand.jsonl"])
    assert "empty" in test.error[0].value.lower()
    assert test.selectbox(key="url_file").value == 0
    gone = opened([tmp_path / "gone.jsonl"])
    assert "gone.jsonl" in gone.error[0].value


def test_hostile_text_is_text(opened: Open, tmp_path: Path) -> None:
    bad = "<img src=x onerror=alert(1)> [link](javascript:alert(1)) $x$ :red[no] `code`"
    rows = [
        {**step("a", 0, bad, bad, 1.0), "group_id": bad}, {**step("b", 0, bad, "y", 0.0), "group_id": bad},
        {**step("b", 1, bad, bad, 0.0), "group_id": bad},
    ]
    test = opened([write(tmp_path / "bad.jsonl", *rows)], page="graph", sel="n0")
    for element in test.markdown:
        assert "<img" not in element.value.replace("\\<img", "")
        assert not element.allow_html


def test_a_verdict_is_saved_beside_the_data_and_undone(opened: Open, tmp_path: Path, vectors: Path) -> None:
    path = tmp_path / "hand.jsonl"
    path.write_bytes((vectors / "hand.jsonl").read_bytes())
    test = opened([path], page="graph", sel="e0")
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
    test = opened([path], page="graph", sel="e0")
    next(b for b in test.button if b.label == "Make a finding card").click().run()
    assert not test.exception
    assert any("graft verify" in c.value for c in test.caption)


def test_step_rewards_that_do_not_sum_to_the_outcome_are_said(opened: Open, vectors: Path) -> None:
    test = opened([vectors / "scores.jsonl"], rewards="dense")
    assert any("do not sum to the outcome" in w.value for w in test.warning)
    assert "chance needs rewards" in words(test)
