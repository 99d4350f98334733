"""A random layered graph: each action leads to a room of the next layer, some to one of two at random.

The last layer ends the rollout, in success or failure. Rooms are shared by many paths and never met twice
by one rollout, so this is the world in which merging helps and loops play no part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graft_core.environments.base import EnvironmentInfo, Outcome, World
from graft_core.errors import UsageError

Room = tuple[int, int]


@dataclass(frozen=True)
class Layered:
    """The graph as exact dynamics; a state is (layer, room).

    `moves[layer][room][action]` lists (chance, next room).
    """

    moves: tuple[tuple[tuple[tuple[tuple[float, int], ...], ...], ...], ...]
    good: tuple[bool, ...]
    label: str

    @property
    def name(self) -> str:
        return self.label

    def start(self) -> list[tuple[float, Room]]:
        return [(1.0, (0, 0))]

    def actions(self, state: Room) -> tuple[str, ...]:
        if state[0] == len(self.moves):
            return ()
        return tuple(f"door {k + 1}" for k in range(len(self.moves[state[0]][state[1]])))

    def transitions(self, state: Room, action: str) -> list[Outcome]:
        layer = state[0] + 1
        results = self.moves[state[0]][state[1]][int(action.split(" ")[1]) - 1]
        return [
            Outcome(p, (layer, room), float(self.success((layer, room))), layer == len(self.moves))
            for p, room in results
        ]

    def observation(self, state: Room) -> str:
        where = f"You are in room {state[1] + 1} of layer {state[0]}."
        if state[0] < len(self.moves):
            return where
        return f"{where} {'The treasure is here.' if self.success(state) else 'It is empty.'}"

    def key(self, state: Room) -> str:
        return f"{state[0]},{state[1]}"

    def success(self, state: Room) -> bool:
        return state[0] == len(self.moves) and self.good[state[1]]


def layered(
    layers: int = 8,
    width: int = 8,
    actions: int = 3,
    stochastic: float = 0.3,
    success: float = 0.3,
    seed: int = 0,
) -> World[Room]:
    """A graph of one first room and `layers` layers of `width` rooms, drawn from `seed`.

    `stochastic`: share of (room, action) that lead to one of two rooms; `success`: share of good rooms in
    the last layer (at least one is good and one is not). Raises UsageError for values out of range.
    """
    if layers < 1 or width < 2 or actions < 1:
        given = f"{layers} layers, {width} rooms, {actions} actions"
        raise UsageError(f"layered: {given}; expected at least 1, 2 and 1")
    for name, share in (("stochastic", stochastic), ("success", success)):
        if not 0.0 <= share <= 1.0:
            raise UsageError(f"layered: {name} {share} is not allowed, expected a number from 0 to 1")
    rng = np.random.default_rng(seed)

    def action() -> tuple[tuple[float, int], ...]:
        first, second = (int(room) for room in rng.choice(width, 2, replace=False))
        chance = float(rng.uniform(0.3, 0.7))
        return ((chance, first), (1.0 - chance, second)) if rng.random() < stochastic else ((1.0, first),)

    moves = tuple(
        tuple(tuple(action() for _ in range(actions)) for _ in range(1 if layer == 0 else width))
        for layer in range(layers)
    )
    n_good = min(max(round(success * width), 1), width - 1)
    good = set(rng.permutation(width)[:n_good].tolist())
    return Layered(
        moves, tuple(room in good for room in range(width)), f"layered {layers}x{width}, seed {seed}"
    )


ENVIRONMENT = EnvironmentInfo(
    "layered",
    "a random graph of layers whose paths meet again and again; some actions are a matter of luck",
    layered,
    {"layers": 8, "width": 8, "actions": 3, "stochastic": 0.3, "success": 0.3, "seed": 0},
)
