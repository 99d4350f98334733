"""Values by sweeps, as they are taught: Gauss-Seidel in reverse-BFS order and Jacobi, sweep by sweep.

The product's solver is `direct`; these show how Bellman iteration gets there, and where stopping early leaves it
(method.md sec. 3). Source of order and stop `paper`: GRAFT, arXiv 2609.28963 sec. 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from graft_core.errors import InputError, UsageError
from graft_core.graph import TrajectoryGraph
from graft_core.options import GAMMA, REWARDS, WEIGHTING, Option
from graft_core.rollouts import BoolArray, FloatArray, IntArray
from graft_core.values._hops import hops_to
from graft_core.values.system import System, system

TOLERANCE = 1e-11
PAPER_EPS = 1e-8
ROUNDING = 4 * float(np.finfo(np.float64).eps)  # relative to the size of V
SWEEP_SOLVER = Option(
    "solver", "gauss_seidel", "in place from the ends, or all at once", "solver", "word", ("gauss_seidel", "jacobi")
)
STOP = Option("stop", "sound", "when the error is bounded, or as the paper stops", "stop", "word", ("sound", "paper"))


@dataclass(frozen=True, eq=False)
class Sweeps:
    """V after every sweep: v float64[S + 1, N] (row 0 before the first), change float64[S] = max|dV| of each sweep.

    order: int64[ordinary], the nodes as Gauss-Seidel visits them. settled: whether the stop was reached before the limit.
    """

    v: FloatArray
    change: FloatArray
    order: IntArray
    solver: str
    gamma: float
    stop: str
    settled: bool


def sweep_order(graph: TrajectoryGraph, active: BoolArray) -> IntArray:
    """Active nodes by fewest hops to the nearest sink, ties by number, those without a way to a sink last."""
    hops = hops_to(graph.edge_src, graph.edge_dst, graph.count_known > 0, graph.node_is_sink)
    nodes = np.flatnonzero(active)
    far = np.where(hops[nodes] < 0, graph.n_nodes, hops[nodes])
    return nodes[np.argsort(far, kind="stable")]


def _settled(stop: str, gamma: float, change: float, v: FloatArray) -> bool:
    if stop == "paper":
        return change < PAPER_EPS
    size = max(1.0, float(np.abs(v).max(initial=0.0)))
    return change <= max(TOLERANCE * (1.0 - gamma) / gamma, ROUNDING * size)


def _limit(stop: str, gamma: float) -> int:
    eps = PAPER_EPS if stop == "paper" else 1e-17
    return math.ceil(math.log(eps) / math.log(gamma)) + (50 if stop == "paper" else 1000)


def _iterate(
    problem: System, order: IntArray, solver: str, gamma: float, stop: str, v: FloatArray
) -> Iterator[tuple[float, bool]]:
    """Sweeps `v` in place; yields (max|dV|, whether the stop is reached) after each sweep until then or the limit."""
    from graft_core.values import _kernels as kernels

    v[order] = 0.0
    for _ in range(_limit(stop, gamma)):
        source = v.copy() if solver == "jacobi" else v
        change = kernels.sweep(
            order, problem.indptr, problem.edge_dst, problem.use, problem.weight, problem.edge_reward, problem.constant,
            problem.maximum, gamma, source, v,
        )  # fmt: skip
        settled = _settled(stop, gamma, change, v[order])
        yield change, settled
        if settled:
            return


def need_discount(gamma: float, what: str) -> None:
    """Sweeps have no sound stop at gamma = 1."""
    if gamma >= 1.0:
        raise UsageError(f"gamma {gamma:g} has no answer with {what}, which is solved by sweeps: expected gamma below 1")


def swept(problem: System, graph: TrajectoryGraph, solver: str, gamma: float) -> FloatArray:
    """V by sweeps with the sound stop. float64[N]."""
    need_discount(gamma, f"solver {solver!r}")
    v = problem.start.copy()
    seen = list(_iterate(problem, sweep_order(graph, problem.active), solver, gamma, "sound", v))
    if not seen[-1][1]:
        raise InputError(f"values did not settle with gamma {gamma:g} and solver {solver!r}; choose a smaller gamma")
    return v


def sweeps(
    graph: TrajectoryGraph,
    solver: str = "gauss_seidel",
    gamma: float = 0.99,
    weighting: str = "visits",
    rewards: str = "outcome",
    stop: str = "sound",
) -> Sweeps:
    """V after each sweep from 0: `gauss_seidel` (in place, reverse-BFS order) or `jacobi` (all at once).

    stop `sound`: max|dV| <= 1e-11 (1 - gamma) / gamma (or rounding is all that is left), so the error is at most 1e-11;
    `paper`: max|dV| < 1e-8 or ceil(log 1e-8 / log gamma) + 50 sweeps, which leaves errors up to 5e-7. gamma < 1, else
    `UsageError`. Keeps every sweep in memory: for graphs one looks at.
    """
    gamma = GAMMA.check(gamma)
    for option, value in ((SWEEP_SOLVER, solver), (WEIGHTING, weighting), (REWARDS, rewards), (STOP, stop)):
        option.check(value)
    need_discount(gamma, f"solver {solver!r}")
    problem = system(graph, weighting, rewards)
    order = sweep_order(graph, problem.active)
    v = problem.start.copy()
    v[order] = 0.0
    kept, seen = [v.copy()], []
    for change_and_stop in _iterate(problem, order, solver, gamma, stop, v):
        kept.append(v.copy())
        seen.append(change_and_stop)
    return Sweeps(np.array(kept), np.array([change for change, _ in seen]), order, solver, gamma, stop, seen[-1][1])
