"""The planted batch: its ground truth is checked by playing the game, not by trusting the table."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from graft_core.environments.household import household
from graft_core.environments.household_tasks import TASKS
from graft_core.environments.planted import (
    LEAST_DROP,
    LEAST_GOOD,
    SKILL,
    TEMPTING,
    WITNESSES,
    Planted,
    planted_batch,
)
from graft_core.environments.policies import scripted_policy
from graft_core.environments.tables import Table, compile_world
from graft_core.fidelity.truth import true_values

Rollouts = dict[tuple[str, str], list[dict[str, Any]]]
GAMMA = 0.99


@pytest.fixture(scope="module")
def batch() -> tuple[Rollouts, list[Planted]]:
    rows, planted = planted_batch(16, 15, seed=5)
    rollouts: Rollouts = defaultdict(list)
    for row in rows:
        rollouts[row["group_id"], row["rollout_id"]].append(row)
    return rollouts, planted


def test_every_group_has_siblings_of_both_outcomes_and_one_planted_failure(batch: tuple[Rollouts, list[Planted]]) -> None:
    rollouts, planted = batch
    assert len({p.group_id for p in planted}) == 16
    for p in planted:
        outcomes = {rid: steps[0]["outcome"] for (gid, rid), steps in rollouts.items() if gid == p.group_id}
        assert len(outcomes) == 16
        assert outcomes.pop(p.rollout_id) == 0.0
        assert set(outcomes.values()) == {0.0, 1.0}


def test_the_truth_is_right_by_the_exact_dynamics(batch: tuple[Rollouts, list[Planted]]) -> None:
    rollouts, planted = batch
    for p in planted:
        name = p.group_id.rsplit(" ", 1)[0]
        table = tabled(name)
        world = table.world
        value = true_values(table, scripted_policy(table, SKILL, TEMPTING), GAMMA).v
        number = {key: i for i, key in enumerate(table.keys)}
        steps = rollouts[p.group_id, p.rollout_id]
        states = [number[s["state"]] for s in steps] + [number[steps[-1]["next_state"]]]
        advantages = []
        for step, here, after in zip(steps, states, states[1:], strict=False):
            (result,) = world.transitions(table.states[here], step["action"])
            assert table.numbers[result.state] == after
            advantages.append(GAMMA * value[after] - value[here])
        assert int(np.argmax(advantages)) == p.good_step
        assert int(np.argmin(advantages)) == p.blunder_step
        assert advantages[p.good_step] == pytest.approx(p.good_advantage)
        assert advantages[p.good_step] >= LEAST_GOOD
        assert advantages[p.blunder_step] == pytest.approx(p.blunder_advantage)
        assert advantages[p.blunder_step] <= -LEAST_DROP
        assert p.good_step < p.blunder_step


@functools.cache
def tabled(name: str) -> Table:
    return compile_world(household(name))


def can_succeed(name: str, key: str) -> bool:
    """Whether any sequence of actions from the state leads to success: a search of its own."""
    table = tabled(name)
    world = table.world
    seen = {table.states[table.keys.index(key)]}
    front = list(seen)
    while front:
        state = front.pop()
        if world.success(state):  # type: ignore[arg-type]
            return True
        for action in world.actions(state):  # type: ignore[arg-type]
            (result,) = world.transitions(state, action)  # type: ignore[arg-type]
            if result.state not in seen:
                seen.add(result.state)
                front.append(result.state)
    return False


def test_the_blunder_cannot_be_undone_and_nothing_before_it_was_fatal(batch: tuple[Rollouts, list[Planted]]) -> None:
    rollouts, planted = batch
    for p in planted[: len(TASKS)]:
        name = p.group_id.rsplit(" ", 1)[0]
        steps = rollouts[p.group_id, p.rollout_id]
        assert can_succeed(name, steps[p.blunder_step]["state"])
        assert not can_succeed(name, steps[p.blunder_step + 1]["state"])


def test_siblings_visit_the_places_concerned(batch: tuple[Rollouts, list[Planted]]) -> None:
    rollouts, planted = batch
    for p in planted:
        steps = rollouts[p.group_id, p.rollout_id]
        for key in (
            steps[p.good_step]["state"],
            steps[p.good_step + 1]["state"],
            steps[p.blunder_step]["state"],
        ):
            witnesses = {
                rid
                for (gid, rid), others in rollouts.items()
                if gid == p.group_id and rid != p.rollout_id and any(s["state"] == key for s in others)
            }
            assert len(witnesses) >= WITNESSES


def test_the_same_seed_gives_the_same_batch() -> None:
    assert planted_batch(2, 8, seed=1) == planted_batch(2, 8, seed=1)
    assert planted_batch(2, 8, seed=1)[0] != planted_batch(2, 8, seed=2)[0]
