"""The Compare page as a script: two settings on the same steps, what it lists, and what the address holds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from app_pages import Open, metrics, step, words, write

import graft_core as gc
from graft_app import server

PAGE = "compare"


def test_agreement_against_the_estimators_themselves(opened: Open) -> None:
    test = opened()
    batch = gc.load(server.given_paths()[0])
    a, b = gc.estimate(batch, "graft_td"), gc.estimate(batch, "grpo")
    a, b = (np.where(np.abs(x) < 1e-9, 0, x) for x in (a, b))
    seen = metrics(test)
    assert seen["same sign"] == f"{100 * np.mean(np.sign(a) == np.sign(b)):.0f} %"
    assert seen["opposite sign"] == f"{100 * np.mean(a * b < 0):.0f} %"
    assert seen["size of B against A"] == f"{np.sqrt(np.mean(b**2) / np.mean(a**2)):.2f} ×"
    listed = test.dataframe[0].value
    assert (np.sign(listed["graph TD"].round(9)) != np.sign(listed["GRPO"].round(9))).all()
    assert "difference" not in listed  # GRPO is divided by a standard deviation: other units


def test_the_right_hand_side_has_words_of_its_own(opened: Open) -> None:
    test = opened(a="path_gae", lam="0.5", c_a="path_gae", c_rules="history:1", c_sinks="merge", rows="most")
    assert test.slider(key="url_c_lam").value == 0.5  # what is absent is as on the left
    said = words(test)
    assert "rules **exact** against **history\\:1**" in said
    assert "sinks **split** against **merge**" in said
    batch = gc.load(server.given_paths()[0])
    right = gc.estimate(batch, "path_gae", lam=0.5, rules=["history:1"], sinks="merge")
    left = gc.estimate(batch, "path_gae", lam=0.5)
    listed = test.dataframe[0].value
    assert listed["difference"].abs().iloc[0] == pytest.approx(np.nanmax(np.abs(left - right)))
    assert list(listed["difference"].abs()) == sorted(listed["difference"].abs(), reverse=True)
    test.slider(key="url_c_lam").set_value(0.75).run()
    assert test.query_params["c_lam"] == "0.75"
    assert test.query_params["lam"] == "0.5"
    test.slider(key="url_c_lam").set_value(0.5).run()
    assert "c_lam" not in test.query_params


def test_both_sides_the_same_says_so(opened: Open, vectors: Path) -> None:
    test = opened(vectors / "hand.jsonl", c_a="graft_td")
    assert "Both sides are the same" in words(test)
    assert metrics(test)["same sign"] == "100 %"
    assert metrics(test)["size of B against A"] == "1.00 ×"


def test_a_brushed_rectangle_lists_its_steps(opened: Open) -> None:
    batch = gc.load(server.given_paths()[0])
    a, b = gc.estimate(batch, "graft_td"), gc.estimate(batch, "grpo")
    inside = (a >= 0.1) & (a <= 0.4) & (b >= -2) & (b <= 0)
    test = opened(box="0.1,0.4,-2,0", rows="box")
    assert len(test.dataframe[0].value) == inside.sum() > 0
    next(x for x in test.button if x.label == "Clear the rectangle").click().run()
    assert "box" not in test.query_params
    assert not test.exception


def test_a_chosen_step_shows_both_credits_and_the_sweep(opened: Open) -> None:
    batch = gc.load(server.given_paths()[0])
    test = opened(a="path_gae", c_a="grpo", at="5")
    expected = [gc.estimate(batch, name)[5] for name in ("path_gae", "grpo")]
    own = next(d.value for d in test.dataframe if "here" in d.value)
    assert list(own["credit"]) == pytest.approx(expected)
    curve = json.loads(test.get("plotly_chart")[1].proto.spec)["data"][0]
    swept = [gc.estimate(batch, "path_gae", lam=lam)[5] for lam in (0.0, 1.0)]
    drawn = curve["y"]
    if isinstance(drawn, dict):  # a typed array, base64
        import base64

        drawn = np.frombuffer(base64.b64decode(drawn["bdata"]), dtype=np.float64)
    assert [drawn[0], drawn[-1]] == pytest.approx(swept)


def test_measures_stand_beside_the_papers(opened: Open) -> None:
    test = opened(c_rules="history:1")
    described = [gc.describe(gc.load(server.given_paths()[0]), rules=r)["graph"] for r in (["exact"], ["history:1"])]
    table = next(d.value for d in test.dataframe if "papers" in d.value).set_index("measure")
    sizes = table.loc["steps that share one moment, on average"]
    assert [sizes["graph TD"], sizes["GRPO"]] == [f"{d['mean_group_size']:.1f}" for d in described]
    assert list(table["papers"])[:6] == ["4 to 5", "> 60 %", "60 %", "20 %", "22 %", "65 %"]
    assert "papers' own data" in words(test)


@pytest.mark.parametrize(
    ("name", "word", "says"),
    [("c_lam", "7", "from 0 to 1"), ("c_a", "grppo", "did you mean"), ("box", "1,2,3", "four numbers"), ("box", "a", "box")],
)
def test_a_wrong_word_in_the_address_is_a_message(opened: Open, vectors: Path, name: str, word: str, says: str) -> None:
    test = opened(vectors / "hand.jsonl", **{name: word})
    assert says in test.warning[0].value.replace("\\", "")
    assert metrics(test)


def test_an_estimator_that_the_file_does_not_allow_is_one_sentence(opened: Open, vectors: Path) -> None:
    test = opened(vectors / "hand.jsonl", c_a="gae_critic")
    assert "needs the step column" in test.error[0].value
    assert test.selectbox(key="url_c_a").value == "gae_critic"


def test_hostile_text_is_text(opened: Open, tmp_path: Path) -> None:
    bad = "<img src=x onerror=alert(1)> [link](javascript:alert(1)) $x$ :red[no] `code` \u202e"
    rows = [{**step(bad, 0, bad, bad, 1.0), "group_id": bad}, {**step("b", 0, bad, "y", 0.0), "group_id": bad}]
    test = opened(write(tmp_path / "bad.jsonl", *rows), at="0")
    for element in test.markdown:
        assert "<img" not in element.value.replace("\\<img", "")
        assert not element.allow_html
    assert "\u202e" not in words(test)


def test_the_difference_in_the_graph_is_a_minus_b(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    from graft_app.views import graph_tools

    shown: dict[str, np.ndarray] = {}
    real = graph_tools.ink

    def spy(structure: object, values: object, credit: np.ndarray, **words: object) -> object:
        shown[str(words["credit_name"])] = credit
        return real(structure, values, credit, **words)

    monkeypatch.setattr(graph_tools, "ink", spy)
    test = opened(a="path_gae", lam="0.5", c_a="path_gae", c_lam="0.25", view="difference", task="cool apple")
    assert "Blue and solid" in words(test) and "ranks are compared" not in words(test)
    (name,) = shown
    assert "−" in name
    opened(a="path_gae", lam="0.5", c_a="path_gae", c_lam="0.25", view="graphs", task="cool apple")
    left, right = (shown[n] for n in name.split(" − "))
    assert np.isfinite(left).any() and np.abs(left - right)[np.isfinite(left)].max() > 0.01
    assert np.allclose(shown[name], left - right, equal_nan=True)
    opened(view="difference", task="cool apple")  # graph TD against GRPO
    assert np.nanmax(np.abs(shown["places apart"])) <= 1


def test_a_chosen_step_brings_its_task_into_the_pictures(opened: Open) -> None:
    test = opened(view="graphs", at="5")
    assert test.selectbox(key="url_task").value == 0
    assert "scale of its own" in words(test)
