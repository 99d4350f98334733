"""The table of a live run: per estimator the success at the start and at the end, with intervals over the seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graft_core.live import keep
from graft_core.live.policy import Floats

if TYPE_CHECKING:
    from graft_core.live.run import LiveSettings

GOAL: Final = 0.8
POINTS: Final = 5
"""Updates at which the terminal shows the curves."""


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


def ends_of(run: Path, settings: LiveSettings, name: str) -> list[float]:
    """Success at the end of each finished seed of an estimator."""
    from graft_core.live.run import job_folder

    ends = []
    for seed in settings.seeds:
        folder = job_folder(run, name, seed)
        curve = keep.read_curve(folder)
        if len(curve) >= settings.updates:
            final = keep.read_json(folder / keep.RESULT)
            ends.append(float(final["success"] if final and settings.evaluate else curve[-1]["success"]))
    return ends


def curves_of(run: Path, settings: LiveSettings, name: str) -> Floats:
    """Success of each finished seed of an estimator by update, [seeds, updates]."""
    from graft_core.live.run import job_folder

    curves = [keep.read_curve(job_folder(run, name, seed)) for seed in settings.seeds]
    rows = [[float(row["success"]) for row in curve[: settings.updates]] for curve in curves if len(curve) >= settings.updates]
    return np.array(rows, np.float64).reshape(len(rows), settings.updates)


def bands(curves: Floats) -> dict[str, list[float]]:
    """Mean over the seeds by update, with its interval: `success`, `low`, `high`; empty lists where no seed is finished."""
    if not len(curves):
        return {"success": [], "low": [], "high": []}
    limits = [interval(column.tolist()) for column in curves.T]
    return {"success": curves.mean(axis=0).tolist(), "low": [low for low, _ in limits], "high": [high for _, high in limits]}


def result_rows(run: Path, settings: LiveSettings) -> list[dict[str, Any]]:
    """One row per estimator over the seeds that are finished.

    goal_update: median, infinite where half never get there. curve: see `bands`. With several step sizes also what
    `step_sizes.add_choice` puts in.
    """
    from graft_core.live.run import job_folder

    rows = []
    for name in settings.estimators:
        starts, reached, seconds, invalid = [], [], 0.0, 0
        for seed in settings.seeds:
            folder = job_folder(run, name, seed)
            curve = keep.read_curve(folder)
            if len(curve) < settings.updates:
                continue
            starts.append(curve[0]["success"])
            reached.append(first_update_at(curve) or math.inf)
            seconds += sum(row["seconds_sampling"] + row["seconds_updating"] for row in curve)
            invalid += sum(row["invalid"] for row in curve)
        ends = ends_of(run, settings, name)
        low, high = interval(ends)
        rows.append(
            {
                "estimator": name, "seeds": len(ends), "start": float(np.mean(starts)) if starts else math.nan,
                "end": float(np.mean(ends)) if ends else math.nan, "low": low, "high": high, "ends": ends,
                "goal_update": float(np.median(reached)) if reached else math.nan, "invalid": invalid, "seconds": seconds,
                "curve": bands(curves_of(run, settings, name)),
            }
        )  # fmt: skip
        if settings.step_sizes:
            from graft_core.live.step_sizes import add_choice

            add_choice(rows[-1], run, settings)
    return rows


def table_text(rows: Sequence[dict[str, Any]], settings: LiveSettings) -> str:
    """The rows as lines for a terminal."""
    sized = f" {'step size':>10}" if settings.step_sizes else ""
    head = f"{'estimator':<24}{sized} {'seeds':>5} {'start':>6} {'end':>6} {'95 % over seeds':>16}"
    lines = [f"{head} {f'updates to {GOAL:g}':>15} {'s':>7}"]
    for row in rows:
        band = "-" if math.isnan(row["low"]) else f"{row['low']:.2f} .. {row['high']:.2f}"
        goal = "never" if math.isinf(row["goal_update"]) else f"{row['goal_update']:.0f}"
        size = "" if not sized else f" {'-':>10}" if row["step_size"] is None else f" {row['step_size']:>10g}"
        cells = f"{row['estimator']:<24}{size} {row['seeds']:>5} {row['start']:>6.2f} {row['end']:>6.2f} {band:>16} {goal:>15}"
        lines.append(f"{cells} {row['seconds']:>7.1f}")
    rollouts = f"{settings.evaluate} fresh rollouts per seed after" if settings.evaluate else "rollouts of"
    one = "" if settings.step_sizes else f"; one step size for all, {settings.update.step_size:g}"
    lines.append(f"start: rollouts of the first update; end: {rollouts} update {settings.updates}{one}.")
    lines += _curve_lines(rows, settings)
    if settings.step_sizes:
        from graft_core.live.step_sizes import step_size_lines

        lines += step_size_lines(rows, settings)
    if any(row["invalid"] for row in rows):
        lines.append("invalid actions: " + ", ".join(f"{row['estimator']} {row['invalid']}" for row in rows))
    return "\n".join(lines)


def _curve_lines(rows: Sequence[dict[str, Any]], settings: LiveSettings) -> list[str]:
    """The curves at a few updates, with their bands where there are several seeds."""
    at = sorted({max(1, round(settings.updates * k / (POINTS - 1))) for k in range(POINTS)})
    shown = [row for row in rows if row["curve"]["success"]]
    if not shown or settings.updates < 2:
        return []
    lines = [f"{'success by update':<24} {' '.join(f'{update:>17}' for update in at)}"]
    for row in shown:
        cells = []
        for update in at:
            middle, low, high = (row["curve"][k][update - 1] for k in ("success", "low", "high"))
            band = "" if math.isnan(low) else f" [{low:.2f}, {high:.2f}]"
            cells.append(f"{f'{middle:.2f}{band}':>17}")
        lines.append(f"{row['estimator']:<24} {' '.join(cells)}")
    return lines
