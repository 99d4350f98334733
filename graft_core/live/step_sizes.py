"""The best step size of each estimator: all are tried with seeds of their own, and the best is then run with fresh seeds.

Choosing the best of several on the seeds it is reported for would flatter every estimator, and most the noisiest one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graft_core.errors import UsageError
from graft_core.live.table import curves_of, ends_of, interval

if TYPE_CHECKING:
    from graft_core.live.run import LiveSettings

FOLDER: Final = "step-sizes"
SEEDS: Final = 5
FIRST_SEED: Final = 1_000_000
SEARCH: Final = "search"
FACTORS: Final = (0.1, 0.3, 1.0, 3.0, 10.0)
"""What `search` multiplies the kind of policy's own step size with."""


def step_sizes_of(word: str, default: float) -> tuple[float, ...]:
    """`0.5,1,3` as numbers, `search` as those around the default; raises UsageError for anything else."""
    if word == SEARCH:
        return tuple(float(f"{factor * default:.6g}") for factor in FACTORS)
    try:
        numbers = [float(part) for part in word.split(",")]
    except ValueError:
        raise UsageError(f"--step-sizes {word!r}: expected numbers joined by commas, or search") from None
    return check_sizes(numbers)


def check_sizes(sizes: Sequence[float]) -> tuple[float, ...]:
    """The sizes in order; raises UsageError for fewer than two, or one that is no positive number."""
    if len(set(sizes)) < 2 or len(set(sizes)) < len(sizes) or not all(0 < size < math.inf for size in sizes):
        raise UsageError(f"step-sizes: {', '.join(f'{s:g}' for s in sizes)}: expected at least two numbers above 0, none twice")
    return tuple(sorted(sizes))


def trial(settings: LiveSettings, size: float) -> LiveSettings:
    """The settings with one step size tried."""
    seeds = tuple(range(FIRST_SEED, FIRST_SEED + SEEDS))
    update = replace(settings.update, step_size=size)
    return replace(settings, update=update, seeds=seeds, step_sizes=(), record="none")


def trial_folder(run: Path, size: float) -> Path:
    """Where the trial of one step size is kept, laid out like a run."""
    return run / FOLDER / f"{size:g}"


def tried(run: Path, settings: LiveSettings, name: str) -> list[dict[str, Any]]:
    """One row per step size of an estimator: mean success at the end with its interval, and over the curve (`area`)."""
    rows = []
    for size in settings.step_sizes:
        one, folder = trial(settings, size), trial_folder(run, size)
        ends = ends_of(folder, one, name)
        low, high = interval(ends)
        end, area = (float(np.mean(x)) if len(x) else math.nan for x in (ends, curves_of(folder, one, name)))
        rows.append({"step_size": size, "seeds": len(ends), "end": end, "low": low, "high": high, "area": area})
    return rows


def best(rows: Sequence[dict[str, Any]]) -> float | None:
    """The step size of the best mean end, ties to the larger area under the curve, then to the smaller step; None before all
    are tried."""
    if not rows or any(row["seeds"] < SEEDS for row in rows):
        return None
    return float(max(rows, key=lambda row: (round(row["end"], 9), round(row["area"], 9), -row["step_size"]))["step_size"])


def chosen(run: Path, settings: LiveSettings, name: str) -> LiveSettings:
    """The settings with the best step size of an estimator, once all are tried."""
    size = best(tried(run, settings, name)) if settings.step_sizes else None
    return settings if size is None else replace(settings, update=replace(settings.update, step_size=size))


def add_choice(row: dict[str, Any], run: Path, settings: LiveSettings) -> None:
    """Put `step_size`, `tried` and `at_edge` into a row of the table: the best was the smallest or largest, others worse."""
    rows = tried(run, settings, row["estimator"])
    size = best(rows)
    differ = len({(one["end"], one["area"]) for one in rows}) > 1
    row |= {"step_size": size, "tried": rows, "at_edge": differ and size in (settings.step_sizes[0], settings.step_sizes[-1])}


def step_size_lines(rows: Sequence[dict[str, Any]], settings: LiveSettings) -> list[str]:
    """What a terminal says of the step sizes under the table."""
    sizes = ", ".join(f"{size:g}" for size in settings.step_sizes)
    lines = [f"step size: the best of {len(settings.step_sizes)} tried ({sizes}) by mean end success over {SEEDS} other seeds"]
    for row in rows:
        if row.get("step_size") is not None:
            ends = ", ".join(f"{one['step_size']:g}: {one['end']:.2f} ({one['area']:.2f})" for one in row["tried"])
            edge = "; the best lies at the edge of what was tried" if row["at_edge"] else ""
            lines.append(f"  {row['estimator']}: end (mean over the curve) at {ends}{edge}")
    return lines
