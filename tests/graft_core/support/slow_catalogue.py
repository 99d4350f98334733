"""Some estimators of the catalogue in dictionaries and loops, written from method.md sec. 5."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from slow_reference import Slow, by_row, standardised


def slow_hgpo(slow: Slow, returns: list[float], k: int, alpha: float, eps: float = 1e-6) -> list[float]:
    paths: dict[Any, list[Any]] = defaultdict(list)
    for s in slow.steps:
        paths[s.group, s.rollout].append(s)
    total, weights = defaultdict(float), defaultdict(float)
    for level in range(1, k + 2):
        groups: dict[Any, list[int]] = defaultdict(list)
        for path in paths.values():
            for t, s in enumerate(path):
                if s.outcome is not None and t + 1 >= level:
                    groups[tuple(x.node for x in path[t - level + 1 : t + 1])].append(s.row)
        for members in groups.values():
            if len(members) < 2:
                continue
            items = standardised([returns[row] for row in members], ddof=0)
            for row, item in zip(members, items, strict=True):
                if abs(item) > 1e-7:
                    total[row] += (level + 1) ** alpha * item
                    weights[row] += (level + 1) ** alpha
    return by_row(slow, lambda s: total[s.row] / (weights[s.row] + eps) if weights[s.row] else 0.0)


def slow_hops(rows: list[dict[str, Any]], slow: Slow) -> tuple[dict[Any, float], dict[Any, Any], dict[str, int]]:
    """d of every node, where each step leads (by row), and the largest finite d of each group."""
    leads: dict[int, Any] = {}
    finals = {(r["group_id"], r["rollout_id"]): r.get("next_observation") for r in rows if r["step"] is not None}
    for i, s in enumerate(slow.steps):
        if s.remaining:
            leads[s.row] = slow.steps[i + 1].node
        elif s.outcome is not None and s.outcome >= 1 - 1e-6:
            leads[s.row] = ("success", s.group)
        elif finals[s.group, s.rollout] is None:
            leads[s.row] = ("nowhere", s.group, s.rollout)
        else:
            leads[s.row] = (s.group, finals[s.group, s.rollout])
    back: dict[Any, set[Any]] = defaultdict(set)
    for s in slow.steps:
        if s.outcome is not None:
            back[leads[s.row]].add(s.node)
    distance: dict[Any, float] = {}
    farthest: dict[str, int] = {}
    for group in {s.group for s in slow.steps}:
        queue, near = deque([("success", group)]), {("success", group): 0}
        while queue:
            here = queue.popleft()
            for node in back[here]:
                if node not in near:
                    near[node] = near[here] + 1
                    queue.append(node)
        farthest[group] = max(near.values())
        distance |= near
    return distance, leads, farthest


def worth_of(rows: list[dict[str, Any]], slow: Slow, omega: float) -> list[float]:
    """10 omega^d(s') by row."""
    distance, leads, farthest = slow_hops(rows, slow)
    return by_row(slow, lambda s: 10 * omega ** distance.get(leads[s.row], farthest[s.group] + 1))


def gain_of(rows: list[dict[str, Any]], slow: Slow, gamma: float) -> list[float]:
    """gamma^d(s') - gamma^d(s) by row, 0 in place of what cannot be reached."""
    distance, leads, _ = slow_hops(rows, slow)

    def value(node: Any) -> float:
        return gamma ** distance[node] if node in distance else 0.0

    return by_row(slow, lambda s: value(leads[s.row]) - value(s.node))


def gated(slow: Slow, inside: list[float], outside: list[float]) -> list[float]:
    """`inside` where the node has two or more successors, else `outside`."""
    after: dict[Any, set[Any]] = defaultdict(set)
    for u, _, v in slow.count:
        after[u].add(v)
    return by_row(slow, lambda s: inside[s.row] if len(after[s.node]) > 1 else outside[s.row])
