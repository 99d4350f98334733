"""Sampling noise of a group's values, and how much of it reaches each credit (the delta method).

V of a node is a mean over the actions drawn there, Q of a pair a mean over the results drawn. Every draw is a source
of noise; a credit is linear in them to first order, with weights d = q (I - gamma P)^-1 on the nodes, q being where the
credit looks: +gamma on the node after it, -1 on the node before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graft_core.constants import RANGE_ABSOLUTE, RANGE_RELATIVE
from graft_core.graph import TrajectoryGraph
from graft_core.rollouts import BoolArray, FloatArray, IntArray
from graft_core.values import Values
from graft_core.values.solve import active_nodes, edge_weights

PSEUDO_VISITS = 8.0
"""Visits' worth of the group's pooled variance that stand beside what a node has seen itself."""

LEAST_SHARE = 1e-3  # V(1 - V) of a node never counts as less
LEAST_POOLED = 1e-6  # nor does the pooled variance, in units of the outcomes' range squared
LARGEST_BLOCK = 64  # cycles of more states are not inverted but factorised sparsely
COLUMNS = 256  # right-hand sides at a time


@dataclass(frozen=True, eq=False)
class Noise:
    """Variances of one group's draws, all groups side by side.

    node float64[N]: variance that a passing of the node meets there (its actions and their results, for a sink its
    outcomes); pair float64[P]: variance of Q(u, a) from the results drawn there. Per group: range of possible values
    float64[n_groups], `equal` (all outcomes alike), `unshared` (no node that two rollouts left): bool[n_groups].
    """

    node: FloatArray
    pair: FloatArray
    range: FloatArray
    equal: BoolArray
    unshared: BoolArray


def pair_values(graph: TrajectoryGraph, values: Values) -> FloatArray:
    """Q(u, a): mean of gamma V over the known results of each pair; NaN where there are none. float64[P]."""
    used = graph.count_known > 0
    worth = np.where(used, graph.count_known * values.gamma * values.v[graph.edge_dst], 0.0)
    total = _sums(graph.edge_pair, worth, graph.n_pairs)
    tries = graph.pair_count_known
    return np.divide(total, tries, out=np.full(graph.n_pairs, np.nan), where=tries > 0)


def noise_of(graph: TrajectoryGraph, values: Values) -> Noise:
    """Variances shrunk towards the group's own, which is spread over its nodes in proportion to V (1 - V).

    Summed over all draws they are what was observed: the law of total variance holds for the group as a whole, so
    noise that was seen as spread between actions is not counted again further down.
    """
    n_groups, v, q = graph.batch.n_groups, values.v, pair_values(graph, values)
    low, high, mean, equal = _outcomes(graph)
    width = high - low
    visits, tries, counts = graph.visits_known.astype(float), graph.pair_count_known.astype(float), graph.count_known
    used, tried = counts > 0, tries > 0
    seen = ~graph.node_is_sink & (visits > 0)
    group, of_pair = graph.node_group, graph.node_group[graph.pair_node]

    with np.errstate(invalid="ignore", divide="ignore"):
        worth = np.clip((v - low[group]) / width[group], 0.0, 1.0)
        chance = (visits * worth + mean[group]) / (visits + 1.0)
    share = np.where(seen, np.maximum(chance * (1.0 - chance), LEAST_SHARE), 0.0)
    gap = np.where(tried, q - v[graph.pair_node], 0.0)
    spread = _sums(graph.pair_node, tries * gap**2, graph.n_nodes)
    result_gap = np.where(used, values.gamma * v[graph.edge_dst] - q[graph.edge_pair], 0.0)
    result_spread = _sums(graph.edge_pair, counts * result_gap**2, graph.n_pairs)
    pair_share = share[graph.pair_node]

    pooled = _pooled(spread, visits * share, group, n_groups)
    pooled = np.maximum(pooled, LEAST_POOLED * width**2)
    results = _pooled(result_spread, tries * pair_share, of_pair, n_groups)
    node = _shrunk(spread, pooled[group] * share, visits, seen)
    pair = _shrunk(result_spread, results[of_pair] * pair_share, tries, tried)
    part = np.divide(tries, visits[graph.pair_node], out=np.zeros(graph.n_pairs), where=tried)
    node = node + _sums(graph.pair_node, part**2 * pair, graph.n_nodes)
    node = node + _sink_noise(graph)

    shared = _sums(group, seen & (graph.node_rollouts_known > 1), n_groups) > 0
    return Noise(node, pair, width, equal, ~shared)


def _outcomes(graph: TrajectoryGraph) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Per group: least and greatest possible value, mean outcome on that scale, and whether all outcomes are alike."""
    batch = graph.batch
    known, group = batch.known, batch.group[batch.known]
    outcome = batch.outcome[known]
    least, most = np.full(batch.n_groups, np.inf), np.full(batch.n_groups, -np.inf)
    np.minimum.at(least, group, outcome)
    np.maximum.at(most, group, outcome)
    size = np.maximum(np.abs(least), np.abs(most))
    equal = ~(most - least > RANGE_ABSOLUTE + RANGE_RELATIVE * np.where(np.isfinite(size), size, 0.0))
    # values are discounted towards 0, so 0 belongs to what is possible
    low, high = np.minimum(least, 0.0), np.maximum(most, 0.0)
    some = np.bincount(group, minlength=batch.n_groups)
    total = _sums(group, outcome, batch.n_groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (total / some - low) / (high - low)
    none = some == 0
    return np.where(none, 0.0, low), np.where(none, 0.0, high), mean, equal | none


def _sums(index: IntArray, weights: FloatArray | BoolArray, length: int) -> FloatArray:
    return np.bincount(index, weights=weights, minlength=length).astype(np.float64, copy=False)


def _pooled(spread: FloatArray, weight: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
    """Spread per unit of weight over each group; 0 where there is no weight. float64[n_groups]."""
    total = _sums(group, spread, n_groups)
    weights = _sums(group, weight, n_groups)
    return np.divide(total, weights, out=np.zeros(n_groups), where=weights > 0)


def _shrunk(spread: FloatArray, expected: FloatArray, draws: FloatArray, chosen: BoolArray) -> FloatArray:
    """Variance of a mean of `draws` draws: own spread and PSEUDO_VISITS draws of the expected one; 0 where not chosen."""
    size = np.maximum(draws, 1.0)
    return np.where(chosen, (spread + PSEUDO_VISITS * expected) / (size + PSEUDO_VISITS) / size, 0.0)


def _sink_noise(graph: TrajectoryGraph) -> FloatArray:
    """Variance of the mean outcome of each sink: only where rollouts of different outcome share one (`merge`)."""
    batch = graph.batch
    rows = np.flatnonzero(batch.known & (graph.end >= 0))
    at = graph.end[rows]
    draws = np.bincount(at, minlength=graph.n_nodes).astype(float)
    gap = batch.outcome[rows] - graph.sink_value[at]
    spread = _sums(at, gap**2, graph.n_nodes)
    spread = np.where(graph.node_is_sink, spread, 0.0)
    if not spread.any():
        return spread
    pooled = _pooled(spread, draws, graph.node_group, batch.n_groups)
    return _shrunk(spread, pooled[graph.node_group], draws, graph.node_is_sink & (draws > 0))


# -- from draws to credits --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Queries:
    """Where K credits look: weight[k] on node[k], query i's entries at starts[i]:starts[i + 1], origin its own node u."""

    starts: IntArray
    node: IntArray
    weight: FloatArray
    origin: IntArray


def edge_queries(graph: TrajectoryGraph, gamma: float, edges: IntArray) -> Queries:
    """gamma V(v) - V(u) of the given edges."""
    node = np.stack([graph.edge_src[edges], graph.edge_dst[edges]], axis=1).ravel()
    weight = np.tile([-1.0, gamma], edges.size)
    return Queries(2 * np.arange(edges.size + 1), node, weight, graph.edge_src[edges])


def pair_queries(graph: TrajectoryGraph, gamma: float, pairs: IntArray) -> Queries:
    """Q(u, a) - V(u) of the given pairs, which stand in ascending order."""
    chosen = np.zeros(graph.n_pairs, dtype=bool)
    chosen[pairs] = True
    edges = np.flatnonzero(chosen[graph.edge_pair] & (graph.count_known > 0))
    of = graph.edge_pair[edges]
    entries = np.bincount(of, minlength=graph.n_pairs)[pairs] + 1
    starts = np.concatenate([[0], np.cumsum(entries)]).astype(np.int64)
    place = np.ones(int(starts[-1]), dtype=bool)
    place[starts[:-1]] = False
    node, weight = np.empty(place.size, dtype=np.int64), np.empty(place.size)
    node[~place], weight[~place] = graph.pair_node[pairs], -1.0
    node[place] = graph.edge_dst[edges]
    weight[place] = gamma * graph.count_known[edges] / graph.pair_count_known[of]
    return Queries(starts, node, weight, graph.pair_node[pairs])


def gathered(
    graph: TrajectoryGraph, gamma: float, noise: FloatArray, queries: Queries, largest_block: int = LARGEST_BLOCK
) -> tuple[FloatArray, FloatArray]:
    """(total, own) of each query: sum_w d_w^2 noise_w over the nodes, and d at the query's own node. float64[K] each.

    Acyclic parts are walked, cycles of up to `largest_block` states inverted, groups with larger ones factorised.
    """
    from graft_core.insight import _certainty_kernels as kernels
    from graft_core.values._kernels import strong_components

    flow = gamma * edge_weights(graph, "visits")
    flow[graph.count_known == 0] = 0.0
    active = active_nodes(graph) | (graph.node_is_sink & (noise > 0))
    nodes, starts = strong_components(graph.indptr, graph.edge_dst, flow > 0, active)
    n_groups = graph.batch.n_groups
    group, sizes = graph.node_group[nodes[starts[:-1]]], np.diff(starts)
    order = np.argsort(group, kind="stable")
    ranked = np.concatenate([[0], np.cumsum(sizes[order])]).astype(np.int64)
    nodes = nodes[np.repeat(starts[:-1][order] - ranked[:-1], sizes[order]) + np.arange(nodes.size)]
    group_starts = np.searchsorted(group[order], np.arange(n_groups + 1))

    largest = np.zeros(n_groups, dtype=np.int64)
    np.maximum.at(largest, group, sizes)
    of_query = graph.node_group[queries.origin]
    by_group = np.argsort(of_query, kind="stable")
    bounds = np.searchsorted(of_query[by_group], np.arange(n_groups + 1))
    asked = np.diff(bounds) > 0
    total, own = np.zeros(queries.origin.size), np.zeros(queries.origin.size)
    kernels.gather_noise(
        nodes, ranked, group_starts, graph.indptr, graph.edge_dst, flow, noise, queries.starts, queries.node,
        queries.weight, queries.origin, by_group, bounds, asked & (largest <= largest_block), total, own,
    )  # fmt: skip
    for g in np.flatnonzero(asked & (largest > largest_block)).tolist():
        places = np.flatnonzero(active & (graph.node_group == g))
        chosen = by_group[bounds[g] : bounds[g + 1]]
        total[chosen], own[chosen] = _factorised(graph, flow, noise, places, queries, chosen)
    return total, own


def _factorised(
    graph: TrajectoryGraph, flow: FloatArray, noise: FloatArray, places: IntArray, queries: Queries, chosen: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The same for the `chosen` queries of one group, which has the nodes `places`, by one sparse factorisation."""
    from scipy.sparse import coo_array, csc_array, eye_array
    from scipy.sparse.linalg import splu

    place = np.full(graph.n_nodes, -1, dtype=np.int64)
    place[places] = np.arange(places.size)
    edges = np.flatnonzero((place[graph.edge_src] >= 0) & (place[graph.edge_dst] >= 0) & (flow > 0))
    turned = csc_array(
        (flow[edges], (place[graph.edge_dst[edges]], place[graph.edge_src[edges]])), shape=(places.size, places.size)
    )
    factors = splu((eye_array(places.size, format="csc") - turned).tocsc())
    sizes = np.diff(queries.starts)[chosen]
    ends = np.cumsum(sizes)
    entries = np.arange(int(ends[-1])) + np.repeat(queries.starts[chosen] - (ends - sizes), sizes)
    row, column = place[queries.node[entries]], np.repeat(np.arange(chosen.size), sizes)
    inside = row >= 0
    looks = coo_array(
        (queries.weight[entries][inside], (row[inside], column[inside])), shape=(places.size, chosen.size)
    ).tocsc()
    origin, total, own = place[queries.origin[chosen]], [], []
    for k in range(0, origin.size, COLUMNS):
        d = factors.solve(looks[:, k : k + COLUMNS].toarray())
        total.append(noise[places] @ d**2)
        own.append(d[origin[k : k + COLUMNS], np.arange(d.shape[1])])
    return np.concatenate(total), np.concatenate(own)
