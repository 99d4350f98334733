"""The table of a live run: per estimator the success at the start and at the end, with intervals over the seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graft_core.live import keep

if TYPE_CHECKING:
    from graft_core.live.run import LiveSettings

GOAL: Final = 0.8


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Student's interval for the mean over seeds, cut to 0..1; NaN with fewer than two."""
    if len(values) < 2:
        return float("nan"), float("nan")
    from scipy.stats import t

    half = float(t.ppf(0.5 + level / 2, len(values) - 1)) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    middle = float(np.mean(values))
    return max(0.0, middle - half), min(1.0, middle + half)


def first_update_at(curve: Sequence[dict[str, Any]], goal: float = GOAL) -> int | None:
    """The first update whose rollouts reach the goal, None where none does."""
    return next((row["update"] for row in curve if row["success"] >= goal), None)


def result_rows(run: Path, settings: LiveSettings) -> list[dict[str, Any]]:
    """One row per estimator over the seeds that are finished. `goal_update`: median, infinite where half never get there."""
    from graft_core.live.run import job_folder

    rows = []
    for name in settings.estimators:
        starts, ends, reached, seconds, invalid = [], [], [], 0.0, 0
        for seed in settings.seeds:
            folder = job_folder(run, name, seed)
            curve = keep.read_curve(folder)
            if len(curve) < settings.updates:
                continue
            final = keep.read_json(folder / keep.RESULT)
            starts.append(curve[0]["success"])
            ends.append(final["success"] if final and settings.evaluate else curve[-1]["success"])
            reached.append(first_update_at(curve) or math.inf)
            seconds += sum(row["seconds_sampling"] + row["seconds_updating"] for row in curve)
            invalid += sum(row["invalid"] for row in curve)
        low, high = interval(ends)
        rows.append(
            {
                "estimator": name, "seeds": len(ends), "start": float(np.mean(starts)) if starts else math.nan,
                "end": float(np.mean(ends)) if ends else math.nan, "low": low, "high": high, "ends": ends,
                "goal_update": float(np.median(reached)) if reached else math.nan, "invalid": invalid, "seconds": seconds,
            }
        )  # fmt: skip
    return rows


def table_text(rows: Sequence[dict[str, Any]], settings: LiveSettings) -> str:
    """The rows as lines for a terminal."""
    head = f"{'estimator':<24} {'seeds':>5} {'start':>6} {'end':>6} {'95 % over seeds':>16}"
    lines = [f"{head} {f'updates to {GOAL:g}':>15} {'s':>7}"]
    for row in rows:
        band = "-" if math.isnan(row["low"]) else f"{row['low']:.2f} .. {row['high']:.2f}"
        goal = "never" if math.isinf(row["goal_update"]) else f"{row['goal_update']:.0f}"
        cells = f"{row['estimator']:<24} {row['seeds']:>5} {row['start']:>6.2f} {row['end']:>6.2f} {band:>16} {goal:>15}"
        lines.append(f"{cells} {row['seconds']:>7.1f}")
    rollouts = f"{settings.evaluate} fresh rollouts per seed after" if settings.evaluate else "rollouts of"
    lines.append(f"start: rollouts of the first update; end: {rollouts} update {settings.updates}; one step size for all.")
    if any(row["invalid"] for row in rows):
        lines.append("invalid actions: " + ", ".join(f"{row['estimator']} {row['invalid']}" for row in rows))
    return "\n".join(lines)
