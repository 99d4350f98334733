"""Compiled loops over steps and hops, in path order."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def discounted_sums(x, offsets, discount):
    """sum_k discount^k x[t + k] to the end of each rollout; rollouts stand at offsets[i]:offsets[i + 1]."""
    total = np.empty_like(x)
    for i in range(offsets.size - 1):
        running = 0.0
        for p in range(offsets[i + 1] - 1, offsets[i] - 1, -1):
            running = x[p] + discount * running
            total[p] = running
    return total


@njit(cache=True, nogil=True)
def frontier_sums(first, longest, indptr, edge_dst, use, weight, residual, discount, starts, out):
    """sum_k discount^k Abar_k for each start node and every horizon, Abar_k over the edges leaving the k-hop frontier.

    first: distinct start nodes; longest: hops wanted from each; starts[i]: where out holds horizons 0..longest[i] of
    start i. Abar_k = sum of weight * residual / sum of weight over the used edges of a *set* of nodes, so a node that
    can be reached on many walks counts once (method.md sec. 4).
    """
    n = indptr.size - 1
    seen = np.full(n, -1, np.int64)
    here = np.empty(n, np.int64)
    there = np.empty(n, np.int64)
    clock = 0
    for i in range(first.size):
        n_here = 1
        here[0] = first[i]
        running, factor = 0.0, 1.0
        out[starts[i]] = 0.0
        for k in range(1, longest[i] + 1):
            factor *= discount
            clock += 1
            total, mass, n_there = 0.0, 0.0, 0
            for j in range(n_here):
                u = here[j]
                for e in range(indptr[u], indptr[u + 1]):
                    if not use[e]:
                        continue
                    total += weight[e] * residual[e]
                    mass += weight[e]
                    v = edge_dst[e]
                    if seen[v] != clock:
                        seen[v] = clock
                        there[n_there] = v
                        n_there += 1
            if mass > 0.0:
                running += factor * total / mass
            out[starts[i] + k] = running
            here, there = there, here
            n_here = n_there
            if mass == 0.0:
                for rest in range(k + 1, longest[i] + 1):
                    out[starts[i] + rest] = running
                break


@njit(cache=True, nogil=True)
def push(indptr, edge_dst, probability, x, out):
    """out(u) = sum over edges of probability * x(v): one hop of expectation."""
    for u in range(indptr.size - 1):
        total = 0.0
        for e in range(indptr[u], indptr[u + 1]):
            if probability[e] != 0.0:
                total += probability[e] * x[edge_dst[e]]
        out[u] = total
