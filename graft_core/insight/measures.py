"""Counts and graph measures of a batch, as plain data (method.md sec. 6 and 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from graft_core.credit.estimate import graph_of
from graft_core.errors import GroupMissingError, NotComputableError, UsageError
from graft_core.graph import TrajectoryGraph
from graft_core.insight.merges import distinct_per, merge_warnings, origins, shared_actions
from graft_core.insight.propagation import propagation_graph, propagation_visits
from graft_core.rollouts import BoolArray, IntArray, RolloutBatch
from graft_core.settings import LOOK, Settings
from graft_core.states import join_rules, state_keys
from graft_core.states.base import factorise
from graft_core.states.carry_noop import DEFAULT as NOTHING
from graft_core.states.carry_noop import says_nothing
from graft_core.states.compose import split_spec


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
        "success_when": batch.memo.get("success_when") or f"outcome >= {batch.success_threshold:g}",
    }


def mixed_groups(batch: RolloutBatch) -> BoolArray:
    """Whether each group holds both a success and a failure. bool[n_groups]."""
    good = np.bincount(batch.group[batch.success == 1], minlength=batch.n_groups)
    bad = np.bincount(batch.group[batch.success == 0], minlength=batch.n_groups)
    return (good > 0) & (bad > 0)


def remerge_index(graph: TrajectoryGraph) -> float:
    """Share of ordinary nodes with two or more distinct incoming (state, action) pairs, a first state counting as one.

    All rollouts, pooled over the batch; 0 = a forest; NaN without nodes. The graph should use `split` sinks.
    """
    if graph.n_ordinary == 0:
        return float("nan")
    return float(np.mean(origins(graph) >= 2))


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


def graph_measures(graph: TrajectoryGraph) -> dict[str, Any]:
    """The measures that a rule is judged by, as plain data; shares are of steps, NaN where there are none.

    nodes, merge_rate (1 - nodes / steps), group_size_2 and shared (steps whose node two or more steps, or rollouts, have),
    shared_actions (the same for (node, action) and rollouts), mean_group_size, remerge_index (`split` graph), `propagation`:
    over steps of known outcome the mean degree by graph and by visits, and the share of steps whose degree is 1.
    """
    n = graph.batch.n_steps or float("nan")  # shares of nothing are undefined
    split = graph if graph.sinks == "split" else graph_of(graph.batch, graph.rules, graph.actions, "split")
    known = graph.src[graph.known]
    degrees = {"graph": propagation_graph(graph)[known], "visits": propagation_visits(graph)[known]}
    return {
        "nodes": graph.n_ordinary,
        "merge_rate": 1.0 - graph.n_ordinary / n,
        "group_size_2": float((graph.visits[graph.src] >= 2).sum() / n),
        "shared": float((graph.node_rollouts[graph.src] >= 2).sum() / n),
        "shared_actions": shared_actions(graph, graph.actions),
        "mean_group_size": _mean(graph.visits[: graph.n_ordinary]),
        "remerge_index": remerge_index(split),
        "propagation": {name: _mean(degree) for name, degree in degrees.items()}
        | {f"{name}_one": _mean(degree == 1) for name, degree in degrees.items()},
    }


def _mean(values: IntArray | BoolArray) -> float:
    return float(np.mean(values)) if values.size else float("nan")


def describe(
    batch: RolloutBatch, rules: Sequence[str] = ("exact",), actions: str = "parsed", sinks: str = "split"
) -> dict[str, Any]:
    """Measures of method.md sec. 6 and 7 under a state and an action rule, as plain data.

    Without chosen groups only the counts are given, and `graph` says why the rest is missing. `graph` also holds `warnings`
    (code, sentence, count, where) about what the rules merge.
    """
    described = counts(batch)
    try:
        graph = graph_of(batch, rules, actions, sinks)
    except GroupMissingError as error:
        return {**described, "graph": None, "graph_missing": str(error)}
    conflicts = sink_conflicts(graph)
    stochastic = distinct_per(graph.edge_pair, graph.edge_dst, graph.n_pairs) > 1
    described["graph"] = {
        "rules": list(rules),
        "actions": actions,
        "sinks": sinks,
        "sink_nodes": graph.n_nodes - graph.n_ordinary,
        "edges": graph.n_edges,
        **graph_measures(graph),
        "stochastic_pairs": _mean(stochastic),
        "task_roots": sum(graph.needs_root(g) for g in range(batch.n_groups)),
        "sink_conflicts": {key: value for key, value in conflicts.items() if key != "states"},
        "warnings": [warning.as_dict() for warning in merge_warnings(graph)],
    }
    return described


def alternatives(batch: RolloutBatch, rules: Sequence[str] = ("exact",)) -> list[tuple[str, ...]]:
    """Rules worth comparing with the chosen ones, which come first: looser, stricter, and by what the file offers."""
    chosen = tuple(rules)
    ready: list[tuple[str, ...]] = [chosen, ("exact",), ("normalised",)]
    if batch.steps.column("state").null_count == 0 and batch.n_steps:
        ready.append(("field:state",))
    if any(split_spec(spec, "")[0] in ("prefix", "history", "actions") for spec in chosen):
        return list(dict.fromkeys([*ready, ("prefix",)]))
    more = ["guard", "history:1", "actions:1"]
    if batch.steps.column("admissible").null_count < batch.n_steps:
        more.append("action_set")
    kept = [spec for spec in chosen if spec != "exact"]
    if "carry_noop" not in chosen and says_nothing(batch.text_array, NOTHING).true_count:
        ready.append(("carry_noop", *kept))
    ready += [(*kept, word) for word in more if word not in chosen]
    return list(dict.fromkeys([*ready, ("prefix",)]))


def rule_table(
    batch: RolloutBatch,
    rules: Sequence[Sequence[str]] | None = None,
    settings: Settings = LOOK,
    with_chance: bool = False,
) -> list[dict[str, Any]]:
    """One row per rule: the measures of `graph_measures`, good steps in failures, and with_chance also what luck would give.

    rules: the rules to compare (default: `alternatives` to the settings'). A row's `rules` is the rules' word, `chosen` marks
    the settings' own. A rule that cannot be applied has only `error`, one sentence. `good_steps` is None where the estimator
    lacks something. Raises `GroupMissingError` where groups were only assumed.
    """
    batch.require_groups()
    table = []
    for specs in alternatives(batch, settings.rules) if rules is None else rules:
        row: dict[str, Any] = {"rules": join_rules(specs), "chosen": tuple(specs) == settings.rules}
        try:
            here = settings.with_options(rules=tuple(specs))
            row |= graph_measures(graph_of(batch, **here.graph_words))
            row |= good_and_chance(batch, here, with_chance)
        except UsageError as error:
            row["error"] = str(error)
        table.append(row)
    return table


def good_and_chance(batch: RolloutBatch, settings: Settings, with_chance: bool) -> dict[str, Any]:
    """`good_steps` in failures and, if asked for, `chance` (mean, low, high, beyond_luck); None where undefined."""
    from graft_core.insight.findings import good_positions, unnormalised

    found: dict[str, Any] = {"good_steps": None}
    plain = unnormalised(settings)
    try:
        found["good_steps"] = int(good_positions(batch, plain.credit(batch, plain.estimator)[batch.order]).size)
        if with_chance:
            from graft_core.insight.chance import chance

            found["chance"] = chance(batch, settings).as_dict()
    except NotComputableError:
        found["chance"] = None
    return found
