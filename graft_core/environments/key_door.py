"""Key and door: fetch the key, pass the locked door, reach the goal. Pits end the rollout.

The key is taken by stepping on its cell. `hide_key` leaves "has the key" out of the observation, as a
careless state key would: then two states with very different chances read alike. The column `state` always
has it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from graft_core.environments.base import EnvironmentInfo, Outcome, World
from graft_core.environments.frozen_lake import MOVES
from graft_core.errors import UsageError

# S start, K key, D door, G goal, # wall, P pit (floor where pits are off), . floor
MAPS = {
    4: ("S.#P", "..D.", ".P#.", "K.#G"),
    5: ("S..#P", ".P.#.", "...D.", ".P.#.", "K..#G"),
    6: ("K.P#..", "...#..", ".S.D..", "...#P.", "P..#.G"),
}


class KeyDoorState(NamedTuple):
    row: int
    column: int
    has_key: bool


@dataclass(frozen=True)
class KeyDoor:
    """The grid as exact dynamics. `slip`: chance that a move goes in one of the four directions at random."""

    rows: tuple[str, ...]
    hide_key: bool = False
    pits: bool = True
    slip: float = 0.0

    @property
    def name(self) -> str:
        return f"key-door {len(self.rows)}x{len(self.rows[0])}{', key hidden' if self.hide_key else ''}"

    def _letter(self, row: int, column: int) -> str:
        if not (0 <= row < len(self.rows) and 0 <= column < len(self.rows[0])):
            return "#"
        letter = self.rows[row][column]
        return "." if letter == "P" and not self.pits else letter

    def _ends(self, state: KeyDoorState) -> bool:
        return self._letter(state.row, state.column) in "PG"

    def start(self) -> list[tuple[float, KeyDoorState]]:
        (cell,) = [(r, row.index("S")) for r, row in enumerate(self.rows) if "S" in row]
        return [(1.0, KeyDoorState(*cell, False))]

    def actions(self, state: KeyDoorState) -> tuple[str, ...]:
        return () if self._ends(state) else tuple(name for name, _ in MOVES)

    def _moved(self, state: KeyDoorState, move: tuple[int, int]) -> KeyDoorState:
        row, column = state.row + move[0], state.column + move[1]
        letter = self._letter(row, column)
        if letter == "#" or (letter == "D" and not state.has_key):
            return state
        return KeyDoorState(row, column, state.has_key or letter == "K")

    def transitions(self, state: KeyDoorState, action: str) -> list[Outcome]:
        meant = [name for name, _ in MOVES].index(action)
        chances: defaultdict[KeyDoorState, float] = defaultdict(float)
        chances[self._moved(state, MOVES[meant][1])] += 1.0 - self.slip
        if self.slip:
            for _, move in MOVES:
                chances[self._moved(state, move)] += self.slip / 4
        return [
            Outcome(p, after, float(self.success(after)), self._ends(after)) for after, p in chances.items()
        ]

    def observation(self, state: KeyDoorState) -> str:
        where = f"row {state.row + 1}, column {state.column + 1}"
        letter = self._letter(state.row, state.column)
        if letter == "P":
            text = f"You fell into a pit at {where}."
        elif letter == "G":
            text = f"You reached the goal at {where}."
        else:
            text = f"You are at {where}{', in the doorway' if letter == 'D' else ''}."
        if self.hide_key:
            return text
        return f"{text} You have {'the key' if state.has_key else 'no key'}."

    def key(self, state: KeyDoorState) -> str:
        return f"{state.row},{state.column},{'key' if state.has_key else 'no key'}"

    def success(self, state: KeyDoorState) -> bool:
        return self._letter(state.row, state.column) == "G"


def key_door(
    size: int = 4, hide_key: bool = False, pits: bool = True, slip: float = 0.0
) -> World[KeyDoorState]:
    """The key-door grid of side `size`, 4, 5 or 6 (another layout); raises UsageError for other values.

    Without pits every rollout that goes on for long enough succeeds.
    """
    if size not in MAPS:
        raise UsageError(f"key-door: size {size} is not allowed, expected one of {', '.join(map(str, MAPS))}")
    if not 0.0 <= slip <= 1.0:
        raise UsageError(f"key-door: slip {slip} is not allowed, expected a number from 0 to 1")
    return KeyDoor(MAPS[size], hide_key, pits, slip)


ENVIRONMENT = EnvironmentInfo(
    "key-door",
    "fetch the key, pass the door, reach the goal; the observation can hide whether one has the key",
    key_door,
    {"size": 4, "hide_key": False, "pits": True, "slip": 0.0},
)
