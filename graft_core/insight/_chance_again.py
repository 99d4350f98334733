"""Any estimator under many outcome vectors: estimated anew for each, on a batch that shares all but the outcomes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from graft_core.constants import NO_TEXT, SIGN_TOLERANCE
from graft_core.credit.estimate import estimators, graph_of
from graft_core.errors import InputError
from graft_core.graph import TrajectoryGraph, _ends, sorted_factorise
from graft_core.insight._chance_deal import Block, Deal, Progress
from graft_core.rollouts import FloatArray, IntArray, RolloutBatch
from graft_core.settings import Settings
from graft_core.states.base import factorise, pair_codes

INDEPENDENT = (
    "known", "group_ids", "group", "rollout_ids", "truncated", "terminated", "final_observation", "final_state", "lengths",
    "step_rollout_rows", "order", "in_path_order", "step_rollout", "offsets", "rank", "remaining", "step_index", "step_known",
    "observation", "action", "action_text", "reward", "text_array",
)  # fmt: skip
"""What a batch has worked out that does not depend on who got which outcome."""


def with_outcomes(batch: RolloutBatch, outcome: FloatArray, success: FloatArray) -> RolloutBatch:
    """The same rollouts with other outcomes and success flags, NaN in the same places as before. Steps are shared."""
    import pyarrow as pa

    def put(table: pa.Table, name: str, values: Any) -> pa.Table:
        at = table.schema.get_field_index(name)
        return table.set_column(at, table.schema.field(at), values)

    rollouts = put(batch.rollouts, "outcome", pa.array(outcome, mask=np.isnan(outcome)))
    rollouts = put(rollouts, "success", pa.array(success == 1, mask=np.isnan(success)))
    other = RolloutBatch(rollouts, batch.steps, batch.texts, batch.name, batch.success_threshold)
    for name in INDEPENDENT:
        other.__dict__[name] = getattr(batch, name)
    return other


def credit_again(
    batch: RolloutBatch, settings: Settings, dealt: Deal, progress: Progress | None = None
) -> FloatArray:
    """Credit A of every step under every deal. float64[n_steps, S + 1], path order, NaN where undefined."""
    on_graph = estimators()[settings.estimator].uses == "graph"
    graph = graph_of(batch, **settings.graph_words) if on_graph else None
    final_key = _final_key(batch, settings) if on_graph else None
    credit = np.empty((batch.n_steps, dealt.columns))
    for s in range(dealt.columns):
        other = with_outcomes(batch, dealt.outcome[:, s], dealt.success[:, s])
        if graph is not None and final_key is not None:
            key = ("graph", settings.rules, settings.actions, settings.sinks)
            other.memo[key] = _with_ends(graph, other, final_key)
        credit[:, s] = settings.credit(other, settings.estimator)[batch.order]
        if progress is not None and s:
            progress(s, dealt.columns - 1)
    return credit


def clearness(batch: RolloutBatch, settings: Settings, dealt: Deal) -> FloatArray | None:
    """Graph TD of every step in standard errors under every deal, on the graph of the settings; None where none is used.

    float64[n_steps, S + 1]. gamma and `per` as the estimator has them. Values by maximum have no such error: those by
    visits stand in.
    """
    from graft_core.insight._chance_td import td_blocks

    if estimators()[settings.estimator].uses != "graph":
        return None
    own = settings.resolved(settings.estimator)
    td = replace(
        settings, estimator="graft_td", solver="direct", weighting=settings.weighting.replace("max", "visits")
    ).with_options(gamma=own.get("gamma", 0.99), per=own.get("per", "transition"))
    clear = np.zeros((batch.n_steps, dealt.columns))
    try:
        blocks = list(td_blocks(batch, td, dealt))
    except InputError:  # gamma 1 may have no values where the estimator, which needs none, has credits
        blocks = list(td_blocks(batch, td.with_options(gamma=0.99), dealt))
    for block in blocks:
        assert block.clear is not None
        clear[block.steps] = block.of_steps(block.clear)
    return clear


def block_of(batch: RolloutBatch, credit: FloatArray, clear: FloatArray | None) -> Block:
    """Classes of steps of one group whose credits, and how clear they are, agree (to 1e-9) under every deal."""
    steps = np.flatnonzero(~np.isnan(credit).any(axis=1))
    cls = factorise(batch.group[batch.step_rollout[steps]])[0]
    for rows in (credit, clear):
        if rows is not None:
            cls = pair_codes(cls, _code(rows[steps]))
    cls, distinct = factorise(cls)
    steps, cls = steps[np.argsort(cls, kind="stable")], np.sort(cls)
    starts: IntArray = np.searchsorted(cls, np.arange(distinct.size + 1))
    first = steps[starts[:-1]]
    return Block(credit[first], None if clear is None else clear[first], steps, starts)


def _code(rows: FloatArray) -> IntArray:
    """Equal codes for equal rows: two different ones have the same random mixture with chance next to nothing."""
    mixture = rows @ np.random.default_rng(0).uniform(0.5, 1.5, rows.shape[1])
    return np.round(mixture / (SIGN_TOLERANCE * rows.shape[1])).astype(np.int64)


def _final_key(batch: RolloutBatch, settings: Settings) -> IntArray:
    from graft_core.states import state_keys

    return state_keys(batch, settings.rules)[1]


def _with_ends(graph: TrajectoryGraph, batch: RolloutBatch, final_key: IntArray) -> TrajectoryGraph:
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
        indptr=np.concatenate([[0], np.cumsum(np.bincount(edge_src, minlength=n_nodes))]).astype(np.int64),
        memo={},
    )
