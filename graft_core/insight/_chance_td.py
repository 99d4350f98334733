"""Graph TD under many outcome vectors at once.

For a fixed graph the value of every ordinary node is linear in the rollouts' outcomes: the last transition of a rollout
leads to its own outcome, V(u) = sum_i H(u, i) R_i, whatever the sink rule calls the place it ends in (under `merge` an end
is worth the mean outcome of the rollouts that end there, linear as well). So one solve with many right-hand sides
gives V under every deal of the outcomes, and credit from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from graft_core.credit.estimate import graph_of
from graft_core.errors import InputError
from graft_core.graph import TrajectoryGraph, sorted_factorise
from graft_core.insight import _chance_kernels as kernels
from graft_core.insight._chance_deal import Block, Deal
from graft_core.rollouts import BoolArray, FloatArray, IntArray, RolloutBatch
from graft_core.settings import Settings
from graft_core.states.base import factorise
from graft_core.values._kernels import strong_components
from graft_core.values.solve import active_nodes, edge_weights, solve_values

NUMBERS = 12_000_000  # how many a batch may need at a time (about 100 MB) before it is done in several blocks of groups
EXACT_NODES = 1500  # groups of more nodes get the variance of their credits from random signs
SIGNS = 64
PSEUDO_VISITS = 4.0  # pooling of variances; see "Recommended: T" of the study of intervals
LEAST_VARIANCE = 1e-6  # of the squared range of the outcomes


@dataclass(frozen=True, eq=False)
class _Part:
    """Some groups of a graph, their active nodes and known steps renumbered and sorted by group.

    node: graph node of each place; bounds: places of each group; parts: components of each group; weight: per edge, 0 for
    edges to ends; steps: path positions; src, dst: places, dst -1 for the last step of a rollout that ends in a sink.
    """

    graph: TrajectoryGraph
    gamma: float
    node: IntArray
    bounds: IntArray
    parts: IntArray
    nodes: IntArray
    starts: IntArray
    indptr: IntArray
    edge_dst: IntArray
    weight: FloatArray
    step_weight: FloatArray
    steps: IntArray
    group: IntArray
    src: IntArray
    dst: IntArray

    def solve(self, constant: FloatArray) -> FloatArray:
        """V = constant + gamma * weight V, for every column."""
        v = np.array(constant, order="C")
        if not kernels.solve_columns(
            self.nodes, self.starts, self.indptr, self.edge_dst, self.weight, self.gamma, v
        ):
            raise InputError(f"values did not settle with gamma {self.gamma:g}; choose a smaller gamma")
        return v


def td_blocks(batch: RolloutBatch, settings: Settings, dealt: Deal) -> Iterator[Block]:
    """Graph TD of every class of steps under every deal, in blocks of groups. Raises as `solve_values` does."""
    graph = graph_of(batch, **settings.graph_words)
    gamma = settings.resolved("graft_td")["gamma"]
    solve_values(graph, gamma=gamma, **settings.value_words)  # the same errors, in the same words
    ends = end_values(graph, dealt.outcome)
    known = np.flatnonzero(batch.step_known)
    group = batch.group[batch.step_rollout[known]]
    size = np.bincount(group, minlength=batch.n_groups)
    number = np.cumsum(size * dealt.columns * 4) // NUMBERS
    for one in np.unique(number[size > 0]).tolist():
        part = _part(graph, settings, gamma, known[number[group] == one], (number == one) & (size > 0))
        yield _block(part, settings, ends)


def end_values(graph: TrajectoryGraph, outcome: FloatArray) -> FloatArray:
    """What the end of each rollout is worth: its outcome, under `merge` the mean of those that end in the same place.

    outcome, result: float64[R, S], NaN for rollouts of unknown outcome.
    """
    batch = graph.batch
    rows = np.flatnonzero(batch.known & (graph.end >= 0))
    if graph.sinks != "merge" or not rows.size:
        return outcome
    # without a final observation nothing says that two ends are the same: each keeps its own outcome
    own = batch.final_observation[rows] < 0
    place = factorise(np.where(own, graph.n_nodes + rows, graph.end[rows]))[0]
    member = sparse.csr_array((np.ones(rows.size), (place, np.arange(rows.size))))
    ends = outcome.copy()
    ends[rows] = ((member @ outcome[rows]) / member.sum(axis=1)[:, None])[place]
    return ends


def _csr(index: IntArray, n: int) -> IntArray:
    """Bounds of 0..n-1 in a sorted index."""
    return np.concatenate([[0], np.cumsum(np.bincount(index, minlength=n))]).astype(np.int64)


def _part(graph: TrajectoryGraph, settings: Settings, gamma: float, steps: IntArray, groups: BoolArray) -> _Part:
    batch = graph.batch
    node = np.flatnonzero(active_nodes(graph) & groups[graph.node_group])
    node = node[np.argsort(graph.node_group[node], kind="stable")]
    place = np.full(graph.n_nodes + 1, -1, dtype=np.int64)
    place[node] = np.arange(node.size)
    full = edge_weights(graph, settings.weighting)
    edges = np.flatnonzero(place[graph.edge_src] >= 0)
    edges = edges[np.argsort(place[graph.edge_src[edges]], kind="stable")]
    inner = place[graph.edge_dst[edges]] >= 0
    indptr = _csr(place[graph.edge_src[edges]], node.size)
    # an unused edge may point anywhere inside its own group
    edge_dst = np.where(inner, place[graph.edge_dst[edges]], place[graph.edge_src[edges]])
    weight = np.where(inner, full[edges], 0.0)
    nodes, starts = strong_components(indptr, edge_dst, weight > 0, np.ones(node.size, dtype=bool))
    code = factorise(graph.node_group[node])[0]
    n_groups = int(code.max(initial=-1)) + 1
    group = batch.group[batch.step_rollout[steps]]
    known = np.maximum(graph.count_known, 1)
    return _Part(
        graph, gamma, node, _csr(code, n_groups), _csr(code[nodes[starts[:-1]]], n_groups), nodes, starts, indptr,
        edge_dst, weight, (full / known)[graph.edge[steps]], steps, group, place[graph.src[steps]],
        np.where(graph.node_is_sink[graph.dst[steps]], -1, place[graph.dst[steps]]),
    )


def _values(part: _Part, settings: Settings, ends: FloatArray) -> tuple[_Part, FloatArray, FloatArray]:
    """(the part with the weights in use, V of its nodes under every deal, how much of a backup each node keeps)."""
    last = part.dst < 0
    n, row = part.node.size, part.graph.batch.step_rollout[part.steps[last]]
    into = sparse.csr_array(
        (part.gamma * part.step_weight[last], (part.src[last], row)), shape=(n, ends.shape[0])
    )
    constant = into @ np.where(np.isnan(ends), 0.0, ends)  # rollouts of unknown outcome have no entry in `into`
    v = part.solve(constant)
    if not settings.prior:
        return part, v, np.ones(n)
    from dataclasses import replace

    code = factorise(part.group)[0]
    share = 1.0 / np.bincount(code)[code]
    mean = sparse.csr_array((share, (code, part.src)), shape=(int(code.max(initial=-1)) + 1, n)) @ v
    of_node = np.empty(n, dtype=np.int64)
    of_node[part.src] = code
    visits = part.graph.visits_known[part.node]
    keep = visits / (visits + settings.prior)
    part = replace(part, weight=part.weight * np.repeat(keep, np.diff(part.indptr)))
    return part, part.solve(keep[:, None] * constant + (1.0 - keep)[:, None] * mean[of_node]), keep


def _block(part: _Part, settings: Settings, ends: FloatArray) -> Block:
    """Credit and its spread for each class: an edge to an ordinary node, or one last step (it has its own outcome)."""
    graph, steps = part.graph, part.steps
    part, v, keep = _values(part, settings, ends)
    row = graph.batch.step_rollout[steps]
    width = graph.n_edges + graph.batch.n_rollouts
    cls, distinct = sorted_factorise(part.group * width + np.where(part.dst >= 0, graph.edge[steps], graph.n_edges + row))
    first = np.full(distinct.size, -1, dtype=np.int64)
    first[cls[::-1]] = np.arange(steps.size)[::-1]
    src, dst = part.src[first], part.dst[first]
    credit = np.empty((distinct.size, ends.shape[1]))
    credit[dst >= 0] = part.gamma * v[dst[dst >= 0]]
    credit[dst < 0] = part.gamma * ends[row[first[dst < 0]]]
    credit -= v[src]
    size = np.bincount(cls, minlength=distinct.size).astype(np.float64)
    outcome_range = np.zeros(1)
    floor = LEAST_VARIANCE * _squared_range(part, ends)
    variance = _backup_variance(src, size, credit, part.bounds, floor) * (keep * keep)[:, None]
    if settings.resolved("graft_td")["per"] == "action":
        return _per_action(part, cls, src, dst, size, credit, variance, floor)
    spread = _spread(part, part.group[first], src, np.where(dst < 0, 0, 1), dst[dst >= 0], np.ones(int((dst >= 0).sum())), variance)[0]
    return Block(credit, spread, steps[np.argsort(cls, kind="stable")], _csr(cls, distinct.size))
