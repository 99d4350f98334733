"""Plotly figures: value and credit along a rollout, one credit against another, and a sweep of lambda.

Rollout text enters a figure only escaped and on one line: hover boxes understand a little markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from graft_app.views.text import number, one_line
from graft_core.constants import SIGN_TOLERANCE
from graft_core.insight.align import AlignedRow
from graft_core.insight.palette import BLUE, GREY, VERMILION
from graft_core.insight.transcript import Course
from graft_core.rollouts import FloatArray, IntArray

CHOSEN = "rgba(127,127,127,0.25)"
SHARED = "rgba(150,90,220,0.12)"
QUIET = {"displayModeBar": False, "displaylogo": False}
BRUSH = {"displaylogo": False, "modeBarButtonsToRemove": ["toImage", "autoScale2d", "zoomIn2d", "zoomOut2d", "lasso2d"]}
GRID = "rgba(127,127,127,0.25)"
LINE = "#7A8794"
SERIES = ("#0072B2", "#D55E00")


def sign_marks(credit: FloatArray) -> dict[str, Any]:
    """Bar colours by sign; negative bars are hatched too, so that the sign reads without colour."""
    up, down = credit > SIGN_TOLERANCE, credit < -SIGN_TOLERANCE
    colours = np.where(up, BLUE, np.where(down, VERMILION, GREY)).tolist()
    pattern = {
        "shape": np.where(down, "/", "").tolist(), "fillmode": "overlay", "fgcolor": "#FFFFFF", "fgopacity": 0.7,
        "solidity": 0.25, "size": 6,
    }
    return {"color": colours, "pattern": pattern, "line": {"width": 0}}


def course_figure(
    along: Course, chosen: int, actions: Sequence[str], names: tuple[str, str], value_word: str
) -> go.Figure:
    """Value as a line over the bars of credit A and B; the bar of a step stands between the moments it joins.

    Every point carries the path position of its step as customdata.
    """
    figure = _three_rows()
    t = np.arange(along.steps.size)
    _value_line(figure, along, t, value_word)
    for row, credit, name in ((2, along.credit, names[0]), (3, along.baseline, names[1])):
        _bars(figure, row, along, t, credit, name, actions)
    if along.steps.size and not np.array_equal(along.steps, t):
        every = max(1, along.steps.size // 20)
        figure.update_xaxes(tickvals=t[::every], ticktext=[str(s) for s in along.steps[::every]], row=3, col=1)
    return _finish(figure, along.steps.size, chosen, value_word, "step")


def aligned_figure(
    sides: tuple[Course, Course], rows: Sequence[AlignedRow], chosen: int, actions: tuple[Sequence[str], Sequence[str]],
    name: str, value_word: str,
) -> go.Figure:
    """Two rollouts over the rows that align them: both values as lines (the right one dashed), credit A of each as bars.

    Rows in which both stood in the same moment have a violet ground.
    """
    figure = _three_rows()
    at = ([i for i, r in enumerate(rows) if r.left is not None], [i for i, r in enumerate(rows) if r.right is not None])
    for row, along, places, said in zip((2, 3), sides, at, actions, strict=True):
        x = np.array(places, dtype=np.int64)
        _value_line(figure, along, x, value_word, dash="solid" if row == 2 else "dash")
        _bars(figure, row, along, x, along.credit, name, said, title=along.rollout_id)
    for first, last in _runs([i for i, r in enumerate(rows) if r.shared]):
        figure.add_vrect(x0=first - 0.5, x1=last + 0.5, fillcolor=SHARED, line_width=0, layer="below", row="all", col=1)
    figure = _finish(figure, len(rows), chosen, value_word, "row of the two transcripts")
    figure.update_xaxes(showticklabels=False)
    return figure


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each run of consecutive numbers."""
    runs: list[tuple[int, int]] = []
    for n in numbers:
        runs[-1:] = [(runs[-1][0], n)] if runs and runs[-1][1] == n - 1 else [*runs[-1:], (n, n)]
    return runs


def _three_rows() -> go.Figure:
    return make_subplots(rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.07, row_heights=[0.36, 0.32, 0.32])


def _value_line(figure: go.Figure, along: Course, x: IntArray, value_word: str, dash: str = "solid") -> None:
    moments = np.concatenate([x - 0.5, x[-1:] + 0.5])
    owner = np.concatenate([along.positions, along.positions[-1:]])
    figure.add_scatter(
        x=moments, y=along.value, mode="lines+markers", line={"color": LINE, "width": 2, "dash": dash}, marker={"size": 5},
        customdata=owner, row=1, col=1, hovertemplate=f"{value_word} %{{y:.3f}}<extra></extra>",
    )


def _bars(
    figure: go.Figure, row: int, along: Course, x: IntArray, credit: FloatArray, name: str, actions: Sequence[str],
    title: str = "",
) -> None:
    texts = [
        f"step {s} · {escape(name)} {number(c, 3, sign=True)}<br>{escape(one_line(a, 60))}"
        for s, c, a in zip(along.steps, credit, actions, strict=True)
    ]
    figure.add_bar(
        x=x, y=credit, marker=sign_marks(credit), customdata=along.positions, row=row, col=1, hovertext=texts, hoverinfo="text",
        selected={"marker": {"opacity": 1}}, unselected={"marker": {"opacity": 1}},
    )
    flat = not np.any(np.abs(np.nan_to_num(credit)) > SIGN_TOLERANCE)
    figure.update_yaxes(
        title_text=_short(title or name), zeroline=True, zerolinecolor=LINE, range=[-1, 1] if flat else None, row=row, col=1
    )


