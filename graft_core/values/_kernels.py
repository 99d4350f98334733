"""Compiled loops over the graph's CSR arrays. No fastmath: results do not depend on threads or machines' shortcuts."""

from __future__ import annotations

import numpy as np
from numba import njit

KRYLOV_STEPS = 500
DENSE_LIMIT = 120  # components up to this size are solved densely
DENSE_LIMIT_UNDISCOUNTED = 2000  # with gamma = 1, where sweeps have no sound stop
ROUNDING = 4 * float(np.finfo(np.float64).eps)  # sweeps cannot settle below this, relative to the values' size
NO_EXIT, TOO_LARGE, NOT_CONVERGED = 1, 2, 3


@njit(cache=True, nogil=True)
def strong_components(indptr, edge_dst, use, active):
    """Strongly connected components of the active nodes, in reverse topological order (Tarjan, iterative).

    use: bool per edge; active: bool per node. Returns (nodes, starts): component k is nodes[starts[k]:starts[k + 1]].
    """
    n = active.size
    index = np.full(n, -1, np.int64)
    low = np.zeros(n, np.int64)
    on_stack = np.zeros(n, np.bool_)
    cursor = np.zeros(n, np.int64)
    stack = np.empty(n, np.int64)
    call = np.empty(n, np.int64)
    nodes = np.empty(n, np.int64)
    starts = np.empty(n + 1, np.int64)
    starts[0] = 0
    n_out, n_comp, n_stack, clock = 0, 0, 0, 0
    for root in range(n):
        if not active[root] or index[root] >= 0:
            continue
        n_call = 1
        call[0] = root
        index[root] = low[root] = clock
        clock += 1
        stack[n_stack] = root
        n_stack += 1
        on_stack[root] = True
        cursor[root] = indptr[root]
        while n_call > 0:
            u = call[n_call - 1]
            if cursor[u] < indptr[u + 1]:
                e = cursor[u]
                cursor[u] += 1
                v = edge_dst[e]
                if not use[e] or not active[v]:
                    continue
                if index[v] < 0:
                    index[v] = low[v] = clock
                    clock += 1
                    stack[n_stack] = v
                    n_stack += 1
                    on_stack[v] = True
                    cursor[v] = indptr[v]
                    call[n_call] = v
                    n_call += 1
                elif on_stack[v] and index[v] < low[u]:
                    low[u] = index[v]
                continue
            n_call -= 1
            if n_call > 0 and low[u] < low[call[n_call - 1]]:
                low[call[n_call - 1]] = low[u]
            if low[u] == index[u]:
                while True:
                    n_stack -= 1
                    v = stack[n_stack]
                    on_stack[v] = False
                    nodes[n_out] = v
                    n_out += 1
                    if v == u:
                        break
                n_comp += 1
                starts[n_comp] = n_out
    return nodes[:n_out], starts[: n_comp + 1]


@njit(cache=True, nogil=True)
def _dense(members, place, indptr, edge_dst, weight, constant, gamma, v, a, b):
    """Solve one component exactly; values outside it are final already. a, b: room for the equations."""
    k = members.size
    for i in range(k):
        for j in range(k):
            a[i, j] = 0.0
        a[i, i] = 1.0
        u = members[i]
        b[i] = constant[u]
        for e in range(indptr[u], indptr[u + 1]):
            w = weight[e]
            if w == 0.0:
                continue
            j = place[edge_dst[e]]
            if j >= 0:
                a[i, j] -= gamma * w
            else:
                b[i] += gamma * w * v[edge_dst[e]]
    _eliminate(a, b, k)
    for i in range(k):
        v[members[i]] = b[i]


@njit(cache=True, nogil=True)
def _eliminate(a, b, k):
    """Gaussian elimination in place. No pivoting: rows are weakly diagonally dominant with negative off-diagonals."""
    for i in range(k):
        for r in range(i + 1, k):
            if a[r, i] == 0.0:
                continue
            f = a[r, i] / a[i, i]
            b[r] -= f * b[i]
            for c in range(i + 1, k):
                a[r, c] -= f * a[i, c]
    for i in range(k - 1, -1, -1):
        for c in range(i + 1, k):
            b[i] -= a[i, c] * b[c]
        b[i] /= a[i, i]


@njit(cache=True, nogil=True)
def _inside(members, place, indptr, edge_dst, weight, constant, gamma, v):
    """One component as (I - gamma W) x = b in CSR, W with numbers inside the component; b holds what lies outside."""
    k = members.size
    size = 0
    for i in range(k):
        size += indptr[members[i] + 1] - indptr[members[i]]
    starts = np.zeros(k + 1, np.int64)
    column = np.empty(size, np.int64)
    entry = np.empty(size)
    b = np.empty(k)
    n = 0
    for i in range(k):
        u = members[i]
        b[i] = constant[u]
        for e in range(indptr[u], indptr[u + 1]):
            w = weight[e]
            if w == 0.0:
                continue
            j = place[edge_dst[e]]
            if j >= 0:
                column[n] = j
                entry[n] = gamma * w
                n += 1
            else:
                b[i] += gamma * w * v[edge_dst[e]]
        starts[i + 1] = n
    return starts, column, entry, b


