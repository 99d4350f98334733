"""The explanation of a step: formulas that hold, paths that sum to one, sentences that count right."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from row_batches import batch_of, random_rows, walk

import graft_core as gc
from graft_core.credit import base
from graft_core.insight._formula import Formula, number, result_digits, signed
from graft_core.insight._paths import top_paths
from graft_core.insight.findings import Findings
from graft_core.insight.why import Sentence, position_of_row, why

CASES: list[tuple[str, dict[str, Any]]] = [
    ("graft_td", {}),
    ("graft_td", {"gamma": 0.8, "rewards": "dense"}),
    ("graft_td", {"per": "action", "weighting": "distinct"}),
    ("path_gae", {"lam": 0.5}),
    ("path_gae", {"lam": 1.0, "rewards": "dense"}),
    ("graft", {}),
    ("graft", {"reach": "distinct", "normalise": "mean"}),
    ("graft", {"normalise": "mean_std", "eps": 0.1}),
    ("grpo", {}),
    ("grpo", {"statistics": "steps", "eps": 0.05, "ddof": 0}),
    ("dr_grpo", {}),
    ("rloo", {}),
    ("gigpo", {"omega": 0.5}),
    ("gigpo", {"rewards": "dense"}),
]


def found_for(estimator: str, options: dict[str, Any], **odds: float) -> Findings:
    return gc.findings(batch_of(random_rows(4, scores=0.2, unknown=0.1, **odds)), estimator=estimator, **options)


def worked_out(text: str) -> tuple[float, float, str]:
    """The value of what stands left of the (almost) equals sign, the number on its right, and the sign itself."""
    left, sign, right = re.fullmatch(r"(.*) ([=≈]) (.*)", text).groups()
    plain = {"−": "-", "×": "*", "+": "+"}
    arithmetic = "".join(plain.get(c, c) for c in left)
    assert re.fullmatch(r"[\d.e()*/+\- ]+", arithmetic), text
    return eval(arithmetic), float(right.replace("−", "-")), sign


def hold(made: Formula, credit: float) -> bool:
    """Whether the printed left side gives the printed right side, which is the credit, rounded."""
    left, right, sign = worked_out(made.text)
    digits = result_digits(credit)
    assert right == pytest.approx(credit, abs=0.51 * 10.0**-digits)
    assert left == pytest.approx(credit, abs=0.02 + 0.02 * abs(credit))
    return sign == "≈" or abs(left - right) <= 0.51 * 10.0**-digits


@pytest.mark.parametrize("name, options", CASES)
def test_the_printed_numbers_give_the_printed_result(name: str, options: dict[str, Any]) -> None:
    found = found_for(name, options)
    seen = 0
    for p in np.flatnonzero(found.batch.step_known).tolist():
        explained = why(found, p, leave_out=False)
        for made, credit in ((explained.formula, found.credit[p]), (explained.shown, found.shown[p])):
            if made is not None and made.exact and not made.text.startswith(("one rollout", "mean of")):
                assert hold(made, credit), made.text
                assert made.result == credit
                seen += 1
    assert seen >= 0.8 * found.batch.step_known.sum()


def test_td_by_pencil() -> None:
    """S: three rollouts, one wins through A, which is left once each way."""
    rows = walk("r0", "S:a A:x", 1.0, "e") + walk("r1", "S:a A:y", 0.0, "f") + walk("r2", "S:b", 0.0, "f")
    explained = why(gc.findings(batch_of(rows), gamma=1.0), 0)
    assert explained.formula.text == "1 × 0.50 − 0.33 = +0.17"
    assert explained.formula.symbols == "γ V(s′) − V(s)"
    assert explained.formula.numbers == pytest.approx({"gamma": 1.0, "value_after": 0.5, "value_before": 1 / 3})
    assert explained.baseline.text == "(1 − 0.3333) / 0.5774 = +1.15"  # 0.333 and 0.577 would give 1.16
    assert explained.shown is None
    last = why(gc.findings(batch_of(rows), gamma=1.0), 1)
    assert last.formula.text == "1 × 1 − 0.50 = +0.50"


def test_path_gae_writes_out_three_terms_and_sums_the_rest() -> None:
    found = gc.findings(batch_of(walk("r0", "A:a B:a C:a D:a E:a", 1.0, "e")), estimator="path_gae", gamma=0.5, lam=1.0)
    made = why(found, 0).formula
    assert made.note == "2 later steps together"
    assert made.text.count("×") == 2
    assert made.numbers["rest"] == pytest.approx(0.5**3 * found.credit[3])


def test_normalised_credit_is_shown_beside_the_one_that_decides() -> None:
    found = found_for("graft", {})
    p = next(p for p in range(found.batch.n_steps) if abs(found.shown[p] - found.credit[p]) > 0.1)
    explained = why(found, p)
    assert explained.formula.result == found.credit[p]
    assert explained.shown is not None
    assert explained.shown.result == found.shown[p]


def test_an_estimator_without_breakdown_states_its_result() -> None:
    @gc.estimator("half_grpo_for_tests", title="Half", meaning="half of GRPO", source="-", uses="rollouts")
    def half(inputs: Any) -> Any:
        return np.full(inputs.batch.n_steps, 0.25)

    try:
        made = why(gc.findings(batch_of(random_rows(1)), baseline="half_grpo_for_tests"), 0).baseline
    finally:
        del base.REGISTERED["half_grpo_for_tests"]  # tests that run later look at all estimators
    assert (made.text, made.exact, made.note) == ("Half: +0.25", False, "half of GRPO")


def test_a_formula_that_does_not_give_the_credit_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    from graft_core.insight import _formula

    wrong = ("x", lambda d: "1 + 1", lambda d: 2.0, {}, "")
    monkeypatch.setitem(_formula.PARTS, "graft_td", lambda case: wrong)
    made = why(gc.findings(batch_of(random_rows(1))), 0).formula
    assert "1 + 1" not in made.text
    assert not made.exact


def test_unknown_outcome_has_a_dash_and_a_reason() -> None:
    rows = walk("r0", "S:a", None, "e") + walk("r1", "S:a", 1.0, "e")
    explained = why(gc.findings(batch_of(rows)), 0)
    assert explained.formula.text == "–"
    assert "unknown" in explained.formula.note
    assert explained.sentences[0].text == "2 rollouts reached this moment; 1 of 1 whose outcome is known succeeded."


@pytest.mark.parametrize(
    "x, text",
    [(0.314, "+0.31"), (-0.5, "−0.50"), (0.0, "0"), (1e-12, "0"), (0.0034, "+0.0034"), (math.nan, "–"), (12.5, "+12.50")],
)
def test_signed_numbers(x: float, text: str) -> None:
    assert signed(x) == text


def test_numbers_in_formulas_are_short() -> None:
    assert [number(x) for x in (1.0, 0.5, -0.001, -2.25, 0.0)] == ["1", "0.50", "0.00", "−2.25", "0"]


def slow_paths(rows: list[dict[str, Any]], start: str) -> dict[tuple[str, ...], Fraction]:
    """Probability of every way from a state to an end in an acyclic batch: products of counted shares."""
    by_rollout: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_rollout.setdefault(row["rollout_id"], []).append(row)
    moves: dict[str, list[tuple[str, str]]] = {}
    for path in by_rollout.values():
        states = [row["observation"] for row in path] + [f"end {path[-1]['next_observation']} {path[-1]['outcome']}"]
        for row, to in zip(path, states[1:], strict=True):
            moves.setdefault(row["observation"], []).append((row["action"], to))
    found: dict[tuple[str, ...], Fraction] = {}

    def go(state: str, done: tuple[str, ...], p: Fraction) -> None:
        if state not in moves:
            found[done] = found.get(done, Fraction(0)) + p
            return
        for move in set(moves[state]):
            share = Fraction(moves[state].count(move), len(moves[state]))
            go(move[1], (*done, move[0]), p * share)

    go(start, (), Fraction(1))
    return found


def test_paths_are_the_most_probable_ones() -> None:
    rows = walk("r0", "S:a M:x", 1.0, "e") + walk("r1", "S:b M:x", 1.0, "e") + walk("r2", "S:b M:y N:z", 0.0, "f")
    rows += walk("r3", "S:c", 0.0, "g") + walk("r4", "S:b M:x", 1.0, "e")
    graph = gc.build_graph(batch_of(rows))
    values = gc.solve_values(graph, gamma=0.9)
    expected = sorted(slow_paths(rows, "S").values(), reverse=True)
    shown = top_paths(graph, values, 0, most=3)
    assert [path.probability for path in shown.paths] == pytest.approx([float(p) for p in expected[:3]])
    assert shown.paths[0].actions == ("b", "x")
    assert shown.paths[0].end_value == 1.0
    assert shown.paths[0].part == pytest.approx(float(expected[0]) * 0.81)
    assert shown.remainder == pytest.approx(1 - float(sum(expected[:3])))
    everything = top_paths(graph, values, 0, most=50)
    assert everything.remainder == 0.0
    assert everything.rest == pytest.approx(0.0, abs=1e-12)
    assert {p.actions: p.probability for p in everything.paths} == pytest.approx(
        {k: float(v) for k, v in slow_paths(rows, "S").items()}
    )


@pytest.mark.parametrize("weighting", ["visits", "distinct", "max"])
@pytest.mark.parametrize("rewards", ["outcome", "dense"])
def test_probabilities_and_parts_sum_with_the_remainder(vectors: Path, rewards: str, weighting: str) -> None:
    rows = [orjson.loads(line) for line in (vectors / "grid.jsonl").read_bytes().splitlines()]
    graph = gc.build_graph(batch_of(rows))
    values = gc.solve_values(graph, rewards=rewards, weighting=weighting)
    for node in range(graph.n_ordinary):
        shown = top_paths(graph, values, node)
        probabilities = [path.probability for path in shown.paths]
        assert math.fsum(probabilities) + shown.remainder == pytest.approx(1.0, abs=1e-12)
        assert probabilities == sorted(probabilities, reverse=True)
        assert math.fsum(path.part for path in shown.paths) + shown.rest == pytest.approx(values.v[node], abs=1e-12)
        assert shown.remainder >= 0


def test_a_moment_without_value_has_no_paths() -> None:
    graph = gc.build_graph(batch_of(walk("r0", "S:a", None, "e")))
    shown = top_paths(graph, gc.solve_values(graph), 0)
    assert shown.paths == ()
    assert math.isnan(shown.remainder)


def example() -> Findings:
    """Nine rollouts reach M; four take "go" (three succeed), five "stop" (one succeeds)."""
    rows: list[dict[str, Any]] = []
    for i, won in enumerate([1, 1, 1, 0]):
        rows += walk(f"g{i}", "S:a M:go N:on", float(won), f"end{won}")
    for i, won in enumerate([1, 0, 0, 0, 0]):
        rows += walk(f"s{i}", "S:a M:stop", float(won), f"end{won}")
    return gc.findings(batch_of(rows + walk("x", "S:b", 0.0, "end0")))


def test_sentences_count_who_was_here_and_how_they_ended() -> None:
    texts = [s.text for s in why(example(), 1).sentences]
    assert texts[0] == "9 rollouts reached this moment; 4 of them succeeded."
    assert texts[1] == "After this action 3 of 4 succeeded; after the other actions here 1 of 5."
    assert len(texts) == 3
    assert re.fullmatch(r"Without (rollout \w+|its own evidence) the credit would be .* instead of \+0\.30\.", texts[2])


def test_actions_of_the_moment() -> None:
    go, stop = why(example(), 1).actions
    assert (go.action, go.count, go.ended.succeeded, go.ended.failed, go.chosen) == ("go", 4, 3, 1, True)
    assert (stop.action, stop.count, stop.ended.succeeded, stop.ended.failed, stop.chosen) == ("stop", 5, 1, 4, False)
    assert go.value_after == pytest.approx(0.99 * 0.75)
    assert stop.value_after == pytest.approx(0.2)


ONE = walk("r0", "S:a", 1.0, "e")
SMALL = [
    (ONE, "Only this rollout was ever in this moment: one witness."),
    ([*ONE, *walk("r1", "S:a", 1.0, "e")], "Everyone who was here did the same."),
    ([*ONE, *walk("r1", "S:a", 1.0, "e")], "2 rollouts reached this moment; all of them succeeded."),
    (walk("r0", "S:a", 0.0, "e") + walk("r1", "S:a", 0.0, "e"), "2 rollouts reached this moment; none of them succeeded."),
    ([*ONE, *walk("r1", "S:b", None, "e")], "How those ended that took the other actions here is unknown."),
    (
        [*ONE, *walk("r1", "S:b", 0.0, "f")],
        "After this action 1 of 1 succeeded; after the other actions here 0 of 1.",
    ),
    (
        walk("r0", "S:a M:b", 1.0, "e") + walk("r1", "S:b", 0.0, "f"),
        "Only this rollout went on from here to where it came next: one witness of what follows.",
    ),
]


@pytest.mark.parametrize("rows, sentence", SMALL)
def test_sentences_of_small_groups(rows: list[dict[str, Any]], sentence: str) -> None:
    assert sentence in [s.text for s in why(gc.findings(batch_of(rows)), 0).sentences]


def test_text_of_rollouts_stays_in_fields_and_is_cut() -> None:
    evil = "<img src=x onerror=alert(1)> {credit}" + "x" * 5000
    rows = walk("r0", "S:a M:b", 1.0, "e") + walk(evil, "S:a M:c", 0.0, "f") + walk("r2", "S:b", 0.0, "f")
    for row in rows:
        row["observation"] += evil
        row["action"] += evil
    explained = why(gc.findings(batch_of(rows)), 0)
    assert all("<img" not in s.template for s in explained.sentences)
    named = [s for s in explained.sentences if s.fields]
    assert named
    assert "<img" in named[0].text
    assert max(len(t) for t in (explained.action, explained.observation, explained.next_observation)) <= 200
    assert max(len(a.action) for a in explained.actions) <= 80
    assert len(named[0].fields["rollout"]) <= 40
    assert Sentence("{a} and 1", {"a": "{b}"}).text == "{b} and 1"


def test_everything_is_plain_data(vectors: Path) -> None:
    rows = [orjson.loads(line) for line in (vectors / "mixed.jsonl").read_bytes().splitlines()]
    found = gc.findings(batch_of(rows), estimator="graft", baseline="gigpo")
    for p in range(found.batch.n_steps):
        data = orjson.loads(orjson.dumps(why(found, p).as_dict()))
        assert data["formula"]["text"] == why(found, p, leave_out=False).formula.text
        assert data["sentences"][0]["text"]
        assert len(data["paths_before"]["paths"]) <= 5


def test_positions_of_rows() -> None:
    rows = walk("r0", "S:a M:b", 1.0, "e") + walk("r1", "S:c", 1.0, "e")
    mixed = batch_of([rows[2], rows[1], rows[0]])
    assert [int(mixed.order[position_of_row(mixed, row)]) for row in range(3)] == [0, 1, 2]
    straight = batch_of(rows)
    assert [position_of_row(straight, row) for row in range(3)] == [0, 1, 2]


def test_tau_bench(test_data: Path) -> None:
    found = gc.findings(gc.load(test_data / "tau_bench" / "gpt-4o-airline.json"))
    assert found.good.size == 44
    for p in found.good.tolist():
        explained = why(found, p)
        assert hold(explained.formula, found.credit[p])
        total = math.fsum(part.before for part in explained.contributions)
        assert total == pytest.approx(explained.value_before, abs=1e-9)


def test_where_it_led_is_said_when_others_were_there_too(root: Path) -> None:
    batch = gc.load(root / "sample_data" / "household.jsonl")
    found = gc.findings(batch, gc.Settings())
    told = 0
    for position in found.good[:40].tolist():
        texts = [s.text for s in why(found, position, leave_out=False).sentences]
        graph = found.graph
        there = {int(r) for r in batch.step_rollout[graph.src == graph.dst[position]]}
        here = {int(r) for r in batch.step_rollout[graph.pair == graph.pair[position]]}
        led = [t for t in texts if t.startswith("It led to a moment")]
        assert bool(led) == (len(there) > len(here))
        if led:
            told += 1
            won = sum(batch.success[r] == 1 for r in there)
            assert led == [f"It led to a moment that {len(there)} rollouts reached; {won} of {len(there)} succeeded."]
    assert told > 3
