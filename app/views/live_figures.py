"""What a live run's curve files say, as figures and tables: success over updates with bands, credit, and the ends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from graft_app.views.text import number
from graft_core.credit import estimators
from graft_core.insight.palette import BLUE, GREY, VERMILION
from graft_core.live import keep
from graft_core.live.run import LiveSettings, job_folder
from graft_core.live.table import GOAL, interval

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ((1, 0), (7, 4), (2, 3), (8, 3, 2, 3), (12, 4), (12, 3, 2, 3))
TIP = ("estimator", "update", "success", "low", "high", "seeds")
Curve = list[dict[str, Any]]


def title_of(name: str) -> str:
    """An estimator's title; its name where this version does not know it."""
    known = estimators()
    return known[name].title if name in known else name


def read_curves(run: Path, settings: LiveSettings) -> dict[str, list[Curve]]:
    """Per estimator the curves of the seeds that have begun."""
    found = {}
    for name in settings.estimators:
        curves = [keep.read_curve(job_folder(run, name, seed)) for seed in settings.seeds]
        found[name] = [curve for curve in curves if curve]
    return found


def bands(curves: Sequence[Curve]) -> list[tuple[int, float, float, float, int]]:
    """Per update: its number, mean success over the seeds that reached it, interval (NaN for one seed), seeds."""
    by_update: dict[int, list[float]] = {}
    for curve in curves:
        for row in curve:
            by_update.setdefault(int(row["update"]), []).append(float(row["success"]))
    return [(u, float(np.mean(values)), *interval(values), len(values)) for u, values in sorted(by_update.items())]


def invalid_words(curves: Mapping[str, Sequence[Curve]]) -> str:
    """How many actions were not possible, empty where none."""
    rows = [row for several in curves.values() for curve in several for row in curve]
    invalid, steps = (sum(int(row[name]) for row in rows) for name in ("invalid", "steps"))
    return f" {invalid:,} of {steps:,} actions so far were not possible and changed nothing." if invalid else ""


def curves_chart(curves: Mapping[str, Sequence[Curve]], updates: int) -> None:
    """Success of each update's rollouts: mean over seeds, with the 95 % interval of that mean as a band.

    Drawn with Vega, which changes a chart in place: a Plotly figure would be built anew, and blink, every second.
    """
    titles = [title_of(name) for name in curves]
    rows = [
        {"estimator": title_of(name), "update": u, "success": mean, "low": low, "high": high, "seeds": seeds}
        for name, several in curves.items()
        for u, mean, low, high, seeds in bands(several)
    ]
    span, ticks = {"domain": [1, max(2, updates)]}, {"grid": False, "tickMinStep": 1, "tickCount": 6, "format": "d"}
    x = {"field": "update", "type": "quantitative", "scale": span, "axis": ticks}
    reach = {"domain": [-0.02, 1.03], "nice": False}
    y = {"type": "quantitative", "title": "success", "scale": reach, "axis": {"values": [0, 0.5, 1], "format": "g"}}
    colour = {"field": "estimator", "type": "nominal", "scale": {"domain": titles, "range": COLOURS[: len(titles)]}}
    dash = {"field": "estimator", "type": "nominal", "scale": {"domain": titles, "range": DASHES[: len(titles)]}}
    symbol = {"symbolSize": 400, "symbolStrokeWidth": 2.5, "symbolType": "stroke", "symbolOpacity": 1}
    legend = {"orient": "top", "title": None, **symbol}
    hover = [{"field": name, "format": ".2f"} if name in ("success", "low", "high") else {"field": name} for name in TIP]
    spec = {
        "height": 330,
        "encoding": {"x": x, "color": {**colour, "legend": legend}},
        "layer": [
            {
                "mark": {"type": "area", "opacity": 0.18, "clip": True},
                "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
                "transform": [{"filter": "isValid(datum.low)"}],
            },
            {
                "mark": {"type": "line", "strokeWidth": 2.5, "point": {"size": 12}, "clip": True},
                "encoding": {"y": {**y, "field": "success"}, "strokeDash": {**dash, "legend": legend}, "tooltip": hover},
            },
        ],
    }  # fmt: skip
    st.vega_lite_chart(
        pd.DataFrame(rows), spec, key="live_curves", alt="success of each update's rollouts per estimator, mean over seeds"
    )


