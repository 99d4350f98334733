"""gymnasium's toy_text games as exact worlds: what their table `P` says, told in words.

FrozenLake, Taxi and CliffWalking (any version) have such a table; Blackjack has none and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from graft_core.environments import Environment, WorldEnvironment
from graft_core.environments.base import Outcome
from graft_core.errors import InputError, UsageError

ACTIONS: Final = {
    "FrozenLake": ("left", "down", "right", "up"),
    "CliffWalking": ("up", "right", "down", "left"),
    "Taxi": ("south", "north", "east", "west", "pick up", "drop off"),
}
PLACES: Final = ("red", "green", "yellow", "blue")


@dataclass(frozen=True, eq=False)
class ToyText:
    """A gymnasium environment's table as a world; a state is (number, ended)."""

    kind: str
    title: str
    table: dict[int, dict[int, list[tuple[float, int, float, bool]]]]
    first: tuple[tuple[float, int], ...]
    columns: int
    goal_reward: float

    @property
    def name(self) -> str:
        return self.title

    def start(self) -> list[tuple[float, tuple[int, str]]]:
        return [(p, (state, "")) for p, state in self.first]

    def actions(self, state: tuple[int, str]) -> tuple[str, ...]:
        return () if state[1] else ACTIONS[self.kind]

    def transitions(self, state: tuple[int, str], action: str) -> list[Outcome]:
        """The table's results, equal ones added up; an end is a success where it pays what the goal pays."""
        chances: dict[tuple[tuple[int, str], float, bool], float] = {}
        for p, after, reward, ended in self.table[state[0]][ACTIONS[self.kind].index(action)]:
            end = ("success" if reward >= self.goal_reward else "failure") if ended else ""
            key = ((int(after), end), float(reward), bool(ended))
            chances[key] = chances.get(key, 0.0) + float(p)
        return [Outcome(p, after, reward, ended) for (after, reward, ended), p in chances.items()]

    def observation(self, state: tuple[int, str]) -> str:
        end = {"success": " You have reached the goal.", "failure": " The game is over.", "": ""}[state[1]]
        return self._where(state[0]) + end

    def _where(self, number: int) -> str:
        if self.kind != "Taxi":
            return f"You are at row {number // self.columns + 1}, column {number % self.columns + 1}."
        rest, target = divmod(number, 4)
        rest, guest = divmod(rest, 5)
        row, column = divmod(rest, 5)
        waits = "in the taxi" if guest == 4 else f"waiting at {PLACES[guest]}"
        return f"The taxi is at row {row + 1}, column {column + 1}. The guest is {waits} and wants to go to {PLACES[target]}."

    def key(self, state: tuple[int, str]) -> str:
        return f"{state[0]}{',' + state[1] if state[1] else ''}"

    def success(self, state: tuple[int, str]) -> bool:
        return state[1] == "success"


def toy_text_world(name: str = "FrozenLake-v1", **options: Any) -> ToyText:
    """The world behind `gymnasium.make(name, **options)`.

    Raises InputError where gymnasium is missing, UsageError where it does not know the name or it has no table.
    """
    try:
        import gymnasium
    except ImportError as error:
        raise InputError("toy-text needs the package gymnasium: pip install 'graft-lab[live]'") from error
    kind = name.split("-")[0]
    if kind not in ACTIONS:
        raise UsageError(f"toy-text {name!r}: expected {', '.join(f'{k}-vN' for k in ACTIONS)} (others have no table of moves)")
    try:
        game: Any = gymnasium.make(name, **options).unwrapped
    except Exception as error:  # gymnasium raises its own kinds, TypeError for options among them
        raise UsageError(f"toy-text {name!r}: {error}") from error
    table = {int(s): {int(a): list(found) for a, found in row.items()} for s, row in game.P.items()}
    shares = [(float(p), s) for s, p in enumerate(game.initial_state_distrib) if p > 0]
    goal = max(reward for row in table.values() for found in row.values() for _, _, reward, _ in found)
    columns = int(getattr(game, "ncol", 0) or (game.shape[1] if hasattr(game, "shape") else 5))
    return ToyText(kind, f"toy-text:{name}", table, tuple(shares), columns, float(goal))


def toy_text(name: str = "FrozenLake-v1", **options: Any) -> Environment:
    """The same, ready to play."""
    return WorldEnvironment(toy_text_world(name, **options))
