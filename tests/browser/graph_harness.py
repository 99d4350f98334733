"""A page that draws made-up graphs, for the browser tests: `streamlit run graph_harness.py`, then `?n=300`.

Parameters: n (nodes), max (drawn nodes), hostile=1 (texts that would run if they were read as HTML), tab=1 (the
graph in a tab that is hidden at first), panels=2 (two pictures of one structure), roots=1 (several starts),
rollout=K (set off the path of one rollout).
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import streamlit as st

from graft_app.views.graph import graph_view, selected
from graft_core.graph import TrajectoryGraph, build_graph
from graft_core.insight.picture import GraphStructure, paint, picture
from graft_core.rollouts import ROLLOUT_SCHEMA, STEP_SCHEMA, TEXT_SCHEMA, RolloutBatch

ROOMS = ("kitchen", "hall", "bedroom", "garage", "pantry", "cellar", "garden", "attic", "study", "porch")
THINGS = ("apple", "mug", "lamp", "knife", "plate", "key", "book", "towel", "pan", "egg")
VERBS = ("take", "open", "clean", "heat", "put", "look at", "go to", "close")
HOSTILE = (
    "<img src=x onerror=\"window.__ran=1;alert('ran')\">",
    "<script>window.__ran=1;alert('ran')</script>",
    "</script><svg onload=window.__ran=1>",
    "\u202ereversed\u202c \u0007bell \u200bhidden",
    '=HYPERLINK("http://example.com")',
)


def batch_of(rollouts: list[dict[str, Any]]) -> RolloutBatch:
    """A batch from plain rollouts: {"outcome", "final", "path": [(observation, action), ...]}."""
    ids: dict[str, int] = {}

    def text(words: str) -> int:
        return ids.setdefault(words, len(ids))

    heads, steps = [], []
    for row, rollout in enumerate(rollouts):
        for t, (observation, action) in enumerate(rollout["path"]):
            steps.append({"rollout": row, "step": t, "observation": text(observation), "action": text(action)})
        heads.append(
            {
                "group_id": "g0", "rollout_id": f"r{row}", "outcome": rollout["outcome"], "group_assumed": False,
                "n_steps": len(rollout["path"]), "final_observation": text(rollout["final"]), "order_doubtful": False,
                "terminated": True, "truncated": False, "source": f"made:{row}", "metadata": "{}",
            }
        )  # fmt: skip
    return RolloutBatch(
        rollouts=pa.Table.from_pylist(heads, schema=ROLLOUT_SCHEMA),
        steps=pa.Table.from_pylist(steps, schema=STEP_SCHEMA),
        texts=pa.Table.from_pylist([{"id": i, "text": words} for words, i in ids.items()], schema=TEXT_SCHEMA),
    )


def random_batch(n_nodes: int, hostile: bool, roots: bool) -> RolloutBatch:
    """Rollouts that wander over about `n_nodes` states: merging, branching, turning back, waiting."""
    rng = random.Random(n_nodes)
    width = max(2, round(n_nodes**0.5 / 1.4))
    depth = max(2, n_nodes // width)
    rollouts = []
    for number in range(max(6, n_nodes // 6)):
        at, place, path = 0, (rng.randrange(3) if roots else 0), []
        while at < depth:
            choice = rng.choice((0, 0, 0, 1, 1, 2)) if rng.random() < 0.9 else 3 + rng.randrange(2)
            path.append((_state(at, place, hostile), _action(choice, at, place, hostile)))
            if choice == 3:
                continue
            at = max(at - 2, 0) if choice == 4 else at + 1
            stray = number % width if at == 1 else place + (0, 1, -1, 0, 0)[choice]
            place = min(max(stray, 0), width - 1)
        won = rng.random() < 0.25 + 0.5 * place / width
        unknown = number % 17 == 5
        final = f"The end of it, {ROOMS[place % 10]}." if number % 3 else "You solved it."
        rollouts.append({"path": path, "final": final, "outcome": None if unknown else float(won)})
    return batch_of(rollouts)


def _state(at: int, place: int, hostile: bool) -> str:
    if hostile and (at + place) % 3 == 0:
        return f"{HOSTILE[(at + place) % len(HOSTILE)]} {at}.{place}"
    room, thing = ROOMS[place % 10], THINGS[(at * 7 + place) % 10]
    return f"You are in the {room} {place}. You see a {thing}, a shelf {at} and nothing else of interest."


def _action(choice: int, at: int, place: int, hostile: bool) -> str:
    if hostile and (at + place) % 4 == 0:
        return HOSTILE[(at * 3 + place) % len(HOSTILE)]
    return f"{VERBS[choice]} {THINGS[(at + place) % 10]} {at % 4}"


@st.cache_resource(max_entries=8)
def made(n_nodes: int, hostile: bool, roots: bool, max_nodes: int) -> tuple[TrajectoryGraph, GraphStructure]:
    graph = build_graph(random_batch(n_nodes, hostile, roots))
    return graph, picture(graph, 0, max_nodes=max_nodes)


def colours(graph: TrajectoryGraph, amount: float) -> tuple[Any, Any]:
    """Made-up values and credits that all change with `amount`."""
    at = np.arange(graph.n_nodes)
    v = np.where(np.isnan(graph.sink_value), 0.5 + 0.45 * np.sin(at * 0.7 + 6 * amount), graph.sink_value)
    v = np.where(at % 23 == 7, np.nan, v)
    edge = np.arange(graph.n_edges)
    a = np.sin(edge * 1.3 + 9 * amount) * (0.3 + 0.7 * amount)
    return v, np.where(edge % 19 == 3, np.nan, np.where(edge % 5 == 0, 0.0, a))


def flipped() -> None:
    st.session_state["flips"] = st.session_state.get("flips", 0) + 1


def main() -> None:
    st.set_page_config(layout="wide", page_title="graph harness")
    asked = st.query_params
    left, middle, right, far, last = st.columns(5, vertical_alignment="bottom")
    n_nodes = int(asked.get("n", 300)) // (4 if right.checkbox("smaller") else 1)
    graph, structure = made(n_nodes, asked.get("hostile") == "1", asked.get("roots") == "1", int(asked.get("max", 300)))
    amount = left.slider("lambda", 0.0, 1.0, 0.3, 0.1, key="lambda")
    wanted = middle.number_input("select node", min_value=-9, value=-9, key="wanted")
    far.button("unrelated")
    if last.checkbox("away"):
        return
    v, a = colours(graph, amount)
    inks = paint(structure, v, a, limit=1.0, root_value=0.5)
    pick: Any = {"kind": "node", "id": int(wanted)} if wanted > -9 else None
    room = st.tabs(["other", "graph"])[1] if asked.get("tab") == "1" else st.container()
    with room:
        path = graph.edge[graph.batch.step_rollout == int(asked.get("rollout", -1))].tolist()
        size = int(asked.get("height", 640))
        graph_view(structure, inks, pick, key="g", path=path, height=size, on_flip=flipped)
        if asked.get("panels") == "2":
            other = paint(structure, 1 - v, -a, limit=1.0)
            graph_view(structure, other, selected("g", structure), key="h", height=size, with_library=False)
    chosen = selected("g", structure)
    st.text(f"selected: {chosen['kind']} {chosen['id']}" if chosen else "selected: nothing")
    st.text(f"flips: {st.session_state.get('flips', 0)}")
    st.text(f"drawn: {structure.caption}")


if __name__ == "__main__":
    main()