@njit(cache=True, nogil=True)
def _applied(starts, column, entry, x, out):
    """out = x - W x, and its product with itself and with x."""
    square, product = 0.0, 0.0
    for i in range(out.size):
        total = x[i]
        for e in range(starts[i], starts[i + 1]):
            total -= entry[e] * x[column[e]]
        out[i] = total
        square += total * total
        product += total * x[i]
    return square, product


@njit(cache=True, nogil=True)
def _left_over(starts, column, entry, x, b, out):
    """out = b - (x - W x), and its largest size."""
    _applied(starts, column, entry, x, out)
    largest = 0.0
    for i in range(b.size):
        out[i] = b[i] - out[i]
        largest = max(largest, abs(out[i]))
    return largest


@njit(cache=True, nogil=True)
def _accelerate(members, place, indptr, edge_dst, weight, constant, gamma, v, target):
    """BiCGSTAB (van der Vorst 1992) from `v` on one component: brings the sweeps near the answer where it works."""
    starts, column, entry, b = _inside(members, place, indptr, edge_dst, weight, constant, gamma, v)
    k = b.size
    x, r, p, q, s, t = np.empty(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    shadow = np.empty(k)
    for i in range(k):
        x[i] = v[members[i]]
    before = _left_over(starts, column, entry, x, b, r)
    rho, largest = 0.0, before
    for i in range(k):
        p[i] = shadow[i] = r[i]
        rho += r[i] * r[i]
    for _ in range(KRYLOV_STEPS):
        if largest <= target or rho == 0.0:
            break
        _applied(starts, column, entry, p, q)
        across = 0.0
        for i in range(k):
            across += shadow[i] * q[i]
        if across == 0.0:
            break
        alpha = rho / across
        for i in range(k):
            s[i] = r[i] - alpha * q[i]
        square, product = _applied(starts, column, entry, s, t)
        omega = product / square if square > 0.0 else 0.0
        after, largest = 0.0, 0.0
        for i in range(k):
            x[i] += alpha * p[i] + omega * s[i]
            r[i] = s[i] - omega * t[i]
            after += shadow[i] * r[i]
            largest = max(largest, abs(r[i]))
        if omega == 0.0:
            break
        beta = (after / rho) * (alpha / omega)
        for i in range(k):
            p[i] = r[i] + beta * (p[i] - omega * q[i])
        rho = after
    if _left_over(starts, column, entry, x, b, r) < before:  # never from worse, nor from what is not a number
        for i in range(k):
            v[members[i]] = x[i]


@njit(cache=True, nogil=True)
def _sweeps(members, indptr, edge_dst, weight, constant, gamma, v, tolerance, limit):
    """Gauss-Seidel inside one component until max|dV| <= tolerance (1 - gamma) / gamma, or rounding is all that is left."""
    for _ in range(limit):
        change, size = 0.0, 1.0
        for u in members:
            total, own = constant[u], 0.0
            for e in range(indptr[u], indptr[u + 1]):
                w = weight[e]
                if w == 0.0:
                    continue
                if edge_dst[e] == u:
                    own += w
                else:
                    total += gamma * w * v[edge_dst[e]]
            new = total / (1.0 - gamma * own)
            change = max(change, abs(new - v[u]))
            size = max(size, abs(new))
            v[u] = new
        if change <= max(tolerance * (1.0 - gamma) / gamma, ROUNDING * size):
            return True
    return False


@njit(cache=True, nogil=True)
def _iterate(members, place, indptr, edge_dst, weight, constant, gamma, v):
    """A large component: sweeps, which are quick on chains and rings; if they are slow, a Krylov method and sweeps again."""
    for u in members:
        v[u] = 0.0
    if _sweeps(members, indptr, edge_dst, weight, constant, gamma, v, 1e-11, 50):
        return True
    _accelerate(members, place, indptr, edge_dst, weight, constant, gamma, v, 1e-11 * (1.0 - gamma) / 4.0)
    limit = int(np.log(1e-16) / np.log(gamma)) + 1000
    return _sweeps(members, indptr, edge_dst, weight, constant, gamma, v, 1e-11, limit)


@njit(cache=True, nogil=True)
def solve_components(nodes, starts, indptr, edge_dst, weight, constant, gamma, v):
    """Exact values component by component; `v` holds the sinks' values and receives the others.

    weight: float per edge (0 = not used), rows need not sum to 1 (shrinkage). constant: expected reward per node.
    Returns (code, component): code 0 fine, else NO_EXIT, TOO_LARGE or NOT_CONVERGED and where.
    """
    place = np.full(v.size, -1, np.int64)
    a, b = np.empty((DENSE_LIMIT, DENSE_LIMIT)), np.empty(DENSE_LIMIT)
    for c in range(starts.size - 1):
        members = nodes[starts[c] : starts[c + 1]]
        if members.size == 1:
            u = members[0]
            total, own = constant[u], 0.0
            for e in range(indptr[u], indptr[u + 1]):
                w = weight[e]
                if w == 0.0:
                    continue
                if edge_dst[e] == u:
                    own += w
                else:
                    total += gamma * w * v[edge_dst[e]]
            if 1.0 - gamma * own <= 1e-12:
                return NO_EXIT, c
            v[u] = total / (1.0 - gamma * own)
            continue
        if gamma == 1.0:
            outside = 0.0
            for i in range(members.size):
                place[members[i]] = i
            for u in members:
                stays = 0.0
                for e in range(indptr[u], indptr[u + 1]):
                    if weight[e] != 0.0 and place[edge_dst[e]] >= 0:
                        stays += weight[e]
                outside += max(0.0, 1.0 - stays)
            for u in members:
                place[u] = -1
            if outside <= 1e-12:
                return NO_EXIT, c
            if members.size > DENSE_LIMIT_UNDISCOUNTED:
                return TOO_LARGE, c
        for i in range(members.size):
            place[members[i]] = i
        if members.size <= DENSE_LIMIT or gamma == 1.0:
            if members.size > b.size:
                a, b = np.empty((members.size, members.size)), np.empty(members.size)
            _dense(members, place, indptr, edge_dst, weight, constant, gamma, v, a, b)
        elif not _iterate(members, place, indptr, edge_dst, weight, constant, gamma, v):
            return NOT_CONVERGED, c
        for u in members:
            place[u] = -1
    return 0, -1


@njit(cache=True, nogil=True)
def max_backup(nodes, indptr, edge_dst, use, reward, gamma, v, tolerance):
    """V(u) = max over outgoing edges of r + gamma V, iterated from 0 in the given node order."""
    for u in nodes:
        v[u] = 0.0
    limit = int(np.log(1e-16) / np.log(gamma)) + 1000
    for _ in range(limit):
        change, size = 0.0, 1.0
        for u in nodes:
            best = -np.inf
            for e in range(indptr[u], indptr[u + 1]):
                if use[e]:
                    best = max(best, reward[e] + gamma * v[edge_dst[e]])
            change = max(change, abs(best - v[u]))
            size = max(size, abs(best))
            v[u] = best
        if change <= max(tolerance * (1.0 - gamma) / gamma, ROUNDING * size):
            return True
    return False


@njit(cache=True, nogil=True)
def backward_hops(src, dst, use, goal):
    """Breadth-first from the goal nodes against the edges; -1 where no goal can be reached."""
    n = goal.size
    starts = np.zeros(n + 1, np.int64)
    for e in range(dst.size):
        if use[e]:
            starts[dst[e] + 1] += 1
    for v in range(n):
        starts[v + 1] += starts[v]
    fill = starts[:-1].copy()
    origin = np.empty(starts[n], np.int64)
    for e in range(dst.size):
        if use[e]:
            origin[fill[dst[e]]] = src[e]
            fill[dst[e]] += 1
    hops = np.full(n, -1, np.int64)
    queue = np.empty(n, np.int64)
    head, tail = 0, 0
    for v in range(n):
        if goal[v]:
            hops[v] = 0
            queue[tail] = v
            tail += 1
    while head < tail:
        v = queue[head]
        head += 1
        for i in range(starts[v], starts[v + 1]):
            u = origin[i]
            if hops[u] < 0:
                hops[u] = hops[v] + 1
                queue[tail] = u
                tail += 1
    return hops


@njit(cache=True, nogil=True)
def sweep(order, indptr, edge_dst, use, weight, reward, constant, maximum, gamma, source, v):
    """One Bellman backup of the nodes in `order` from `source` into `v` (the same array: in place); max|dV|."""
    change = 0.0
    for u in order:
        new = -np.inf if maximum else constant[u]
        for e in range(indptr[u], indptr[u + 1]):
            if not use[e]:
                continue
            if maximum:
                new = max(new, reward[e] + gamma * source[edge_dst[e]])
            else:
                new += gamma * weight[e] * source[edge_dst[e]]
        change = max(change, abs(new - v[u]))
        v[u] = new
    return change
