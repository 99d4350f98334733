"""Compare: two settings side by side on the same steps, where they agree, where not, and what differs for one step."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from graft_app import batch as table
from graft_app import cache, controls, urlstate
from graft_app.views import compare_pictures, header, lists, sidebyside, takeaway
from graft_app.views.charts import BRUSH, QUIET, scatter_figure, sweep_figure
from graft_app.views.text import count
from graft_core.credit import estimators
from graft_core.credit.estimate import graph_of
from graft_core.insight.align import Pair
from graft_core.insight.why import position_of_row
from graft_core.rollouts import IntArray
from graft_core.settings import LOOK, Settings

FIGURE, ROWS = "scatter", "compare_rows"
MOST_POINTS, MOST_ROWS = 4000, 500
MANY_STEPS = 100_000  # from here on the sweep of lambda takes fewer of them
VIEWS = {"points": "Every step as a point", "graphs": "Both graphs", "difference": "Difference in the graph"}
SHOWN = {"top": "Signs differ", "most": "Largest differences", "box": "Brushed steps"}
Box = tuple[float, float, float, float]


def settings_of_both() -> tuple[Settings, Settings]:
    """Left and right settings with their widgets."""
    left = controls.current()
    right = controls.beside(left)
    one, other = st.columns(2)
    with one, st.container(border=True):
        top = st.columns([1, 1.3], vertical_alignment="bottom")
        with top[0]:
            controls.estimator_menu("A", "a", left.estimator, LOOK.estimator, "The credit on the left.")
        with top[1]:
            controls.rule_menu(left)
        controls.lambda_slider(left)
        controls.expert_drawer(left)
    with other, st.container(border=True):
        top = st.columns([1, 1.3], vertical_alignment="bottom")
        with top[0]:
            controls.estimator_menu("B", f"{controls.RIGHT}a", right.estimator, left.baseline, "The credit on the right.")
        with top[1]:
            controls.rule_menu(right, left)
        controls.lambda_slider(right, left)
        controls.right_drawer(right, left)
    return left, right


def parse_box(word: str) -> Box:
    """x0, x1, y0, y1 of a brushed rectangle."""
    numbers = [float(part) for part in word.split(",")]
    if len(numbers) != 4 or not all(math.isfinite(x) for x in numbers):
        raise ValueError("a brushed rectangle has four numbers: from and to across, from and to up")
    return min(numbers[:2]), max(numbers[:2]), min(numbers[2:]), max(numbers[2:])


def chosen_step() -> int | None:
    """Path position of the step the address names (`at`)."""
    row = urlstate.whole(st.query_params.get("at", ""), opened.batch.n_steps)
    return None if row is None else position_of_row(opened.batch, row)


def choose(position: int) -> None:
    """Put a step (path position) into the address, and its task with it."""
    batch = opened.batch
    task = batch.group_ids[int(batch.group[batch.step_rollout[position]])]
    urlstate.write_all({"at": str(int(batch.order[position])), "task": task})


def shown_points(pair: Pair) -> IntArray:
    """Numbers of the points that are drawn: all, or an even sample of very many."""
    n = pair.points.count.size
    return np.arange(n) if n <= MOST_POINTS else np.unique(np.linspace(0, n - 1, MOST_POINTS).astype(np.int64))


def picked_in_figure() -> None:
    """A rectangle was drawn, or a point clicked."""
    selection = st.session_state[FIGURE]["selection"]
    if selection.get("box"):
        x, y = selection["box"][0]["x"], selection["box"][0]["y"]
        urlstate.write("box", ",".join(f"{v:.6g}" for v in (min(x), max(x), min(y), max(y))))
        urlstate.write("rows", "box")
        return
    data = next((p["customdata"] for p in selection.get("points", []) if p.get("customdata") is not None), None)
    if data is not None:
        drawn = shown_points(pair)
        choose(int(pair.points.first[drawn[int(data[0])]]))


def clear() -> None:
    urlstate.write("box", None)
    urlstate.write("rows", None)


def scatter(pair: Pair, at: int | None, box: Box | None) -> None:
    """Credit A against credit B, with what is chosen and brushed."""
    points, drawn = pair.points, shown_points(pair)
    if not drawn.size:
        st.info("No step has a credit under both settings, so there is nothing to draw.")
        return
    mark = None
    if at is not None and points.owner[at] >= 0:
        found = np.flatnonzero(drawn == points.owner[at])
        mark = int(found[0]) if found.size else None
    figure = scatter_figure(points.a[drawn], points.b[drawn], points.count[drawn], pair.names, mark, box)
    st.plotly_chart(
        figure, key=FIGURE, on_select=picked_in_figure, selection_mode=("points", "box"), config=BRUSH,
        alt=f"{pair.names[0]} against {pair.names[1]}, {pair.agreement.steps} steps at {drawn.size} points",
    )
    sample = "" if drawn.size == points.count.size else f" {drawn.size:,} of {points.count.size:,} points are drawn."
    st.caption(
        "Vermilion crosses: opposite signs. Blue: same sign. Grey: zero on one side. Larger: more steps there. Draw a "
        f"rectangle to list its steps, click a point to choose one.{sample}"
    )


def sweep(pair: Pair, at: int) -> None:
    """What lambda does to the credit of the chosen step, on each side that has it."""
    batch = opened.batch
    sides = {n: s for n, s in zip(pair.names, (pair.left, pair.right), strict=True) if estimators()[s.estimator].option("lam")}
    added = not sides
    if added:
        path = pair.left.with_options(estimator="path_gae")
        sides = {estimators()["path_gae"].title: path}
    lambdas = np.linspace(0.0, 1.0, 21 if batch.n_steps <= MANY_STEPS else 5)
    curves, now = {}, {}
    for name, settings in sides.items():
        matrix = cache.sweep_of(*opened.source, settings.with_options(lam=None), tuple(lambdas.tolist()))
        curves[name] = matrix[:, at]
        if not added:
            now[name] = float(settings.resolved(settings.estimator)["lam"])
    if all(np.isnan(y).all() for y in curves.values()):
        st.caption("λ: this step has no credit, since its rollout's outcome is unknown.")
        return
    st.plotly_chart(
        sweep_figure(lambdas, curves, now), key="sweep", config=QUIET, alt="credit of the chosen step for λ from 0 to 1"
    )
    if added:
        st.caption("Neither side has λ. This is path GAE on A's graph: at 0 graph TD, at 1 the outcome minus the value.")


def panel(pair: Pair, at: int | None) -> None:
    """The chosen step beside the scatter."""
    if at is None:
        st.markdown("**Choose a step** in the picture or in the table.")
        st.caption("Here you then see its credit on both sides, what λ does to it, and the ways to its graph and transcript.")
        return
    sidebyside.step_detail(opened.batch, pair, at, opened.value_word)
    with st.container(horizontal=True):
        if st.button("Graph", icon=":material/hub:", shortcut="G", help="this step in the graph of its task"):
            to_graph(at)
        if st.button("Transcript", icon=":material/article:", shortcut="T", help="this step in its rollout"):
            st.switch_page("screens/rollouts.py", query_params=_address(at))
    sweep(pair, at)


def _address(at: int) -> dict[str, str]:
    batch = opened.batch
    rollout = int(batch.step_rollout[at])
    edge = int(graph_of(batch, **left.graph_words).edge[at])
    keep = {name: st.query_params[name] for name in st.query_params if name != "beside"}
    task = batch.group_ids[int(batch.group[rollout])]
    own = {"task": task, "rollout": batch.rollout_ids[rollout], "sel": f"e{edge}", "at": str(int(batch.order[at]))}
    return {**keep, **own}


def to_graph(at: int) -> None:
    st.switch_page("screens/graph.py", query_params=_address(at))


def listed(pair: Pair, box: Box | None) -> None:
    """Steps under both settings: where they disagree, differ most, or what was brushed."""
    brushed = pair.inside(box) if box is not None else np.zeros(0, dtype=np.int64)
    positions = {
        "top": np.array(pair.agreement.top, dtype=np.int64), "most": pair.order(), "box": brushed,
    }
    facts = pair.agreement
    differ = round(facts.steps * (1 - facts.same_sign)) if facts.steps else 0
    opposite = round(facts.steps * facts.opposite) if facts.steps else 0  # the others are 0 on one side
    label = {
        "top": f" ({differ:,}, {opposite:,} opposite)", "most": "", "box": f" ({brushed.size:,})" if box is not None else "",
    }
    which = urlstate.read("rows", lambda w: {name: name for name in SHOWN}[w], "top")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.segmented_control(
            "Steps", list(SHOWN), format_func=lambda w: SHOWN[w] + label[w], required=True,
            label_visibility="collapsed", **urlstate.bind("rows", which, "top"),
        )
        if box is not None:
            st.button("Clear the rectangle", icon=":material/close:", on_click=clear, type="tertiary")
    own = positions[which]
    if not own.size:
        st.info("Draw a rectangle in the picture to list its steps." if which == "box" and box is None else "No step here.")
        return
    rows = sidebyside.step_rows(opened.batch, pair, own[:MOST_ROWS])

    def picked() -> None:
        chosen = st.session_state[f"{ROWS}_{which}"]["selection"]["rows"]
        if chosen and chosen[0] < len(rows):
            choose(position_of_row(opened.batch, rows[chosen[0]]["row"]))

    st.dataframe(
        sidebyside.step_frame(rows, pair), hide_index=True, on_select=picked, selection_mode="single-row",
        key=f"{ROWS}_{which}", height=300, alt=f"{SHOWN[which]}: {count(len(rows), 'step')}",
        column_config=sidebyside.step_columns(pair)
        | {"open": st.column_config.ButtonColumn("open", width=84, key="open_graph", help="this step in its graph")},
    )
    click = st.session_state.get("open_graph")
    if click is not None and click.row < len(rows):
        to_graph(position_of_row(opened.batch, rows[click.row]["row"]))
    with st.container(horizontal=True, vertical_alignment="center"):
        total = {"top": differ}.get(which, own.size)
        st.caption((f"the first {len(rows):,} of " if total > len(rows) else "") + count(total, "step"))
        sides = {"left": takeaway.settings_words(left), "right": takeaway.settings_words(right)}
        takeaway.rows_menu(opened, "compare", rows, sides)


opened = header.start()
with table.sentences():
    left, right = settings_of_both()
if opened.batch.n_steps == 0:
    st.info("These rollouts have no steps, so there is no credit to compare.")
    st.stop()
with table.sentences():
    pair = cache.pair_of(*opened.source, left, right)
sidebyside.headline(pair)
sidebyside.agreement(pair)
box = urlstate.read("box", parse_box, None)
at = chosen_step()
view = urlstate.read("view", lambda word: {name: name for name in VIEWS}[word], "points")
ways, menu = st.columns([1.9, 1], vertical_alignment="bottom")
ways.segmented_control(
    "Show", list(VIEWS), format_func=lambda v: VIEWS[v], required=True, label_visibility="collapsed",
    **urlstate.bind("view", view, "points"),
)
wide = view == "graphs"
main, side = (st.container(), st.container()) if wide else st.columns([1.55, 1])
with main, table.sentences():
    if view == "points":
        scatter(pair, at, box)
    else:
        compare_pictures.show(opened, pair, at, view, choose, menu)
with side, table.sentences():
    panel(pair, at)
listed(pair, box)
st.markdown("**This batch beside the papers'**")
with table.sentences():
    sidebyside.measures(pair, cache.measures_of(*opened.source, left), cache.measures_of(*opened.source, right))
with st.expander("Agreement and scale in full"):
    lists.comparison(pair.comparison)
