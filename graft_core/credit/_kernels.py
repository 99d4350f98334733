"""Compiled loops over steps and hops, in path order."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def no_spread(x, group, n_groups, absolute, relative):
    """Whether max - min <= absolute + relative * max|x| in each group; true for empty groups."""
    low = np.full(n_groups, np.inf)
    high = np.full(n_groups, -np.inf)
    for i in range(x.size):
        g = group[i]
        if x[i] < low[g]:
            low[g] = x[i]
        if x[i] > high[g]:
            high[g] = x[i]
    still = np.empty(n_groups, np.bool_)
    for g in range(n_groups):
        still[g] = not high[g] - low[g] > absolute + relative * max(abs(low[g]), abs(high[g]))
    return still


@njit(cache=True, nogil=True)
def standard(x, group, n_groups, eps, ddof, still):
    """(x - mean) / (std + eps) in each group, 0 where `still`; two passes, for accuracy."""
    n = np.zeros(n_groups, np.int64)
    mean = np.zeros(n_groups)
    for i in range(x.size):
        n[group[i]] += 1
        mean[group[i]] += x[i]
    for g in range(n_groups):
        mean[g] /= max(n[g], 1)
    scale = np.zeros(n_groups)
    for i in range(x.size):
        centred = x[i] - mean[group[i]]
        scale[group[i]] += centred * centred
    for g in range(n_groups):
        if not still[g]:
            scale[g] = np.sqrt(scale[g] / (n[g] - ddof)) + eps
    out = np.empty_like(x)
    for i in range(x.size):
        g = group[i]
        out[i] = 0.0 if still[g] else (x[i] - mean[g]) / scale[g]
    return out


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
def frontier_sums(first, longest, indptr, successor, total, mass, discount, starts, out):
    """sum_k discount^k Abar_k for each start node and every horizon, Abar_k over the edges leaving the k-hop frontier.

    first: distinct start nodes; longest: hops wanted from each; starts[i]: where out holds horizons 0..longest[i] of
    start i. total, mass: per node, the sum of weight * residual and of weight over its edges; indptr, successor: distinct
    next nodes that have edges. The frontier is a *set* of nodes, so one that many walks reach counts once (method.md
    sec. 4).
    """
    n = indptr.size - 1
    seen = np.full(n, -1, np.int64)
    here = np.empty(n, np.int64)
    there = np.empty(n, np.int64)
    clock = 0
    for i in range(first.size):
        n_here = 1
        here[0] = first[i]
        clock += 2
        seen[first[i]] = clock
        running, factor = 0.0, 1.0
        out[starts[i]] = 0.0
        for k in range(1, longest[i] + 1):
            factor *= discount
            clock += 1
            above, below, n_there, n_again = 0.0, 0.0, 0, 0
            for j in range(n_here):
                u = here[j]
                above += total[u]
                below += mass[u]
                for e in range(indptr[u], indptr[u + 1]):
                    v = successor[e]
                    if seen[v] != clock:
                        n_again += seen[v] == clock - 1
                        seen[v] = clock
                        there[n_there] = v
                        n_there += 1
            if below > 0.0:
                running += factor * above / below
            out[starts[i] + k] = running
            if below == 0.0 or (n_again == n_here and n_there == n_here):  # nowhere to go, or the same set for ever
                for rest in range(k + 1, longest[i] + 1):
                    if below > 0.0:
                        factor *= discount
                        running += factor * above / below
                    out[starts[i] + rest] = running
                break
            here, there = there, here
            n_here = n_there


@njit(cache=True, nogil=True)
def push(indptr, edge_dst, probability, x, out):
    """out(u) = sum over edges of probability * x(v): one hop of expectation."""
    for u in range(indptr.size - 1):
        total = 0.0
        for e in range(indptr[u], indptr[u + 1]):
            if probability[e] != 0.0:
                total += probability[e] * x[edge_dst[e]]
        out[u] = total


@njit(cache=True, nogil=True)
def lowest_in_rollout(x, offsets, above, below):
    """Marks the floor(T above / below) smallest x of each rollout; ties to the earlier. bool[n_steps]."""
    marked = np.zeros(x.size, np.bool_)
    for i in range(offsets.size - 1):
        first, end = offsets[i], offsets[i + 1]
        wanted = (end - first) * above // below
        if wanted > 0:
            order = np.argsort(x[first:end], kind="mergesort")
            for j in range(wanted):
                marked[first + order[j]] = True
    return marked


@njit(cache=True, nogil=True)
def one_further_back(at, history, rank, node, level):
    """The steps of `at` with at least `level` - 1 steps before them, their histories, and the node that far back."""
    n = 0
    kept, before, further = np.empty_like(at), np.empty_like(history), np.empty_like(history)
    for j in range(at.size):
        if rank[at[j]] >= level - 1:
            kept[n] = at[j]
            before[n] = history[j]
            further[n] = node[at[j] - level + 1]
            n += 1
    return kept[:n], before[:n], further[:n]


@njit(cache=True, nogil=True)
def add_items(at, item, least, weight, total, weights):
    """total += weight * item and weights += weight at the steps `at`, where |item| > least."""
    for j in range(at.size):
        if abs(item[j]) > least:
            total[at[j]] += weight * item[j]
            weights[at[j]] += weight
