"""Compiled coding of pairs. No fastmath, no threads: codes depend on the pairs only."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _starts(codes, n_codes):
    """Where each code's items begin when they are sorted."""
    starts = np.zeros(n_codes + 1, np.int32)
    for i in range(codes.size):
        starts[codes[i] + 1] += 1
    for c in range(n_codes):
        starts[c + 1] += starts[c]
    return starts


@njit(cache=True, nogil=True)
def sort_pairs(left, right, n_left, n_right):
    """Codes of the pairs (left, right) by ascending pair, and the left and right behind each code.

    Two counting sorts, linear in the number of items and codes; up to 2^31 items.
    """
    n = left.size
    by_right, order = np.empty(n, np.int32), np.empty(n, np.int32)
    starts = _starts(right, n_right)
    for i in range(n):
        c = right[i]
        by_right[starts[c]] = i
        starts[c] += 1
    starts = _starts(left, n_left)
    for j in range(n):
        c = left[by_right[j]]
        order[starts[c]] = by_right[j]
        starts[c] += 1
    codes = np.empty(n, np.int64)
    count = 0
    for j in range(n):
        i = order[j]
        if j == 0 or left[i] != left[order[j - 1]] or right[i] != right[order[j - 1]]:
            count += 1
        codes[i] = count - 1
    lefts, rights = np.empty(count, np.int64), np.empty(count, np.int64)
    for i in range(n):
        lefts[codes[i]] = left[i]
        rights[codes[i]] = right[i]
    return codes, lefts, rights


@njit(cache=True, nogil=True)
def _slot(parent, action, key, mask):
    x = np.uint64(parent + 1) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ np.uint64(action + 1)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(29)) ^ np.uint64(key)) * np.uint64(0x94D049BB133111EB)
    return np.int64((x ^ (x >> np.uint64(32))) & np.uint64(mask))


@njit(cache=True, nogil=True)
def chain(keys, actions, deep):
    """Codes by first appearance of (code before, action before, key) where `deep`, of the key alone elsewhere.

    Positions stand in path order; a deep position continues the position before it. Exact: an open hash table.
    """
    n = keys.size
    size = 16
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1, np.int64)
    first = np.empty(n, np.int64)  # the position that made each code
    parents = np.empty(n, np.int64)
    out = np.empty(n, np.int64)
    count = 0
    for i in range(n):
        parent = out[i - 1] if deep[i] else -1
        action = actions[i] if deep[i] else -1
        at = _slot(parent, action, keys[i], size - 1)
        while True:
            c = table[at]
            if c < 0:
                table[at] = count
                first[count] = i
                parents[count] = parent
                out[i] = count
                count += 1
                break
            j = first[c]
            if parents[c] == parent and keys[j] == keys[i] and deep[j] == deep[i] and (not deep[i] or actions[j] == action):
                out[i] = c
                break
            at = (at + 1) & (size - 1)
    return out, first[:count].copy()


@njit(cache=True, nogil=True)
def _mix(left, right):
    x = left * np.uint64(0x9E3779B97F4A7C15) + right + np.uint64(1)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def chain_hashes(keys, actions, deep):
    """The content hashes of `chain`'s codes, one per position: keys and actions are hashes here."""
    out = np.empty(keys.size, np.uint64)
    for i in range(keys.size):
        out[i] = _mix(_mix(out[i - 1], actions[i]), keys[i]) if deep[i] else keys[i]
    return out


@njit(cache=True, nogil=True)
def set_hashes(offsets, members, hashes):
    """One hash per list members[offsets[i]:offsets[i + 1]], whatever the order and repeats of its members."""
    out = np.empty(offsets.size - 1, np.uint64)
    for i in range(offsets.size - 1):
        inside = np.sort(members[offsets[i] : offsets[i + 1]])
        total = np.uint64(1)
        for j in range(inside.size):
            if j == 0 or inside[j] != inside[j - 1]:
                total += _mix(np.uint64(7), hashes[inside[j]])
        out[i] = total
    return out


@njit(cache=True, nogil=True)
def _space(data, i, end):
    """Bytes of the white space at i in UTF-8 text, 0 if there is none (wide spaces are plain ones after NFKC)."""
    c = data[i]
    if c == 32 or 9 <= c <= 13 or 28 <= c <= 31:
        return 1
    if c == 0xC2 and i + 1 < end and data[i + 1] == 0x85:
        return 2
    if c == 0xE1 and i + 2 < end and data[i + 1] == 0x9A and data[i + 2] == 0x80:
        return 3
    if c == 0xE2 and i + 2 < end and data[i + 1] == 0x80 and (data[i + 2] == 0xA8 or data[i + 2] == 0xA9):
        return 3
    return 0


_PLAIN = np.ones(256, np.bool_)  # bytes that are no white space and begin none
_PLAIN[[*range(9, 14), *range(28, 33), 0xC2, 0xE1, 0xE2]] = False


@njit(cache=True, nogil=True)
def single_spaces(data, offsets):
    """UTF-8 texts data[offsets[i]:offsets[i + 1]] with white space collapsed to single spaces and trimmed."""
    out = np.empty(data.size, np.uint8)
    ends = np.zeros(offsets.size, np.int64)
    at = 0
    for t in range(offsets.size - 1):
        start = at
        i, end = offsets[t], offsets[t + 1]
        waiting = False
        while i < end:
            if not _PLAIN[data[i]]:
                width = _space(data, i, end)
                if width > 0:
                    waiting = at > start
                    i += width
                    continue
            if waiting:
                out[at] = 32
                at += 1
                waiting = False
            out[at] = data[i]
            at += 1
            i += 1
        ends[t + 1] = at
    return out[:at].copy(), ends
