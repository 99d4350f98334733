"""The most probable ways from a moment to the ends of rollouts, with what is left over."""

from __future__ import annotations

import heapq
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from graft_core.graph import TrajectoryGraph
from graft_core.insight._chain import chain
from graft_core.insight._group import group_view
from graft_core.insight._words import excerpt
from graft_core.values import Values
from graft_core.values.solve import edge_rewards

MOST_LOOKED_AT = 4000
LABEL = 40


@dataclass(frozen=True)
class Path:
    """One way to an end: edge ids, excerpts of the actions, the end's node and value, its probability, and its part in V.

    part = probability * gamma^steps * value of the end (under `dense` plus the discounted rewards on the way).
    """

    edges: tuple[int, ...]
    actions: tuple[str, ...]
    end: int
    end_value: float
    probability: float
    part: float

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "steps": len(self.edges)}


@dataclass(frozen=True)
class Paths:
    """The most probable paths; their probabilities and `remainder` sum to 1, their parts and `rest` to the value."""

    paths: tuple[Path, ...]
    remainder: float
    value: float
    rest: float

    def as_dict(self) -> dict[str, Any]:
        return {
            "paths": [path.as_dict() for path in self.paths],
            "remainder": self.remainder,
            "value": self.value,
            "rest": self.rest,
        }


def top_paths(graph: TrajectoryGraph, values: Values, node: int, most: int = 5) -> Paths:
    """The `most` most probable paths from a node to sinks under the values' weighting, most probable first.

    Found best first, so none that is shown is less probable than one that is not; a limit on the search bounds the time,
    not the order. A node without value has no paths. `max` follows the best edges.
    """
    value = float(values.v[node])
    if math.isnan(value):
        return Paths((), math.nan, value, math.nan)
    view = group_view(graph, int(graph.node_group[node]))
    own, flow = view.graph, chain(view, values)
    weight, reward = flow.unshrunk().weight.tolist(), edge_rewards(own, values.rewards)
    indptr, dst = own.indptr.tolist(), own.edge_dst.tolist()
    sink = own.node_is_sink.tolist()
    found: list[tuple[float, list[int], int]] = []
    trail: list[tuple[int, int]] = [(-1, -1)]  # (entry before, edge)
    heap: list[tuple[float, int, int]] = [(-1.0, 0, view.node(node))]
    looked_at = 0
    while heap and len(found) < most and looked_at < MOST_LOOKED_AT:
        looked_at += 1
        minus, entry, here = heapq.heappop(heap)
        if sink[here]:
            found.append((-minus, _edges(trail, entry), here))
            continue
        for edge in range(indptr[here], indptr[here + 1]):
            if weight[edge] > 0:
                trail.append((entry, edge))
                heapq.heappush(heap, (minus * weight[edge], len(trail) - 1, dst[edge]))
    ends = np.nan_to_num(own.sink_value) if values.rewards == "outcome" else np.zeros(own.n_nodes)
    paths = []
    for probability, edges, end in found:
        discount = values.gamma ** np.arange(len(edges) + 1)
        worth = float(discount[-1] * ends[end] + discount[:-1] @ reward[edges])
        labels = tuple(excerpt(graph.batch.text(int(own.pair_text[own.edge_pair[e]])), LABEL) for e in edges)
        whole = tuple(int(e) for e in view.edges[edges])
        paths.append(
            Path(whole, labels, int(view.nodes[end]), float(own.sink_value[end]), probability, probability * worth)
        )
    left = 1.0 - math.fsum(path.probability for path in paths)
    remainder = 0.0 if left < 1e-12 else left
    return Paths(tuple(paths), remainder, value, value - math.fsum(path.part for path in paths))


def _edges(trail: list[tuple[int, int]], entry: int) -> list[int]:
    edges = []
    while entry > 0:
        entry, edge = trail[entry]
        edges.append(edge)
    return edges[::-1]
