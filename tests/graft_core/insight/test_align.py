"""Two rollouts and two settings side by side, against pencil, brute force and the estimators themselves."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import graft_core as gc
from graft_core.errors import UsageError
from graft_core.insight.align import (
    AlignedRow,
    align_rollouts,
    batch_measures,
    lambda_sweep,
    moment_numbers,
    names_of,
    pair,
    setting_rows,
)
from graft_core.insight.findings import findings
from graft_core.insight.transcript import call_text, course, media, readable, same_moment_elsewhere, sibling, tool_calls
from graft_core.rollouts import RolloutBatch
from graft_core.settings import LOOK

Make = Callable[..., RolloutBatch]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """`make(a=("sgt", 1.0), b=("st", 0.0))`: rollouts whose observations are letters; the action names the next letter."""

    def go(**rollouts: tuple[str, float | None]) -> RolloutBatch:
        rows = []
        for name, (path, outcome) in rollouts.items():
            ids = {"group_id": "g", "rollout_id": name, "outcome": outcome}
            rows += [
                {**ids, "step": t, "observation": here, "action": f"to {path[t + 1 : t + 2]}"} for t, here in enumerate(path)
            ]
            if not path:
                rows.append({**ids, "step": None})
        place = tmp_path / "made.jsonl"
        place.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return gc.load(place)

    return go


def longest(a: str, b: str) -> int:
    """Length of the longest common subsequence by trying all subsequences of the shorter text."""
    short, long = sorted((a, b), key=len)
    for n in range(len(short), 0, -1):
        for chosen in itertools.combinations(short, n):
            left = iter(long)
            if all(letter in left for letter in chosen):
                return n
    return 0


def test_rows_by_hand(make: Make) -> None:
    batch = make(a=("sxyt", 1.0), b=("szt", 0.0))
    rows = align_rollouts(gc.build_graph(batch), 0, 1)
    assert rows == (
        AlignedRow(0, 4, True, False),  # s: to x, to z
        AlignedRow(1, 5),  # x beside z
        AlignedRow(2, None),  # y alone
        AlignedRow(3, 6, True, True),  # t: both end
    )


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_a_longest_common_subsequence_in_order(make: Make, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = ("".join(rng.choice(list("stuvw"), size=rng.integers(1, 9))) for _ in range(2))
    batch = make(a=(a, 1.0), b=(b, 0.0))
    graph = gc.build_graph(batch)
    rows = align_rollouts(graph, 0, 1)
    assert [r.left for r in rows if r.left is not None] == list(range(len(a)))
    assert [r.right for r in rows if r.right is not None] == list(range(len(a), len(a) + len(b)))
    assert sum(r.shared for r in rows) == longest(a, b)
    for row in rows:
        if row.shared:
            assert graph.src[row.left] == graph.src[row.right]
            assert row.same_action == (graph.pair[row.left] == graph.pair[row.right])


def test_an_empty_rollout_and_one_with_itself(make: Make) -> None:
    batch = make(a=("st", 1.0), b=("", 0.0))
    graph = gc.build_graph(batch)
    assert align_rollouts(graph, 0, 1) == (AlignedRow(0, None), AlignedRow(1, None))
    assert align_rollouts(graph, 1, 1) == ()
    assert all(row.shared and row.same_action for row in align_rollouts(graph, 0, 0))


def test_long_rollouts_take_the_fast_way_and_stay_in_order(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = make(a=("stuvw", 1.0), b=("sxuvy", 0.0))
    monkeypatch.setattr("graft_core.insight.align.MOST_CELLS", 3)
    rows = align_rollouts(gc.build_graph(batch), 0, 1)
    assert [r.left for r in rows if r.left is not None] == list(range(5))
    assert sum(r.shared for r in rows) == 3


def test_pair_has_the_estimators_own_credits(vectors: Path) -> None:
    batch = gc.load(vectors / "mixed.jsonl")
    right = LOOK.with_options(estimator="path_gae", lam=0.5, rules=("history:1",))
    both = pair(batch, LOOK, right)
    assert np.array_equal(both.credits[0], gc.estimate(batch, "graft_td")[batch.order], equal_nan=True)
    again = gc.estimate(batch, "path_gae", lam=0.5, rules=["history:1"])[batch.order]
    assert np.array_equal(both.credits[1], again, equal_nan=True)
    assert both.names == ("graph TD", "path GAE")
    assert both.same_units
    assert not pair(batch, LOOK, LOOK.with_options(estimator="grpo")).same_units
    assert not pair(batch, LOOK, LOOK.with_options(estimator="graft", normalise="mean_std")).same_units


def test_points_count_every_step_with_both_credits(vectors: Path) -> None:
    batch = gc.load(vectors / "mixed.jsonl")
    both = pair(batch, LOOK, LOOK.with_options(estimator="grpo"))
    a, b = both.credits
    defined = ~np.isnan(a) & ~np.isnan(b)
    points = both.points
    assert points.count.sum() == defined.sum() > 0
    assert np.array_equal(points.owner >= 0, defined)
    assert np.allclose(points.a[points.owner[defined]], a[defined])
    assert np.allclose(points.b[points.owner[points.first]], b[points.first])


def test_brush_and_order_against_a_loop(vectors: Path) -> None:
    batch = gc.load(vectors / "mixed.jsonl")
    both = pair(batch, LOOK, LOOK.with_options(estimator="path_gae", lam=1.0))
    a, b = both.credits
    box = (-0.5, 0.2, -1.0, 0.1)
    assert both.inside(box).tolist() == [p for p in range(a.size) if -0.5 <= a[p] <= 0.2 and -1.0 <= b[p] <= 0.1]
    gaps = [abs(a[p] - b[p]) for p in both.order()]
    assert gaps == sorted(gaps, reverse=True)
    assert len(gaps) == sum(abs(x - y) > 1e-9 for x, y in zip(a, b, strict=True))


def test_rank_gap_by_hand(make: Make) -> None:
    batch = make(a=("st", 1.0), b=("sx", 0.0))
    both = pair(batch, LOOK.with_options(gamma=1.0), LOOK.with_options(estimator="grpo"))
    # graph TD: +.5, 0, -.5, 0; GRPO: +, +, -, -. Ranks 4, 2.5, 1, 2.5 against 3.5, 3.5, 1.5, 1.5, over 4 steps.
    assert both.rank_gap.tolist() == pytest.approx([0.125, -0.25, -0.125, 0.25])


def test_what_differs_is_named() -> None:
    right = LOOK.with_options(estimator="path_gae", lam=0.5, rules=("history:1", "guard"), sinks="merge")
    assert {(r["name"], r["left"], r["right"]) for r in setting_rows(LOOK, right)} == {
        ("estimator", "graft_td", "path_gae"), ("rules", "exact", "history:1+guard"), ("sinks", "split", "merge"),
        ("lam", "", "0.5"),
    }
    assert setting_rows(right, right) == []
    assert names_of(LOOK, LOOK.with_options(gamma=0.5)) == ("A: graph TD", "B: graph TD")


def test_lambda_sweep_is_the_estimator_at_each_lambda(vectors: Path) -> None:
    batch = gc.load(vectors / "hand.jsonl")
    settings = LOOK.with_options(estimator="path_gae", lam=0.3)
    swept = lambda_sweep(batch, settings, (0.0, 0.5, 1.0))
    for row, lam in zip(swept, (0.0, 0.5, 1.0), strict=True):
        assert np.array_equal(row, gc.estimate(batch, "path_gae", lam=lam)[batch.order], equal_nan=True)
    assert np.allclose(swept[0], gc.estimate(batch, "graft_td")[batch.order], equal_nan=True)
    with pytest.raises(UsageError, match="has no lambda"):
        lambda_sweep(batch, LOOK, (0.0,))


def test_batch_measures_by_hand(make: Make) -> None:
    batch = make(a=("st", 1.0), b=("sx", 0.0), c=("sx", None))
    found = batch_measures(batch, LOOK, gc.estimate(batch, "graft_td", gamma=1.0)[batch.order])
    assert found["mean_group_size"] == pytest.approx(6 / 3)
    assert found["in_groups"] == pytest.approx(5 / 6)
    assert found["visits_one"] == pytest.approx(2 / 4)  # t and x: one known rollout each; s: two
    assert found["failed_up"] == 0.0
    assert found["success_flat"] == pytest.approx(1 / 2)
    unknown = make(a=("st", None))
    none = batch_measures(unknown, LOOK, gc.estimate(unknown, "graft_td"))
    assert np.isnan([none["failed_up"], none["success_flat"], none["visits_one"]]).all()


def test_moment_numbers_follow_the_rules(make: Make) -> None:
    batch = make(a=("sat", 1.0), b=("sbt", 0.0))
    plain = moment_numbers(batch, LOOK.with_options(gamma=1.0), 2)
    strict = moment_numbers(batch, LOOK.with_options(gamma=1.0, rules=("history:1",)), 2)
    assert (plain["rollouts"], plain["before"], plain["after"]) == (2, pytest.approx(0.5), pytest.approx(1.0))
    assert (strict["rollouts"], strict["before"]) == (1, pytest.approx(1.0))


def test_course_of_a_rollout_with_a_loop(make: Make) -> None:
    batch = make(n=("", 1.0), a=("stst", 1.0), b=("sx", 0.0))
    found = findings(batch, gamma=1.0)
    along = course(found, 1)
    assert along.again.tolist() == [-1, -1, 0, 1]
    assert along.value.size == 5
    assert along.value[-1] == 1.0
    assert np.allclose(np.diff(along.value), along.credit)
    assert along.ended == "succeeded"
    empty = course(found, 0)
    assert empty.value.size == empty.credit.size == empty.telling() == 0


def test_ways_to_others(make: Make) -> None:
    batch = make(a=("sxt", 1.0), b=("sy", 0.0), c=("zs", 0.0), d=("q", 0.0))
    graph = gc.build_graph(batch)
    # positions: a 0-2, b 3-4, c 5-6, d 7; moment s at 0, 3 and 6
    assert [same_moment_elsewhere(graph, p) for p in (0, 3, 6, 1, 7)] == [3, 6, 0, None, None]
    others = {sibling(graph, p) for p in (0, 3, 6)}
    assert others == {0, 3, 6}
    assert sibling(graph, 7) is None


def test_tool_calls_are_read_and_written() -> None:
    assert tool_calls('find {"to":"SEA","n":2}') == [("find", {"to": "SEA", "n": 2})]
    assert tool_calls('a {"x":1}\nb {}') == [("a", {"x": 1}), ("b", {})]
    assert tool_calls('{"name":"go","arguments":"{\\"to\\":1}"}') == [("go", {"to": 1})]
    assert tool_calls('[{"function":{"name":"go","arguments":{}}}]') == [("go", {})]
    for other in ("", "go to {kitchen}", "a {1}", '{"x":1}', "Let us find {}\nsome", "[" * 3000, '"go"'):
        assert tool_calls(other) == []
    assert call_text("find", {"to": "SEA", "n": 2}) == 'find(to="SEA", n=2)'
    assert call_text("edit", {"text": "a\nb"}) == "edit(\n  text=\na\nb,\n)"


def test_json_is_spread_and_media_are_found() -> None:
    assert readable('{"a":[1,2]}') == '{\n  "a": [\n    1,\n    2\n  ]\n}'
    deep = "[" * 400 + "]" * 400
    for same in ("plain", "{not json}", "", deep):
        assert readable(same) == same
    assert media("see [image 0123456789ab] and [image 0123456789ab], [image x]") == [("image", "0123456789ab")]
