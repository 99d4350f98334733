"""Every page on batches that are empty, tiny, one-sided, cyclic or large: a sensible page, no number where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from app_pages import Open, step, words, write

Rows = Iterator[dict[str, object]]
PAGES = ("findings", "graph", "compare", "rollouts", "states", "open")


def no_rollouts() -> Rows:
    yield {"graft_format": 1}


def without_steps() -> Rows:
    yield from ({"group_id": "g", "rollout_id": r, "step": None, "outcome": 1.0} for r in "ab")


def one_rollout() -> Rows:
    yield from (step("a", t, f"s{t}", "x", 1.0) for t in range(3))


def one_step() -> Rows:
    yield step("a", 0, "s", "x", 0.0)


def ended(outcome: float | None) -> Callable[[], Rows]:
    return lambda: (step(r, t, f"s{t}", "x", outcome) for r in "abc" for t in range(2))


def cycle() -> Rows:
    yield from (step("a", t, "s" if t % 2 else "t", "x", 0.0) for t in range(6))
    yield step("b", 0, "t", "y", 1.0)


def scores() -> Rows:
    yield from (step("a", 0, "s", "x", 0.3), step("b", 0, "s", "y", 7.5), step("c", 0, "s", "x", -2.0))


def many_states() -> Rows:
    yield from (step(f"r{r}", t, f"place {r} {t}", f"go {t % 7}", float(r % 2)) for r in range(100) for t in range(100))


def many_groups() -> Rows:
    yield from (
        {**step(f"r{r}", t, f"s{t}", f"go {(r + t) % 2}", float((g + r) % 2)), "group_id": f"task {g}"}
        for g in range(200) for r in range(4) for t in range(3)
    )  # fmt: skip


CASES: dict[str, Callable[[], Rows]] = {
    "no rollouts": no_rollouts, "no steps": without_steps, "one rollout": one_rollout, "one step": one_step,
    "all succeeded": ended(1.0), "all failed": ended(0.0), "all unknown": ended(None), "cycle": cycle, "scores": scores,
    "10,000 states": many_states, "200 groups": many_groups,
}


NO_STEPS = {
    "graph": "no steps, so there is no graph to draw", "compare": "no steps, so there is no credit to compare",
    "states": "no steps, so there are no moments to compare", "open": "No rollout has steps",
}
SAYS: dict[str, dict[str, str]] = {
    "no rollouts": {"findings": "There is no rollout in this file", "rollouts": "There is no rollout in this file", **NO_STEPS},
    "no steps": {"findings": "These rollouts have no steps", "rollouts": "This rollout has no steps", **NO_STEPS},
    "one rollout": {"findings": "No rollout failed", "rollouts": "one witness", "open": "1 task × 1 rollout"},
    "one step": {"findings": "1 rollout failed and none succeeded", "rollouts": "The end: failed", "states": "1 moment"},
    "all succeeded": {"findings": "No rollout failed", "rollouts": "all of them succeeded", "compare": "never contradict"},
    "all failed": {"findings": "3 rollouts failed and none succeeded", "rollouts": "none of them succeeded"},
    "all unknown": {
        "findings": "No rollout has a known outcome", "rollouts": "how they ended is unknown", "compare": "nothing to draw",
        "open": "3 unknown",
    },
    "cycle": {"findings": "2 good steps in failed rollouts", "rollouts": "same moment as before", "graph": "2 good steps"},
    "scores": {"findings": "3 rollouts", "rollouts": "expected score", "open": "3 rollouts"},
    "10,000 states": {
        "findings": "1 of 1 task teaches nothing (no shared moment 1)", "states": "10,000 moments", "open": "10,000 steps",
        "compare": "10,000 steps",
    },
    "200 groups": {"findings": "200 tasks", "graph": "200 tasks", "compare": "200 tasks", "open": "200 tasks"},
}
"""What a page has to say of a batch; the other pages show it without an error."""

SILENT = [case for case in CASES if case not in ("cycle", "scores", "200 groups")]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("case", CASES)
def test_odd_batches_give_a_sensible_page(opened: Open, tmp_path: Path, case: str, page: str) -> None:
    test = opened(write(tmp_path / "odd.jsonl", *CASES[case]()), page=page)
    assert not test.error
    assert SAYS[case].get(page, "") in words(test)


@pytest.mark.parametrize("case", SILENT)
def test_a_task_that_teaches_nothing_is_counted_in_the_line_above(opened: Open, tmp_path: Path, case: str) -> None:
    test = opened(write(tmp_path / "odd.jsonl", *CASES[case]()), page="rollouts")
    said = "1 task teaches nothing"
    assert (said in words(test)) == (case != "no rollouts")


def test_what_is_undefined_is_a_dash_and_never_a_zero(opened: Open, tmp_path: Path) -> None:
    path = write(tmp_path / "odd.jsonl", *CASES["all unknown"]())
    read = opened(path, page="rollouts")
    assert {m.label: m.value for m in read.metric} == {"chance of success before": "–", "after": "–"}
    assert "graph TD –" in words(read) and "GRPO –" in words(read)
    compared = opened(path, page="compare")
    assert {m.value for m in compared.metric} == {"–"}
    assert "0 good steps" not in words(opened(path))


def test_two_rollouts_of_each_odd_batch_stand_side_by_side(opened: Open, tmp_path: Path) -> None:
    for case in ("all succeeded", "all unknown", "cycle", "scores"):
        path = write(tmp_path / f"{len(case)}{case[-1]}.jsonl", *CASES[case]())
        assert "share" in words(opened(path, page="rollouts", rollout="a", beside="b"))


def test_a_rollout_without_steps_can_be_left(opened: Open, tmp_path: Path) -> None:
    test = opened(write(tmp_path / "odd.jsonl", *CASES["no steps"]()), page="rollouts")
    test.button(key="way_N").click().run()
    assert test.query_params["rollout"] == "b"
    assert "no steps" in test.info[0].value


def test_the_first_page_of_training_needs_no_rollouts(opened: Open, tmp_path: Path) -> None:
    assert "Train a policy" in words(opened(write(tmp_path / "odd.jsonl", *no_rollouts()), page="live"))
