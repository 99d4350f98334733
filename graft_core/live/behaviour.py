"""Policies to continue recorded rollouts with, where the one that made them is not at hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from graft_core.environments import WorldEnvironment
from graft_core.environments.policies import scripted_policy
from graft_core.environments.tables import compile_world
from graft_core.errors import InputError, UsageError
from graft_core.live.games import Game
from graft_core.live.policy import Policy
from graft_core.live.restore import Restorer
from graft_core.live.start import PolicyOptions, make_policy
from graft_core.live.tabular import TabularPolicy

HALF_A_TRY = 0.5


class GivenPolicy(TabularPolicy):
    """A tabular policy whose first logits are given: `first(state, actions)` as log-probabilities up to a constant."""

    def __init__(self, first: Any, name: str) -> None:
        super().__init__()
        self._first, self._name = first, name

    @property
    def name(self) -> str:
        return self._name

    def _add(self, state: str, actions: tuple[str, ...]) -> int:
        number = super()._add(state, actions)
        logits = self._first(state, actions)
        self.logits[number, : len(actions)] = logits
        self.start[number, : len(actions)] = logits
        return number


def counted_policy(restorer: Restorer) -> GivenPolicy:
    """What the rollouts of the batch did in each state, all tasks' groups apart; every action counts half a try more.

    A state that no rollout was in gets all actions alike. Needs the step column `state`; raises InputError without it.
    """
    batch = restorer.batch
    states = batch.step_ids("state")
    if batch.n_steps and (states < 0).any():
        raise InputError("the policy 'counts' needs the step column `state`, which some steps of this file lack")
    several = len(restorer.game.tasks) > 1
    told = [restorer.task_of(group) if several else "" for group in batch.group_ids]
    group = batch.group[batch.step_rollout]
    counts: Counter[tuple[str, str]] = Counter()
    for g, state, action in zip(group.tolist(), states.tolist(), batch.action.tolist(), strict=True):
        name = f"{told[g]}: {batch.text(state)}" if told[g] else batch.text(state)
        counts[name, batch.text(action)] += 1

    def first(state: str, actions: tuple[str, ...]) -> Any:
        return np.log([counts[state, action] + HALF_A_TRY for action in actions])

    return GivenPolicy(first, "counts")


def scripted(game: Game, skill: float) -> GivenPolicy:
    """Knows the way and takes it with chance `skill`, else does anything; only where the game's states can be listed."""
    if not 0.0 <= skill <= 1.0:
        raise UsageError(f"scripted: skill {skill} is not allowed, expected a number from 0 to 1")
    chances: dict[tuple[str, str], float] = {}
    for task in game.tasks:
        one = game.make(task)
        if not isinstance(one, WorldEnvironment):
            raise InputError(f"{game.name}: its states cannot be listed, so there is no scripted policy; choose another")
        table = compile_world(one.world)
        shares = scripted_policy(table, skill)
        told = f"{task}: " if len(game.tasks) > 1 else ""
        for state, action, share in zip(table.pair_state.tolist(), table.pair_action, shares.tolist(), strict=True):
            chances[told + table.keys[state], action] = share

    def first(state: str, actions: tuple[str, ...]) -> Any:
        return np.log([max(chances.get((state, action), 0.0), 1e-300) for action in actions])

    return GivenPolicy(first, f"scripted:{skill:g}")


def continuing_policy(word: str, game: Game, restorer: Restorer, options: PolicyOptions) -> Policy:
    """By name: `counts`, `scripted:SKILL`, `uniform`, or what `make_policy` knows."""
    if word == "counts":
        return counted_policy(restorer)
    if word == "uniform":
        return TabularPolicy()
    if word.startswith("scripted"):
        skill = word.partition(":")[2] or "0.5"
        try:
            return scripted(game, float(skill))
        except ValueError as error:
            if isinstance(error, (InputError, UsageError)):
                raise
            raise UsageError(f"policy {word!r}: expected scripted:SKILL with a number from 0 to 1") from error
    return make_policy(options, game)
