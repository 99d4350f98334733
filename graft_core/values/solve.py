"""Node values of a trajectory graph (GRAFT, arXiv 2609.28963 sec. 3.2, Eq. 5-6; method.md sec. 3)."""

from __future__ import annotations

from dataclasses import dataclass

from graft_core.errors import InputError, UsageError
from graft_core.graph import TrajectoryGraph
from graft_core.options import GAMMA, PRIOR, REWARDS, SOLVER, WEIGHTING
from graft_core.rollouts import FloatArray
from graft_core.values.system import (
    System,
    active_nodes,
    edge_rewards,
    edge_weights,
    require_rewards,
    shrunk,
    start_values,
    sums,
    system,
)

__all__ = [
    "Values",
    "active_nodes",
    "edge_rewards",
    "edge_weights",
    "require_rewards",
    "solve_values",
    "start_values",
    "sums",
]


@dataclass(frozen=True, eq=False)
class Values:
    """V of every node (float64[N], NaN where only rollouts of unknown outcome lead), and how it was solved."""

    v: FloatArray
    gamma: float
    weighting: str = "visits"
    rewards: str = "outcome"
    solver: str = "direct"
    prior: float = 0.0


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
    `dense` (mean step rewards on edges, sinks worth 0). solver `direct` (strongly connected components), or
    `gauss_seidel` and `jacobi` (sweeps, gamma below 1). prior: shrinkage in visits (method.md sec. 3). Raises
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
        problem = system(graph, weighting, rewards)
        v = _solve(problem, graph, gamma, solver)
        if prior:
            v = _solve(shrunk(problem, graph, prior, v), graph, gamma, solver)
        graph.memo[key] = Values(v, gamma, weighting, rewards, solver, prior)
    values: Values = graph.memo[key]
    return values


def _solve(problem: System, graph: TrajectoryGraph, gamma: float, solver: str) -> FloatArray:
    from graft_core.values import _kernels as kernels
    from graft_core.values.sweeps import need_discount, swept

    if solver != "direct":
        return swept(problem, graph, solver, gamma)
    v = problem.start.copy()
    nodes, starts = kernels.strong_components(problem.indptr, problem.edge_dst, problem.use, problem.active)
    if problem.maximum:
        need_discount(gamma, "weighting 'max'")
        if not kernels.max_backup(nodes, problem.indptr, problem.edge_dst, problem.use, problem.edge_reward, gamma, v, 1e-11):
            raise InputError(f"values did not settle with gamma {gamma:g}; choose a smaller gamma")
        return v
    code, where = kernels.solve_components(
        nodes, starts, problem.indptr, problem.edge_dst, problem.weight, problem.constant, gamma, v
    )
    if code == 0:
        return v
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
