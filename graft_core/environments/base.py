"""What an environment is: one protocol to act in, one to compute with.

`Environment` is what a policy plays (reset, step, admissible actions, save and restore). `World` is the same
game written as exact dynamics over hashable states, from which `graft_core.environments.tables` makes arrays
and `graft_core.fidelity.truth` makes true values. `WorldEnvironment` plays any `World`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

S = TypeVar("S", bound=Hashable)
NOTHING_HAPPENS = "Nothing happens."


class Outcome(NamedTuple):
    """One possible result of an action: probability, next state, reward, whether the rollout ends there."""

    probability: float
    state: Hashable
    reward: float
    terminated: bool


class World(Protocol[S]):
    """A game as exact dynamics over hashable states; a state without actions is terminal."""

    @property
    def name(self) -> str: ...

    def start(self) -> list[tuple[float, S]]:
        """First states with their probabilities, which sum to 1."""
        ...

    def actions(self, state: S) -> tuple[str, ...]:
        """Admissible actions in a fixed order, none in a terminal state."""
        ...

    def transitions(self, state: S, action: str) -> list[Outcome]:
        """Distribution over results of an admissible action; probabilities sum to 1."""
        ...

    def observation(self, state: S) -> str:
        """The text that the agent reads in this state."""
        ...

    def key(self, state: S) -> str:
        """The full state as one short text, for the column `state`."""
        ...

    def success(self, state: S) -> bool:
        """Whether the task is solved in this state."""
        ...


class Environment(Protocol):
    """A game to play: what a sampler and a policy need, nothing else."""

    def reset(self, seed: int) -> str:
        """Start anew and return the first observation."""
        ...

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action; return observation, reward and whether the rollout has ended."""
        ...

    def admissible(self) -> tuple[str, ...]:
        """Actions that do something now."""
        ...

    def state_key(self) -> Hashable:
        """The state, hashable and complete."""
        ...

    def save(self) -> Any:
        """An immutable token of the present state."""
        ...

    def restore(self, saved: Any, seed: int | None = None) -> str:
        """Go back to a saved state, with fresh luck where `seed` is given; return the observation there."""
        ...

    def success(self) -> bool:
        """Whether the task is solved now."""
        ...


@dataclass(frozen=True)
class EnvironmentInfo:
    """A registered environment: name, meaning in plain words, how to make it, options with defaults."""

    name: str
    meaning: str
    make: Callable[..., World[Any]]
    options: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = True


def draw(weights: Sequence[float] | NDArray[np.float64], rng: np.random.Generator) -> int:
    """An index, drawn in proportion to the weights."""
    edges = np.cumsum(weights)
    return min(int(np.searchsorted(edges, rng.random() * edges[-1], side="right")), len(edges) - 1)


class WorldEnvironment:
    """Plays a `World`; an action that is not admissible changes nothing and says so.

    Luck comes from `numpy.random.default_rng(seed)`, so equal seeds and actions give equal rollouts.
    """

    def __init__(self, world: World[Any]) -> None:
        self.world = world
        self._rng = np.random.default_rng(0)
        self._state: Any = None

    def reset(self, seed: int) -> str:
        self._rng = np.random.default_rng(seed)
        starts = self.world.start()
        self._state = starts[draw([p for p, _ in starts], self._rng)][1]
        return self.world.observation(self._state)

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action; raises RuntimeError before the first reset and after the end."""
        admissible = self.admissible()
        if not admissible:
            raise RuntimeError(f"{self.world.name}: the rollout has ended; reset before {action!r}")
        if action not in admissible:
            return NOTHING_HAPPENS, 0.0, False
        outcomes = self.world.transitions(self._state, action)
        got = (
            outcomes[draw([o.probability for o in outcomes], self._rng)] if len(outcomes) > 1 else outcomes[0]
        )
        self._state = got.state
        return self.world.observation(self._state), got.reward, got.terminated

    def admissible(self) -> tuple[str, ...]:
        self._require_start()
        return self.world.actions(self._state)

    def state_key(self) -> Hashable:
        self._require_start()
        key: Hashable = self._state
        return key

    def save(self) -> Hashable:
        return self.state_key()

    def restore(self, saved: Hashable, seed: int | None = None) -> str:
        self._state = saved
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        return self.world.observation(self._state)

    def success(self) -> bool:
        self._require_start()
        return self.world.success(self._state)

    def _require_start(self) -> None:
        if self._state is None:
            raise RuntimeError(f"{self.world.name}: call reset(seed) first")
