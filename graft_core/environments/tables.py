"""A world as arrays: every reachable state numbered, with its actions and their results.

States and (state, action) pairs are numbered in the order in which a breadth-first search from the start
meets them, so the numbers are the same in every process.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graft_core.environments.base import World
from graft_core.errors import UsageError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def sums(index: Ints, weights: Floats, length: int) -> Floats:
    """[length], the weights added up per index."""
    return np.bincount(index, weights, minlength=length).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Table:
    """All reachable states of a world, S of them, with P (state, action) pairs and K possible results.

    Pairs of state s are `pair_start[s]:pair_start[s + 1]`, results of pair p are
    `result_start[p]:result_start[p + 1]`; a terminal state has no pairs.
    """

    world: World[Any]
    states: tuple[Hashable, ...]
    start: Floats  # [S], probability of being the first state
    success: NDArray[np.bool_]  # [S]
    pair_start: Ints  # [S + 1]
    pair_state: Ints  # [P]
    pair_action: tuple[str, ...]  # P texts
    result_start: Ints  # [P + 1]
    result_pair: Ints  # [K]
    result_state: Ints  # [K]
    probability: Floats  # [K]
    reward: Floats  # [K]

    @property
    def n_states(self) -> int:
        return len(self.states)

    @property
    def n_pairs(self) -> int:
        return len(self.pair_action)

    @cached_property
    def terminal(self) -> NDArray[np.bool_]:
        """[S], whether the rollout is over in this state."""
        return np.asarray(np.diff(self.pair_start) == 0)

    @cached_property
    def numbers(self) -> dict[Hashable, int]:
        """State to number."""
        return {state: i for i, state in enumerate(self.states)}

    @cached_property
    def observations(self) -> tuple[str, ...]:
        """S texts."""
        return tuple(self.world.observation(state) for state in self.states)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """S texts, each naming one state fully."""
        return tuple(self.world.key(state) for state in self.states)

    @cached_property
    def reward_of_pair(self) -> Floats:
        """[P], expected reward of each pair."""
        return sums(self.result_pair, self.probability * self.reward, self.n_pairs)

    def actions(self, state: int) -> tuple[str, ...]:
        return self.pair_action[self.pair_start[state] : self.pair_start[state + 1]]

    def pair(self, state: int, action: str) -> int:
        """Number of a (state, action) pair; raises UsageError where the action is not admissible."""
        actions = self.actions(state)
        if action not in actions:
            raise UsageError(
                f"{action!r} is not admissible in {self.keys[state]!r}; expected one of {actions}"
            )
        return int(self.pair_start[state]) + actions.index(action)

    def per_state(self, weights: Floats, values: Floats) -> Floats:
        """[S], sum of weights * values over each state's pairs."""
        return sums(self.pair_state, weights * values, self.n_states)

    def expected(self, state_values: Floats) -> Floats:
        """[P], expectation of a state function after each pair."""
        return sums(self.result_pair, self.probability * state_values[self.result_state], self.n_pairs)

    def distances(self) -> Floats:
        """[S], fewest actions to a success if luck is kind; infinite where there is no way."""
        far = np.where(self.success & self.terminal, 0.0, np.inf)
        for steps in range(1, self.n_states + 1):
            near = np.full(self.n_states, np.inf)
            np.minimum.at(near, self.pair_state[self.result_pair], far[self.result_state] + 1)
            new = np.minimum(far, near)
            if np.array_equal(new, far) or steps == self.n_states:
                break
            far = new
        return far


def compile_world(world: World[Any], max_states: int = 200_000) -> Table:
    """Number all states that can be reached from the start. Raises UsageError beyond `max_states`.

    Checks that probabilities sum to 1 and that `terminated` means a state without actions.
    """
    numbers: dict[Hashable, int] = {}
    for _, state in world.start():
        numbers.setdefault(state, len(numbers))
    states = list(numbers)
    pair_start, pair_state, pair_action = [0], [], []
    result_start, results = [0], []
    for number, state in enumerate(states):  # grows while it is walked
        for action in world.actions(state):
            pair_state.append(number)
            pair_action.append(action)
            outcomes = world.transitions(state, action)
            total = sum(o.probability for o in outcomes)
            if abs(total - 1.0) > 1e-9:
                raise UsageError(
                    f"{world.name}: probabilities of {action!r} in {world.key(state)!r} sum to {total}"
                )
            for outcome in outcomes:
                if outcome.state not in numbers:
                    numbers[outcome.state] = len(states)
                    states.append(outcome.state)
                    if len(states) > max_states:
                        raise UsageError(
                            f"{world.name}: more than {max_states} states; too many to enumerate"
                        )
                if outcome.terminated != (not world.actions(outcome.state)):
                    where = world.key(outcome.state)
                    raise UsageError(f"{world.name}: `terminated` and having no action disagree in {where!r}")
                number_after = numbers[outcome.state]
                results.append((len(pair_state) - 1, number_after, outcome.probability, outcome.reward))
            result_start.append(len(results))
        pair_start.append(len(pair_state))
    first = np.zeros(len(states))
    for probability, state in world.start():
        first[numbers[state]] += probability
    columns: list[Any] = list(zip(*results, strict=True)) if results else [(), (), (), ()]
    return Table(
        world=world,
        states=tuple(states),
        start=first,
        success=np.array([world.success(state) for state in states], bool),
        pair_start=np.array(pair_start, np.int64),
        pair_state=np.array(pair_state, np.int64),
        pair_action=tuple(pair_action),
        result_start=np.array(result_start, np.int64),
        result_pair=np.array(columns[0], np.int64),
        result_state=np.array(columns[1], np.int64),
        probability=np.array(columns[2], np.float64),
        reward=np.array(columns[3], np.float64),
    )
