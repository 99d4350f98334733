"""One group's walks, and the tests of one group (research figures: docs, "Suspect merges")."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final

import numpy as np

from graft_core.graph import TrajectoryGraph
from graft_core.insight import _suspect_kernels as kernels
from graft_core.insight import _suspect_node_kernels as node_kernels
from graft_core.rollouts import BoolArray, FloatArray, IntArray

DRAWS: Final = 999
SCREEN: Final = 99
"""Draws of a first look at a node; most nodes need no more."""

FEWEST_LISTED: Final = 0.05
"""The least false-discovery rate at which one node alone has to be able to stand out among all nodes of its group."""

AT_ONCE: Final = 8  # nodes tested in one piece of work

BUDGET: Final = 2_500_000_000
"""Steps that the node tests of one group may lay out anew, a smaller group its share of them: about 1.2 s of one processor."""

FULL_BUDGET: Final = 6_400  # steps from which on a group has the whole budget

LEAST_VISITS, LEAST_ROLLOUTS = 8, 4  # below that pieces of a node are not exchanged
NEXT_VISITS, NEXT_ROLLOUTS = 5, 3  # below that its next nodes are not dealt anew
MOST_COLUMNS, MOST_CODES = 20_000, 300  # the most frequent ones count where a group has more: memory
GATE, NEXT = 1 << 40, 1 << 41  # numbers of random streams, far from those of nodes


@dataclass(frozen=True, eq=False)
class Walks:
    """The rollouts of one group as walks over keys, codes dense from 0.

    rows: rollout rows with steps; offsets: walk i stands at offsets[i]:offsets[i + 1] of `path` (code of each step's
    key), `positions` (path position in the batch), `pair` (code of the step's state and action under the graph), `next`
    (code of what the step led to). keys: the key behind each code. ends: code of what each walk ended in; after: code of the
    key behind the last step of a walk that was cut off, where some step leaves it, else -1. cut: bool per walk.
    """

    rows: IntArray
    offsets: IntArray
    positions: IntArray
    path: IntArray
    keys: IntArray
    pair: IntArray
    next: IntArray
    ends: IntArray
    after: IntArray
    cut: BoolArray

    @property
    def n_nodes(self) -> int:
        return int(self.keys.size)

    @property
    def n_ends(self) -> int:
        return int(self.ends.max(initial=-1)) + 1

    @property
    def walk_of_step(self) -> IntArray:
        return np.repeat(np.arange(self.rows.size), np.diff(self.offsets))

    def visits(self) -> IntArray:
        return np.bincount(self.path, minlength=self.n_nodes)

    def visitors(self) -> IntArray:
        """Distinct walks through each node."""
        pairs = np.unique(self.path * (self.rows.size + 1) + self.walk_of_step)
        return np.bincount(pairs // (self.rows.size + 1), minlength=self.n_nodes)

    def columns(self) -> tuple[IntArray, int]:
        """Nodes visited twice or more, numbered; the coverage of the others cannot vary. (-1 for them, how many.)"""
        return _most_frequent(self.visits(), MOST_COLUMNS)


def walks_of(graph: TrajectoryGraph, group: int, step_key: IntArray | None = None, final_key: IntArray | None = None) -> Walks:
    """The walks of one group under the graph's own keys or under others (per step; per rollout row, -1 = none)."""
    batch = graph.batch
    rows = np.flatnonzero((batch.group == group) & (batch.lengths > 0))
    lengths = batch.lengths[rows]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    positions = np.arange(offsets[-1]) + np.repeat(batch.offsets[:-1][rows] - offsets[:-1], lengths)
    own = graph.src if step_key is None else step_key
    final = (graph.final_node if final_key is None else final_key)[rows]
    keys, path = np.unique(own[positions], return_inverse=True)
    last = positions[offsets[1:] - 1]
    ends = np.unique(np.stack([graph.dst[last], final]), axis=1, return_inverse=True)[1].reshape(-1)
    cut = batch.truncated[rows]
    place = np.minimum(np.searchsorted(keys, final), keys.size - 1)
    known = cut & (keys[place] == final) if keys.size else cut & False
    to = np.empty(positions.size, np.int64)
    to[:-1] = path[1:]
    to[offsets[1:] - 1] = keys.size + ends
    return Walks(
        rows=rows,
        offsets=offsets,
        positions=positions,
        path=path.astype(np.int64),
        keys=keys,
        pair=graph.pair[positions],
        next=to,
        ends=ends.astype(np.int64),
        after=np.where(known, place, -1).astype(np.int64),
        cut=cut,
    )


def _state(seed: int, number: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array([kernels.stream(seed, number)], np.uint64)


def gate(walks: Walks, seed: int, draws: int = DRAWS) -> float:
    """p of the group alarm: do rollouts meet nodes more evenly than walks without a memory would? NaN where nothing varies.

    No rollout cut off: against uniform draws among all groups with the same first states and step counts, squared surpluses
    added up. Else against rollouts drawn from the counts and ended at the longest cut one's length, largest surplus.
    """
    column, width = walks.columns()
    if walks.rows.size < 2 or not width:
        return float("nan")
    state = _state(seed, GATE)
    if walks.cut.any():
        limit = int(np.diff(walks.offsets)[walks.cut].max())
        counts = kernels.simulated_cover(
            walks.path, walks.offsets, walks.after, walks.n_nodes, limit, column, width, draws, state
        )
    else:
        counts = kernels.shuffled_cover(
            walks.path, walks.offsets, walks.ends, walks.n_nodes, walks.n_ends, column, width, draws, state
        )
    counts = np.ascontiguousarray(counts.T)
    mean, scale = kernels.standardise(counts)
    if not np.any(scale > 0):
        return float("nan")
    return float(kernels.share_at_least(kernels.surplus(counts, mean, scale, np.ones(width), 2, bool(walks.cut.any()))))


@dataclass(frozen=True, eq=False)
class NodeTests:
    """Node tests of one group, arrays over its nodes (local codes). p is NaN where a node was not tested.

    surplus: float64[n_tested, n_nodes], how far coverage of each node exceeds what exchanged pieces give (z, 0 = no more).
    tested: codes of the nodes whose pieces were exchanged. left: codes of those that are seen often enough too, but less often
    than the tested ones, and that the budget was too small for.
    """

    own: FloatArray
    pooled: FloatArray
    next: FloatArray
    tested: IntArray
    left: IntArray
    surplus: FloatArray


def _within_budget(walks: Walks, nodes: IntArray, visits: IntArray, draws: int, budget: int) -> tuple[IntArray, IntArray]:
    """Split nodes into the most visited ones, as many as the budget admits (one at least), and the others.

    A node costs the steps of all walks through it, times the draws of both node tests where each runs to the full test. What
    a test finds does not change which nodes are tested.
    """
    through = np.unique(np.stack([walks.path, walks.walk_of_step]), axis=1)
    cost = np.bincount(through[0], np.diff(walks.offsets)[through[1]], walks.n_nodes)
    order = nodes[np.argsort(-visits[nodes], kind="stable")]
    each = 2.0 * _stages(draws, 0)[:2].sum()
    spent = np.cumsum(cost[order]) * each
    most = max(1, int(np.searchsorted(spent, budget * min(1.0, walks.path.size / FULL_BUDGET), side="right")))
    return np.sort(order[:most]), np.sort(order[most:])


def _stages(draws: int, nodes: int) -> IntArray:
    """Draws of each stage of a node test: a first look, the full test, and ten times that where the nodes are many."""
    more = 10 * draws + 9 if nodes > FEWEST_LISTED * (draws + 1) else draws
    return np.array([min(SCREEN, draws), draws, more], np.int64)


def node_tests(
    walks: Walks, alarm: bool, seed: int, draws: int = DRAWS, pool: Executor | None = None, budget: int = BUDGET
) -> NodeTests:
    """All node tests; the pooled one only where the group alarms, as without the alarm it is not valid.

    pool: threads that nodes are shared out to; results do not depend on it. budget: see `BUDGET`.
    """
    column, width = walks.columns()
    visits, visitors = walks.visits(), walks.visitors()
    often = np.flatnonzero((visits >= LEAST_VISITS) & (visitors >= LEAST_ROLLOUTS))
    tested, left = _within_budget(walks, often, visits, draws, budget)
    own, pooled = np.full(walks.n_nodes, np.nan), np.full(walks.n_nodes, np.nan)
    z, p = np.zeros((tested.size, width)), np.ones(tested.size)
    shape = (walks.path, walks.offsets, column, width)
    stages = _stages(draws, tested.size)
    _own_tests(pool, tested, shape, stages, seed, z, p)
    own[tested] = p
    if alarm and tested.size:
        total = (z * z).sum(axis=0)
        _in_pieces(
            pool, tested.size,
            lambda at: node_kernels.pooled_tests(tested[at], *shape, stages[:2], seed, total, z[at], p[at]),
        )  # fmt: skip
        pooled[tested] = p
    surplus = np.zeros((tested.size, walks.n_nodes))
    surplus[:, column >= 0] = z
    return NodeTests(own, pooled, _next_tests(walks, visits, visitors, seed, draws), tested, left, surplus)


def _own_tests(
    pool: Executor | None, tested: IntArray, shape: tuple[IntArray, IntArray, IntArray, int], stages: IntArray, seed: int,
    z: FloatArray, p: FloatArray,
) -> None:  # fmt: skip
    """Fill z and p. The last stage tells small p apart; it is left out where so many of the group's nodes have one that p as
    it is suffices to list them (Benjamini and Hochberg)."""
    _in_pieces(pool, tested.size, lambda at: node_kernels.own_tests(tested[at], *shape, stages[:2], seed, z[at], p[at]))
    small = np.flatnonzero(p <= node_kernels.CERTAIN)
    if stages[2] == stages[1] or node_kernels.CERTAIN * tested.size <= FEWEST_LISTED * small.size:
        return
    again, their_z, their_p = tested[small], z[small], p[small]
    _in_pieces(
        pool, small.size, lambda at: node_kernels.own_tests(again[at], *shape, stages, seed, their_z[at], their_p[at])
    )
    z[small], p[small] = their_z, their_p


def _in_pieces(pool: Executor | None, n: int, work: Callable[[slice], None]) -> None:
    """work(slice) for all n nodes; each node has random numbers of its own, so pieces may run side by side."""
    pieces = [slice(at, at + AT_ONCE) for at in range(0, n, AT_ONCE)]
    for _ in pool.map(work, pieces) if pool is not None else map(work, pieces):
        pass


def _next_tests(walks: Walks, visits: IntArray, visitors: IntArray, seed: int, draws: int) -> FloatArray:
    p = np.full(walks.n_nodes, np.nan)
    before = previous(walks, walks.pair)
    order = np.lexsort((walks.pair, walks.path))
    bounds = np.concatenate([[0], np.cumsum(visits)])
    nodes = np.flatnonzero((visits >= NEXT_VISITS) & (visitors >= NEXT_ROLLOUTS))
    stages = _stages(draws, nodes.size)
    for u in nodes.tolist():
        at = order[bounds[u] : bounds[u + 1]]
        came, n_came = _often(before[at])
        went, n_went = _often(walks.next[at])
        starts = np.flatnonzero(np.concatenate([[True], np.diff(walks.pair[at]) > 0, [True]]))
        if not n_came or not n_went:
            continue
        p[u] = node_kernels.next_test(starts, came, went, n_came, n_went, stages, _state(seed, NEXT + u))
    return p


def previous(walks: Walks, codes: IntArray) -> IntArray:
    """The entry of `codes` one step earlier in the walk, -1 on first steps."""
    earlier = np.concatenate([[-1], codes[:-1]])
    earlier[walks.offsets[:-1]] = -1
    return earlier


def _most_frequent(count: IntArray, most: int) -> tuple[IntArray, int]:
    """Entries with a count of two or more, at most the `most` largest ones, numbered (-1 for the others), and how many."""
    often = count >= 2
    if int(often.sum()) > most:
        often[np.argsort(-count, kind="stable")[most:]] = False
    return np.where(often, np.cumsum(often) - 1, -1), int(often.sum())


def _often(values: IntArray) -> tuple[IntArray, int]:
    """Values seen twice or more, numbered (-1 for the others), and how many there are."""
    _, code, count = np.unique(values, return_inverse=True, return_counts=True)
    number, n = _most_frequent(count, MOST_CODES)
    return number[code].astype(np.int64), n


def corrected(p: FloatArray) -> FloatArray:
    """Least false-discovery rate at which each test is listed (Benjamini and Hochberg 1995); NaN stays NaN."""
    q = np.full(p.size, np.nan)
    at = np.flatnonzero(~np.isnan(p))
    order = at[np.argsort(p[at], kind="stable")]
    scaled = p[order] * order.size / np.arange(1, order.size + 1)
    q[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return q
