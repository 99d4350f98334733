"""Compiled reachability: which rollouts end at or behind each node, as sets of bits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@njit(cache=True, nogil=True)
def _ones(word: np.uint64) -> int:
    """How many bits of a word are set."""
    count = 0
    while word != np.uint64(0):
        word &= word - np.uint64(1)
        count += 1
    return count


@njit(cache=True, nogil=True)
def reached(
    nodes: Ints, starts: Ints, indptr: Ints, edge_dst: Ints, use: Bools, n_nodes: int, words: Ints, last: Ints, slot: Ints
) -> Ints:
    """How many rollouts end at or behind each node.

    nodes, starts: strong components, those further on first. words: per node, how many 64-bit words its group's rollouts need.
    last: per rollout the node that its last step leaves, -1 = does not count; slot: its number within its group.
    """
    n_components = starts.size - 1
    component = np.full(n_nodes, -1, np.int64)
    place = np.zeros(n_components + 1, np.int64)
    for c in range(n_components):
        for i in range(starts[c], starts[c + 1]):
            component[nodes[i]] = c
        place[c + 1] = place[c] + words[nodes[starts[c]]]
    bits = np.zeros(place[n_components], np.uint64)
    for r in range(last.size):
        if last[r] >= 0:
            bits[place[component[last[r]]] + slot[r] // 64] |= np.uint64(1) << np.uint64(slot[r] % 64)
    count = np.zeros(n_nodes, np.int64)
    for c in range(n_components):
        size = place[c + 1] - place[c]
        for i in range(starts[c], starts[c + 1]):
            u = nodes[i]
            for e in range(indptr[u], indptr[u + 1]):
                other = component[edge_dst[e]]
                if use[e] and other >= 0 and other != c:
                    for w in range(size):
                        bits[place[c] + w] |= bits[place[other] + w]
        ones = 0
        for w in range(size):
            ones += _ones(bits[place[c] + w])
        for i in range(starts[c], starts[c + 1]):
            count[nodes[i]] = ones
    return count
