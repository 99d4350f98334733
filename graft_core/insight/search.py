"""Moments by what was read or done there, and the moments around one: what a reader of the graph asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graft_core.insight.unfold import lane_order
from graft_core.rollouts import IntArray

if TYPE_CHECKING:
    from graft_core.graph import TrajectoryGraph

MOST_AROUND = 12


def matching(graph: TrajectoryGraph, group: int, words: str) -> IntArray:
    """Nodes of a group in whose texts the words stand: what was observed there, or an action that was taken there.

    The words are text, not a pattern; upper and lower case are the same. Nothing matches an empty text.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not words:
        return np.zeros(0, dtype=np.int64)
    batch = graph.batch
    steps = np.flatnonzero(graph.node_group[graph.src] == group)
    nodes = np.flatnonzero(graph.node_group == group)
    ids = [batch.observation[steps], batch.action[steps], graph.node_text[nodes]]
    used = np.unique(np.concatenate(ids))
    used = used[used >= 0]
    texts = batch.texts.column("text").take(pa.array(used))
    holds = np.zeros(int(used.max(initial=-1)) + 2, dtype=bool)  # the last place is for -1: no text
    holds[used] = pc.match_substring(texts, words, ignore_case=True).to_numpy(zero_copy_only=False).astype(bool)
    seen, done, shown = (holds[each] for each in ids)
    return np.unique(np.concatenate([graph.src[steps][seen | done], nodes[shown]]))


def around(graph: TrajectoryGraph, kind: str, number: int, most: int = MOST_AROUND) -> list[int]:
    """A node with at most `most` nodes before and after it each, the busiest ways first; of an edge its two ends."""
    if kind == "edge":
        return [int(graph.edge_src[number]), int(graph.edge_dst[number])]
    node, found = number, [number]
    for mine, others in ((graph.edge_src, graph.edge_dst), (graph.edge_dst, graph.edge_src)):
        edges = np.flatnonzero(mine == node)
        busiest = edges[np.argsort(-graph.count[edges], kind="stable")]
        found += list(dict.fromkeys(others[busiest].tolist()))[:most]
    return list(dict.fromkeys(found))


def rollouts_at(graph: TrajectoryGraph, group: int, node: int | None) -> list[int]:
    """Rollout rows that pass or end in a node (None: all of the group), in the order of lanes."""
    batch = graph.batch
    if node is None:
        rows = np.flatnonzero((batch.group == group) & (batch.lengths > 0))
    else:
        rows = np.unique(np.append(batch.step_rollout[graph.src == node], np.flatnonzero(graph.end == node)))
    return lane_order(batch, rows)


def step_at(graph: TrajectoryGraph, rollout: int, node: int | None) -> int:
    """Path position of a rollout's first step from a node; its last one where it only ends there, its first for None."""
    start, end = graph.batch.offsets[rollout : rollout + 2].tolist()
    here = [] if node is None else np.flatnonzero(graph.src[start:end] == node).tolist()
    return int(start + here[0]) if here else int(start if node is None else end - 1)
