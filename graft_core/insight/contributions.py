"""Who made a value what it is: each rollout's contribution to V, and credit with one rollout left out.

V is linear in the outcomes: V(u) = sum_i H(u, i) R_i, where H(u, i) is the discounted chance, under the counted
transitions, of ending from u by the last step of rollout i (in equal parts with those whose last step is the same; with
`merge` sinks with all that end in the same state). Under `dense` each executed step contributes its own reward,
weighted by how often its edge is expected to be passed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graft_core.constants import SIGN_TOLERANCE
from graft_core.credit import estimate
from graft_core.errors import GraftError, UsageError
from graft_core.graph import TrajectoryGraph
from graft_core.insight._chain import Chain, chain
from graft_core.insight._group import GroupView, group_view, without
from graft_core.rollouts import FloatArray, IntArray
from graft_core.settings import Settings
from graft_core.values import Values, solve_values

if TYPE_CHECKING:
    from graft_core.insight.findings import Findings

MOST_LEFT_OUT = 64
WHOLE_BATCH = ("reinforce_pp_baseline", "task_norm")
"""Estimators whose credit depends on other groups: leaving a rollout out is not computed for them."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each rollout of a group contributes to the values of some nodes.

    rollouts: rows of the batch (all of the group; unknown outcomes contribute 0). share: float64[K, R], H(u, i) = dV/dR_i
    (not for `max`), NaN under `dense`. amount: float64[K, R], sums along R to the node's value. A node without value is NaN.
    """

    nodes: IntArray
    rollouts: IntArray
    share: FloatArray
    amount: FloatArray


def contributions(graph: TrajectoryGraph, values: Values, nodes: Sequence[int] | IntArray) -> Contributions:
    """H(u, i) and H(u, i) R_i of every rollout i of the group, for the given nodes u of one group.

    Exact for every weighting, sink rule, prior and gamma (`max`: along the best edges). Raises `UsageError` for nodes
    of different groups.
    """
    wanted = np.asarray(nodes, dtype=np.int64)
    groups = np.unique(graph.node_group[wanted])
    if groups.size != 1:
        raise UsageError(f"contributions: expected nodes of one group, got {groups.size} groups")
    view = group_view(graph, int(groups[0]))
    local = np.array([view.node(int(node)) for node in wanted], dtype=np.int64)
    flow = chain(view, values)
    amount, share = _spread(view.graph, values, flow, local)
    amount[np.isnan(values.v[wanted])] = np.nan
    share[np.isnan(values.v[wanted])] = np.nan
    return Contributions(wanted, view.rollouts, share, amount)


def _spread(
    graph: TrajectoryGraph, values: Values, flow: Chain, local: IntArray
) -> tuple[FloatArray, FloatArray]:
    """(amount, share), each float64[K, R], of nodes of a group's own graph."""
    amount = np.zeros((local.size, graph.batch.n_rollouts))
    share = np.zeros_like(amount)
    inner = np.flatnonzero(flow.active[local])
    passing = flow.passing(_unit(local[inner], graph.n_nodes))
    if inner.size:
        amount[inner], share[inner] = _collect(graph, values, flow, passing)
    if inner.size and values.prior:
        visits = np.where(flow.active, graph.visits_known, 0).astype(np.float64)
        mean = flow.unshrunk().passing(visits[None, :] / max(visits.sum(), 1.0))
        pulled = passing @ (1.0 - flow.keep)
        for into, one in zip((amount, share), _collect(graph, values, flow.unshrunk(), mean), strict=True):
            into[inner] += pulled[:, None] * one
    ends = np.flatnonzero(graph.node_is_sink[local])
    if values.rewards == "outcome":
        share[ends] = _shares(graph, _unit(local[ends], graph.n_nodes))
        amount[ends] = share[ends] * _outcomes(graph)
    return amount, share


def _unit(nodes: IntArray, n: int) -> FloatArray:
    unit = np.zeros((nodes.size, n))
    unit[np.arange(nodes.size), nodes] = 1.0
    return unit


def _outcomes(graph: TrajectoryGraph) -> FloatArray:
    return np.where(graph.batch.known, graph.batch.outcome, 0.0)


