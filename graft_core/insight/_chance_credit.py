"""Credit under many outcome vectors at once.

For a fixed graph the value of every ordinary node is linear in the rollouts' outcomes: the last transition of a rollout
leads to its own outcome, V(u) = sum_i H(u, i) R_i, whatever the sink rule calls the place it ends in (under `merge` an end
is worth the mean outcome of the rollouts that end there, linear as well). So one solve with many right-hand sides
gives V, and graph TD from it, under every shuffle. Other estimators are computed anew per shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graft_core.constants import NO_TEXT
from graft_core.credit.estimate import graph_of
from graft_core.errors import InputError
from graft_core.graph import TrajectoryGraph, _ends, sorted_factorise
from graft_core.rollouts import BoolArray, FloatArray, IntArray, RolloutBatch
from graft_core.settings import Settings
from graft_core.states.base import factorise
from graft_core.values.solve import active_nodes, edge_weights, solve_values

BLOCK = 12_000_000  # numbers held at a time (about 100 MB) before a batch is done in several blocks of groups
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Deal:
    """Outcomes as observed (column 0) and dealt anew within each group (the other columns).

    outcome float64[R, S + 1], NaN = unknown; failed bool[R, S + 1]: known and not a success.
    """

    outcome: FloatArray
    success: FloatArray
    failed: BoolArray

    @property
    def columns(self) -> int:
        return int(self.outcome.shape[1])


@dataclass(frozen=True, eq=False)
class Block:
    """Credit of classes of steps (steps whose credit is one and the same number under every deal).

    credit float64[C, S + 1]; steps: path positions sorted by class, class c's at starts[c]:starts[c + 1].
    """

    credit: FloatArray
    steps: IntArray
    starts: IntArray


def deal(batch: RolloutBatch, shuffles: int, seed: int) -> Deal:
    """Deal (outcome, success) pairs anew among the known rollouts of each group, `shuffles` times."""
    rows = np.flatnonzero(batch.known)
    rows = rows[np.argsort(batch.group[rows], kind="stable")]
    source = np.repeat(np.arange(batch.n_rollouts)[:, None], shuffles + 1, axis=1)
    keys = np.random.default_rng(seed).random((rows.size, shuffles)) + batch.group[rows][:, None]
    source[rows[:, None], np.arange(1, shuffles + 1)] = rows[np.argsort(keys, axis=0, kind="stable")]
    success = batch.success[source]
    return Deal(batch.outcome[source], success, batch.known[:, None] & (success == 0))


def linear(settings: Settings) -> bool:
    """Whether credit A is graph TD with linear values, so that all shuffles can be solved at once."""
    return settings.estimator == "graft_td" and settings.weighting != "max"


# -- all shuffles at once ---------------------------------------------------------------------------------------------


def td_blocks(batch: RolloutBatch, settings: Settings, dealt: Deal) -> Iterator[Block]:
    """Graph TD of every class of steps under every deal, in blocks of groups. Raises as `solve_values` does."""
    graph = graph_of(batch, **settings.graph_words)
    options = settings.resolved("graft_td")
    solve_values(graph, gamma=options["gamma"], **settings.value_words)  # the same errors, in the same words
    ends = end_values(graph, dealt.outcome)
    known = np.flatnonzero(batch.step_known)
    group = batch.group[batch.step_rollout[known]]
    per_group = np.bincount(group, minlength=batch.n_groups) * dealt.columns * 3
    chunk = np.cumsum(per_group) // BLOCK
    for number in np.unique(chunk[np.unique(group)]).tolist():
        yield _td_block(graph, settings, ends, known[chunk[group] == number], chunk == number)


def end_values(graph: TrajectoryGraph, outcome: FloatArray) -> FloatArray:
    """What the end of each rollout is worth: its outcome, under `merge` the mean of those that end in the same place.

    outcome, result: float64[R, S], NaN for rollouts of unknown outcome.
    """
    rows = np.flatnonzero(graph.batch.known & (graph.end >= 0))
    if graph.sinks != "merge" or not rows.size:
        return outcome
    from scipy import sparse

    place = factorise(graph.end[rows])[0]
    member = sparse.csr_array((np.ones(rows.size), (place, np.arange(rows.size))))
    mean = (member @ outcome[rows]) / member.sum(axis=1)[:, None]
    ends = outcome.copy()
    ends[rows] = mean[place]
    return ends


def _td_block(
    graph: TrajectoryGraph, settings: Settings, ends: FloatArray, steps: IntArray, groups: BoolArray
) -> Block:
    from scipy import sparse

    options = settings.resolved("graft_td")
    gamma = options["gamma"]
    local, v = _values(graph, settings, gamma, ends, steps, groups)
    goes_on = ~graph.node_is_sink[graph.dst[steps]]
    # one class per edge to an ordinary node; a last step has its own outcome and is a class of its own
    key = np.where(goes_on, graph.edge[steps], graph.n_edges + graph.batch.step_rollout[steps])
    cls, distinct = factorise(key)
    first = np.full(distinct.size, -1, dtype=np.int64)
    first[cls[::-1]] = steps[::-1]
    credit = np.empty((distinct.size, ends.shape[1]))
    on = ~graph.node_is_sink[graph.dst[first]]
    credit[on] = gamma * v[local[graph.dst[first[on]]]]
    credit[~on] = gamma * ends[graph.batch.step_rollout[first[~on]]]
    credit -= v[local[graph.src[first]]]
    if options["per"] == "action":
        pair, distinct = factorise(graph.pair[steps])
        share = 1.0 / np.bincount(pair)[pair]
        credit = sparse.csr_array((share, (pair, cls)), shape=(distinct.size, credit.shape[0])) @ credit
        cls = pair
    return Block(credit, steps[np.argsort(cls, kind="stable")], _starts(cls, credit.shape[0]))


def _starts(cls: IntArray, n: int) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.bincount(cls, minlength=n))]).astype(np.int64)


def _values(
    graph: TrajectoryGraph, settings: Settings, gamma: float, ends: FloatArray, steps: IntArray, groups: BoolArray
) -> tuple[IntArray, FloatArray]:
    """(place of each node in the block, V of the block's ordinary nodes under every deal)."""
    from scipy import sparse

    from graft_core.insight import _chance_kernels as kernels
    from graft_core.values._kernels import strong_components

    inside = active_nodes(graph) & groups[graph.node_group]
    local = np.full(graph.n_nodes, -1, dtype=np.int64)
    local[inside] = np.arange(int(inside.sum()))
    edges = np.flatnonzero(inside[graph.edge_src])
    full = edge_weights(graph, settings.weighting)
    per_step = np.divide(full, graph.count_known, out=np.zeros(full.size), where=graph.count_known > 0)
    weight = np.where(graph.node_is_sink[graph.edge_dst], 0.0, full)[edges]
    src, dst = local[graph.edge_src[edges]], np.maximum(local[graph.edge_dst[edges]], 0)
    n = int(inside.sum())
    indptr = _starts(src, n)
    last = steps[graph.node_is_sink[graph.dst[steps]]]
    into = sparse.csr_array(
        (gamma * per_step[graph.edge[last]], (local[graph.src[last]], graph.batch.step_rollout[last])),
        shape=(n, graph.batch.n_rollouts),
    )
    known_ends = np.where(np.isnan(ends), 0.0, ends)  # rollouts of unknown outcome have no entry in `into`
    constant: FloatArray = np.ascontiguousarray(into @ known_ends)
    nodes, starts = strong_components(indptr, dst, weight > 0, np.ones(n, dtype=bool))

    def solve(weight: FloatArray, constant: FloatArray) -> FloatArray:
        v = constant.copy()
        if not kernels.solve_columns(nodes, starts, indptr, dst, weight, gamma, v):
            raise InputError(f"values did not settle with gamma {gamma:g}; choose a smaller gamma")
        return v

    v = solve(weight, constant)
    if settings.prior:
        code = factorise(graph.node_group[graph.src[steps]])[0]
        visits = sparse.csr_array(
            (1.0 / np.bincount(code)[code], (code, local[graph.src[steps]])), shape=(int(code.max(initial=-1)) + 1, n)
        )
        mean = visits @ v
        of_node = np.empty(n, dtype=np.int64)
        of_node[local[graph.src[steps]]] = code
        seen = graph.visits_known[inside]
        keep = seen / (seen + settings.prior)
        v = solve(weight * keep[src], keep[:, None] * constant + (1.0 - keep)[:, None] * mean[of_node])
    return local, v


# -- one shuffle after the other --------------------------------------------------------------------------------------

INDEPENDENT = ["known", "group_ids", "group", "rollout_ids", "truncated", "terminated", "final_observation", "final_state", "lengths", "step_rollout_rows", "order", "in_path_order", "step_rollout", "offsets", "rank", "remaining", "step_index", "step_known", "observation", "action", "action_text", "reward", "text_array"]
"""What a batch has worked out that does not depend on who got which outcome."""


def with_outcomes(batch: RolloutBatch, outcome: FloatArray, success: FloatArray) -> RolloutBatch:
    """The same rollouts with other outcomes and success flags (NaN = unknown, in the same places). Nothing is copied."""
    import pyarrow as pa

    def put(table: pa.Table, name: str, values: Any) -> pa.Table:
        at = table.schema.get_field_index(name)
        return table.set_column(at, table.schema.field(at), values)

    rollouts = put(batch.rollouts, "outcome", pa.array(outcome, from_pandas=True))
    rollouts = put(rollouts, "success", pa.array(success == 1, mask=np.isnan(success)))
    other = RolloutBatch(rollouts, batch.steps, batch.texts, batch.name, batch.success_threshold)
    for name in INDEPENDENT:
        other.__dict__[name] = getattr(batch, name)
    return other


def credit_again(
    batch: RolloutBatch, settings: Settings, dealt: Deal, progress: Progress | None = None
) -> FloatArray:
    """Credit A of every step under every deal, estimated anew each time. float64[n_steps, S + 1], path order."""
    from graft_core.states import state_keys

    final_key = state_keys(batch, settings.rules)[1]
    graph = graph_of(batch, **settings.graph_words)
    credit = np.empty((batch.n_steps, dealt.columns))
    for s in range(dealt.columns):
        other = with_outcomes(batch, dealt.outcome[:, s], dealt.success[:, s])
        key = ("graph", settings.rules, settings.actions, settings.sinks)
        other.memo[key] = graph if s == 0 else _with_sinks(graph, other, final_key)
        credit[:, s] = settings.credit(other, settings.estimator)[batch.order]
        if progress is not None and s:
            progress(s, dealt.columns - 1)
    return credit


def _with_sinks(graph: TrajectoryGraph, batch: RolloutBatch, final_key: IntArray) -> TrajectoryGraph:
    """The same graph with the ends that the batch's outcomes make; everything before the ends is shared."""
    n, some = graph.n_ordinary, batch.lengths > 0
    ends = _ends(batch, final_key, np.where(graph.end < n, graph.end, NO_TEXT), some, graph.sinks, n)
    n_nodes = n + ends.group.size
    dst = graph.dst.copy()
    dst[batch.offsets[1:][some] - 1] = ends.node[some]
    edge, edge_key = sorted_factorise(graph.pair * max(n_nodes, 1) + dst)
    edge_pair = edge_key // max(n_nodes, 1)
    edge_src = graph.pair_node[edge_pair]
    return replace(
        graph,
        batch=batch,
        dst=dst,
        edge=edge,
        node_group=np.concatenate([graph.node_group[:n], ends.group]),
        node_is_sink=np.arange(n_nodes) >= n,
        node_text=np.concatenate([graph.node_text[:n], ends.text]),
        sink_value=np.concatenate([np.full(n, np.nan), ends.value]),
        edge_src=edge_src,
        edge_dst=edge_key % max(n_nodes, 1),
        edge_pair=edge_pair,
        count=np.bincount(edge, minlength=edge_key.size),
        count_known=np.bincount(edge[batch.step_known], minlength=edge_key.size),
        indptr=_starts(edge_src, n_nodes),
        memo={},
    )