def credit_charts(curves: Mapping[str, Sequence[Curve]]) -> None:
    """Credit of the steps of the latest update, one small chart per estimator, each on a scale of its own."""
    for name, several in curves.items():
        if several:
            _credit_chart(name, several[-1][-1]["credit"])


def _credit_chart(name: str, found: Mapping[str, Sequence[float]]) -> None:
    edges = np.asarray(found["edges"], dtype=np.float64)
    middle = (edges[:-1] + edges[1:]) / 2
    near = float(np.diff(edges).min()) / 4
    sign = np.where(middle > near, "better", np.where(middle < -near, "worse", "none"))
    frame = pd.DataFrame({"from": edges[:-1], "to": edges[1:], "steps": found["counts"], "credit": sign})
    across = {"tickCount": 3, "grid": False, "format": "+.2~f"}
    spec = {
        "height": 104,
        "title": {"text": title_of(name), "fontSize": 12, "anchor": "start", "offset": 2},
        "mark": {"type": "bar"},
        "encoding": {
            "x": {"field": "from", "bin": "binned", "type": "quantitative", "title": None, "axis": across},
            "x2": {"field": "to"},
            "y": {"field": "steps", "type": "quantitative", "title": None, "axis": {"tickCount": 2, "format": "~s"}},
            "color": {
                "field": "credit", "type": "nominal", "legend": None,
                "scale": {"domain": ["better", "worse", "none"], "range": [BLUE, VERMILION, GREY]},
            },
            "tooltip": [
                {"field": "from", "format": "+.3f"}, {"field": "to", "format": "+.3f"}, {"field": "steps", "format": "d"},
            ],
        },
    }  # fmt: skip
    alt = f"credit of the latest update's steps under {title_of(name)}"
    st.vega_lite_chart(frame, spec, key=f"live_credit_{name}", alt=alt)


def result_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The ends as a table: undefined is a dash, a goal that was never reached says so."""

    def goal(value: float) -> str:
        return "–" if math.isnan(value) else "never" if math.isinf(value) else f"{value:.0f}"

    def band(row: Mapping[str, Any]) -> str:
        return "–" if math.isnan(row["low"]) else f"{row['low']:.2f} … {row['high']:.2f}"

    sized = {"step size": [row["step_size"] for row in rows]} if all("step_size" in row for row in rows) else {}
    return pd.DataFrame(
        {
            "estimator": [title_of(row["estimator"]) for row in rows],
            **sized,
            "seeds": [row["seeds"] for row in rows],
            "start": [number(row["start"]) for row in rows],
            "end": [number(row["end"]) for row in rows],
            "95 % over seeds": [band(row) for row in rows],
            f"updates to {GOAL:g}": [goal(row["goal_update"]) for row in rows],
            "invalid": [row["invalid"] for row in rows],
            "seconds": [row["seconds"] for row in rows],
        }
    )


def verdict(rows: Sequence[Mapping[str, Any]]) -> str:
    """Who won, said no louder than the intervals allow; empty with fewer than two estimators that finished a seed."""
    known = sorted((row for row in rows if row["seeds"]), key=lambda row: -row["end"])
    if len(known) < 2:
        return ""
    best = known[0]
    if min(row["seeds"] for row in known) < 2:
        return "One seed is no comparison: the difference between two seeds of the same estimator can be as large."
    worse = [row for row in known[1:] if row["high"] < best["low"]]
    level = [row for row in known[1:] if row["high"] >= best["low"]]
    parts = []
    if level:
        names = _and([title_of(row["estimator"]) for row in (best, *level)])
        parts.append(f"No winner among {names}: their intervals overlap after {best['seeds']} seeds.")
    parts += [
        f"{title_of(row['estimator'])} does not win: it ends at {row['end']:.2f}, {title_of(best['estimator'])} at "
        f"{best['end']:.2f}, and the intervals are apart."
        for row in worse
    ]
    if "step_size" not in best:
        parts.append("All used one step size; the best one of each was not searched for.")
    else:
        edge = [title_of(row["estimator"]) for row in known if row["at_edge"]]
        parts.append("Each ran with its best step size, chosen on other seeds.")
        if edge:
            parts.append(f"That of {_and(edge)} was the smallest or largest tried: a better one may lie beyond.")
    return " ".join(parts)


def _and(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
