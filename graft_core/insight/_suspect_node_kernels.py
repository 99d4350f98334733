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
BLOCK = 256  # draws that are dealt and counted together
WORD = 64  # bits of a whole number, each of which stands for a rollout
MOST_MASKED = 512  # rollouts through a node that are kept as bits; more are looked up one by one


@njit(cache=True, nogil=True)
def pieces(u: int, path: Ints, offsets: Ints, column: Ints, width: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Cut the rollouts that visit u at their visits: (first piece of each rollout, number of pieces, starts, holders).

    Pieces of one rollout follow one another: what came before the first visit, loops, what came after the last. Column c is
    met in the pieces holders[starts[c]:starts[c + 1]]; u itself in none.
    """
    visits = np.zeros(offsets.size - 1, np.int64)
    for r in range(visits.size):
        for k in range(offsets[r], offsets[r + 1]):
            visits[r] += path[k] == u
    meets = np.flatnonzero(visits)
    size = visits[meets] + 1
    first = np.cumsum(size) - size
    starts, seen = np.zeros(width + 1, np.int64), np.empty(width, np.int64)
    holders = np.empty(0, np.int64)
    fill = starts
    for count in (True, False):
        if not count:
            starts = np.cumsum(starts)
            fill = starts[:-1].copy()
            holders = np.empty(starts[width], np.int64)
        seen[:] = -1
        for i in range(meets.size):
            piece = first[i]
            for k in range(offsets[meets[i]], offsets[meets[i] + 1]):
                c = column[path[k]]
                if path[k] == u:
                    piece += 1
                elif c >= 0 and seen[c] != piece:
                    seen[c] = piece
                    if count:
                        fill[c + 1] += 1
                    else:
                        holders[fill[c]] = piece
                        fill[c] += 1
    return first, size, starts, holders


@njit(cache=True, nogil=True)
def varying(first: Ints, size: Ints, starts: Ints, holders: Ints) -> Ints:
    """Columns whose coverage can change when pieces are exchanged: met in several, not all heads and not all tails."""
    kind = np.zeros(size.sum(), np.int64)
    kind[first] = 1
    kind[first + size - 1] = 2
    found = np.zeros(starts.size - 1, np.bool_)
    for c in range(found.size):
        own = kind[holders[starts[c] : starts[c + 1]]]
        found[c] = own.size > 1 and (own[0] == 0 or np.any(own != own[0]))
    return np.flatnonzero(found)


@njit(cache=True, nogil=True)
def _heads(first: Ints, size: Ints) -> Ints:
    """For each piece the rollout that it begins, -1 for loops and tails."""
    head = np.full(size.sum(), -1, np.int64)
    for i in range(first.size):
        head[first[i]] = i
    return head


@njit(cache=True, nogil=True)
def _deal(first: Ints, size: Ints, tails: Ints, loops: Ints, slot: Counts, b: int) -> None:
    """slot[piece, b] = rollout in which each loop and tail lies when they are dealt out in this order."""
    taken = 0
    for i in range(first.size):
        slot[tails[i], b] = i
        for _ in range(size[i] - 2):
            slot[loops[taken], b] = i
            taken += 1


@njit(cache=True, nogil=True)
def exchanged_cover(
    first: Ints, size: Ints, starts: Ints, holders: Ints, asked: Ints, draws: int, state: State, counts: Counts
) -> None:
    """Fill counts[k, b] for column asked[k]: rollouts through u that meet it, as observed (b = 0) and with pieces exchanged.

    What came before the first visit stays; loops and tails are dealt anew among the rollouts that visit u. The first four
    arguments are what `pieces` returns; counts has room for draws + 1 in a row.
    """
    head, tails = _heads(first, size), first + size - 1
    loops = np.ones(head.size, np.bool_)
    loops[first] = loops[tails] = False
    order = np.flatnonzero(loops)
    slot = np.empty((head.size, BLOCK), np.int32)
    bits, loose = np.empty(BLOCK, np.uint64), np.empty(head.size + 4, np.int64)
    mask = np.zeros((head.size + 1 if first.size <= WORD else 0, BLOCK), np.uint64)  # the last row stays empty
    stamps = np.zeros((first.size if first.size > MOST_MASKED else 0, BLOCK), np.int64)
    stamp = 0
    for low in range(0, draws + 1, BLOCK):
        high = min(low + BLOCK, draws + 1)
        for b in range(low, high):
            if b:
                shuffle(tails, 0, tails.size, state)
                shuffle(order, 0, order.size, state)
            _deal(first, size, tails, order, slot, b - low)
        for piece in range(mask.shape[0] - 1):
            if head[piece] < 0:
                for b in range(high - low):
                    mask[piece, b] = np.uint64(1) << np.uint64(slot[piece, b])
        for k in range(asked.size):
            own, row = holders[starts[asked[k]] : starts[asked[k] + 1]], counts[k, low:high]
            row[:] = 0
            if first.size <= WORD:
                _masked_once(own, head, mask, loose, bits, row)
            elif first.size <= MOST_MASKED:
                for word in range((first.size + WORD - 1) // WORD):
                    _masked(own, head, slot, word, bits[: row.size], row)
            else:
                stamp += 1
                _stamped(own, head, slot, stamp, stamps, row)


@njit(cache=True, nogil=True, inline="always")
def _bits_set(x: np.uint64) -> int:
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True, nogil=True)
def _masked_once(own: Ints, head: Ints, mask: State, loose: Ints, bits: State, row: Counts) -> None:
    """row[b] = how many of at most 64 rollouts hold a piece of `own`; mask[piece, b] has the bit of its rollout set.

    Four pieces at a time: a pass over the draws costs more than a piece. The last row of `mask` is empty and fills up.
    """
    always, n = np.uint64(0), 0
    for p in own:
        if head[p] >= 0:
            always |= np.uint64(1) << np.uint64(head[p])
        else:
            loose[n] = p
            n += 1
    loose[n : n + 4] = mask.shape[0] - 1
    i, j, k, m = mask[loose[0]], mask[loose[1]], mask[loose[2]], mask[loose[3]]
    if n <= 2:
        for b in range(row.size):
            row[b] = _bits_set(always | i[b] | j[b])
    elif n <= 4:
        for b in range(row.size):
            row[b] = _bits_set(always | i[b] | j[b] | k[b] | m[b])
    else:
        bits[:] = always
        for at in range(0, n, 4):
            i, j, k, m = mask[loose[at]], mask[loose[at + 1]], mask[loose[at + 2]], mask[loose[at + 3]]
            for b in range(row.size):
                bits[b] |= i[b] | j[b] | k[b] | m[b]
        for b in range(row.size):
            row[b] = _bits_set(bits[b])


@njit(cache=True, nogil=True)
def _masked(own: Ints, head: Ints, slot: Counts, word: int, bits: State, row: Counts) -> None:
    """row[b] += how many of the rollouts 64 * word .. 64 * word + 63 hold a piece of `own`; a bit stands for a rollout."""
    always, one, low = np.uint64(0), np.uint64(1), 64 * word
    for p in own:
        if head[p] >> 6 == word:
            always |= one << np.uint64(head[p] - low)
    bits[:] = always
    for p in own:
        if head[p] < 0:
            lies = slot[p]
            for b in range(bits.size):
                i = lies[b] - low
                bits[b] |= one << np.uint64(i) if 0 <= i < 64 else np.uint64(0)
    for b in range(bits.size):
        row[b] += _bits_set(bits[b])


@njit(cache=True, nogil=True)
def _stamped(own: Ints, head: Ints, slot: Counts, stamp: int, stamps: Ints, row: Counts) -> None:
    """row[b] += how many rollouts hold a piece of `own`; stamps[rollout, b] = stamp where one was counted."""
    for p in own:
        for b in range(row.size):
            i = head[p] if head[p] >= 0 else np.int64(slot[p, b])
            if stamps[i, b] != stamp:
                stamps[i, b] = stamp
                row[b] += 1


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
    store = np.empty((width, draws.max() + 1), np.int32)
    state = np.empty(1, np.uint64)
    for i in range(nodes.size):
        first, size, starts, holders = pieces(nodes[i], path, offsets, column, width)
        asked = varying(first, size, starts, holders)
        ones = np.ones(asked.size)
        state[0] = stream(seed, nodes[i])
        z[i, :] = 0.0
        for stage in range(draws.size):
            counts = store[: asked.size, : draws[stage] + 1]
            exchanged_cover(first, size, starts, holders, asked, draws[stage], state, counts)
            mean, scale = standardise(counts)
            for k in range(asked.size):
                z[i, asked[k]] = max(0.0, (counts[k, 0] - mean[k]) * scale[k])
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
    store = np.empty((width, draws.max() + 1), np.int32)
    state = np.empty(1, np.uint64)
    for i in range(nodes.size):
        first, size, starts, holders = pieces(nodes[i], path, offsets, column, width)
        asked = varying(first, size, starts, holders)
        weights = np.empty(asked.size)
        for k in range(asked.size):
            c = asked[k]
            weights[k] = max(0.0, total[c] - z[i, c] * z[i, c]) ** 2
        state[0] = stream(seed + 1, nodes[i])
        for stage in range(draws.size):
            counts = store[: asked.size, : draws[stage] + 1]
            exchanged_cover(first, size, starts, holders, asked, draws[stage], state, counts)
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