def _finish(figure: go.Figure, n: int, chosen: int, value_word: str, across: str) -> go.Figure:
    figure.update_yaxes(title_text=_short(value_word.split()[0]), row=1, col=1)
    if value_word.startswith("chance"):
        figure.update_yaxes(range=[-0.05, 1.05], tickvals=[0, 0.5, 1], row=1, col=1)
    figure.add_vrect(x0=chosen - 0.5, x1=chosen + 0.5, fillcolor=CHOSEN, line_width=0, layer="below", row="all", col=1)
    figure.update_xaxes(showgrid=False, range=[-0.75, max(n, 8) - 0.25])
    figure.update_xaxes(title_text=across, row=3, col=1)
    figure.update_layout(hovermode="x", hoverdistance=-1)  # a click anywhere over a step is a click on its bar
    return _plain(figure, 330)


def _short(name: str) -> str:
    return escape(one_line(name, 14))


def _plain(figure: go.Figure, height: int) -> go.Figure:
    figure.update_layout(
        height=height, margin={"l": 8, "r": 8, "t": 8, "b": 8}, showlegend=False, bargap=0.18, dragmode=False,
        hoverlabel={"align": "left"},
    )
    figure.update_yaxes(gridcolor=GRID, title_standoff=10, automargin=True, nticks=4)
    return figure


def scatter_figure(
    a: FloatArray, b: FloatArray, count: IntArray, names: tuple[str, str], chosen: int | None,
    box: tuple[float, float, float, float] | None,
) -> go.Figure:
    """Credit A across, credit B up, one point per pair of values; its area is the number of steps it stands for.

    Opposite signs are vermilion crosses, equal ones blue discs, zero on one side grey diamonds. box: brushed x0, x1, y0, y1.
    """
    kinds = _kinds(a, b)
    left, right = (escape(name) for name in names)
    figure = go.Figure()
    figure.add_scatter(
        x=a, y=b, mode="markers", customdata=np.stack([np.arange(a.size), count], axis=1),
        marker={
            "size": 5 + 3 * np.sqrt(np.minimum(count, 100)), "color": [_COLOURS[k] for k in kinds],
            "symbol": [_SYMBOLS[k] for k in kinds], "opacity": 0.9,
            "line": {"width": np.where(np.array(kinds) == "zero", 1.5, 0.5)},
        },
        hovertemplate=f"{left} %{{x:+.3f}}<br>{right} %{{y:+.3f}}<br>%{{customdata[1]}} steps<extra></extra>",
        selected={"marker": {"opacity": 0.9}}, unselected={"marker": {"opacity": 0.9}},
    )
    if chosen is not None:
        figure.add_scatter(
            x=a[[chosen]], y=b[[chosen]], mode="markers", hoverinfo="skip",
            marker={"size": 22, "color": "rgba(0,0,0,0)", "line": {"width": 3, "color": "#E69F00"}},
        )
    if box is not None:
        x0, x1, y0, y1 = box
        edge = {"color": LINE, "width": 1.5, "dash": "dot"}
        figure.add_shape(type="rect", x0=x0, x1=x1, y0=y0, y1=y1, line=edge, fillcolor=CHOSEN)
    figure.update_xaxes(title_text=left, zeroline=True, zerolinecolor=LINE, zerolinewidth=1.5, gridcolor=GRID)
    figure.update_yaxes(title_text=right, zeroline=True, zerolinecolor=LINE, zerolinewidth=1.5)
    figure = _plain(figure, 420)
    figure.update_layout(dragmode="select")
    return figure


_COLOURS = {"opposite": VERMILION, "same": BLUE, "zero": GREY}
_SYMBOLS = {"opposite": "x", "same": "circle", "zero": "diamond-open"}


def _kinds(a: FloatArray, b: FloatArray) -> list[str]:
    none = (np.abs(a) <= SIGN_TOLERANCE) | (np.abs(b) <= SIGN_TOLERANCE)
    return np.where(none, "zero", np.where(a * b > 0, "same", "opposite")).tolist()


def sweep_figure(lambdas: FloatArray, curves: dict[str, FloatArray], now: dict[str, float]) -> go.Figure:
    """Credit of one step over lambda, a curve for each side; `now` marks each side's own lambda."""
    figure = go.Figure()
    for at, (name, y) in enumerate(curves.items()):
        colour = SERIES[at % len(SERIES)]
        dash = ("solid", "dash")[at % 2]
        figure.add_scatter(
            x=lambdas, y=y, name=escape(name), mode="lines", line={"color": colour, "dash": dash, "width": 2.5},
            hovertemplate=f"{escape(name)}<br>λ %{{x:.2f}}: %{{y:+.3f}}<extra></extra>",
        )
        if name in now:
            figure.add_scatter(
                x=[now[name]], y=[float(np.interp(now[name], lambdas, y))], mode="markers", showlegend=False, hoverinfo="skip",
                marker={"size": 11, "color": colour, "symbol": "circle" if at == 0 else "diamond"},
            )
    figure.update_xaxes(title_text="λ: trust the map … trust the outcome", range=[-0.03, 1.03])
    figure.update_yaxes(zeroline=True, zerolinecolor=LINE, zerolinewidth=1.5, title_text="credit")
    figure = _plain(figure, 260)
    figure.update_layout(showlegend=len(curves) > 1, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"})
    return figure
