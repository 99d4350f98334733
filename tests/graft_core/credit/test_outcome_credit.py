"""Estimators that use outcomes only, by pencil and in their degenerate cases (method.md sec. 5)."""

from __future__ import annotations

import numpy as np
import pytest
from row_batches import batch_of, walk

import graft_core as gc

SQ = np.sqrt(2)


def outcomes(*groups: tuple[float | None, ...], lengths: int = 1) -> gc.RolloutBatch:
    """One rollout per outcome, `lengths` steps each, through states of its own."""
    rows = []
    for g, group in enumerate(groups):
        for r, outcome in enumerate(group):
            path = " ".join(f"{g}.{r}.{t}:go" for t in range(lengths))
            rows += walk(f"r{r}", path, outcome, "end", group=f"g{g}")
    return batch_of(rows)


def test_grpo_by_pencil() -> None:
    credit = gc.estimate(outcomes((1.0, 0.0), (3.0, 1.0, 2.0)), "grpo", eps=0.0)
    assert credit == pytest.approx([1 / SQ, -1 / SQ, 1, -1, 0])
    assert gc.estimate(outcomes((1.0, 0.0)), "grpo", eps=0.0, ddof=0) == pytest.approx([1, -1])
    assert gc.estimate(outcomes((1.0, 0.0)), "grpo", eps=1.0) == pytest.approx([0.5 / (1 / SQ + 1), -0.5 / (1 / SQ + 1)])


def test_grpo_over_steps_weighs_long_rollouts_more() -> None:
    rows = walk("long", "a:x b:x c:x", 1.0, "e") + walk("short", "d:x", 0.0, "e")
    credit = gc.estimate(batch_of(rows), "grpo", statistics="steps", eps=0.0)
    assert credit == pytest.approx([0.5, 0.5, 0.5, -1.5])
    even = gc.estimate(batch_of(rows), "grpo", eps=0.0)
    assert even == pytest.approx([1 / SQ, 1 / SQ, 1 / SQ, -1 / SQ])


def test_dr_grpo_and_rloo_by_pencil() -> None:
    batch = outcomes((1.0, 0.0, 0.0))
    assert gc.estimate(batch, "dr_grpo") == pytest.approx([2 / 3, -1 / 3, -1 / 3])
    assert gc.estimate(batch, "rloo") == pytest.approx([1.0, -0.5, -0.5])


NAMES = ["grpo", "dr_grpo", "rloo"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0.0, 1.0, -3.5, 0.1])
def test_equal_outcomes_teach_nothing(name: str, value: float) -> None:
    batch = outcomes((value,) * 5)
    assert (gc.estimate(batch, name) == 0).all()
    if name == "grpo":
        assert (gc.estimate(batch, name, statistics="steps") == 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_float_residue_is_not_signal(name: str) -> None:
    assert (gc.estimate(outcomes((0.35 + 1e-8, 0.35 - 1e-8, 0.35 + 1e-8)), name) == 0).all()
    assert (gc.estimate(outcomes((0.1 + 0.2, 0.3, 0.3)), name) == 0).all()
    assert (gc.estimate(outcomes((0.35 + 1e-6, 0.35 - 1e-6)), name) != 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_group_with_one_known_rollout(name: str) -> None:
    batch = outcomes((0.7,), (0.5, None), (1.0, 0.0))
    zero, raw = gc.estimate(batch, name), gc.estimate(batch, name, singleton="raw")
    assert zero[:2].tolist() == [0.0, 0.0]
    assert raw[:2].tolist() == [0.7, 0.5]
    assert np.isnan(zero[2])
    assert zero[3] > 0 > zero[4]
    assert raw[3:].tolist() == zero[3:].tolist()
    if name == "grpo":
        steps = gc.estimate(outcomes((0.7,), lengths=3), name, singleton="raw", statistics="steps")
        assert steps.tolist() == [0.7] * 3
        assert gc.estimate(outcomes((0.7,), lengths=3), name, statistics="steps").tolist() == [0.0] * 3


@pytest.mark.parametrize("name", NAMES)
def test_unknown_outcomes_are_left_out_not_failures(name: str) -> None:
    credit = gc.estimate(outcomes((1.0, None, 0.0)), name)
    alone = gc.estimate(outcomes((1.0, 0.0)), name)
    assert credit[[0, 2]].tolist() == alone.tolist()
    assert np.isnan(credit[1])
    assert np.isnan(gc.estimate(outcomes((None, None)), name)).all()


@pytest.mark.parametrize("name", NAMES)
def test_every_step_of_a_rollout_gets_the_same(name: str) -> None:
    credit = gc.estimate(outcomes((1.0, 0.0, 0.0), lengths=4), name).reshape(3, 4)
    assert (credit == credit[:, :1]).all()


def test_rollouts_without_steps_count() -> None:
    rows = walk("a", "s:x", 1.0, "e") + walk("b", "", 0.0) + walk("c", "", 0.0)
    batch = batch_of(rows)
    assert gc.estimate(batch, "dr_grpo") == pytest.approx([2 / 3])
    assert gc.estimate(batch, "rloo") == pytest.approx([1.0])
    assert gc.estimate(batch, "grpo", eps=0.0) == pytest.approx([2 / 3 / np.sqrt(1 / 3)])
    assert gc.estimate(batch, "grpo", statistics="steps").tolist() == [0.0]


def test_a_success_flag_stands_in_for_a_missing_outcome() -> None:
    rows = walk("a", "s:x", None, "e", success=True) + walk("b", "s:x", None, "e", success=False)
    assert gc.estimate(batch_of(rows), "dr_grpo") == pytest.approx([0.5, -0.5])
