"""Compiled loops of the shuffle test: one graph, many outcome vectors side by side (columns)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

DENSE = 1500  # one factorisation serves all columns, so larger components than for one vector pay
EXACT = 1e-13  # sweeps stop when nothing moves more than this times (1 - gamma) / gamma
ROUGH_DENSE = 200
ROUGH = 1e-5  # enough for a variance


@njit(cache=True, nogil=True)
def _gather(u: int, place: Ints, indptr: Ints, edge_dst: Ints, weight: Floats, gamma: float, v: Floats, out: Floats) -> float:
    """Add what flows into u from nodes outside its component (place -1) to `out`; returns the weight of its own loop."""
    own = 0.0
    for e in range(indptr[u], indptr[u + 1]):
        w = weight[e]
        if w == 0.0:
            continue
        d = edge_dst[e]
        if d == u:
            own += w
        elif place[d] < 0:
            for s in range(out.size):
                out[s] += gamma * w * v[d, s]
    return own


@njit(cache=True, nogil=True)
def _dense(members: Ints, place: Ints, indptr: Ints, edge_dst: Ints, weight: Floats, gamma: float, v: Floats) -> None:
    """Solve one component for every column with one factorisation."""
    k = members.size
    a = np.eye(k)
    b = np.empty((k, v.shape[1]))
    for i in range(k):
        u = members[i]
        b[i, :] = v[u, :]
        _gather(u, place, indptr, edge_dst, weight, gamma, v, b[i])
        for e in range(indptr[u], indptr[u + 1]):
            j = place[edge_dst[e]]
            if weight[e] != 0.0 and j >= 0:
                a[i, j] -= gamma * weight[e]
    x = np.linalg.solve(a, b)
    for i in range(k):
        v[members[i], :] = x[i, :]


@njit(cache=True, nogil=True)
def _sweeps(
    members: Ints, place: Ints, indptr: Ints, edge_dst: Ints, weight: Floats, gamma: float, v: Floats, enough: float
) -> bool:
    """Gauss-Seidel inside one large component, all columns at once (gamma below 1)."""
    k, width = members.size, v.shape[1]
    b = np.empty((k, width))
    for i in range(k):
        b[i, :] = v[members[i], :]
        _gather(members[i], place, indptr, edge_dst, weight, gamma, v, b[i])
    for i in range(k):
        v[members[i], :] = 0.0
    new = np.empty(width)
    for _ in range(int(np.log(1e-18) / np.log(gamma)) + 1000):
        change, size = 0.0, 1.0
        for i in range(k):
            u, own = members[i], 0.0
            new[:] = b[i, :]
            for e in range(indptr[u], indptr[u + 1]):
                w, d = weight[e], edge_dst[e]
                if w == 0.0 or place[d] < 0:
                    continue
                if d == u:
                    own += w
                else:
                    for s in range(width):
                        new[s] += gamma * w * v[d, s]
            for s in range(width):
                x = new[s] / (1.0 - gamma * own)
                change = max(change, abs(x - v[u, s]))
                size = max(size, abs(x))
                v[u, s] = x
        if change <= enough * size * (1.0 - gamma) / gamma:
            return True
    return False


@njit(cache=True, nogil=True)
def solve_columns(
    nodes: Ints, starts: Ints, indptr: Ints, edge_dst: Ints, weight: Floats, gamma: float, v: Floats, dense: int, enough: float
) -> bool:
    """V = constant + gamma * weight V for every column; `v` holds the constants and receives the values.

    nodes, starts: strongly connected components in reverse topological order; those up to `dense` are solved at once, the
    others by sweeps until they move less than `enough`. Returns False where sweeps did not settle.
    """
    place = np.full(v.shape[0], -1, np.int64)
    for c in range(starts.size - 1):
        members = nodes[starts[c] : starts[c + 1]]
        if members.size == 1:
            u = members[0]
            own = _gather(u, place, indptr, edge_dst, weight, gamma, v, v[u])
            v[u, :] /= 1.0 - gamma * own
            continue
        for i in range(members.size):
            place[members[i]] = i
        settled = True
        if members.size <= dense or gamma == 1.0:
            _dense(members, place, indptr, edge_dst, weight, gamma, v)
        else:
            settled = _sweeps(members, place, indptr, edge_dst, weight, gamma, v, enough)
        for i in range(members.size):
            place[members[i]] = -1
        if not settled:
            return False
    return True


@njit(cache=True, nogil=True)
def tally(credit: Floats, starts: Ints, rollout: Ints, failed: Bools, tolerance: float, count: Ints, taken: Bools) -> None:
    """Count good steps of failed rollouts per column, and mark where a failed rollout took a step of the class.

    credit [C, S]; the steps of class c belong to rollouts rollout[starts[c]:starts[c + 1]]; failed [R, S].
    Adds to count [S]; fills taken [C, S].
    """
    for c in range(credit.shape[0]):
        for s in range(credit.shape[1]):
            taken[c, s] = False
        for k in range(starts[c], starts[c + 1]):
            r = rollout[k]
            for s in range(credit.shape[1]):
                if failed[r, s]:
                    taken[c, s] = True
                    if credit[c, s] > tolerance:
                        count[s] += 1


@njit(cache=True, nogil=True)
def noise(
    bounds: Ints, parts: Ints, nodes: Ints, starts: Ints, indptr: Ints, edge_dst: Ints, weight: Floats, gamma: float,
    rows: Ints, source: Ints, entries: Ints, target: Ints, share: Floats, variance: Floats, limit: int, signs: Floats,
    out: Floats, own: Floats,
) -> None:
    """Variance of each credit: sum_w g_w^2 variance_w, g = gamma sum_k share_k M[target_k] - M[source], M = (I - gamma W)^-1.

    Everything is sorted by group: nodes bounds[i]:bounds[i + 1], components parts[i]:parts[i + 1], credits
    rows[i]:rows[i + 1]. Credit c goes to target/share entries[c]:entries[c + 1] (no entry: an end). variance [N, S] of one
    backup at each node; out [C, S]; own [C] is g at the source. Groups of more than `limit` nodes use random signs [K, N]
    instead of M: the mean over k of (gamma sum share x[target] - x[source])^2 with x = M (signs_k sqrt(variance)); they
    leave `own` at 0.
    """
    for i in range(bounds.size - 1):
        a, b, width = bounds[i], bounds[i + 1], variance.shape[1]
        k = b - a
        here = starts[parts[i] : parts[i + 1] + 1]
        members = nodes[here[0] : here[-1]] - a
        cut = here - here[0]
        ptr = indptr[a : b + 1] - indptr[a]
        dst = edge_dst[indptr[a] : indptr[b]] - a
        w = weight[indptr[a] : indptr[b]]
        if k <= limit:
            m = np.eye(k)
            solve_columns(members, cut, ptr, dst, w, gamma, m, DENSE, EXACT)
            for first in range(rows[i], rows[i + 1], 512):
                last = min(first + 512, rows[i + 1])
                g = np.zeros((last - first, k))
                for c in range(first, last):
                    for e in range(entries[c], entries[c + 1]):
                        g[c - first] += gamma * share[e] * m[target[e] - a]
                    g[c - first] -= m[source[c] - a]
                    own[c] = g[c - first, source[c] - a]
                out[first:last] = np.dot(g * g, np.ascontiguousarray(variance[a:b]))
            continue
        for t in range(signs.shape[0]):
            x = np.sqrt(variance[a:b]) * np.expand_dims(signs[t, a:b], 1)
            solve_columns(members, cut, ptr, dst, w, gamma, x, ROUGH_DENSE, ROUGH)
            for c in range(rows[i], rows[i + 1]):
                for s in range(width):
                    moved = -x[source[c] - a, s]
                    for e in range(entries[c], entries[c + 1]):
                        moved += gamma * share[e] * x[target[e] - a, s]
                    out[c, s] += moved * moved / signs.shape[0]