def _shares(graph: TrajectoryGraph, mass: FloatArray) -> FloatArray:
    """Mass at nodes (float64[K, N]) dealt out to the known rollouts that end in them, equally. float64[K, R]."""
    share = np.zeros((mass.shape[0], graph.batch.n_rollouts))
    ending = _ending(graph)
    crowd = np.bincount(graph.end[ending], minlength=graph.n_nodes)
    share[:, ending] = mass[:, graph.end[ending]] / crowd[graph.end[ending]]
    return share


def _ending(graph: TrajectoryGraph) -> IntArray:
    """Known rollouts that end in a sink (not those that go on under `bootstrap`)."""
    known = np.flatnonzero(graph.batch.known & (graph.end >= 0))
    return known[graph.node_is_sink[graph.end[known]]]


def _last_edges(graph: TrajectoryGraph, along: FloatArray) -> FloatArray:
    """Passings of edges (float64[K, E]) dealt out to the known rollouts whose last step takes them. float64[K, R]."""
    share = np.zeros((along.shape[0], graph.batch.n_rollouts))
    ending = _ending(graph)
    last = graph.edge[graph.batch.offsets[ending + 1] - 1]
    share[:, ending] = along[:, last] / graph.count_known[last]
    return share


def _sums(index: IntArray, weights: FloatArray, size: int) -> FloatArray:
    """Sums of each row of weights (float64[K, M]) by index (int64[M]). float64[K, size]."""
    rows = [np.bincount(index, weights=one, minlength=size).astype(np.float64) for one in weights]
    return np.stack(rows) if rows else np.zeros((0, size))


