"""Compiled coding of pairs. No fastmath, no threads: codes depend on the pairs only."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _counted(codes, order, n_codes):
    """`order` stably sorted by codes: a counting sort, linear in the number of items and codes."""
    starts = np.zeros(n_codes + 1, np.int64)
    for i in range(codes.size):
        starts[codes[i] + 1] += 1
    for c in range(n_codes):
        starts[c + 1] += starts[c]
    out = np.empty_like(order)
    for j in range(order.size):
        c = codes[order[j]]
        out[starts[c]] = order[j]
        starts[c] += 1
    return out


@njit(cache=True, nogil=True)
def sort_pairs(left, right, n_left, n_right):
    """Codes of the pairs (left, right) by ascending pair, and the left and right behind each code."""
    n = left.size
    order = _counted(left, _counted(right, np.arange(n), n_right), n_left)
    codes = np.empty(n, np.int64)
    lefts = np.empty(n, np.int64)
    rights = np.empty(n, np.int64)
    count = 0
    for j in range(n):
        i = order[j]
        if count == 0 or lefts[count - 1] != left[i] or rights[count - 1] != right[i]:
            lefts[count] = left[i]
            rights[count] = right[i]
            count += 1
        codes[i] = count - 1
    return codes, lefts[:count].copy(), rights[:count].copy()
