"""Compiled loops of the n-gram similarity. No fastmath, no threads."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ROUNDING = 1e-12  # a text is similar to itself
SINGLE = 1e-6  # bounds are kept in single precision


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
def rows(starts: Ints, ranks: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """Each row sorted by rank and divided by its length."""
    out_ranks = np.empty_like(ranks)
    out_weights = np.empty_like(weights)
    for t in range(starts.size - 1):
        begin, end = starts[t], starts[t + 1]
        order = np.argsort(ranks[begin:end])
        total = 0.0
        for i in range(begin, end):
            total += weights[i] * weights[i]
        for i in range(end - begin):
            out_ranks[begin + i] = ranks[begin + order[i]]
            out_weights[begin + i] = weights[begin + order[i]] / np.sqrt(total)
    return out_ranks, out_weights


@njit(cache=True, nogil=True)
def _rests(starts: Ints, weights: Floats) -> Floats:
    """How long the rest of the row is from each of its entries on."""
    rests = np.empty_like(weights)
    for t in range(starts.size - 1):
        square = 0.0
        for i in range(starts[t + 1] - 1, starts[t] - 1, -1):
            square += weights[i] * weights[i]
            rests[i] = np.sqrt(square)
    return rests


@njit(cache=True, nogil=True)
def _cosine(a: int, a_end: int, b: int, b_end: int, ranks: Ints, weights: Floats, rests: Floats, least: float) -> float:
    """Cosine of two rows given by their entry ranges; -1 as soon as it cannot reach `least` any more."""
    total = 0.0
    while a < a_end and b < b_end:
        if ranks[a] == ranks[b]:
            total += weights[a] * weights[b]
            a += 1
            b += 1
            continue
        if ranks[a] < ranks[b]:
            a += 1
        else:
            b += 1
        if a < a_end and b < b_end and total + rests[a] * rests[b] < least:
            return -1.0
    return total


@njit(cache=True, nogil=True)
def greedy(starts: Ints, ranks: Ints, weights: Floats, n_features: int, tau: float) -> Ints:
    """Each row's leader: the most similar earlier leader with cosine >= tau (of equal ones the first), else itself.

    Exact. Rows are sorted rarest feature first, and a row's prefix leaves a rest shorter than tau. Let the prefix of one row
    end no later than the other's: if the prefixes share nothing, all that the rows share lies in that row's rest, and their
    cosine is below tau. So only leaders that share a prefix feature with the row are compared. Before the first shared one
    nothing is shared, so the product of the two rests from there bounds the cosine.
    """
    n = starts.size - 1
    rests = _rests(starts, weights)
    leader = np.empty(n, np.int64)
    cuts = np.empty(n, np.int64)
    begin = np.zeros(n_features + 1, np.int64)  # room for the leaders of each feature, side by side
    for t in range(n):
        cuts[t] = starts[t]
        while cuts[t] < starts[t + 1] and rests[cuts[t]] >= tau - 2 * ROUNDING:
            begin[ranks[cuts[t]] + 1] += 1
            cuts[t] += 1
    for f in range(n_features):
        begin[f + 1] += begin[f]
    end = begin[:-1].copy()
    who = np.empty(begin[n_features], np.int32)
    rest = np.empty(begin[n_features], np.float32)
    seen = np.full(n, -1, np.int64)
    for t in range(n):
        best, best_cosine = -1, tau - ROUNDING
        for i in range(starts[t], cuts[t]):
            f = ranks[i]
            for k in range(begin[f], end[f]):
                if rest[k] * rests[i] < best_cosine - SINGLE:
                    continue
                other = int(who[k])
                if seen[other] == t:
                    continue
                seen[other] = t
                least = best_cosine - ROUNDING
                cosine = _cosine(i, starts[t + 1], starts[other], starts[other + 1], ranks, weights, rests, least)
                if cosine > best_cosine or (cosine == best_cosine and (best < 0 or other < best)):
                    best, best_cosine = other, cosine
        leader[t] = t if best < 0 else best
        if best >= 0:
            continue
        for i in range(starts[t], cuts[t]):
            f = ranks[i]
            who[end[f]] = t
            rest[end[f]] = rests[i]
            end[f] += 1
    return leader