def _collect(
    graph: TrajectoryGraph, values: Values, flow: Chain, passing: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What rollouts earn along expected discounted passings (float64[K, N]): (amount, share), float64[K, R] each."""
    along = passing[:, graph.edge_src] * flow.weight  # how often each edge is passed
    if values.rewards == "outcome":
        if graph.sinks == "merge":  # a sink is worth the mean of those that end there, whichever way they came
            share = values.gamma * _shares(graph, _sums(graph.edge_dst, along, graph.n_nodes))
        else:
            share = values.gamma * _last_edges(graph, along)
        return share * _outcomes(graph), share
    known = np.flatnonzero(graph.known)
    edge, rollout = graph.edge[known], graph.batch.step_rollout[known]
    each = along[:, edge] / graph.count_known[edge] * graph.batch.reward[known]
    amount = _sums(rollout, each, graph.batch.n_rollouts)
    return amount, np.full_like(amount, math.nan)


@dataclass(frozen=True)
class Contribution:
    """One rollout's part in both values around a step.

    before, after: parts of V(s) and V(s'); to_credit: gamma after - before, which sum to the TD credit (without the
    step's own reward under `dense`). share_before, share_after: H, NaN under `dense`. succeeded: None = unknown.
    """

    row: int
    rollout_id: str
    outcome: float
    succeeded: bool | None
    own: bool
    share_before: float
    share_after: float
    before: float
    after: float
    to_credit: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def step_contributions(graph: TrajectoryGraph, values: Values, position: int) -> tuple[Contribution, ...]:
    """Each known rollout's part in V before and V after a step (path position), largest effect on the credit first."""
    batch = graph.batch
    found = contributions(graph, values, [int(graph.src[position]), int(graph.dst[position])])
    to_credit = values.gamma * found.amount[1] - found.amount[0]
    own = int(batch.step_rollout[position])
    order = np.argsort(-np.abs(np.nan_to_num(to_credit)), kind="stable")
    return tuple(
        Contribution(
            row=int(row),
            rollout_id=batch.rollout_ids[row],
            outcome=float(batch.outcome[row]),
            succeeded=None if np.isnan(batch.success[row]) else bool(batch.success[row]),
            own=row == own,
            share_before=float(found.share[0, i]),
            share_after=float(found.share[1, i]),
            before=float(found.amount[0, i]),
            after=float(found.amount[1, i]),
            to_credit=float(to_credit[i]),
        )
        for i, row in zip(order.tolist(), found.rollouts[order].tolist(), strict=True)
        if batch.known[row]
    )


@dataclass(frozen=True)
class LeftOut:
    """A step's credit and values as they would be without one rollout; NaN = they would be undefined."""

    row: int
    rollout_id: str
    outcome: float
    own: bool
    value_before: float
    value_after: float
    credit: float
    change: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Influence:
    """Which single rollout, left out, would change a step's credit most.

    rollouts: all that were left out in turn, largest change first (undefined ones last). most: the first if it changes
    anything. undefined_without_own: without the step's own rollout there is no such credit (one witness). complete:
    every known rollout of the group was left out in turn. missing: why nothing was computed, else "".
    """

    rollouts: tuple[LeftOut, ...] = ()
    most: LeftOut | None = None
    undefined_without_own: bool = False
    complete: bool = True
    missing: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "rollouts": [one.as_dict() for one in self.rollouts],
            "most": self.most.as_dict() if self.most else None,
        }


def influence(findings: Findings, position: int, most: int = MOST_LEFT_OUT) -> Influence:
    """Leave each known rollout of the group out in turn and compute the (un-normalised) credit of one step again.

    Exact: counts, values and credit are those of the group without that rollout; moments stay what they are. At most
    `most` rollouts, those that contribute most to the two values. The step's own rollout can only be left out of its
    values, so its row is the residual without its evidence (`graft_td` only).
    """
    from graft_core.insight.findings import unnormalised

    batch, graph, values = findings.batch, findings.graph, findings.values
    settings = unnormalised(findings.settings)
    name = settings.estimator
    if name in WHOLE_BATCH:
        return Influence(missing=f"{name} compares tasks with each other, so no single rollout is left out", complete=False)
    if not batch.step_known[position]:
        return Influence(missing="the rollout's outcome is unknown, so the step has no credit")
    row = int(batch.step_rollout[position])
    view = group_view(graph, int(batch.group[row]))
    known = view.rollouts[batch.known[view.rollouts]].tolist()
    chosen = known if len(known) <= most else _weightiest(findings, position, most)
    now = float(findings.credit[position])
    leave = _Leave(view, values, settings, settings.resolved(name), position, row, now)
    try:
        left = [leave.out(other) for other in chosen]
    except GraftError as error:
        return Influence(missing=str(error), complete=False)
    left.sort(key=lambda one: (math.isnan(one.change), -abs(one.change), one.row))
    first = left[0] if left and abs(left[0].change) > SIGN_TOLERANCE else None
    own = next(one for one in left if one.own)
    alone = math.isnan(own.value_before) or math.isnan(own.value_after)
    return Influence(tuple(left), first, alone, len(chosen) == len(known))


def _weightiest(findings: Findings, position: int, most: int) -> list[int]:
    """Rows of the rollouts that contribute most to the two values around a step, its own among them."""
    parts = step_contributions(findings.graph, findings.values, position)
    own = [part.row for part in parts if part.own]
    return sorted({*(part.row for part in parts[: most - 1]), *own})


@dataclass(frozen=True, eq=False)
class _Leave:
    """What stays the same while rollouts are left out in turn."""

    view: GroupView
    values: Values
    settings: Settings
    resolved: Mapping[str, Any]
    position: int
    own: int
    now: float

    def out(self, other: int) -> LeftOut:
        whole, values, settings = self.view.graph, self.values, self.settings
        local, step = self.view.rollout(other), self.view.step(self.position)
        less = without(whole, local)
        again = solve_values(less, values.gamma, values.weighting, values.rewards, values.solver, values.prior)
        before, after = float(again.v[less.src[step]]), float(again.v[less.dst[step]])
        if settings.estimator == "graft_td":
            credit = _td(less, again, step, self.resolved["per"], whole.batch.reward)
        elif other == self.own:
            credit = math.nan
        else:
            options = settings.options_for(settings.estimator)
            rows = estimate(less.batch, settings.estimator, graph=less, **settings.value_words, **options)
            credit = float(rows[less.batch.order[step]])
        outcome = float(whole.batch.outcome[local])
        name = whole.batch.rollout_ids[local]
        return LeftOut(other, name, outcome, other == self.own, before, after, credit, credit - self.now)


def _td(graph: TrajectoryGraph, values: Values, step: int, per: str, reward: FloatArray) -> float:
    """The residual of a step, or of its action's remaining instances, whether or not its own rollout is left out."""
    at = np.array([step])
    if per == "action":
        at = np.flatnonzero((graph.pair == graph.pair[step]) & graph.known)
    if not at.size:
        return math.nan
    td = values.gamma * values.v[graph.dst[at]] - values.v[graph.src[at]]
    if values.rewards == "dense":
        td = td + reward[at]
    return float(td.mean())
