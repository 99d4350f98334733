"""Compiled loops of the certainty interval: where a credit's weight passes, and how much noise it meets there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@njit(cache=True, nogil=True)
def _inverse(members: Ints, place: Ints, indptr: Ints, edge_dst: Ints, flow: Floats) -> Floats:
    """(I - flow) of one component inverted; row i says what becomes of weight that enters at member i."""
    k = members.size
    matrix = np.eye(k)
    for i in range(k):
        for e in range(indptr[members[i]], indptr[members[i] + 1]):
            j = place[edge_dst[e]]
            if flow[e] != 0.0 and j >= 0:
                matrix[i, j] -= flow[e]
    if k == 1:
        matrix[0, 0] = 1.0 / matrix[0, 0]
    else:
        matrix[:, :] = np.linalg.inv(matrix)
    return matrix


@njit(cache=True, nogil=True)
def _leave(
    u: int, c: int, amount: float, indptr: Ints, edge_dst: Ints, flow: Floats, component: Ints, mass: Floats, waiting: Bools
) -> None:
    """Send what passes u on to the nodes after it that stand outside component c."""
    for e in range(indptr[u], indptr[u + 1]):
        to = component[edge_dst[e]]
        if flow[e] != 0.0 and to >= 0 and to != c:
            mass[edge_dst[e]] += amount * flow[e]
            waiting[to] = True


@njit(cache=True, nogil=True)
def _through(members: Ints, block: Floats, mass: Floats, passing: Floats) -> None:
    """Passings of one component's members from the weight that has reached them, which is used up."""
    k = members.size
    passing[:k] = 0.0
    for i in range(k):
        m = mass[members[i]]
        if m != 0.0:
            mass[members[i]] = 0.0
            for j in range(k):
                passing[j] += m * block[i * k + j]


@njit(cache=True, nogil=True)
def _blocks(
    first: int, last: int, nodes: Ints, starts: Ints, indptr: Ints, edge_dst: Ints, flow: Floats, place: Ints
) -> tuple[Floats, Ints]:
    """Inverses of components first..last - 1, flat, one after the other, and where each begins."""
    offset = np.zeros(last - first + 1, np.int64)
    for c in range(first, last):
        offset[c - first + 1] = offset[c - first] + (starts[c + 1] - starts[c]) ** 2
    blocks = np.empty(offset[-1])
    for c in range(first, last):
        members = nodes[starts[c] : starts[c + 1]]
        for i in range(members.size):
            place[members[i]] = i
        blocks[offset[c - first] : offset[c - first + 1]] = _inverse(members, place, indptr, edge_dst, flow).ravel()
        for u in members:
            place[u] = -1
    return blocks, offset


@njit(cache=True, nogil=True)
def _walk(
    top: int, first: int, origin: int, nodes: Ints, starts: Ints, blocks: Floats, offset: Ints, indptr: Ints,
    edge_dst: Ints, flow: Floats, noise: Floats, component: Ints, mass: Floats, waiting: Bools, passing: Floats,
) -> tuple[float, float]:  # fmt: skip
    """(sum of d^2 noise, d at the origin) of the weight in `mass`, which is used up, from component `top` downwards."""
    total, own = 0.0, 0.0
    for c in range(top, first - 1, -1):
        if not waiting[c]:
            continue
        waiting[c] = False
        members = nodes[starts[c] : starts[c + 1]]
        _through(members, blocks[offset[c - first] : offset[c - first + 1]], mass, passing)
        for i in range(members.size):
            u, d = members[i], passing[i]
            total += d * d * noise[u]
            if u == origin:
                own += d
            _leave(u, c, d, indptr, edge_dst, flow, component, mass, waiting)
    return total, own


@njit(cache=True, nogil=True)
def gather_noise(
    nodes: Ints, starts: Ints, group_starts: Ints, indptr: Ints, edge_dst: Ints, flow: Floats, noise: Floats,
    query_starts: Ints, query_node: Ints, query_weight: Floats, query_origin: Ints, by_group: Ints,
    bounds: Ints, walked: Bools, total: Floats, own: Floats,
) -> None:  # fmt: skip
    """For each query q (weights on nodes): d = q (I - flow)^-1, total = sum_w d_w^2 noise_w, own = d at the origin.

    Components nodes[starts[c]:starts[c + 1]] stand sorted by group, each group's in reverse topological order; group
    g has components group_starts[g]:group_starts[g + 1] and queries by_group[bounds[g]:bounds[g + 1]]. Only the groups
    marked `walked` are looked at; a query leads to active nodes of its own group or to none.
    """
    component = np.full(indptr.size - 1, -1, np.int64)
    place = np.full(indptr.size - 1, -1, np.int64)
    mass, waiting = np.zeros(indptr.size - 1), np.zeros(starts.size, np.bool_)
    passing = np.empty(max(1, np.max(np.diff(starts)))) if starts.size > 1 else np.empty(1)
    for c in range(starts.size - 1):
        component[nodes[starts[c] : starts[c + 1]]] = c
    for g in range(group_starts.size - 1):
        if not walked[g]:
            continue
        first = group_starts[g]
        blocks, offset = _blocks(first, group_starts[g + 1], nodes, starts, indptr, edge_dst, flow, place)
        for q in by_group[bounds[g] : bounds[g + 1]]:
            top = first - 1
            for k in range(query_starts[q], query_starts[q + 1]):
                c = component[query_node[k]]
                if c >= 0:
                    mass[query_node[k]] += query_weight[k]
                    waiting[c] = True
                    top = max(top, c)
            total[q], own[q] = _walk(
                top, first, query_origin[q], nodes, starts, blocks, offset, indptr, edge_dst, flow, noise, component, mass,
                waiting, passing,
            )  # fmt: skip
