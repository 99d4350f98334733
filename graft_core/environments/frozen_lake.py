"""FrozenLake: cross the ice to the goal without falling into a hole. The standard maps, exact dynamics.

Reward 1 on reaching the goal, else 0. On slippery ice a move goes where it should or to either side, a
third each.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from graft_core.environments.base import EnvironmentInfo, Outcome, World
from graft_core.errors import UsageError

Cell = tuple[int, int]
MOVES: tuple[tuple[str, Cell], ...] = (
    ("left", (0, -1)),
    ("down", (1, 0)),
    ("right", (0, 1)),
    ("up", (-1, 0)),
)
MAPS = {
    4: ("SFFF", "FHFH", "FFFH", "HFFG"),
    8: ("SFFFFFFF", "FFFFFFFF", "FFFHFFFF", "FFFFFHFF", "FFFHFFFF", "FHHFFFHF", "FHFFHFHF", "FFFHFFFG"),
}


@dataclass(frozen=True)
class FrozenLake:
    """The lake as exact dynamics; a state is (row, column)."""

    rows: tuple[str, ...]
    slippery: bool = False

    @property
    def name(self) -> str:
        return f"frozen lake {len(self.rows)}x{len(self.rows[0])}{', slippery' if self.slippery else ''}"

    def _letter(self, state: Cell) -> str:
        return self.rows[state[0]][state[1]]

    def start(self) -> list[tuple[float, Cell]]:
        cells = [(r, c) for r, row in enumerate(self.rows) for c, letter in enumerate(row) if letter == "S"]
        return [(1.0 / len(cells), cell) for cell in cells]

    def actions(self, state: Cell) -> tuple[str, ...]:
        return () if self._letter(state) in "HG" else tuple(name for name, _ in MOVES)

    def transitions(self, state: Cell, action: str) -> list[Outcome]:
        """Results in the order of the moves that lead to them, equal cells added up."""
        meant = [name for name, _ in MOVES].index(action)
        chances: defaultdict[Cell, float] = defaultdict(float)
        for turn in (-1, 0, 1) if self.slippery else (0,):
            down, right = MOVES[(meant + turn) % 4][1]
            row = min(max(state[0] + down, 0), len(self.rows) - 1)
            column = min(max(state[1] + right, 0), len(self.rows[0]) - 1)
            chances[row, column] += 1 / 3 if self.slippery else 1.0
        return [
            Outcome(p, cell, float(self._letter(cell) == "G"), self._letter(cell) in "HG")
            for cell, p in chances.items()
        ]

    def observation(self, state: Cell) -> str:
        where = f"row {state[0] + 1}, column {state[1] + 1}"
        ends = {"H": f"You fell through the ice at {where}.", "G": f"You reached the goal at {where}."}
        return ends.get(self._letter(state), f"You stand on the ice at {where}.")

    def key(self, state: Cell) -> str:
        return f"{state[0]},{state[1]}"

    def success(self, state: Cell) -> bool:
        return self._letter(state) == "G"


def frozen_lake(size: int = 4, slippery: bool = False) -> World[Cell]:
    """FrozenLake on the standard map of side `size`, 4 or 8; raises UsageError for another size."""
    if size not in MAPS:
        raise UsageError(f"frozen-lake: size {size} is not allowed, expected 4 or 8")
    return FrozenLake(MAPS[size], slippery)


ENVIRONMENT = EnvironmentInfo(
    "frozen-lake",
    "cross the ice to the goal without falling into a hole; slippery ice pushes to the sides",
    frozen_lake,
    {"size": 4, "slippery": False},
)
