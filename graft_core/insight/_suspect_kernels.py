"""Compiled loops of the test for suspect merges: random numbers, uniform shuffles of a group, coverage and its surplus.

A group is `path` (node of every step of every rollout, one after the other) with `offsets` (rollout i stands at
offsets[i]:offsets[i + 1]) and `ends` (one code per rollout for what it ended in). Random numbers come from a generator of
their own (splitmix64), one stream per node, so results do not depend on threads.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
State = npt.NDArray[np.uint64]


@njit(cache=True, nogil=True, inline="always")
def below(state: State, n: int) -> int:
    """A whole number 0..n - 1; advances the stream."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    x = state[0]
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return int(np.float64(x >> np.uint64(11)) * (1.0 / 9007199254740992.0) * n)


@njit(cache=True, nogil=True, inline="always")
def stream(seed: int, number: int) -> np.uint64:
    """Where the stream of one node begins."""
    x = np.uint64(seed) + np.uint64(number + 1) * np.uint64(0xD1B54A32D192ED03)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def shuffle(items: Ints, low: int, high: int, state: State) -> None:
    """Put items[low:high] into a random order."""
    for i in range(high - 1, low, -1):
        j = low + below(state, i - low + 1)
        items[i], items[j] = items[j], items[i]


@njit(cache=True, nogil=True)
def exits(path: Ints, offsets: Ints, ends: Ints, n_nodes: int, n_ends: int) -> tuple[Ints, Ints]:
    """Where every visit of every vertex of the closed group went on to, as (starts, targets).

    Vertices: nodes 0..n_nodes - 1, ends behind them, the root last. Rollouts without steps are left out.
    """
    root = n_nodes + n_ends
    starts = np.zeros(root + 2, np.int64)
    for r in range(offsets.size - 1):
        if offsets[r + 1] == offsets[r]:
            continue
        starts[root + 1] += 1
        starts[n_nodes + ends[r] + 1] += 1
        for k in range(offsets[r], offsets[r + 1]):
            starts[path[k] + 1] += 1
    for v in range(root + 1):
        starts[v + 1] += starts[v]
    fill = starts[:-1].copy()
    targets = np.empty(starts[root + 1], np.int64)
    for r in range(offsets.size - 1):
        here = root
        for k in range(offsets[r], offsets[r + 1]):
            targets[fill[here]] = path[k]
            fill[here] += 1
            here = path[k]
        if here != root:
            last = n_nodes + ends[r]
            targets[fill[here]] = last
            fill[here] += 1
            targets[fill[last]] = root
            fill[last] += 1
    return starts, targets


@njit(cache=True, nogil=True)
def reorder(starts: Ints, targets: Ints, state: State) -> None:
    """Order the exits of every vertex so that the circuit read from the root is uniform among all with these edge counts.

    The last exits form a random tree towards the root (the last vertex; Wilson's loop-erased walks), the others are shuffled.
    """
    root = starts.size - 2
    done = np.zeros(root + 1, np.bool_)
    chosen = np.full(root + 1, -1, np.int64)
    done[root] = True
    for v in range(root):
        if starts[v + 1] == starts[v]:
            continue
        here = v
        while not done[here]:
            chosen[here] = starts[here] + below(state, starts[here + 1] - starts[here])
            here = targets[chosen[here]]
        here = v
        while not done[here]:
            done[here] = True
            here = targets[chosen[here]]
    for v in range(root):
        last = starts[v + 1] - 1
        if last >= starts[v]:
            k = chosen[v]
            targets[last], targets[k] = targets[k], targets[last]
            shuffle(targets, starts[v], last, state)
    shuffle(targets, starts[root], starts[root + 1], state)


@njit(cache=True, nogil=True)
def _cover(starts: Ints, targets: Ints, n_nodes: int, column: Ints, seen: Ints, fill: Ints, counts: Counts) -> None:
    """counts[c] = rollouts that meet the node of column c, read off the circuit (column[node] = -1: not asked for)."""
    counts[:] = 0
    seen[:] = -1
    fill[:] = starts[:-1]
    root = starts.size - 2
    here, rollout = root, 0
    for _ in range(targets.size):
        at = fill[here]
        fill[here] = at + 1
        here = targets[at]
        if here < n_nodes:
            if seen[here] != rollout:
                seen[here] = rollout
                if column[here] >= 0:
                    counts[column[here]] += 1
        elif here == root:
            rollout += 1


