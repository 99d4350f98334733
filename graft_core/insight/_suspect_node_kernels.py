"""Compiled loops of the node tests for suspect merges: pieces exchanged between rollouts, next nodes dealt anew.

Layout and random numbers as in `_suspect_kernels`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from graft_core.insight._suspect_kernels import (
    Counts,
    Floats,
    Ints,
    State,
    share_at_least,
    shuffle,
    standardise,
    stream,
    surplus,
)

PROMISING, CERTAIN = 0.2, 0.005  # a test that finds p this small with few draws is run anew with more


@njit(cache=True, nogil=True)
def _pieces(u: int, path: Ints, offsets: Ints, column: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Cut the rollouts that visit u at their visits: (bounds, nodes, first piece of each rollout, number of pieces).

    Pieces of one rollout follow one another: what came before the first visit, loops, what came after the last. Piece p
    holds the distinct columns nodes[bounds[p]:bounds[p + 1]] other than u's.
    """
    n_pieces, n_rollouts = 0, 0
    for r in range(offsets.size - 1):
        visits = 0
        for k in range(offsets[r], offsets[r + 1]):
            visits += path[k] == u
        if visits:
            n_pieces += visits + 1
            n_rollouts += 1
    bounds = np.zeros(n_pieces + 1, np.int64)
    nodes = np.empty(path.size, np.int64)
    first = np.empty(n_rollouts, np.int64)
    size = np.empty(n_rollouts, np.int64)
    seen = np.full(column.size, -1, np.int64)
    piece, filled, i = 0, 0, 0
    for r in range(offsets.size - 1):
        begun = piece
        for k in range(offsets[r], offsets[r + 1]):
            v = path[k]
            if v == u:
                piece += 1
                bounds[piece] = filled
            elif column[v] >= 0 and seen[v] != piece:
                seen[v] = piece
                nodes[filled] = column[v]
                filled += 1
        if piece > begun:
            piece += 1
            bounds[piece] = filled
            first[i] = begun
            size[i] = piece - begun
            i += 1
        else:  # a rollout that never meets u leaves no piece
            filled = bounds[piece]
            seen[:] = -1
    return bounds, nodes, first, size


@njit(cache=True, nogil=True)
def exchanged_cover(
    u: int, path: Ints, offsets: Ints, column: Ints, width: int, draws: int, state: State, counts: Counts
) -> None:
    """Fill counts[draws + 1, width]: rollouts through u that meet each node, as observed (row 0) and with pieces exchanged.

    What came before the first visit stays; loops and tails are dealt anew among the rollouts that visit u.
    """
    bounds, nodes, first, size = _pieces(u, path, offsets, column)
    n, n_loops = first.size, bounds.size - 1 - 2 * first.size
    tails = np.empty(n, np.int64)
    loops = np.empty(n_loops, np.int64)
    filled = 0
    for i in range(n):
        tails[i] = first[i] + size[i] - 1
        for p in range(first[i] + 1, first[i] + size[i] - 1):
            loops[filled] = p
            filled += 1
    seen = np.full(width, -1, np.int64)
    stamp = 0
    for b in range(draws + 1):
        counts[b, :] = 0
        if b:
            shuffle(tails, 0, n, state)
            shuffle(loops, 0, n_loops, state)
        taken = 0
        for i in range(n):
            stamp += 1
            for j in range(size[i]):
                p = first[i]
                if j == size[i] - 1:
                    p = tails[i]
                elif j:
                    p = loops[taken]
                    taken += 1
                for k in range(bounds[p], bounds[p + 1]):
                    c = nodes[k]
                    if seen[c] != stamp:
                        seen[c] = stamp
                        counts[b, c] += 1


@njit(cache=True, nogil=True)
def _goes_on(p: float, stage: int, draws: Ints) -> bool:
    """Whether a test is run anew with more draws: its p is small, and the next stage has more than this one had."""
    return stage + 1 < draws.size and draws[stage + 1] > draws[stage] and p <= (PROMISING if stage == 0 else CERTAIN)


@njit(cache=True, nogil=True)
def own_tests(
    nodes: Ints, path: Ints, offsets: Ints, column: Ints, width: int, draws: Ints, seed: int, z: Floats, p: Floats
) -> None:
    """Own test of each of `nodes`: fills z[i, :] (standardised surplus, 0 where there is none) and p[i].

    draws: how many draws each stage has; a later stage is run, and then decides, only where the one before gives a small p.
    """
    store = np.empty((draws.max() + 1, width), np.int32)
    ones = np.ones(width)
    state = np.empty(1, np.uint64)
    for i in range(nodes.size):
        state[0] = stream(seed, nodes[i])
        for stage in range(draws.size):
            counts = store[: draws[stage] + 1]
            exchanged_cover(nodes[i], path, offsets, column, width, draws[stage], state, counts)
            mean, scale = standardise(counts)
            for c in range(width):
                z[i, c] = max(0.0, (counts[0, c] - mean[c]) * scale[c])
            p[i] = share_at_least(surplus(counts, mean, scale, ones, 4, False))
            if not _goes_on(p[i], stage, draws):
                break


