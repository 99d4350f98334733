"""Cliff walking: along the edge to the goal; a step over it sends one back to the start. Exact dynamics.

Every step costs 1 and a fall 100, as in Sutton and Barto (example 6.6); `deadly` makes a fall the end of the rollout.
Only reaching the goal is a success.
"""

from __future__ import annotations

from dataclasses import dataclass

from graft_core.environments.base import EnvironmentInfo, Outcome, World
from graft_core.environments.frozen_lake import MOVES
from graft_core.errors import UsageError

Cell = tuple[int, int]
FALL = -100.0


@dataclass(frozen=True)
class Cliff:
    """The grid as exact dynamics; a state is (row, column), the start bottom left, the goal bottom right."""

    height: int
    width: int
    deadly: bool = False
    slip: float = 0.0

    @property
    def name(self) -> str:
        return f"cliff {self.height}x{self.width}{', deadly' if self.deadly else ''}"

    @property
    def goal(self) -> Cell:
        return self.height - 1, self.width - 1

    def _below(self, state: Cell) -> bool:
        """Whether this cell lies in the abyss."""
        return state[0] == self.height - 1 and 0 < state[1] < self.width - 1

    def start(self) -> list[tuple[float, Cell]]:
        return [(1.0, (self.height - 1, 0))]

    def actions(self, state: Cell) -> tuple[str, ...]:
        return () if state == self.goal or self._below(state) else tuple(name for name, _ in MOVES)

    def transitions(self, state: Cell, action: str) -> list[Outcome]:
        """Results in the order of the moves that lead to them, equal cells added up; `slip`: any direction instead."""
        meant = [name for name, _ in MOVES].index(action)
        chances: dict[Cell, tuple[float, float]] = {}
        for k, (_, move) in enumerate(MOVES):
            chance = (1.0 - self.slip) * (k == meant) + self.slip / 4
            if chance > 0:
                cell, reward = self._moved(state, move)
                chances[cell] = (chances.get(cell, (0.0, 0.0))[0] + chance, min(reward, chances.get(cell, (0.0, 0.0))[1]))
        return [
            Outcome(p, cell, reward, cell == self.goal or self._below(cell)) for cell, (p, reward) in chances.items()
        ]

    def _moved(self, state: Cell, move: Cell) -> tuple[Cell, float]:
        cell = min(max(state[0] + move[0], 0), self.height - 1), min(max(state[1] + move[1], 0), self.width - 1)
        if not self._below(cell):
            return cell, -1.0
        return (cell if self.deadly else (self.height - 1, 0)), FALL

    def observation(self, state: Cell) -> str:
        where = f"row {state[0] + 1}, column {state[1] + 1}"
        if state == self.goal:
            return f"You reached the goal at {where}."
        if self._below(state):
            return f"You fell off the cliff at {where}."
        return f"You stand at {where}{', above the cliff' if state[0] == self.height - 2 else ''}."

    def key(self, state: Cell) -> str:
        return f"{state[0]},{state[1]}"

    def success(self, state: Cell) -> bool:
        return state == self.goal


def cliff(height: int = 4, width: int = 12, deadly: bool = False, slip: float = 0.0) -> World[Cell]:
    """The cliff of the given size, at least 2 x 3; raises UsageError for other values."""
    if height < 2 or width < 3:
        raise UsageError(f"cliff: {height} x {width} is not allowed, expected at least 2 x 3")
    if not 0.0 <= slip <= 1.0:
        raise UsageError(f"cliff: slip {slip} is not allowed, expected a number from 0 to 1")
    return Cliff(height, width, deadly, slip)


ENVIRONMENT = EnvironmentInfo(
    "cliff",
    "walk along the edge of a cliff to the goal; a fall costs much and sends one back to the start",
    cliff,
    {"height": 4, "width": 12, "deadly": False, "slip": 0.0},
)
