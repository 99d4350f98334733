"""TD residuals, per-action means and the reaches of Graph GAE (GRAFT, arXiv 2609.28963 Eq. 8-11; method.md sec. 4)."""

from __future__ import annotations

import numpy as np

from graft_core.credit import _segments as seg
from graft_core.credit.base import Inputs
from graft_core.rollouts import FloatArray
from graft_core.states.base import sorted_pairs
from graft_core.values.solve import edge_rewards, edge_weights, sums


def residuals(inputs: Inputs) -> FloatArray:
    """A_t = [r_t +] gamma V(phi(s_{t+1})) - V(phi(s_t)) of every step; NaN where the rollout's outcome is unknown."""
    graph, values = inputs.graph, inputs.values
    td = values.v[graph.dst]
    td *= values.gamma
    td -= values.v[graph.src]
    if values.rewards == "dense":
        td += inputs.batch.reward
    return td if isinstance(inputs.known_steps, slice) else np.where(inputs.known, td, np.nan)


def edge_residuals(inputs: Inputs) -> FloatArray:
    """The residual of each edge with its mean reward; 0 on edges no known rollout took. float64[E]."""
    graph, values = inputs.graph, inputs.values
    td = edge_rewards(graph, values.rewards) + values.gamma * values.v[graph.edge_dst] - values.v[graph.edge_src]
    return np.where(graph.count_known > 0, td, 0.0)


def per_action(inputs: Inputs, credit: FloatArray) -> FloatArray:
    """The finished credit averaged over all known instances of (u, a), where `per` asks for it."""
    if inputs["per"] == "transition":
        return credit
    known = inputs.known_steps
    mean = seg.means(credit[known], inputs.graph.pair[known], inputs.graph.n_pairs)
    return inputs.spread(mean[inputs.graph.pair[known]])


def normalised(inputs: Inputs, credit: FloatArray) -> FloatArray:
    """Eq. 11 over the known step instances of each node, where `normalise` asks for it."""
    known, node = inputs.known_steps, inputs.graph.src
    scaled = seg.normalise_nodes(
        credit[known], node[known], inputs.graph.n_nodes, inputs["normalise"], inputs["eps"], inputs["ddof"]
    )
    return inputs.spread(scaled)


def path_gae(inputs: Inputs) -> FloatArray:
    """Ordinary GAE over the rollout's own residuals: sum_k (gamma lambda)^k A_{t+k}."""
    from graft_core.credit._kernels import discounted_sums

    return discounted_sums(residuals(inputs), inputs.batch.offsets, inputs.values.gamma * inputs["lam"])


def graph_gae(inputs: Inputs) -> FloatArray:
    """A_t + sum_{k=1}^{T-1-t} (gamma lambda)^k Abar_k under the chosen `reach` (Eq. 9-10)."""
    if inputs["reach"] == "path":
        return path_gae(inputs)
    later = _expected_later if inputs["reach"] == "expectation" else _frontier_later
    return residuals(inputs) + later(inputs)


def _expected_later(inputs: Inputs) -> FloatArray:
    """sum_k (gamma lambda)^k of the mean residual after k steps of the visit-count policy; absorbed mass adds 0."""
    from graft_core.credit._kernels import push

    graph, remaining = inputs.graph, inputs.batch.remaining
    probability = edge_weights(graph, "visits")
    later = np.zeros(remaining.size)
    if not remaining.size:
        return later
    by_horizon = np.argsort(remaining, kind="stable")
    bounds = np.searchsorted(remaining[by_horizon], np.arange(int(remaining.max()) + 2))
    mean = sums(graph.edge_src, probability * edge_residuals(inputs), graph.n_nodes)
    total, ahead, factor = np.zeros_like(mean), np.empty_like(mean), 1.0
    for hops in range(1, int(remaining.max()) + 1):
        factor *= inputs.values.gamma * inputs["lam"]
        total += factor * mean
        at = by_horizon[bounds[hops] : bounds[hops + 1]]
        later[at] = total[graph.dst[at]]
        push(graph.indptr, graph.edge_dst, probability, mean, ahead)
        mean, ahead = ahead, mean
    return later


def _frontier_later(inputs: Inputs) -> FloatArray:
    """The same over the k-hop frontier, a set of nodes: raw instances (`instances`) or distinct edges (`distinct`)."""
    from graft_core.credit._kernels import frontier_sums

    graph, remaining = inputs.graph, inputs.batch.remaining
    going_on = np.flatnonzero((remaining > 0) & inputs.known)
    later = np.zeros(remaining.size)
    if not going_on.size:
        return later
    used = graph.count_known > 0
    weight = np.where(used, graph.count_known if inputs["reach"] == "instances" else 1, 0).astype(np.float64)
    total = sums(graph.edge_src, weight * edge_residuals(inputs), graph.n_nodes)
    mass = sums(graph.edge_src, weight, graph.n_nodes)
    onward = used & (mass[graph.edge_dst] > 0)
    _, origin, successor = sorted_pairs(graph.edge_src[onward], graph.edge_dst[onward], graph.n_nodes, graph.n_nodes)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(origin, minlength=graph.n_nodes))]).astype(np.int64)

    node = graph.dst[going_on]
    longest = np.zeros(graph.n_nodes, dtype=np.int64)
    np.maximum.at(longest, node, remaining[going_on])
    first = np.flatnonzero(longest)
    starts = np.zeros(graph.n_nodes, dtype=np.int64)
    starts[first] = np.concatenate([[0], np.cumsum(longest[first] + 1)[:-1]])
    out = np.zeros(int((longest[first] + 1).sum()))
    frontier_sums(
        first, longest[first], indptr, successor, total, mass, inputs.values.gamma * inputs["lam"], starts[first], out
    )
    later[going_on] = out[starts[node] + remaining[going_on]]
    return later
