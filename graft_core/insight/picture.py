"""What to draw of one group: nodes, edges, shapes, sizes and labels, chosen and placed once.

`picture` decides what is drawn and where; `structure.paint` only gives palette numbers for a set of values and credits, so
that a change of estimator, lambda or baseline recolours without moving anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from graft_core.constants import SUCCESS_TOLERANCE
from graft_core.insight.choose import cut, edge_rollouts
from graft_core.insight.labels import LABEL_LENGTH, labels, plain, shorten, tooltip
from graft_core.insight.layout import edge_curves, edge_widths, lane_positions, layered_positions, node_sizes, tree_positions
from graft_core.insight.sketch import Shape, Sketch, collapse, merged
from graft_core.insight.structure import GraphStructure
from graft_core.insight.unfold import lanes, prefix_tree
from graft_core.rollouts import BoolArray, IntArray

if TYPE_CHECKING:
    from graft_core.graph import TrajectoryGraph

ROOT_ID: Final = -1
"""Node id of a drawn task root; its edges are -2, -3, ..."""

MOST_LISTED: Final = 12
"""Actions of a chain in a tooltip."""


def picture(
    graph: TrajectoryGraph,
    group: int,
    *,
    max_nodes: int = 300,
    sweeps: int = 4,
    shape: Shape = "merged",
    nodes: Sequence[int] = (),
    rollouts: Sequence[int] = (),
) -> GraphStructure:
    """Choose, place and label what is drawn of one group.

    shape: `merged` draws every moment once; `tree` lets rollouts share a node only while all they met and did is the same;
    `lanes` draws each rollout in a row of its own. Above `max_nodes` nodes, chains of moments that the same rollouts pass
    become one line each, then the least visited nodes are dropped; of lanes as many are drawn as fit. Starts, endings, a
    shortest path to every node that is drawn, the moments `nodes` and the paths of the rollout rows `rollouts` come first.
    Every (u, a, v) is an edge of its own, curved where several join the same nodes. A task root is added where rollouts do
    not share their first node. Raises IndexError for an unknown group.
    """
    if not bool((graph.node_group == group).any()):
        raise IndexError(f"group {group} has no nodes; groups are 0 to {int(graph.node_group.max(initial=-1))}")
    if shape == "lanes":
        return _placed(graph, group, _lanes_with(graph, group, max_nodes, nodes, rollouts), sweeps)
    sketch = merged(graph, group) if shape == "merged" else prefix_tree(graph, group)
    if sketch.node.size > max_nodes:
        sketch = collapse(sketch, max_nodes, np.isin(sketch.node, nodes))
        wanted = np.isin(sketch.node, nodes)
        edges = sketch.step_edge[np.isin(graph.batch.step_rollout[sketch.step], rollouts)]
        wanted[sketch.src[edges]] = wanted[sketch.dst[edges]] = True
        sketch = cut(sketch, max_nodes, np.asarray(graph.node_is_sink[sketch.node], dtype=bool), wanted)
    return _placed(graph, group, sketch, sweeps)


def _lanes_with(
    graph: TrajectoryGraph, group: int, max_nodes: int, nodes: Sequence[int], rollouts: Sequence[int]
) -> Sketch:
    """Lanes with the given rollouts, and with one that passes each of the given moments."""
    passing = (np.flatnonzero((graph.src == node) | (graph.dst == node)) for node in nodes)
    first = [int(graph.batch.step_rollout[steps[0]]) for steps in passing if steps.size]
    return lanes(graph, group, max_nodes, [*rollouts, *first])


def _placed(graph: TrajectoryGraph, group: int, sketch: Sketch, sweeps: int) -> GraphStructure:
    n, src, dst, starts = int(sketch.node.size), sketch.src, sketch.dst, sketch.start
    rooted = sketch.starts_total > 1 and not sketch.lane.size
    added = starts.size if rooted else 0
    sinks = np.asarray(graph.node_is_sink[sketch.node], dtype=bool)
    if rooted:  # the root is one more node, in front of all starts
        src, dst = np.append(src, np.full(added, n)), np.append(dst, starts)
        sinks = np.append(sinks, False)
    length = np.append(sketch.length, np.ones(added, dtype=np.int64))
    if sketch.lane.size:
        row = np.cumsum(np.isin(np.arange(n), starts)) - 1
        layer = np.arange(n) - starts[row]
        x, y = lane_positions(row, layer)
    elif sketch.shape == "tree":
        x, y, layer = tree_positions(n + rooted, src, dst, [n] if rooted else starts.tolist(), length)
    else:
        first = [n] if rooted else starts
        x, y, layer = layered_positions(n + rooted, src, dst, first, sinks=sinks, lengths=length, sweeps=sweeps)
    ids = (sketch.node, sketch.first_part) if sketch.shape == "merged" else (np.arange(n), np.arange(sketch.src.size))
    node_id = np.append(ids[0], ROOT_ID) if rooted else ids[0]
    kinds = _kinds(graph, sketch)
    node_label, node_tip = _node_words(graph, sketch, kinds)
    thin, edge_label, edge_tip = _edge_words(graph, sketch)
    count = np.append(sketch.count, sketch.start_rollouts) if rooted else sketch.count
    visits = np.append(sketch.visits, sketch.start_rollouts.sum()) if rooted else sketch.visits
    return GraphStructure(
        group=group,
        shape=sketch.shape,
        node_id=node_id,
        node_of=np.append(sketch.node, -1) if rooted else sketch.node,
        node_kind=(*kinds, "root") if rooted else kinds,
        node_label=(*node_label, "task") if rooted else node_label,
        node_tip=(*node_tip, "Task root: the rollouts start in different moments") if rooted else node_tip,
        node_visits=visits,
        node_size=node_sizes(visits, x, y, layer, in_a_row=sketch.shape != "merged"),
        x=x,
        y=y,
        layer=layer,
        edge_id=np.append(ids[1], -2 - np.arange(added)),
        edge_src=node_id[src],
        edge_dst=node_id[dst],
        edge_count=count,
        edge_width=edge_widths(count),
        edge_curve=edge_curves(src, dst, x, y, layer, length),
        edge_thin=np.append(thin, np.zeros(added, dtype=bool)),
        edge_length=length,
        edge_label=edge_label + ("",) * added,
        edge_tip=edge_tip + tuple(f"{int(k)} rollouts start here" for k in sketch.start_rollouts[:added]),
        part=sketch.part,
        part_edge=sketch.part_edge,
        step=sketch.step,
        step_edge=sketch.step_edge,
        lane=sketch.lane,
        nodes_total=sketch.nodes_total,
        edges_total=sketch.edges_total,
        rollouts_total=sketch.rollouts_total,
    )


def _kinds(graph: TrajectoryGraph, sketch: Sketch) -> tuple[str, ...]:
    starts = set() if sketch.starts_total > 1 and not sketch.lane.size else set(sketch.start.tolist())
    kinds = []
    for row, node in enumerate(sketch.node.tolist()):
        outcome = float(graph.sink_value[node])
        if not graph.node_is_sink[node]:
            kinds.append("start" if row in starts else "ordinary")
        elif np.isnan(outcome):
            kinds.append("unknown")
        else:
            kinds.append("success" if outcome >= 1 - SUCCESS_TOLERANCE else "failure")
    return tuple(kinds)


ENDINGS: Final = {"success": "success", "failure": "failed", "unknown": "outcome unknown"}


def _node_words(graph: TrajectoryGraph, sketch: Sketch, kinds: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    moments, row = np.unique(sketch.node, return_inverse=True)
    texts = texts_of(graph, graph.node_text[moments])
    short, long = labels(texts), [tooltip(text) for text in texts]
    names, tips = [], []
    for at, (node, kind) in enumerate(zip(sketch.node.tolist(), kinds, strict=True)):
        outcome = float(graph.sink_value[node])
        partial = kind == "failure" and outcome > 0
        names.append(f"score {outcome:.3g}" if partial else ENDINGS.get(kind) or short[row[at]] or f"moment {node}")
        tips.append(f"{_node_head(sketch, at, names[-1], kind)}\n{long[row[at]]}".rstrip())
    if sketch.lane.size:
        for at, rollout in zip(sketch.start.tolist(), sketch.lane[sketch.start].tolist(), strict=True):
            names[at] = lane_name(graph, rollout)
    return tuple(names), tuple(tips)


def _node_head(sketch: Sketch, at: int, name: str, kind: str) -> str:
    seen, hidden = int(sketch.visits[at]), int(sketch.hidden[at])
    more = f", {hidden:,} edge{'s' * (hidden != 1)} not drawn" if hidden else ""
    if kind in ENDINGS:
        return f"{name}: ends {seen:,} rollout{'s' * (seen != 1)}{more}"
    return "one moment of one rollout" if sketch.lane.size else f"visited {seen:,} x{more}"


def lane_name(graph: TrajectoryGraph, rollout: int) -> str:
    """A rollout in a few words: "r5 · failed"."""
    success = float(graph.batch.success[rollout])
    ended = "?" if np.isnan(success) else "succeeded" if success == 1 else "failed"
    return f"{shorten(plain(graph.batch.rollout_ids[rollout]), 14)} · {ended}"


def _edge_words(graph: TrajectoryGraph, sketch: Sketch) -> tuple[BoolArray, tuple[str, ...], tuple[str, ...]]:
    """Thin support (of the merged edges, in every shape), labels and tooltips of the drawn edges."""
    m = int(sketch.src.size)
    used, place = np.unique(sketch.part, return_inverse=True)
    texts = texts_of(graph, graph.edge_text[used])
    every = np.flatnonzero(graph.node_group[graph.src] == graph.node_group[sketch.node[0]]) if sketch.node.size else used
    among = np.searchsorted(used, graph.edge[every])
    mine = np.where(used[np.minimum(among, used.size - 1)] == graph.edge[every], among, -1) if used.size else among - 1
    support = edge_rollouts(graph, every, mine, int(used.size))
    thin = np.zeros(m, dtype=bool)
    thin[sketch.part_edge[support[place] == 1]] = True
    by = edge_rollouts(graph, sketch.step, sketch.step_edge, m)
    of: list[list[int]] = [[] for _ in range(m)]
    for edge, at in zip(sketch.part_edge.tolist(), place.tolist(), strict=True):
        of[edge].append(at)
    short = [shorten(plain(text), LABEL_LENGTH) for text in texts]
    names = tuple(short[own[0]] if len(own) == 1 else f"{len(own)} steps" for own in of)
    tips = []
    for edge, own in enumerate(of):
        passing = int(by[edge])
        taken = f"{int(sketch.count[edge]):,} x, by {passing:,} rollout{'s' * (passing != 1)}"
        head = f"taken by {int(support[own[0]]):,} of the rollouts" if sketch.lane.size else taken
        if len(own) == 1:
            tips.append(f"{head}\n{tooltip(texts[own[0]])}".rstrip())
            continue
        listed = [f"{rank}. {short[at]}" for rank, at in enumerate(own[:MOST_LISTED], 1)]
        rest = [f"and {len(own) - MOST_LISTED} more"] if len(own) > MOST_LISTED else []
        tips.append("\n".join([f"{len(own)} steps in a row, {head}", *listed, *rest]))
    return thin, names, tuple(tips)


def texts_of(graph: TrajectoryGraph, ids: IntArray) -> list[str]:
    """The first 2,000 characters of each text; "" where there is no text (id < 0)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(np.where(ids >= 0, ids, 0), mask=np.asarray(ids) < 0)
    column = graph.batch.texts.column("text").take(wanted)
    return [text or "" for text in pc.utf8_slice_codeunits(column, 0, 2000).to_pylist()]
