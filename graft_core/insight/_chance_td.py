"""Graph TD under many outcome vectors at once.

For a fixed graph the value of every ordinary node is linear in the rollouts' outcomes: the last transition of a rollout
leads to its own outcome, V(u) = sum_i H(u, i) R_i, whatever the sink rule calls the place it ends in (under `merge` an end
is worth the mean outcome of the rollouts that end there, linear as well). So one solve with many right-hand sides
gives V under every deal of the outcomes, and the credit from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from graft_core.constants import NO_TEXT
from graft_core.credit.estimate import graph_of
from graft_core.errors import InputError
from graft_core.graph import TrajectoryGraph, sorted_factorise
from graft_core.insight import _chance_kernels as kernels
from graft_core.insight._chance_deal import Block, Deal
from graft_core.insight._chance_noise import LEAST, Classes, action_noise, in_errors, squared_range, transition_noise
from graft_core.rollouts import BoolArray, FloatArray, IntArray, RolloutBatch
from graft_core.settings import Settings
from graft_core.states.base import factorise
from graft_core.values._kernels import strong_components
from graft_core.values.solve import active_nodes, edge_weights, solve_values

NUMBERS = 2_000_000  # credits held at a time, 16 MB in each of some ten arrays; larger batches come in blocks of groups


@dataclass(frozen=True, eq=False)
class Part:
    """Some groups of a graph: their active nodes, sorted by group and numbered anew, and their steps of known outcome.

    node: graph node of each number. bounds, parts: nodes and components of each group. nodes, starts: components in
    reverse topological order. indptr, edge_dst, weight: edges, weight 0 for those to an end. steps: path positions;
    group, src, dst, step_weight per step, dst -1 for the last step of a rollout that ends in a sink.
    """

    gamma: float
    node: IntArray
    bounds: IntArray
    parts: IntArray
    nodes: IntArray
    starts: IntArray
    indptr: IntArray
    edge_dst: IntArray
    weight: FloatArray
    steps: IntArray
    group: IntArray
    src: IntArray
    dst: IntArray
    step_weight: FloatArray

    def solve(self, constant: FloatArray) -> FloatArray:
        """V = constant + gamma * weight V, for every column."""
        v = np.array(constant, order="C")
        settled = kernels.solve_columns(
            self.nodes, self.starts, self.indptr, self.edge_dst, self.weight, self.gamma, v, kernels.DENSE, kernels.EXACT
        )
        if not settled:
            raise InputError(f"values did not settle with gamma {self.gamma:g}; choose a smaller gamma")
        return v


def td_blocks(batch: RolloutBatch, settings: Settings, dealt: Deal) -> Iterator[Block]:
    """Graph TD of every class of steps under every deal, in blocks of groups. Raises as `solve_values` does."""
    graph = graph_of(batch, **settings.graph_words)
    gamma = settings.resolved("graft_td")["gamma"]
    solve_values(graph, gamma=gamma, **settings.value_words)  # for the same errors in the same words
    ends = end_values(graph, dealt.outcome)
    known = np.flatnonzero(batch.step_known)
    group = batch.group[batch.step_rollout[known]]
    size = np.bincount(group, minlength=batch.n_groups)
    number = np.cumsum(size * dealt.columns) // NUMBERS
    for one in np.unique(number[size > 0]).tolist():
        chosen = (number == one) & (size > 0)
        yield _block(graph, settings, ends, _part(graph, settings, gamma, known[chosen[group]], chosen))


def end_values(graph: TrajectoryGraph, outcome: FloatArray) -> FloatArray:
    """What the end of each rollout is worth: its outcome, under `merge` the mean of those that end in the same place.

    outcome, result: float64[R, S], NaN for rollouts of unknown outcome.
    """
    batch = graph.batch
    rows = np.flatnonzero(batch.known & (graph.end >= 0))
    if graph.sinks != "merge" or not rows.size:
        return outcome
    # without a final observation nothing says that two ends are the same: each keeps its own outcome
    alone = batch.final_observation[rows] == NO_TEXT
    place = factorise(np.where(alone, graph.n_nodes + rows, graph.end[rows]))[0]
    member = sparse.csr_array((np.ones(rows.size), (place, np.arange(rows.size))))
    ends = outcome.copy()
    ends[rows] = ((member @ outcome[rows]) / member.sum(axis=1)[:, None])[place]
    return ends


def bounds_of(sorted_index: IntArray, n: int) -> IntArray:
    """Where each of 0..n-1 begins in a sorted index, and the end."""
    return np.concatenate([[0], np.cumsum(np.bincount(sorted_index, minlength=n))]).astype(np.int64)


def _part(graph: TrajectoryGraph, settings: Settings, gamma: float, steps: IntArray, groups: BoolArray) -> Part:
    node = np.flatnonzero(active_nodes(graph) & groups[graph.node_group])
    node = node[np.argsort(graph.node_group[node], kind="stable")]
    place = np.full(graph.n_nodes, -1, dtype=np.int64)
    place[node] = np.arange(node.size)
    weight = edge_weights(graph, settings.weighting)
    edges = np.flatnonzero((place[graph.edge_src] >= 0) & (graph.count_known > 0))
    edges = edges[np.argsort(place[graph.edge_src[edges]], kind="stable")]
    src, dst = place[graph.edge_src[edges]], place[graph.edge_dst[edges]]
    indptr = bounds_of(src, node.size)
    # an edge to an end has weight 0 and may point anywhere in its own group
    edge_dst, inner = np.where(dst >= 0, dst, src), np.where(dst >= 0, weight[edges], 0.0)
    nodes, starts = strong_components(indptr, edge_dst, inner > 0, np.ones(node.size, dtype=bool))
    code, kept = factorise(graph.node_group[node])
    return Part(
        gamma=gamma,
        node=node,
        bounds=bounds_of(code, kept.size),
        parts=bounds_of(code[nodes[starts[:-1]]], kept.size),
        nodes=nodes,
        starts=starts,
        indptr=indptr,
        edge_dst=edge_dst,
        weight=inner,
        steps=steps,
        group=code[place[graph.src[steps]]],
        src=place[graph.src[steps]],
        dst=place[graph.dst[steps]],
        step_weight=(weight / np.maximum(graph.count_known, 1))[graph.edge[steps]],
    )


def _values(part: Part, prior: float, rollout: IntArray, ends: FloatArray) -> tuple[Part, FloatArray]:
    """(the part with the weights in use, V of its nodes under every deal); shrunk where there is a prior."""
    last, n = part.dst < 0, part.node.size
    into = sparse.csr_array(
        (part.gamma * part.step_weight[last], (part.src[last], rollout[last])), shape=(n, ends.shape[0])
    )
    constant = into @ np.where(np.isnan(ends), 0.0, ends)  # rollouts of unknown outcome have no entry in `into`
    v = part.solve(constant)
    if not prior:
        return part, v
    share = 1.0 / np.bincount(part.group)[part.group]
    mean = np.asarray(sparse.csr_array((share, (part.group, part.src)), shape=(part.bounds.size - 1, n)) @ v)
    visits = np.bincount(part.src, minlength=n)
    keep = visits / (visits + prior)
    part = replace(part, weight=part.weight * np.repeat(keep, np.diff(part.indptr)))
    group_of_node = np.repeat(np.arange(part.bounds.size - 1), np.diff(part.bounds))
    return part, part.solve(keep[:, None] * constant + (1.0 - keep)[:, None] * mean[group_of_node])


def _block(graph: TrajectoryGraph, settings: Settings, ends: FloatArray, part: Part) -> Block:
    """Credit of each class, and how clear it is.

    A class is an edge to an ordinary node, one last step (it has its own outcome), or per action a (state, action).
    """
    steps = part.steps
    rollout = graph.batch.step_rollout[steps]
    part, v = _values(part, settings.prior, rollout, ends)
    goes_on = part.dst >= 0
    key = np.where(goes_on, graph.edge[steps], graph.n_edges + rollout)
    cls, distinct = sorted_factorise(part.group * (graph.n_edges + graph.batch.n_rollouts) + key)
    first = np.full(distinct.size, -1, dtype=np.int64)
    first[cls[::-1]] = np.arange(steps.size)[::-1]
    on = goes_on[first]
    after = np.empty((distinct.size, ends.shape[1]))
    after[on] = part.gamma * v[part.dst[first[on]]]
    after[~on] = part.gamma * ends[rollout[first[~on]]]
    classes = Classes(part.src[first], part.dst[first], np.bincount(cls, minlength=distinct.size))
    credit = after - v[classes.src]
    least = LEAST * squared_range(graph, part)
    if settings.resolved("graft_td")["per"] == "transition":
        clear = in_errors(credit, transition_noise(part, classes, credit, least))
    else:
        pair = factorise(graph.pair[steps[first]])[0]
        share = classes.size / np.bincount(pair, weights=classes.size)[pair]
        mean = np.asarray(sparse.csr_array((share, (pair, np.arange(pair.size)))) @ credit)
        clear = in_errors(mean, action_noise(part, classes, credit, pair, mean, least))
        credit, cls = mean, pair[cls]
    return Block(credit, clear, steps[np.argsort(cls, kind="stable")], bounds_of(cls, credit.shape[0]), is_td=True)
