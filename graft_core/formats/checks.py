"""Checks on assembled rows: what disagrees within a rollout, and what the step numbers say. All vectorised over rows.

`roll` is the rollout of each row, `n` the number of rollouts. Row numbers are positions among all rows of the load.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Flags = npt.NDArray[np.int8]
MIX: Final = np.uint64(0x9E3779B97F4A7C15)


def first_row(roll: Ints, mask: Bools, n: int) -> Ints:
    """The first row of each rollout for which `mask` holds, -1 where there is none."""
    rows = np.flatnonzero(mask)
    out = np.full(n, -1, dtype=np.int64)
    out[roll[rows[::-1]]] = rows[::-1]
    return out


@dataclass
class BadRollouts:
    """Rollouts that cannot be used: the row to blame and the reason; the first reason stays."""

    reasons: dict[int, tuple[int, str]] = field(default_factory=dict)

    def add(self, rollout: int, row: int, reason: str) -> None:
        self.reasons.setdefault(rollout, (row, reason))


def find_conflicts(
    roll: Ints, values: npt.NDArray[np.generic], given: Bools, n: int, say: Callable[[int, int], str], bad: BadRollouts
) -> None:
    """Mark rollouts whose rows give different values; `say` words the reason from the two rows."""
    if not given.any():
        return
    first = first_row(roll, given, n)
    differs = given & (values != values[np.where(first[roll] >= 0, first[roll], 0)])
    for row in first_row(roll, differs, n)[np.unique(roll[differs])].tolist():
        bad.add(int(roll[row]), row, say(int(first[roll[row]]), row))


def ending_flag(
    roll: Ints, values: Flags, declared: Bools, last: Ints, say: Callable[[int, int], str], bad: BadRollouts
) -> Flags:
    """terminated or truncated per rollout (-1 = not said), from rows that may give it per step or per rollout.

    The last step or the declaring row decides. A row that says true while the last step says false disagrees (the
    rollout went on), as do a declaring row and the last step.
    """
    n = len(last)
    declaring = first_row(roll, declared & (values >= 0), n)
    at_last = np.where(last >= 0, values[last], -1).astype(np.int8)
    said = np.where(declaring >= 0, values[declaring], -1).astype(np.int8)
    wrong = np.flatnonzero(~declared & (values == 1) & (at_last[roll] == 0))
    for row in wrong[::-1].tolist():
        bad.add(int(roll[row]), row, say(row, int(last[roll[row]])))
    for rollout in np.flatnonzero((said >= 0) & (at_last >= 0) & (said != at_last)).tolist():
        bad.add(rollout, int(declaring[rollout]), say(int(declaring[rollout]), int(last[rollout])))
    anywhere = np.full(n, -1, dtype=np.int8)
    anywhere[roll[values == 0]] = 0
    anywhere[roll[values == 1]] = 1
    return np.where(said >= 0, said, np.where(at_last >= 0, at_last, anywhere)).astype(np.int8)


@dataclass(frozen=True)
class Path:
    """Step rows in path order: row numbers, their rollouts, and whether each continues the rollout of the one before."""

    rows: Ints
    roll: Ints
    step: Ints
    follows: Bools


def path_of(roll: Ints, step: Ints, is_step: Bools) -> Path:
    """Sort step rows by (rollout, step number), rows with equal numbers in the order of the file."""
    rows = np.flatnonzero(is_step)
    key_roll, key_step = roll[rows], step[rows]
    ordered = (np.diff(key_roll) > 0) | ((np.diff(key_roll) == 0) & (np.diff(key_step) >= 0))
    if not ordered.all():
        order = np.lexsort((rows, key_step, key_roll))
        rows, key_roll, key_step = rows[order], key_roll[order], key_step[order]
    follows = np.zeros(len(rows), dtype=np.bool_)
    follows[1:] = key_roll[1:] == key_roll[:-1]
    return Path(rows, key_roll, key_step, follows)


def number_missing_steps(roll: Ints, step: Ints, is_step: Bools, missing: Bools, n: int, bad: BadRollouts) -> None:
    """Give step numbers (in place) to rollouts that have none; a rollout with some missing is unusable."""
    rows = np.flatnonzero(is_step & missing)
    if not len(rows):
        return
    numbered = first_row(roll, is_step & ~missing, n)
    for row in rows[numbered[roll[rows]] >= 0].tolist():
        bad.add(int(roll[row]), row, "step is missing here, while other rows of this rollout have one")
    order = rows[np.argsort(roll[rows], kind="stable")]
    starts = np.flatnonzero(np.concatenate([[True], np.diff(roll[order]) > 0]))
    lengths = np.diff(np.concatenate([starts, [len(order)]]))
    step[order] = np.arange(len(order)) - np.repeat(starts, lengths)


def gaps_and_repeats(path: Path) -> tuple[Ints, Ints]:
    """Rows whose step number leaves some out after the row before (it may start anywhere), and rows that repeat one."""
    jump = np.zeros(len(path.rows), dtype=np.int64)
    jump[1:] = np.diff(path.step)
    return path.rows[path.follows & (jump > 1)], path.rows[path.follows & (jump == 0)]


def broken_links(path: Path, observation: Ints, next_observation: Ints) -> Ints:
    """Rows whose next_observation differs from the observation of the step right after them."""
    if len(path.rows) < 2:
        return path.rows[:0]
    here, after = path.rows[:-1], path.rows[1:]
    adjacent = path.follows[1:] & (np.diff(path.step) == 1)
    given = (next_observation[here] >= 0) & (observation[after] >= 0)
    found: Ints = here[adjacent & given & (next_observation[here] != observation[after])]
    return found


def content_hash(path: Path, columns: list[npt.NDArray[np.int64]], n: int) -> npt.NDArray[np.uint64]:
    """One number per rollout that is the same for the same steps (the columns should contain the step number)."""
    mixed = np.zeros(len(path.rows), dtype=np.uint64)
    for column in columns:
        mixed = (mixed ^ column[path.rows].astype(np.int64).view(np.uint64)) * MIX
        mixed ^= mixed >> np.uint64(29)
    out = np.zeros(n, dtype=np.uint64)
    np.add.at(out, path.roll, mixed * MIX)
    return out
