"""Node values of a trajectory graph (GRAFT, arXiv 2609.28963 sec. 3.2, Eq. 5-6; method.md sec. 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graft_core.errors import InputError, NotComputableError, UsageError
from graft_core.graph import TrajectoryGraph
from graft_core.options import GAMMA, PRIOR, REWARDS, SOLVER, WEIGHTING
from graft_core.rollouts import BoolArray, FloatArray, IntArray, RolloutBatch


@dataclass(frozen=True, eq=False)
class Values:
    """V of every node (float64[N], NaN where only rollouts of unknown outcome lead), and how it was solved."""

    v: FloatArray
    gamma: float
    weighting: str = "visits"
    rewards: str = "outcome"
    solver: str = "direct"
    prior: float = 0.0


def sums(index: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Sum of the values at each index. float64[size]."""
    return np.asarray(np.bincount(index, weights=values, minlength=size), dtype=np.float64)


def require_rewards(batch: RolloutBatch) -> None:
    """Raise `NotComputableError` unless every step of a rollout of known outcome has a reward."""
    missing = np.isnan(batch.reward) & batch.step_known
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        row = int(batch.step_rollout[first])
        raise NotComputableError(
            f"rewards 'dense' needs a reward on every step; {int(missing.sum())} of {batch.n_steps} steps have none (first: "
            f"group {batch.group_ids[batch.group[row]]}, rollout {batch.rollout_ids[row]}, step {int(batch.step_index[first])})"
        )


def edge_rewards(graph: TrajectoryGraph, rewards: str) -> FloatArray:
    """Mean step reward of each edge over its known instances under `dense`; zeros under `outcome`. float64[E]."""
    if rewards == "outcome":
        return np.zeros(graph.n_edges)
    require_rewards(graph.batch)
    known = graph.known
    total = np.bincount(graph.edge[known], weights=graph.batch.reward[known], minlength=graph.n_edges)
    return np.divide(total, graph.count_known, out=np.zeros(graph.n_edges), where=graph.count_known > 0)


def edge_weights(graph: TrajectoryGraph, weighting: str) -> FloatArray:
    """pi(a|u) P(v|u,a) of each edge, from known instances only; rows of nodes with known visits sum to 1. float64[E]."""
    known = graph.count_known.astype(np.float64)
    if weighting == "visits":
        return known / np.maximum(graph.visits_known[graph.edge_src], 1)
    pairs = graph.pair_count_known
    kinds = np.bincount(graph.pair_node[pairs > 0], minlength=graph.n_nodes)
    return known / np.maximum(pairs[graph.edge_pair], 1) / np.maximum(kinds[graph.edge_src], 1)


def active_nodes(graph: TrajectoryGraph) -> BoolArray:
    """Ordinary nodes that some rollout of known outcome leaves. bool[N]."""
    return ~graph.node_is_sink & (graph.visits_known > 0)


def start_values(graph: TrajectoryGraph, rewards: str) -> FloatArray:
    """V before solving: the sinks' outcomes (0 under `dense`, where known), NaN elsewhere. float64[N]."""
    v = graph.sink_value.copy()
    if rewards == "dense":
        v[~np.isnan(v)] = 0.0
    return v


def solve_values(
    graph: TrajectoryGraph,
    gamma: float = 0.99,
    weighting: str = "visits",
    rewards: str = "outcome",
    solver: str = "direct",
    prior: float = 0.0,
) -> Values:
    """Solve V(u) = sum_a pi(a|u) sum_v P(v|u,a) ([r +] gamma V(v)) exactly, all groups at once.

    gamma in (0, 1]. weighting `visits` (Eq. 6), `distinct` or `max`. rewards `outcome` (only sinks carry reward) or
    `dense` (mean step rewards on edges, sinks worth 0). prior: shrinkage in visits (method.md sec. 3). Raises
    `UsageError` for options outside their range, `InputError` where gamma = 1 has no answer.
    Source: arXiv 2609.28963 Eq. 5-6; V is the batch TD(0) (certainty-equivalence) value of the empirical chain.
    """
    gamma, prior = GAMMA.check(gamma), PRIOR.check(prior)
    for option, value in ((WEIGHTING, weighting), (REWARDS, rewards), (SOLVER, solver)):
        option.check(value)
    if prior and weighting != "visits":
        raise UsageError(f"prior {prior:g} works with weighting 'visits' only, not with {weighting!r}")
    key = ("values", gamma, weighting, rewards, solver, prior)
    if key not in graph.memo:
        graph.memo[key] = Values(_solve(graph, gamma, weighting, rewards, prior), gamma, weighting, rewards, solver, prior)
    values: Values = graph.memo[key]
    return values


def _solve(graph: TrajectoryGraph, gamma: float, weighting: str, rewards: str, prior: float) -> FloatArray:
    from graft_core.values import _kernels as kernels

    v = start_values(graph, rewards)
    reward = edge_rewards(graph, rewards)
    active = active_nodes(graph)
    use = graph.count_known > 0
    nodes, starts = kernels.strong_components(graph.indptr, graph.edge_dst, use, active)
    if weighting == "max":
        if gamma == 1.0:
            raise UsageError("gamma 1 has no answer with weighting 'max', which is solved by sweeps: expected gamma below 1")
        if not kernels.max_backup(nodes, graph.indptr, graph.edge_dst, use, reward, gamma, v, 1e-11):
            raise InputError(f"values did not settle with gamma {gamma:g}; choose a smaller gamma")
        return v
    weight = edge_weights(graph, weighting)
    constant = sums(graph.edge_src, weight * reward, graph.n_nodes)
    _run(graph, nodes, starts, weight, constant, gamma, v)
    if prior:
        steps = graph.known
        group = graph.node_group[graph.src[steps]]
        n_groups = graph.batch.n_groups
        total = np.bincount(group, weights=v[graph.src[steps]], minlength=n_groups)
        mean = total / np.maximum(np.bincount(group, minlength=n_groups), 1)
        keep = graph.visits_known / (graph.visits_known + prior)
        v = start_values(graph, rewards)
        constant = keep * constant + (1.0 - keep) * mean[graph.node_group]
        _run(graph, nodes, starts, weight * keep[graph.edge_src], constant, gamma, v)
    return v


def _run(
    graph: TrajectoryGraph,
    nodes: np.ndarray,
    starts: np.ndarray,
    weight: FloatArray,
    constant: FloatArray,
    gamma: float,
    v: FloatArray,
) -> None:
    from graft_core.values import _kernels as kernels

    code, where = kernels.solve_components(nodes, starts, graph.indptr, graph.edge_dst, weight, constant, gamma, v)
    if code == 0:
        return
    members = nodes[starts[where] : starts[where + 1]]
    group = graph.batch.group_ids[int(graph.node_group[members[0]])]
    text = graph.batch.text(int(graph.node_text[members[0]]))[:80]
    if code == kernels.NO_EXIT:
        raise InputError(
            f"group {group}: gamma 1 has no value for a cycle of {members.size} states that no rollout leaves (at {text!r}); "
            "expected gamma below 1, or sinks 'split'"
        )
    if code == kernels.TOO_LARGE:
        raise InputError(
            f"group {group}: gamma 1 is solved for cycles of up to {kernels.DENSE_LIMIT_UNDISCOUNTED} states, this one has "
            f"{members.size}; expected gamma below 1"
        )
    raise InputError(f"group {group}: values did not settle with gamma {gamma:g}; choose a smaller gamma")
