"""What others do for the same work, written here from their published definitions: the other side of the ratios."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from graft_core.graph import TrajectoryGraph
from graft_core.rollouts import FloatArray, IntArray

if TYPE_CHECKING:
    import networkx as nx

SWEEP_EPS = 1e-8


def pandas_factorize(texts: Sequence[str]) -> IntArray:
    """One integer per text, by pandas on an object column."""
    import pandas as pd

    return pd.factorize(np.array(texts, dtype=object))[0].astype(np.int64)


def networkx_values(nets: Sequence[nx.MultiDiGraph[int]], gamma: float) -> dict[int, float]:
    """V of each node: one networkx graph per task, swept in Python until nothing changes by 1e-8 or more."""
    values: dict[int, float] = {}
    for net in nets:
        v = {u: data["outcome"] if data["sink"] else 0.0 for u, data in net.nodes(data=True)}
        inner = [u for u, sink in net.nodes(data="sink") if not sink]
        change, count = 1.0, 0
        while change >= SWEEP_EPS:
            change = 0.0
            for u in inner:
                total = visits = 0.0
                for _, w, count in net.out_edges(u, data="count_known"):
                    total += count * gamma * v[w]
                    visits += count
                change = max(change, abs(total / visits - v[u]))
                v[u] = total / visits
        values.update(v)
    return values


def sparse_sweeps(graph: TrajectoryGraph, gamma: float) -> FloatArray:
    """V of every node by repeated products with scipy's sparse matrix, all groups at once, same stop."""
    from scipy.sparse import csr_matrix

    weight = graph.count_known / np.maximum(graph.visits_known[graph.edge_src], 1)
    size = graph.n_nodes
    step: Any = csr_matrix((gamma * weight, (graph.edge_src, graph.edge_dst)), shape=(size, size))
    ends = np.where(graph.node_is_sink, graph.sink_value, 0.0)
    v = ends
    while True:
        after = np.asarray(step @ v) + ends
        if float(np.abs(after - v).max()) < SWEEP_EPS:
            return after
        v = after


def plain_gigpo(
    group: Sequence[str], rollout: Sequence[str], observation: Sequence[str], reward: FloatArray, outcome: FloatArray,
    gamma: float = 0.95,
) -> FloatArray:  # fmt: skip
    """GiGPO (arXiv 2505.10978) step by step in Python, the way its public program goes about it.

    The remaining discounted rewards of every step are put together by searching the whole batch for the steps of its
    rollout, once per step: quadratic in the steps. Rows of a rollout stand in order. float64[n].
    """
    n = len(observation)
    names = np.array([f"{g}/{r}" for g, r in zip(group, rollout, strict=True)])
    returns = np.zeros(n)
    for i in range(n):
        own = np.where(names == names[i])[0]
        later = own[own >= i]
        returns[i] = sum(gamma**k * float(reward[j]) for k, j in enumerate(later))
    return _episode(group, names, outcome) + _scaled([*zip(group, observation, strict=True)], returns)


def _scaled(keys: Sequence[Any], x: npt.NDArray[np.float64]) -> FloatArray:
    """(x - mean) / (std + 1e-6) among equal keys; a key that occurs once gets 0."""
    members: dict[Any, list[int]] = defaultdict(list)
    for i, key in enumerate(keys):
        members[key].append(i)
    out = np.zeros(len(x))
    for same in members.values():
        if len(same) > 1:
            values = [float(x[i]) for i in same]
            mean = sum(values) / len(values)
            spread = (sum((v - mean) ** 2 for v in values) / (len(values) - 1)) ** 0.5
            for i, v in zip(same, values, strict=True):
                out[i] = (v - mean) / (spread + 1e-6)
    return out


def _episode(group: Sequence[str], names: npt.NDArray[np.str_], outcome: FloatArray) -> FloatArray:
    """Outcomes compared among the rollouts of each task, one per rollout, copied to its steps."""
    first: dict[str, int] = {}
    for i, name in enumerate(names.tolist()):
        first.setdefault(name, i)
    rows = list(first.values())
    scaled = _scaled([group[i] for i in rows], outcome[rows])
    by_name = dict(zip(first, scaled.tolist(), strict=True))
    return np.array([by_name[name] for name in names.tolist()])
