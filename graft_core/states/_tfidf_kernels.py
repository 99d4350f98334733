"""Compiled loops of the n-gram similarity. No fastmath; the caller's threads work on texts of their own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

ROUNDING = 1e-12  # a text is similar to itself
SINGLE = 1e-7  # more than half a unit in the last place of a single-precision number between 0 and 1
LEVELS = 64


class Rows(NamedTuple):
    """Unit rows of all texts. Row t is ranks[starts[t]:starts[t + 1]], rarest feature first, with its weights.

    rests: length of the row from each entry on. Features are cut into LEVELS bands of equal weight over the corpus;
    grid[k, t]: length of row t from band k on; cut[t]: the first band from which on it is below tau; stop[t]: where the row's
    entries of the bands before stop (the row's prefix).
    """

    starts: Ints
    ranks: Small
    weights: Floats
    rests: Floats
    grid: Singles
    cut: npt.NDArray[np.uint8]
    stop: Ints


class Index(NamedTuple):
    """The prefixes of the leaders: those with feature f are who[begin[f]:end[f]], with their weights there."""

    begin: Ints
    end: Ints
    who: Small
    weight: Singles


class Scratch(NamedTuple):
    """One thread's room: what each text shares with the one in hand (zeros between two), and which texts that are."""

    shared: Singles
    touched: Small


@njit(cache=True, nogil=True)
def ngrams(letters: npt.NDArray[np.uint32], offsets: Ints, n: int, buckets: int) -> tuple[Ints, Ints, Floats]:
    """(starts, features, counts): the hashed n-grams of text i are features[starts[i]:starts[i + 1]], each once."""
    texts = offsets.size - 1
    room = 0
    for t in range(texts):
        room += max(offsets[t + 1] - offsets[t] - n + 1, 1)
    features = np.empty(room, np.int64)
    counts = np.empty(room, np.float64)
    starts = np.zeros(texts + 1, np.int64)
    at = 0
    for t in range(texts):
        begin, end = offsets[t], offsets[t + 1]
        size = max(end - begin - n + 1, 1)
        found = np.empty(size, np.int64)
        for i in range(size):
            x = np.uint64(0x9E3779B97F4A7C15)
            for j in range(begin + i, min(begin + i + n, end)):
                x = (x ^ np.uint64(letters[j])) * np.uint64(0xBF58476D1CE4E5B9)
                x ^= x >> np.uint64(31)
            found[i] = np.int64(x & np.uint64(buckets - 1))
        found.sort()
        for i in range(size):
            if i > 0 and found[i] == found[i - 1]:
                counts[at - 1] += 1.0
            else:
                features[at] = found[i]
                counts[at] = 1.0
                at += 1
        starts[t + 1] = at
    return starts, features[:at].copy(), counts[:at].copy()


@njit(cache=True, nogil=True)
def unit_rows(first: int, last: int, starts: Ints, ranks: Small, weights: Floats, rests: Floats) -> None:
    """Put rows first..last - 1 in order of rank and divide them by their lengths, in place; fill `rests`."""
    for t in range(first, last):
        begin, end = starts[t], starts[t + 1]
        order = np.argsort(ranks[begin:end])
        ranks[begin:end] = ranks[begin:end][order]
        weights[begin:end] = weights[begin:end][order]
        total = 0.0
        for i in range(begin, end):
            total += weights[i] * weights[i]
        square = 0.0
        for i in range(end - 1, begin - 1, -1):
            weights[i] /= np.sqrt(total)
            square += weights[i] * weights[i]
            rests[i] = np.sqrt(square)


@njit(cache=True, nogil=True)
def _bands(ranks: Small, weights: Floats, n_texts: int, n_features: int) -> Ints:
    """First feature of each of LEVELS bands of equal weight, and `n_features` behind them."""
    mass = np.zeros(n_features)
    for i in range(ranks.size):
        mass[ranks[i]] += weights[i] * weights[i]
    bands = np.full(LEVELS + 1, n_features, np.int64)
    total, k = 0.0, 0
    for f in range(n_features):
        while k < LEVELS and total >= n_texts * k / LEVELS:
            bands[k] = f
            k += 1
        total += mass[f]
    return bands


@njit(cache=True, nogil=True)
def with_prefixes(
    starts: Ints, ranks: Small, weights: Floats, rests: Floats, n_features: int, tau: float
) -> tuple[Rows, Index]:
    """The rows with their prefixes, and an index without leaders that has room for all prefixes."""
    n = starts.size - 1
    bands = _bands(ranks, weights, n, n_features)
    grid, cut, stop = np.zeros((LEVELS + 1, n), np.float32), np.zeros(n, np.uint8), np.zeros(n, np.int64)
    begin = np.zeros(n_features + 1, np.int64)
    for t in range(n):
        i = starts[t]
        for k in range(LEVELS + 1):
            while i < starts[t + 1] and ranks[i] < bands[k]:
                i += 1
            grid[k, t] = rests[i] if i < starts[t + 1] else 0.0
            if cut[t] == 0 and (i == starts[t + 1] or rests[i] < tau - 2 * ROUNDING):
                cut[t], stop[t] = k, i
        for i in range(starts[t], stop[t]):
            begin[ranks[i] + 1] += 1
    for f in range(n_features):
        begin[f + 1] += begin[f]
    who, weight = np.empty(begin[n_features], np.int32), np.empty(begin[n_features], np.float32)
    return Rows(starts, ranks, weights, rests, grid, cut, stop), Index(begin, begin[:-1].copy(), who, weight)


@njit(cache=True, nogil=True)
def scratch(n_texts: int) -> Scratch:
    return Scratch(np.zeros(n_texts, np.float32), np.empty(n_texts, np.int32))


@njit(cache=True, nogil=True)
def _cosine(rows: Rows, s: int, t: int, least: float) -> float:
    """Cosine of two rows, added up in order of rank; -1 as soon as it cannot reach `least` any more."""
    a, a_end, b, b_end = rows.starts[s], rows.starts[s + 1], rows.starts[t], rows.starts[t + 1]
    total = 0.0
    while a < a_end and b < b_end:
        if rows.ranks[a] == rows.ranks[b]:
            total += rows.weights[a] * rows.weights[b]
            a += 1
            b += 1
            continue
        if rows.ranks[a] < rows.ranks[b]:
            a += 1
        else:
            b += 1
        if a < a_end and b < b_end and total + rows.rests[a] * rows.rests[b] < least:
            return -1.0
    return total


@njit(cache=True, nogil=True)
def _nearest(t: int, rows: Rows, index: Index, low: Ints, high: Ints, best: Ints, cosine: Floats, room: Scratch) -> None:
    """Better best[t] and cosine[t] by the leaders that the index holds from low[f] to high[f] under each feature f."""
    shared, touched = room
    n = 0
    for i in range(rows.starts[t], rows.stop[t]):
        f, w = rows.ranks[i], np.float32(rows.weights[i])
        for k in range(low[f], high[f]):
            other = index.who[k]
            if shared[other] == 0.0:
                touched[n] = other
                n += 1
            shared[other] += w * index.weight[k]
    slack = SINGLE * (rows.stop[t] - rows.starts[t] + 16)
    for k in range(n):
        other = int(touched[k])
        band = min(rows.cut[t], rows.cut[other])
        bound = float(shared[other]) + float(rows.grid[band, t]) * float(rows.grid[band, other])
        shared[other] = 0.0
        if bound < cosine[t] - slack:
            continue
        exact = _cosine(rows, t, other, cosine[t] - ROUNDING)
        if exact > cosine[t] or (exact == cosine[t] and (best[t] < 0 or other < best[t])):
            best[t], cosine[t] = other, exact


@njit(cache=True, nogil=True)
def nearest(first: int, last: int, step: int, rows: Rows, index: Index, best: Ints, cosine: Floats, room: Scratch) -> None:
    """For rows first, first + step, ... below `last`: the most similar leader of the index (best, cosine); a thread's share.

    The index is only read. Exact: a row and a leader share nothing before the first of them reaches its prefix's end but
    what their prefixes share, which is added up; from there on the product of their rests bounds what they can share. So a
    pair whose prefixes share nothing stays below tau, and only pairs whose bound reaches the best so far are compared whole.
    """
    for t in range(first, last, step):
        _nearest(t, rows, index, index.begin, index.end, best, cosine, room)


@njit(cache=True, nogil=True)
def lead(first: int, last: int, rows: Rows, index: Index, best: Ints, cosine: Floats, room: Scratch) -> None:
    """Rows first..last - 1, one after the other: compare with the leaders among themselves; without a leader, become one."""
    before = index.end.copy()
    for t in range(first, last):
        _nearest(t, rows, index, before, index.end, best, cosine, room)
        if best[t] >= 0:
            continue
        for i in range(rows.starts[t], rows.stop[t]):
            f = rows.ranks[i]
            index.who[index.end[f]] = t
            index.weight[index.end[f]] = rows.weights[i]
            index.end[f] += 1
