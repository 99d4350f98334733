"""The trajectory graph: all groups of a batch in one set of arrays (GRAFT, arXiv 2609.28963 sec. 3.1; method.md sec. 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from graft_core.constants import NO_TEXT
from graft_core.options import SINKS
from graft_core.rollouts import BoolArray, FloatArray, IntArray, RolloutBatch
from graft_core.states import action_codes, state_keys
from graft_core.states.base import factorise, sorted_pairs

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, eq=False)
class TrajectoryGraph:
    """Merged rollouts of every group. N nodes, E edges (u, a, v), P pairs (u, a), n steps; steps in path order.

    Per step: src, dst (node), pair, edge. Per node: node_group, node_is_sink, node_text (text id of the first raw
    observation seen there, -1 = none), sink_value (V of a sink, NaN for ordinary nodes and for sinks that only
    rollouts of unknown outcome reach), visits / visits_known (step instances leaving it; for sinks: rollouts ending
    there). Edges are sorted by (u, a, v): edge_src, edge_dst, edge_pair, count, count_known; `indptr` is CSR over
    edges by source. Pairs are sorted by (u, a): pair_node, pair_action (action key), pair_text (text id to show),
    pair_count, pair_count_known. Per rollout row: final_node (the ordinary node phi(s_T), which some step leaves, -1
    where there is none), whatever the sink rule. "known" counts only rollouts of known outcome.
    """

    batch: RolloutBatch
    rules: tuple[str, ...]
    actions: str
    sinks: str
    src: IntArray
    dst: IntArray
    pair: IntArray
    edge: IntArray
    node_group: IntArray
    node_is_sink: BoolArray
    node_text: IntArray
    sink_value: FloatArray
    edge_src: IntArray
    edge_dst: IntArray
    edge_pair: IntArray
    count: IntArray
    count_known: IntArray
    indptr: IntArray
    pair_node: IntArray
    pair_action: IntArray
    pair_text: IntArray
    final_node: IntArray
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def n_nodes(self) -> int:
        return int(self.node_group.size)

    @property
    def n_edges(self) -> int:
        return int(self.edge_src.size)

    @property
    def n_pairs(self) -> int:
        return int(self.pair_node.size)

    @property
    def n_ordinary(self) -> int:
        """Nodes that are not sinks; they come first."""
        return self.n_nodes - int(self.node_is_sink.sum())

    @cached_property
    def known(self) -> BoolArray:
        """Whether the outcome of each step's rollout is known."""
        return self.batch.step_known

    @cached_property
    def edge_text(self) -> IntArray:
        """Text id of the action to show for each edge."""
        return self.pair_text[self.edge_pair]

    @cached_property
    def pair_count(self) -> IntArray:
        return np.bincount(self.pair, minlength=self.n_pairs)

    @cached_property
    def pair_count_known(self) -> IntArray:
        if self.known.all():
            return self.pair_count
        return np.bincount(self.pair[self.known], minlength=self.n_pairs)

    @cached_property
    def visits(self) -> IntArray:
        """Step instances leaving each node; for sinks the rollouts that end there."""
        leaving = np.bincount(self.src, minlength=self.n_nodes)
        ending = np.bincount(self.dst, minlength=self.n_nodes)
        return np.where(self.node_is_sink, ending, leaving)

    @cached_property
    def visits_known(self) -> IntArray:
        if self.known.all():
            return self.visits
        leaving = np.bincount(self.src[self.known], minlength=self.n_nodes)
        ending = np.bincount(self.dst[self.known], minlength=self.n_nodes)
        return np.where(self.node_is_sink, ending, leaving)

    @cached_property
    def node_rollouts(self) -> IntArray:
        """Distinct rollouts with a step leaving each node; for sinks the rollouts that end there."""
        return self._distinct_rollouts(np.ones(self.src.size, dtype=bool))

    @cached_property
    def node_rollouts_known(self) -> IntArray:
        """The same among rollouts of known outcome: the support of a value."""
        return self._distinct_rollouts(self.known)

    def _distinct_rollouts(self, chosen: BoolArray) -> IntArray:
        width = self.batch.n_rollouts + 1
        at = np.where(self.node_is_sink[self.dst], self.dst, -1)
        keys = np.concatenate([self.src[chosen], at[chosen & (at >= 0)]]) * width
        keys += np.concatenate([self.batch.step_rollout[chosen], self.batch.step_rollout[chosen & (at >= 0)]])
        distinct = factorise(keys)[1]
        return np.bincount(distinct // width, minlength=self.n_nodes)

    @cached_property
    def start(self) -> IntArray:
        """First node of each rollout row, -1 for rollouts without steps."""
        start = np.full(self.batch.n_rollouts, -1, dtype=np.int64)
        some = self.batch.lengths > 0
        start[some] = self.src[self.batch.offsets[:-1][some]]
        return start

    @cached_property
    def end(self) -> IntArray:
        """Last node of each rollout row, -1 for rollouts without steps."""
        end = np.full(self.batch.n_rollouts, -1, dtype=np.int64)
        some = self.batch.lengths > 0
        end[some] = self.dst[self.batch.offsets[1:][some] - 1]
        return end

    def needs_root(self, group: int) -> bool:
        """Whether the group's rollouts do not share their first node, so that a task root is drawn before them."""
        starts = self.start[(self.batch.group == group) & (self.start >= 0)]
        return bool(np.unique(starts).size > 1)

    def root_value(self, group: int, v: FloatArray) -> float:
        """Value of the task root: mean of V(s_0) over rollouts of known outcome, no discount; NaN if there are none."""
        starts = self.start[(self.batch.group == group) & (self.start >= 0) & self.batch.known]
        return float(np.mean(v[starts])) if starts.size else float("nan")

    def to_networkx(self, group: int | str) -> nx.MultiDiGraph[int]:
        """One group (code or id) as a networkx multigraph of node and edge numbers, texts and counts as attributes."""
        import networkx as nx

        code = group if isinstance(group, int) else self.batch.group_ids.index(group)
        text = self.batch.text
        made: nx.MultiDiGraph[int] = nx.MultiDiGraph(group=self.batch.group_ids[code])
        for u in np.flatnonzero(self.node_group == code).tolist():
            made.add_node(
                u, text=text(int(self.node_text[u])), sink=bool(self.node_is_sink[u]), visits=int(self.visits[u]),
                outcome=float(self.sink_value[u]),
            )
        for e in np.flatnonzero(self.node_group[self.edge_src] == code).tolist():
            made.add_edge(
                int(self.edge_src[e]), int(self.edge_dst[e]), key=e, action=text(int(self.edge_text[e])),
                count=int(self.count[e]), count_known=int(self.count_known[e]),
            )
        return made


def sorted_factorise(keys: IntArray) -> tuple[IntArray, IntArray]:
    """Codes by ascending key, and the distinct keys sorted: `np.unique` with a hash in front of the sort."""
    codes, distinct = factorise(keys)
    by_key = np.argsort(distinct, kind="stable")
    rank = np.empty_like(by_key)
    rank[by_key] = np.arange(by_key.size)
    return rank[codes], distinct[by_key]


def _first(index: IntArray, values: IntArray, size: int) -> IntArray:
    """The first of `values` at each index."""
    first = np.full(size, NO_TEXT, dtype=np.int64)
    first[index[::-1]] = values[::-1]
    return first


@dataclass(frozen=True)
class _Ends:
    """Where the last edge of each rollout goes: a node id per rollout row with steps, and the sinks made for that."""

    node: IntArray
    group: IntArray
    text: IntArray
    value: FloatArray


def _ends(batch: RolloutBatch, final: IntArray, ordinary_final: IntArray, some: BoolArray, sinks: str, n: int) -> _Ends:
    """Sinks under a rule (method.md sec. 2). `ordinary_final`: node of phi(s_T) where `bootstrap` goes on, else -1."""
    outcome = batch.outcome
    outcome_code = factorise(np.where(np.isnan(outcome), np.nan, outcome + 0.0).view(np.int64))[0]
    by_state = (final >= 0) & (sinks == "merge")
    key = final + 1
    key = key * (batch.n_rollouts + 1) + np.where(by_state, 0, outcome_code + 1)
    key = key * (batch.n_groups + 1) + batch.group
    makes = some & (ordinary_final < 0)
    node = np.where(some, ordinary_final, -1)
    codes, _ = factorise(key[makes])
    n_sinks = int(codes.max()) + 1 if codes.size else 0
    node[makes] = n + codes
    known = batch.known[makes]
    ends = np.bincount(codes[known], minlength=n_sinks)
    total = np.bincount(codes[known], weights=outcome[makes][known], minlength=n_sinks)
    mean = np.divide(total, ends, out=np.full(n_sinks, np.nan), where=ends > 0)
    if sinks != "merge" and n_sinks:  # exactly R, not a mean of equal numbers
        exact = np.full(n_sinks, np.nan)
        exact[codes[known]] = outcome[makes][known]
        mean = exact
    return _Ends(
        node,
        _first(codes, batch.group[makes], n_sinks),
        _first(codes, batch.final_observation[makes], n_sinks),
        mean,
    )


def _goes_on(batch: RolloutBatch, src: IntArray, final_node: IntArray) -> IntArray:
    """`bootstrap`: phi(s_T) of truncated rollouts that another rollout of known outcome leaves by a step, else -1."""
    known = batch.step_known
    width = batch.n_rollouts + 1
    distinct = factorise(src[known] * width + batch.step_rollout[known])[1]
    leavers = np.bincount(distinct // width, minlength=int(max(src.max(initial=-1), final_node.max(initial=-1))) + 1)
    own = np.isin(final_node * width + np.arange(batch.n_rollouts), distinct)
    others = np.where(final_node >= 0, leavers[final_node] - own, 0)
    return np.where(batch.truncated & (others > 0), final_node, -1)


def build_graph(
    batch: RolloutBatch, rules: Sequence[str] = ("exact",), actions: str = "parsed", sinks: str = "split"
) -> TrajectoryGraph:
    """Merge all rollouts of each group into one graph.

    rules: state rules, applied left to right. actions: action rule. sinks: `split`, `merge` or `bootstrap`
    (method.md sec. 2). Graphs never cross groups. Raises `GroupMissingError` where groups were only assumed.
    Source: GRAFT (arXiv 2609.28963) sec. 3.1.
    """
    SINKS.check(sinks)
    batch.require_groups()
    step_key, final_key = state_keys(batch, rules)
    action = action_codes(batch, actions)
    width = int(max(step_key.max(initial=-1), final_key.max(initial=-1))) + 2
    group_of_step = batch.group[batch.step_rollout]
    some = batch.lengths > 0

    # ordinary nodes: the states that some step leaves, in order of first appearance; final states come behind them
    keys = np.empty(batch.n_steps + batch.n_rollouts, dtype=np.int64)
    np.multiply(group_of_step, width, out=keys[: batch.n_steps])
    np.multiply(batch.group, width, out=keys[batch.n_steps :])
    keys[: batch.n_steps] += step_key
    keys[batch.n_steps :] += final_key
    joint, _ = factorise(keys)
    src, final_node = joint[: batch.n_steps], joint[batch.n_steps :]
    n_ordinary = int(src.max(initial=-1)) + 1
    final_node = np.where((final_node < n_ordinary) & (final_key >= 0) & some, final_node, -1)
    going_on = np.full(batch.n_rollouts, -1, dtype=np.int64)
    if sinks == "bootstrap" and n_ordinary:
        going_on = _goes_on(batch, src, final_node)
    ends = _ends(batch, final_key, going_on, some, sinks, n_ordinary)

    dst = np.empty(batch.n_steps, dtype=np.int64)
    dst[:-1] = src[1:]
    dst[batch.offsets[1:][some] - 1] = ends.node[some]
    n_nodes = n_ordinary + ends.group.size
    node_text = np.concatenate([_first(src, batch.observation, n_ordinary), ends.text])
    node_group = np.concatenate([_first(src, group_of_step, n_ordinary), ends.group])
    is_sink = np.arange(n_nodes) >= n_ordinary

    pair, pair_node, pair_action = sorted_pairs(src, action, n_ordinary, int(action.max(initial=-1)) + 1)
    edge, edge_pair, edge_dst = sorted_pairs(pair, dst, pair_node.size, n_nodes)
    edge_src = pair_node[edge_pair]
    count = np.bincount(edge, minlength=edge_dst.size)
    known = batch.step_known
    return TrajectoryGraph(
        batch=batch,
        rules=tuple(rules),
        actions=actions,
        sinks=sinks,
        src=src,
        dst=dst,
        pair=pair,
        edge=edge,
        node_group=node_group,
        node_is_sink=is_sink,
        node_text=node_text,
        sink_value=np.concatenate([np.full(n_ordinary, np.nan), ends.value]),
        edge_src=edge_src,
        edge_dst=edge_dst,
        edge_pair=edge_pair,
        count=count,
        count_known=count if known.all() else np.bincount(edge[known], minlength=edge_dst.size),
        indptr=np.concatenate([[0], np.cumsum(np.bincount(edge_src, minlength=n_nodes))]).astype(np.int64),
        pair_node=pair_node,
        pair_action=pair_action,
        pair_text=_first(pair, batch.action, pair_node.size),
        final_node=final_node,
    )