@njit(cache=True, nogil=True)
def pooled_tests(
    nodes: Ints, path: Ints, offsets: Ints, column: Ints, width: int, draws: Ints, seed: int, total: Floats, z: Floats,
    p: Floats,
) -> None:  # fmt: skip
    """Pooled test of each of `nodes`: surplus z^2 weighted by the square of what the other nodes' z^2 add up to; fills p[i].

    total: z^2 of all tested nodes, `nodes` among them, added up.
    """
    store = np.empty((draws.max() + 1, width), np.int32)
    state = np.empty(1, np.uint64)
    weights = np.empty(width)
    for i in range(nodes.size):
        for c in range(width):
            weights[c] = max(0.0, total[c] - z[i, c] * z[i, c]) ** 2
        state[0] = stream(seed + 1, nodes[i])
        for stage in range(draws.size):
            counts = store[: draws[stage] + 1]
            exchanged_cover(nodes[i], path, offsets, column, width, draws[stage], state, counts)
            mean, scale = standardise(counts)
            p[i] = share_at_least(surplus(counts, mean, scale, weights, 2, False))
            if not _goes_on(p[i], stage, draws):
                break


@njit(cache=True, nogil=True)
def _next_statistic(before: Ints, after: Ints, expected: Floats, scale: Floats, count: Floats, constant: float) -> float:
    """Sum over (before, after) of (count - expected)^2 * scale; `count` is zero and is left so."""
    for k in range(before.size):
        if before[k] >= 0 and after[k] >= 0:
            count[before[k], after[k]] += 1.0
    total = constant
    for k in range(before.size):
        i, j = before[k], after[k]
        if i >= 0 and j >= 0:
            c = count[i, j]
            total += (c * c - 2.0 * c * expected[i, j]) * scale[i, j]
            count[i, j] = 0.0
    return total


@njit(cache=True, nogil=True)
def _spread(stratum: Ints, code: Ints, per: Floats, n_codes: int) -> tuple[Floats, Floats]:
    """Counts per (stratum, code), and the sum of squares of each code's indicator, centred per stratum."""
    table, spread = np.zeros((per.size, n_codes)), np.zeros(n_codes)
    for k in range(stratum.size):
        if code[k] >= 0:
            table[stratum[k], code[k]] += 1.0
    for s in range(per.size):
        for c in range(n_codes):
            spread[c] += table[s, c] * (1.0 - table[s, c] / per[s])
    return table, spread


@njit(cache=True, nogil=True)
def next_test(
    starts: Ints, before: Ints, after: Ints, n_before: int, n_after: int, draws: Ints, state: State
) -> float:
    """p of "what comes next depends on how one came here, given the action" at one node; NaN where nothing can vary.

    One entry per visit; those of action s stand at starts[s]:starts[s + 1]. Squared correlations of indicators of what came
    before with indicators of what comes next, both centred per action, are added up; next nodes are dealt anew within each
    action. A negative code is counted nowhere (seen too rarely).
    """
    per = np.diff(starts).astype(np.float64)
    stratum = np.repeat(np.arange(per.size), np.diff(starts))
    b, spread_b = _spread(stratum, before, per, n_before)
    a, spread_a = _spread(stratum, after, per, n_after)
    expected, scale = np.zeros((n_before, n_after)), np.zeros((n_before, n_after))
    constant, varies = 0.0, False
    for i in range(n_before):
        for j in range(n_after):
            if spread_b[i] > 1e-9 and spread_a[j] > 1e-9:
                varies = True
                scale[i, j] = 1.0 / (spread_b[i] * spread_a[j])
                for s in range(per.size):
                    expected[i, j] += b[s, i] * a[s, j] / per[s]
                constant += expected[i, j] * expected[i, j] * scale[i, j]
    if not varies:
        return np.nan
    dealt, count, p = after.copy(), np.zeros((n_before, n_after)), 1.0
    for stage in range(draws.size):
        statistic = np.empty(draws[stage] + 1)
        statistic[0] = _next_statistic(before, after, expected, scale, count, constant)
        for r in range(1, statistic.size):
            for s in range(per.size):
                shuffle(dealt, starts[s], starts[s + 1], state)
            statistic[r] = _next_statistic(before, dealt, expected, scale, count, constant)
        p = share_at_least(statistic)
        if not _goes_on(p, stage, draws):
            break
    return p
