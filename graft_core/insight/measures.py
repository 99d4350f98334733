"""Counts and graph measures of a batch, as plain data (method.md sec. 6 and 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from graft_core.credit.estimate import graph_of
from graft_core.errors import GroupMissingError
from graft_core.graph import TrajectoryGraph
from graft_core.rollouts import BoolArray, IntArray, RolloutBatch
from graft_core.states import state_keys
from graft_core.states.base import factorise


def counts(batch: RolloutBatch) -> dict[str, Any]:
    """Rollouts, groups and outcomes: what can be said without a graph."""
    sizes = np.bincount(batch.group, minlength=batch.n_groups)
    return {
        "rollouts": batch.n_rollouts,
        "groups": batch.n_groups,
        "group_sizes": {str(size): n for size, n in sorted(Counter(sizes.tolist()).items())},
        "steps": batch.n_steps,
        "rollouts_without_steps": int((batch.lengths == 0).sum()),
        "successes": int((batch.success == 1).sum()),
        "failures": int((batch.success == 0).sum()),
        "unknown": int(np.isnan(batch.success).sum()),
        "mixed_groups": int(mixed_groups(batch).sum()),
        "success_when": f"outcome >= {batch.success_threshold:g}",
    }


def mixed_groups(batch: RolloutBatch) -> BoolArray:
    """Whether each group holds both a success and a failure. bool[n_groups]."""
    good = np.bincount(batch.group[batch.success == 1], minlength=batch.n_groups)
    bad = np.bincount(batch.group[batch.success == 0], minlength=batch.n_groups)
    return (good > 0) & (bad > 0)


def distinct_per(keys: IntArray, members: IntArray, n_keys: int) -> IntArray:
    """How many distinct members each key has. int64[n_keys]."""
    width = int(members.max(initial=0)) + 1
    return np.bincount(factorise(keys * width + members)[1] // width, minlength=n_keys)


def remerge_index(graph: TrajectoryGraph) -> float:
    """Share of ordinary nodes with two or more distinct incoming (state, action) pairs, a first state counting as one.

    All rollouts, pooled over the batch; 0 = a forest; NaN without nodes. The graph should use `split` sinks.
    """
    if graph.n_ordinary == 0:
        return float("nan")
    inner = graph.edge_dst < graph.n_ordinary
    pairs = distinct_per(graph.edge_dst[inner], graph.edge_pair[inner], graph.n_nodes)[: graph.n_ordinary]
    starts = np.zeros(graph.n_ordinary, dtype=np.int64)
    starts[np.unique(graph.start[graph.start >= 0])] = 1
    return float(np.mean(pairs + starts >= 2))


def sink_conflicts(graph: TrajectoryGraph) -> dict[str, Any]:
    """Both conflicts a final state can have, by state and by rollouts concerned, with the states (method.md sec. 2).

    `outcomes`: one final state with different known outcomes. `left_again`: a final state that another rollout leaves.
    """
    batch = graph.batch
    ends, state, n_states, again_rollout = _finals(graph)
    known = batch.known[ends]
    low, high = np.full(n_states, np.inf), np.full(n_states, -np.inf)
    np.minimum.at(low, state[known], batch.outcome[ends][known])
    np.maximum.at(high, state[known], batch.outcome[ends][known])
    different = high > low
    again = np.bincount(state[again_rollout], minlength=n_states) > 0
    return {
        "outcomes_states": int(different.sum()),
        "outcomes_rollouts": int(different[state].sum()),
        "left_again_states": int(again.sum()),
        "left_again_rollouts": int(again_rollout.sum()),
        "states": [
            _conflict(batch, ends[state == c], bool(different[c]), bool(again[c]))
            for c in np.flatnonzero(different | again).tolist()
        ],
    }


def _finals(graph: TrajectoryGraph) -> tuple[IntArray, IntArray, int, BoolArray]:
    """Rollout rows with a final state, its code, how many there are, and whether another rollout leaves that state."""
    batch = graph.batch
    step_key, final_key = state_keys(batch, graph.rules)
    width = int(max(step_key.max(initial=-1), final_key.max(initial=-1))) + 2
    ends = np.flatnonzero((final_key >= 0) & (batch.lengths > 0))
    left = batch.group[batch.step_rollout] * width + step_key
    ended = batch.group[ends] * width + final_key[ends]
    codes, distinct = factorise(np.concatenate([ended, left]))
    state, leaving = codes[: ends.size], codes[ends.size :]
    pairs = factorise(leaving * batch.n_rollouts + batch.step_rollout)[1]
    leavers = np.bincount(pairs // max(batch.n_rollouts, 1), minlength=distinct.size)
    own = np.isin(state * batch.n_rollouts + ends, pairs)
    again: BoolArray = leavers[state] - own > 0
    state, kept = factorise(state)
    return ends, state, kept.size, again


def _conflict(batch: RolloutBatch, rows: IntArray, different: bool, again: bool) -> dict[str, Any]:
    return {
        "group_id": batch.group_ids[int(batch.group[rows[0]])],
        "final_observation": batch.text(int(batch.final_observation[rows[0]])),
        "rollouts": [batch.rollout_ids[int(i)] for i in rows],
        "outcomes": sorted({float(o) for o in batch.outcome[rows] if o == o}),
        "different_outcomes": different,
        "left_again": again,
    }


def describe(
    batch: RolloutBatch, rules: Sequence[str] = ("exact",), actions: str = "parsed", sinks: str = "split"
) -> dict[str, Any]:
    """Measures of method.md sec. 6 and 7 under a state and an action rule, as plain data.

    Without chosen groups only the counts are given, and `graph` says why the rest is missing.
    """
    described = counts(batch)
    try:
        graph = graph_of(batch, rules, actions, sinks)
    except GroupMissingError as error:
        return {**described, "graph": None, "graph_missing": str(error)}
    conflicts = sink_conflicts(graph)
    steps_at = graph.visits
    rollouts_at = graph.node_rollouts
    n = max(batch.n_steps, 1)
    pair_rollouts = distinct_per(graph.pair, batch.step_rollout, graph.n_pairs)
    stochastic = distinct_per(graph.edge_pair, graph.edge_dst, graph.n_pairs) > 1
    described["graph"] = {
        "rules": list(rules),
        "actions": actions,
        "sinks": sinks,
        "nodes": graph.n_ordinary,
        "sink_nodes": graph.n_nodes - graph.n_ordinary,
        "edges": graph.n_edges,
        "merge_rate": 1.0 - graph.n_ordinary / n,
        "group_size_2": float((steps_at[graph.src] >= 2).sum() / n),
        "shared": float((rollouts_at[graph.src] >= 2).sum() / n),
        "shared_actions": float((pair_rollouts[graph.pair] >= 2).sum() / n),
        "mean_group_size": float(steps_at[: graph.n_ordinary].mean()) if graph.n_ordinary else float("nan"),
        "remerge_index": remerge_index(graph if sinks == "split" else graph_of(batch, rules, actions, "split")),
        "stochastic_pairs": float(stochastic.mean()) if graph.n_pairs else float("nan"),
        "task_roots": sum(graph.needs_root(g) for g in range(batch.n_groups)),
        "sink_conflicts": {key: value for key, value in conflicts.items() if key != "states"},
    }
    return described
