"""Largest drops, the loops they close, what siblings did there, and what drops have in common."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest
from row_batches import batch_of, random_rows, walk

import graft_core as gc
from graft_core.insight._words import MESSAGE, NO_ACTION, error_text, verb
from graft_core.insight.lost import Loop, LostGroup, loop_starts, lost, lost_step


def slow_loop_starts(graph: gc.TrajectoryGraph) -> list[int]:
    """For each step: the last time its rollout left the node the step leads to."""
    found = []
    for r in range(graph.batch.n_rollouts):
        seen: dict[int, int] = {}
        for p in range(graph.batch.offsets[r], graph.batch.offsets[r + 1]):
            seen[int(graph.src[p])] = p
            found.append(seen.get(int(graph.dst[p]), -1))
    return found


@pytest.mark.parametrize("sinks", ["split", "bootstrap"])
@pytest.mark.parametrize("seed", range(4))
def test_loops_are_those_a_dictionary_finds(seed: int, sinks: str) -> None:
    graph = gc.build_graph(batch_of(random_rows(seed, empty=0.2, unknown=0.2)), sinks=sinks)
    slow = slow_loop_starts(graph)
    assert loop_starts(graph).tolist() == slow
    assert max(slow) >= 0


@pytest.mark.parametrize("seed", range(4))
def test_each_failed_rollout_has_its_most_negative_step(seed: int) -> None:
    found = gc.findings(batch_of(random_rows(seed, unknown=0.2)))
    batch, worst = found.batch, {}
    for p, row in enumerate(batch.step_rollout.tolist()):
        if batch.success[row] == 0 and found.credit[p] < -1e-9 and found.credit[p] < worst.get(row, (0.0, 0))[0]:
            worst[row] = (found.credit[p], p)
    shown = lost(found)
    assert [s.position for s in shown.steps] == [p for _, p in sorted(worst.values())]
    assert shown.with_drop == len(worst)
    assert shown.failed == int((batch.success == 0).sum())
    drops = [s.credit for s in shown.steps]
    assert drops == sorted(drops)


def loop_rows() -> list[dict[str, object]]:
    """r0 goes S A B, back to A (a loop of two steps) and stays there once; r1 and r2 show what A and B are worth."""
    rows = walk("r0", "S:go A:go B:back A:wait A:leave", 0.0, "lost")
    return rows + walk("r1", "S:go A:go B:win", 1.0, "won") + walk("r2", "S:go A:leave", 0.0, "gone")


def test_a_loop_says_where_it_began_and_what_it_cost() -> None:
    found = gc.findings(batch_of(loop_rows()), gamma=0.9)
    v_a = found.values.v[found.graph.src[1]]
    back = lost_step(found, 2)
    assert back.loop == Loop(start=1, start_position=1, steps=2, cost=pytest.approx((0.9**2 - 1) * v_a))
    assert back.returns is None
    assert "loop" in back.situations
    stay = lost_step(found, 3)
    assert stay.loop is not None
    assert (stay.loop.start, stay.loop.steps) == (3, 1)
    assert stay.returns == 4
    assert "stayed in the same moment" in stay.sentence
    forward = lost_step(found, 1)
    assert forward.loop is None
    assert forward.returns == 3


def test_the_cost_of_a_loop_is_the_discounted_sum_of_its_credits() -> None:
    for rewards in ("outcome", "dense"):
        found = gc.findings(batch_of(random_rows(2)), gamma=0.8, rewards=rewards)
        for p in np.flatnonzero((loop_starts(found.graph) >= 0) & found.batch.step_known).tolist():
            loop = lost_step(found, p).loop
            assert loop is not None
            steps = np.arange(loop.steps)
            assert loop.cost == pytest.approx(0.8**steps @ found.credit[loop.start_position : p + 1], abs=1e-9)


def test_siblings_are_the_other_rollouts_in_that_moment() -> None:
    rows = walk("r0", "S:a M:drop", 0.0, "f") + walk("r1", "S:a M:take", 1.0, "s") + walk("r2", "S:a M:take", 1.0, "s")
    rows += walk("r3", "S:a M:drop", 0.0, "f") + walk("r4", "S:a M:take", None, "s") + walk("r5", "S:b", 0.0, "f")
    found = gc.findings(batch_of(rows), gamma=1.0)
    step = next(s for s in lost(found).steps if s.rollout_id == "r0")
    assert (step.action, step.reached.rollouts, step.reached.succeeded, step.reached.unknown) == ("drop", 4, 2, 1)
    take, drop = step.siblings
    assert (take.action, take.count, take.ended.succeeded, take.ended.unknown, take.chosen) == ("take", 3, 2, 1, False)
    assert (drop.action, drop.count, drop.ended.failed, drop.chosen) == ("drop", 1, 1, True)
    assert take.value_after == pytest.approx(1.0)
    assert take.credit == pytest.approx(1.0 - found.values.v[found.graph.src[1]])
    assert "Of those that did something else here, 2 of 2 succeeded." in step.sentence
    assert step.sentence.startswith("The chance of success fell from 0.50 to 0.00.")


def test_a_fall_of_a_score_is_not_called_a_chance() -> None:
    rows = walk("r0", "S:a", 0.2, "f") + walk("r1", "S:b", 3.0, "s")
    assert lost(gc.findings(batch_of(rows))).steps[0].sentence.startswith("The expected score fell")


def group(found: gc.insight.Findings, code: str) -> LostGroup:
    return next(g for g in lost(found).groups if g.code == code)


def test_drops_are_grouped_by_verb_error_and_situation() -> None:
    rows = []
    for task in "gh":
        rows += walk("r0", "S:look M:book(1)", 0.0, "f", group=task)
        rows[-1]["observation"] = f"Error: seat {len(rows)} is taken"
        rows[-2]["action"] = "book(0)"
        rows += walk("r1", "S:look M:pay(1)", 1.0, "s", group=task)
        rows[-1]["observation"], rows[-2]["action"] = rows[-3]["observation"], "book(0)"
    rows += walk("r0", "S:skip", 0.0, "f", group="i") + walk("r1", "S:look", 1.0, "s", group="i")
    found = gc.findings(batch_of(rows))
    retry = group(found, "retry")
    assert (retry.kind, retry.label, retry.rollouts, retry.tasks) == ("situation", "retry after error", 2, 2)
    assert retry.mean == pytest.approx(0.99 * 0.0 - 0.99 * 0.5)
    assert retry.worst in retry.positions
    error = group(found, "Error: seat # is taken")
    assert (error.kind, error.rollouts) == ("error", 2)
    assert group(found, "book").rollouts == 2
    assert group(found, "skip").rollouts == 1
    assert group(found, "first").positions == group(found, "skip").positions
    assert [g.rollouts for g in lost(found).groups] == sorted((g.rollouts for g in lost(found).groups), reverse=True)


@pytest.mark.parametrize(
    "action, word",
    [
        ("put apple in drawer", "put"),
        ("click[Buy Now]", "click"),
        ('book_flight {"user":"x"}', "book_flight"),
        ('{"name":"book_flight","arguments":{}}', "book_flight"),
        ('{"function":{"name":"Search"}}', "search"),
        ("<tool>open", "tool"),
        ("cd /src && python -m pytest tests", "cd"),
        ("Could you please tell me your user ID?", MESSAGE),
        ("Here are 3 flights on May 20 for $120, which one do you want?", MESSAGE),
        ("  ", NO_ACTION),
        ("买 苹果", "买"),
        ("!!!", "!!!"),
        ("A" * 500, "a" * 39 + "…"),
    ],
)
def test_the_verb_of_an_action(action: str, word: str) -> None:
    assert verb(action) == word


@pytest.mark.parametrize(
    "observation, error",
    [
        ("Error: flight HAT136 not available", "Error: flight HAT# not available"),
        ("Nothing happens.", "Nothing happens."),
        ("$ foo\nbash: foo: command not found\n$", "bash: foo: command not found"),
        ("You see 3 apples.", ""),
        ("x" * 400 + "\nerror", ""),
        ("", ""),
    ],
)
def test_the_error_an_observation_reports(observation: str, error: str) -> None:
    assert error_text(observation) == error


def test_tau_bench_gives_groups_that_mean_something(test_data: Path) -> None:
    found = gc.findings(gc.load(test_data / "tau_bench" / "gpt-4o-airline.json"))
    shown = lost(found)
    assert shown.failed == 116
    assert shown.with_drop == len(shown.steps) == 44
    verbs = {g.label: g.rollouts for g in shown.groups if g.kind == "verb"}
    assert sum(verbs.values()) == shown.with_drop
    assert {MESSAGE, "calculate", "update_reservation_flights"} <= set(verbs)
    assert len(verbs) < 12
    situations = {g.code: g for g in shown.groups if g.kind == "situation"}
    assert situations["after_error"].mean < 0
    assert any(g.kind == "error" and g.label.startswith("Error: flight HAT#") for g in shown.groups)


def test_everything_is_plain_data() -> None:
    shown = lost(gc.findings(batch_of(random_rows(3))), limit=2)
    assert len(shown.steps) == 2
    data = orjson.loads(orjson.dumps(shown.as_dict()))
    assert set(data) == {"failed", "with_drop", "in_loops", "steps", "groups"}
    assert data["steps"][0]["reached"]["rollouts"] == shown.steps[0].reached.rollouts


def test_no_failure_no_drop() -> None:
    shown = lost(gc.findings(batch_of(walk("r0", "S:a", 1.0, "e"))))
    assert (shown.failed, shown.with_drop, shown.steps, shown.groups) == (0, 0, (), ())


def test_a_failure_without_steps_has_no_drop_but_counts() -> None:
    shown = lost(gc.findings(batch_of(walk("r0", "", 0.0) + walk("r1", "S:a", 1.0, "e"))))
    assert (shown.failed, shown.with_drop) == (1, 0)