@njit(cache=True, nogil=True)
def shuffled_cover(
    path: Ints, offsets: Ints, ends: Ints, n_nodes: int, n_ends: int, column: Ints, width: int, draws: int, state: State
) -> Counts:
    """Row 0: rollouts of the group that meet each asked-for node; rows 1..draws: the same in uniform shuffles of the group."""
    counts = np.zeros((draws + 1, width), np.int32)
    starts, targets = exits(path, offsets, ends, n_nodes, n_ends)
    seen = np.empty(n_nodes, np.int64)
    fill = np.empty(starts.size - 1, np.int64)
    _cover(starts, targets, n_nodes, column, seen, fill, counts[0])
    for b in range(draws):
        reorder(starts, targets, state)
        _cover(starts, targets, n_nodes, column, seen, fill, counts[b + 1])
    return counts


@njit(cache=True, nogil=True)
def simulated_cover(
    path: Ints, offsets: Ints, after: Ints, n_nodes: int, limit: int, column: Ints, width: int, draws: int, state: State
) -> Counts:
    """As `shuffled_cover` for a group with rollouts cut off: rollouts drawn from the counted steps, ended at `limit` steps.

    after: the node behind each rollout's last step where it was cut and that node is known, -1 for an end.
    """
    counts = np.zeros((draws + 1, width), np.int32)
    seen = np.full(n_nodes, -1, np.int64)
    starts = np.zeros(n_nodes + 1, np.int64)
    for k in range(path.size):
        starts[path[k] + 1] += 1
    for v in range(n_nodes):
        starts[v + 1] += starts[v]
    fill = starts[:-1].copy()
    targets = np.empty(path.size, np.int64)
    first = np.empty(offsets.size - 1, np.int64)
    n = 0
    for r in range(offsets.size - 1):
        if offsets[r + 1] > offsets[r]:
            first[n] = path[offsets[r]]
            n += 1
        for k in range(offsets[r], offsets[r + 1]):
            u = path[k]
            targets[fill[u]] = path[k + 1] if k + 1 < offsets[r + 1] else after[r]
            fill[u] += 1
            if column[u] >= 0 and seen[u] != r:
                seen[u] = r
                counts[0, column[u]] += 1
    seen[:] = -1
    stamp = 0
    for b in range(draws):
        for _ in range(n):
            stamp += 1
            here = first[below(state, n)]
            for _ in range(limit):
                if column[here] >= 0 and seen[here] != stamp:
                    seen[here] = stamp
                    counts[b + 1, column[here]] += 1
                if starts[here + 1] == starts[here]:
                    break
                here = targets[starts[here] + below(state, starts[here + 1] - starts[here])]
                if here < 0:
                    break
    return counts


@njit(cache=True, nogil=True)
def standardise(counts: Counts) -> tuple[Floats, Floats]:
    """Mean and 1 / standard deviation of every row of counts[node, draw] over all draws, the observed first one included.

    The latter is 0 where nothing varies.
    """
    width, draws = counts.shape
    mean, scale = np.zeros(width), np.zeros(width)
    for c in range(width):
        total, square = 0, 0
        for b in range(draws):
            n = int(counts[c, b])
            total += n
            square += n * n
        mean[c] = total / draws
        spread = square / draws - mean[c] * mean[c]
        if spread > 1e-9:
            scale[c] = 1.0 / np.sqrt(spread)
    return mean, scale


@njit(cache=True, nogil=True)
def surplus(counts: Counts, mean: Floats, scale: Floats, weights: Floats, power: int, largest: bool) -> Floats:
    """Per draw of counts[node, draw]: sum over nodes of weight * max(0, z)^power, or with `largest` the largest max(0, z)."""
    width, draws = counts.shape
    out = np.zeros(draws)
    for c in range(width):
        if scale[c] == 0.0:
            continue
        for b in range(draws):
            z = max(0.0, (counts[c, b] - mean[c]) * scale[c])
            if largest:
                out[b] = max(out[b], z)
            else:
                out[b] += weights[c] * (z * z if power == 2 else z * z * z * z)
    return out


@njit(cache=True, nogil=True)
def share_at_least(statistic: Floats) -> float:
    """(1 + surrogates at least as large as the observed first entry) / (surrogates + 1)."""
    reached = 1
    bar = statistic[0] - 1e-9 * (1.0 + abs(statistic[0]))
    for b in range(1, statistic.size):
        reached += statistic[b] >= bar
    return reached / statistic.size
