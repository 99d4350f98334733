"""Small environments of a user's own, for the tests."""

from __future__ import annotations

from typing import Any


class Corridor:
    """Five cells in a row, the goal at the right end; `trouble` goes wrong in cell 2."""

    tasks = ("walk",)
    turns = 12

    def __init__(self, trouble: str = "") -> None:
        self.trouble, self.cell = trouble, 0

    def reset(self, seed: int) -> str:
        self.cell = 0
        return self._seen()

    def _seen(self) -> str:
        return f"cell {self.cell}"

    def step(self, action: str) -> tuple[str, float, bool]:
        if self.trouble == "raises" and self.cell == 2:
            raise ValueError("the floor gave way")
        self.cell = max(0, self.cell + (1 if action == "right" else -1))
        return self._seen(), float(self.cell == 4), self.cell == 4

    def admissible(self) -> tuple[str, ...]:
        return () if self.trouble == "stuck" and self.cell == 2 else ("left", "right")

    def state_key(self) -> int:
        return self.cell

    def success(self) -> bool:
        return self.cell == 4


class Restorable(Corridor):
    """The same, with save and restore."""

    def save(self) -> Any:
        return self.cell

    def restore(self, saved: Any, seed: int | None = None) -> str:
        self.cell = saved
        return self._seen()


class NoGame:
    """Lacks most of what an environment needs."""

    def reset(self, seed: int) -> str:
        return ""
