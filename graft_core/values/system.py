"""The equations of the node values, whichever way they are solved (method.md sec. 3)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from graft_core.errors import NotComputableError
from graft_core.graph import TrajectoryGraph
from graft_core.rollouts import BoolArray, FloatArray, IntArray, RolloutBatch

OUTCOME_TOLERANCE = 1e-6


class DataWarning(UserWarning):
    """The data say two things, or something was assumed for want of data; the numbers are defined all the same."""


def sums(index: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Sum of the values at each index. float64[size]."""
    return np.asarray(np.bincount(index, weights=values, minlength=size), dtype=np.float64)


def require_rewards(batch: RolloutBatch) -> None:
    """Raise `NotComputableError` unless every step of a rollout of known outcome has a reward.

    Warns once per batch where a rollout's rewards do not sum to its outcome.
    """
    missing = np.isnan(batch.reward) & batch.step_known
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        row = int(batch.step_rollout[first])
        raise NotComputableError(
            f"rewards 'dense' needs a reward on every step; {int(missing.sum())} of {batch.n_steps} steps have none (first: "
            f"group {batch.group_ids[batch.group[row]]}, rollout {batch.rollout_ids[row]}, step {int(batch.step_index[first])})"
        )


    reward_sums_that_differ(batch)


def reward_sums_that_differ(batch: RolloutBatch) -> int:
    """How many rollouts of known outcome have step rewards that do not sum to it; warns the first time it is asked."""
    key = ("reward sums that differ",)
    if key not in batch.memo:
        batch.memo[key] = _warn_of_sums(batch)
    found: int = batch.memo[key]
    return found


def _warn_of_sums(batch: RolloutBatch) -> int:
    total = sums(batch.step_rollout, np.where(batch.step_known, batch.reward, 0.0), batch.n_rollouts)
    with np.errstate(invalid="ignore"):
        apart = np.abs(total - batch.outcome) > OUTCOME_TOLERANCE * np.maximum(1.0, np.abs(batch.outcome))
    rows = np.flatnonzero(apart & batch.known & (batch.lengths > 0))
    if rows.size:
        row = int(rows[0])
        warnings.warn(
            f"rewards 'dense': the step rewards of {rows.size} of {int(batch.known.sum())} rollouts do not sum to the outcome "
            f"(first: group {batch.group_ids[batch.group[row]]}, rollout {batch.rollout_ids[row]}: {total[row]:g} against "
            f"{batch.outcome[row]:g})",
            DataWarning,
            stacklevel=2,
        )
    return int(rows.size)


def edge_rewards(graph: TrajectoryGraph, rewards: str) -> FloatArray:
    """Mean step reward of each edge over its known instances under `dense`; zeros under `outcome`. float64[E]."""
    if rewards == "outcome":
        return np.zeros(graph.n_edges)
    require_rewards(graph.batch)
    known = graph.known
    total = sums(graph.edge[known], graph.batch.reward[known], graph.n_edges)
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


@dataclass(frozen=True, eq=False)
class System:
    """V(u) = constant(u) + gamma sum_e weight(e) V(dst(e)), or with `maximum` max_e [edge_reward(e) + gamma V(dst(e))].

    Over the edges with `use` that leave `active` nodes (CSR: indptr, edge_dst); `start` holds the values of sinks.
    """

    indptr: IntArray
    edge_src: IntArray
    edge_dst: IntArray
    use: BoolArray
    weight: FloatArray
    edge_reward: FloatArray
    constant: FloatArray
    active: BoolArray
    start: FloatArray
    maximum: bool


def system(graph: TrajectoryGraph, weighting: str, rewards: str) -> System:
    """The equations of a graph without shrinkage."""
    reward = edge_rewards(graph, rewards)
    maximum = weighting == "max"
    weight = edge_weights(graph, "visits" if maximum else weighting)
    return System(
        indptr=graph.indptr,
        edge_src=graph.edge_src,
        edge_dst=graph.edge_dst,
        use=graph.count_known > 0,
        weight=weight,
        edge_reward=reward,
        constant=sums(graph.edge_src, weight * reward, graph.n_nodes),
        active=active_nodes(graph),
        start=start_values(graph, rewards),
        maximum=maximum,
    )


def shrunk(problem: System, graph: TrajectoryGraph, prior: float, v: FloatArray) -> System:
    """The equations with `prior` visits of the group's mean added: [n B(u) + c m] / (n + c), m from the unshrunk `v`."""
    at = graph.src[graph.known]
    group = graph.node_group[at]
    n_groups = graph.batch.n_groups
    mean = sums(group, v[at], n_groups) / np.maximum(np.bincount(group, minlength=n_groups), 1)
    keep = graph.visits_known / (graph.visits_known + prior)
    return replace(
        problem,
        weight=problem.weight * keep[graph.edge_src],
        constant=keep * problem.constant + (1.0 - keep) * mean[graph.node_group],
    )
