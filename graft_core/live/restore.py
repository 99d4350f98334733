"""Going back to a recorded step: by the state's name where the world is known, else by replaying the rollout's actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graft_core.environments import Environment, WorldEnvironment
from graft_core.environments.tables import Table, compile_world
from graft_core.errors import InputError, UsageError
from graft_core.live.games import Game, can_restore
from graft_core.rollouts import RolloutBatch


@dataclass(frozen=True)
class Place:
    """A state to start from: the task, the environment's own token, what is seen there, and what was done before."""

    task: str
    saved: Any
    observation: str
    past: tuple[tuple[str, str], ...]  # (observation, action) of the steps before


class Restorer:
    """Finds the states behind the steps of a batch in a game; worlds are enumerated once per task."""

    def __init__(self, game: Game, batch: RolloutBatch) -> None:
        self.game, self.batch = game, batch
        self._tables: dict[str, Table | None] = {}
        self._numbers: dict[str, dict[str, int]] = {}

    def task_of(self, group_id: str) -> str:
        """The game's task a group belongs to: the longest task name in its id."""
        if self.game.tasks == ("",):
            return ""
        fitting = [task for task in self.game.tasks if task in group_id]
        if not fitting:
            raise InputError(f"group {group_id!r}: names no task of {self.game.name}; known: {', '.join(self.game.tasks)}")
        return max(fitting, key=len)

    def place(self, position: int) -> Place:
        """The state before the step at a path position. Raises InputError where it cannot be restored."""
        batch = self.batch
        row = int(batch.step_rollout[position])
        first = int(batch.offsets[row])
        group = batch.group_ids[int(batch.group[row])]
        task = self.task_of(group)
        texts = [(batch.text(int(batch.observation[p])), batch.text(int(batch.action[p]))) for p in range(first, position)]
        here = batch.text(int(batch.observation[position]))
        table = self._table(task)
        if table is not None:
            number = self._number(task, table, batch.text(int(batch.step_ids("state")[position])), here)
            if number is not None:
                return Place(task, table.states[number], here, tuple(texts))
        saved = self._replay(task, texts, here, f"step {int(batch.step_index[position])} of {group} / {batch.rollout_ids[row]}")
        return Place(task, saved, here, tuple(texts))

    def _table(self, task: str) -> Table | None:
        if task not in self._tables:
            one = self.game.make(task)
            found = None
            if isinstance(one, WorldEnvironment):
                try:
                    found = compile_world(one.world)
                except UsageError:
                    found = None  # too many states: replay instead
            self._tables[task] = found
        return self._tables[task]

    def _number(self, task: str, table: Table, state: str, observation: str) -> int | None:
        """The state that a recorded key names and whose observation is the recorded one, else that of a unique observation."""
        if task not in self._numbers:
            self._numbers[task] = {key: i for i, key in enumerate(table.keys)}
        number = self._numbers[task].get(state)
        if number is not None and table.observations[number] == observation:
            return number
        alike = [i for i, text in enumerate(table.observations) if text == observation]
        return alike[0] if len(alike) == 1 else None

    def _replay(self, task: str, texts: list[tuple[str, str]], here: str, what: str) -> Any:
        one = self.game.make(task)
        if not can_restore(one):
            raise InputError(f"{self.game.name}: cannot save and restore states, so no step can be checked by rollout")
        seen = one.reset(0)
        for number, (observation, action) in enumerate(texts):
            if seen != observation:
                raise InputError(
                    f"{what}: cannot be restored: when its actions are replayed, step {number} shows {seen[:80]!r}, "
                    f"recorded was {observation[:80]!r}"
                )
            seen, _, ended = one.step(action)
            if ended:
                raise InputError(f"{what}: cannot be restored: when its actions are replayed, the game ends at step {number}")
        if seen != here:
            raise InputError(f"{what}: cannot be restored: the replay shows {seen[:80]!r}, recorded was {here[:80]!r}")
        return one.save()


def ready(game: Game, place: Place, seed: int) -> tuple[Environment, str]:
    """An environment that stands at the place, with fresh luck, and what is seen."""
    one = game.make(place.task)
    if not can_restore(one):
        raise InputError(f"{game.name}: cannot save and restore states, so no step can be checked by rollout")
    one.reset(seed)
    return one, one.restore(place.saved, seed=seed)


def fresh_seeds(base: tuple[int, ...], n: int) -> list[int]:
    """n seeds that depend on `base` only."""
    return [int(x) for x in np.random.default_rng([*base, 3]).integers(2**31, size=n)]
