"""One moment or one step of the graph, as plain data: its text, value, visits, actions and credits."""

from __future__ import annotations

from typing import Any

import numpy as np

from graft_core.graph import TrajectoryGraph
from graft_core.rollouts import FloatArray, IntArray


def _mean(values: FloatArray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


def endings(graph: TrajectoryGraph, rollouts: IntArray) -> dict[str, int]:
    """How distinct rollouts (rows) ended: succeeded, failed, unknown."""
    success = graph.batch.success[np.unique(rollouts)]
    return {
        "succeeded": int((success == 1).sum()),
        "failed": int((success == 0).sum()),
        "unknown": int(np.isnan(success).sum()),
    }


def node_facts(graph: TrajectoryGraph, v: FloatArray, node: int, **named: FloatArray) -> dict[str, Any]:
    """A moment: text, value, visits, the rollouts through it, and each action taken there.

    named: credits, float64[n_steps] in path order by name; every action row holds their means over its steps.
    """
    batch = graph.batch
    at = np.flatnonzero(graph.src == node)
    rollouts = np.unique(batch.step_rollout[at])
    if graph.node_is_sink[node]:
        rollouts = np.flatnonzero(graph.end == node)
    actions: list[dict[str, Any]] = []
    for pair in np.unique(graph.pair[at]).tolist():
        steps = at[graph.pair[at] == pair]
        actions.append(
            {
                "action": batch.text(int(graph.pair_text[pair])),
                "count": int(steps.size),
                "value_after": _mean(v[graph.dst[steps]]),
                **{name: _mean(values[steps]) for name, values in named.items()},
                **endings(graph, batch.step_rollout[steps]),
            }
        )
    actions.sort(key=lambda row: -int(row["count"]))
    return {
        "node": node,
        "sink": bool(graph.node_is_sink[node]),
        "text": batch.text(int(graph.node_text[node])),
        "value": float(v[node]),
        "visits": int(graph.visits[node]),
        "rollouts": [{"rollout_id": batch.rollout_ids[i], "success": float(batch.success[i])} for i in rollouts.tolist()],
        **endings(graph, rollouts),
        "actions": actions,
    }


def edge_facts(graph: TrajectoryGraph, v: FloatArray, edge: int, **named: FloatArray) -> dict[str, Any]:
    """A step of the graph: from where, by what, to where, and its instances in batch order."""
    batch = graph.batch
    steps = np.flatnonzero(graph.edge == edge)
    source, target = int(graph.edge_src[edge]), int(graph.edge_dst[edge])
    return {
        "edge": edge,
        "from": source,
        "to": target,
        "action": batch.text(int(graph.edge_text[edge])),
        "said": batch.text(int(batch.action_text[steps[0]])) if steps.size else "",
        "value_before": float(v[source]),
        "value_after": float(v[target]),
        "text_before": batch.text(int(graph.node_text[source])),
        "text_after": batch.text(int(graph.node_text[target])),
        "count": int(graph.count[edge]),
        "instances": [
            {
                "row": int(batch.order[p]),
                "rollout_id": batch.rollout_ids[int(batch.step_rollout[p])],
                "step": int(batch.step_index[p]),
                "success": float(batch.success[int(batch.step_rollout[p])]),
                **{name: float(values[p]) for name, values in named.items()},
            }
            for p in steps.tolist()
        ],
    }


def node_rows(graph: TrajectoryGraph, v: FloatArray, group: int) -> list[dict[str, Any]]:
    """Every moment of a group, most visited first: the table that says what the picture shows."""
    nodes = np.flatnonzero(graph.node_group == group)
    nodes = nodes[np.argsort(-graph.visits[nodes], kind="stable")]
    return [
        {
            "node": u,
            "kind": "end" if graph.node_is_sink[u] else "moment",
            "text": graph.batch.text(int(graph.node_text[u])),
            "value": float(v[u]),
            "visits": int(graph.visits[u]),
            "rollouts": int(graph.node_rollouts[u]),
        }
        for u in nodes.tolist()
    ]


def edge_rows(graph: TrajectoryGraph, group: int, **named: FloatArray) -> list[dict[str, Any]]:
    """Every edge of a group, most travelled first, with the mean of each credit (float64[E] by name)."""
    edges = np.flatnonzero(graph.node_group[graph.edge_src] == group)
    edges = edges[np.argsort(-graph.count[edges], kind="stable")]
    return [
        {
            "edge": e,
            "from": int(graph.edge_src[e]),
            "action": graph.batch.text(int(graph.edge_text[e])),
            "to": int(graph.edge_dst[e]),
            "count": int(graph.count[e]),
            **{name: float(values[e]) for name, values in named.items()},
        }
        for e in edges.tolist()
    ]
