"""The method in dictionaries and loops, written from the equations: what the fast code is compared with.

Numbers are floats or exact fractions, whatever the rows hold; equations are solved by Gaussian elimination.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

Node = Hashable


@dataclass
class Step:
    """One executed step and where it stands in the rows."""

    row: int
    group: str
    rollout: str
    outcome: Any
    node: Node
    action: str
    to: Node = None
    reward: Any = None
    rank: int = 0
    remaining: int = 0


@dataclass
class Slow:
    """Steps by rollout in path order, values of sinks, and the counts n(u, a, v) of known outcomes."""

    steps: list[Step]
    sink: dict[Node, Any]
    count: Counter[tuple[Node, str, Node]] = field(default_factory=Counter)
    n_rows: int = 0
    ends: dict[tuple[str, str], Node] = field(default_factory=dict)


def build(rows: list[dict[str, Any]], sinks: str = "split", key: Callable[[list[str], int], Node] | None = None) -> Slow:
    """The graph of method.md sec. 2; nodes are (group, key). key(observations so far, t) maps states, default text."""
    rows = [row for row in rows if "graft_format" not in row]
    kept = [row for row in rows if row.get("step") is not None]
    paths: dict[tuple[str, str], list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for position, row in enumerate(kept):
        paths[row["group_id"], row["rollout_id"]].append((position, row))
    key = key or (lambda seen, t: seen[t])
    leaving: dict[Node, set[tuple[str, str]]] = defaultdict(set)
    finals: dict[tuple[str, str], tuple[Node | None, Any, bool]] = {}
    steps: list[Step] = []
    for (group, rollout), path in paths.items():
        path.sort(key=lambda item: item[1]["step"])
        last = path[-1][1]
        seen = [row["observation"] for _, row in path] + [last.get("next_observation")]
        outcome = last.get("outcome")
        for t, (position, row) in enumerate(path):
            node = (group, key(seen, t))
            reward = row.get("reward")
            steps.append(Step(position, group, rollout, outcome, node, row["action"], None, reward, t, len(path) - 1 - t))
            if outcome is not None:
                leaving[node].add((group, rollout))
        final = None if seen[-1] is None else (group, key(seen, len(path)))
        finals[group, rollout] = (final, outcome, bool(last.get("truncated")))
    slow = Slow(steps, {}, n_rows=len(kept))
    arriving: dict[Node, list[Any]] = defaultdict(list)
    for who, (final, outcome, truncated) in finals.items():
        if final is None:
            end: Node = ("end", who[0], outcome)
        elif sinks == "bootstrap" and truncated and leaving[final] - {who}:
            end = final
        elif sinks == "merge":
            end = ("end", final)
        else:
            end = ("end", final, outcome)
        slow.ends[who] = end
        if end != final and outcome is not None:
            arriving[end].append(outcome)
    slow.sink = {end: sum(got) / len(got) for end, got in arriving.items()}
    for i, step in enumerate(steps):
        step.to = steps[i + 1].node if step.remaining else slow.ends[step.group, step.rollout]
        if step.outcome is not None:
            slow.count[step.node, step.action, step.to] += 1
    return slow


def weights(slow: Slow, weighting: str = "visits") -> dict[tuple[Node, str, Node], Any]:
    """pi(a|u) P(v|u,a) of every counted edge (exact where the counts are turned into fractions by the caller)."""
    pair: Counter[tuple[Node, str]] = Counter()
    out: Counter[Node] = Counter()
    for (u, a, _), n in slow.count.items():
        pair[u, a] += n
        out[u] += n
    kinds = Counter(u for u, _ in pair)
    if weighting == "visits":
        return {e: _ratio(slow, n, out[e[0]]) for e, n in slow.count.items()}
    return {e: _ratio(slow, n, pair[e[0], e[1]] * kinds[e[0]]) for e, n in slow.count.items()}


def _ratio(slow: Slow, above: int, below: int) -> Any:
    one = next((type(v) for v in slow.sink.values()), float)
    return one(above) / one(below)


def mean_rewards(slow: Slow) -> dict[tuple[Node, str, Node], Any]:
    got: dict[tuple[Node, str, Node], list[Any]] = defaultdict(list)
    for step in slow.steps:
        if step.outcome is not None:
            got[step.node, step.action, step.to].append(step.reward)
    return {edge: sum(found) / len(found) for edge, found in got.items()}


def solve(
    slow: Slow, gamma: Any, weighting: str = "visits", rewards: str = "outcome", prior: Any = 0
) -> dict[Node, Any]:
    """V of every node that a known rollout touches (method.md sec. 3), by Gaussian elimination over all of them."""
    weight, mean = weights(slow, weighting), mean_rewards(slow) if rewards == "dense" else {}
    fixed = {end: value * 0 if rewards == "dense" else value for end, value in slow.sink.items()}
    v = _linear(slow, gamma, weight, mean, fixed, {}, {})
    if not prior:
        return v
    visits = Counter(step.node for step in slow.steps if step.outcome is not None)
    shift, keep = {}, {}
    for group in {step.group for step in slow.steps}:
        known = [step for step in slow.steps if step.group == group and step.outcome is not None]
        for node in {step.node for step in known}:
            average = sum(v[step.node] for step in known) / len(known)
            keep[node] = visits[node] / (visits[node] + prior)
            shift[node] = prior * average / (visits[node] + prior)
    return _linear(slow, gamma, weight, mean, fixed, keep, shift)


def _linear(
    slow: Slow, gamma: Any, weight: dict[Any, Any], mean: dict[Any, Any], fixed: dict[Node, Any], keep: dict[Node, Any],
    shift: dict[Node, Any],
) -> dict[Node, Any]:  # fmt: skip
    nodes = list(dict.fromkeys(step.node for step in slow.steps if step.outcome is not None))
    place = {node: i for i, node in enumerate(nodes)}
    zero = gamma * 0
    a = [[zero + (1 if i == j else 0) for j in range(len(nodes))] for i in range(len(nodes))]
    b = [shift.get(node, zero) for node in nodes]
    for (u, act, w), p in weight.items():
        p = p * keep.get(u, 1)
        b[place[u]] += p * mean.get((u, act, w), zero)
        if w in place:
            a[place[u]][place[w]] -= gamma * p
        else:
            b[place[u]] += gamma * p * fixed[w]
    return {**fixed, **dict(zip(nodes, eliminate(a, b), strict=True))}


def eliminate(a: list[list[Any]], b: list[Any]) -> list[Any]:
    """Gaussian elimination with pivoting, on copies."""
    a, b = [list(row) for row in a], list(b)
    n = len(b)
    for i in range(n):
        p = max(range(i, n), key=lambda r: abs(a[r][i]))
        a[i], a[p], b[i], b[p] = a[p], a[i], b[p], b[i]
        for r in range(i + 1, n):
            if a[r][i] != 0:
                f = a[r][i] / a[i][i]
                b[r] -= f * b[i]
                for c in range(i, n):
                    a[r][c] -= f * a[i][c]
    x = [b[0] * 0] * n if n else []
    for i in reversed(range(n)):
        x[i] = (b[i] - sum(a[i][c] * x[c] for c in range(i + 1, n))) / a[i][i]
    return x


def max_values(slow: Slow, gamma: float, rewards: str = "outcome", sweeps: int = 4000) -> dict[Node, float]:
    """V(u) = max over outgoing edges of [r +] gamma V(v), iterated from 0 without any early stop."""
    mean = mean_rewards(slow) if rewards == "dense" else {}
    v = {end: 0.0 if rewards == "dense" else value for end, value in slow.sink.items()}
    out: dict[Node, list[Any]] = defaultdict(list)
    for edge in slow.count:
        out[edge[0]].append(edge)
    ordinary = dict.fromkeys(out, 0.0)
    for _ in range(sweeps):
        ordinary = {
            u: max(mean.get(e, 0.0) + gamma * (v[e[2]] if e[2] in v else ordinary[e[2]]) for e in edges)
            for u, edges in out.items()
        }
    return {**v, **ordinary}


def by_row(slow: Slow, of_step: Callable[[Step], Any], unknown: Any = float("nan")) -> list[Any]:
    """One number per row in file order; `unknown` on the steps of unknown outcome."""
    out = [unknown] * slow.n_rows
    for step in slow.steps:
        if step.outcome is not None:
            out[step.row] = of_step(step)
    return out


def at_nodes(slow: Slow, v: dict[Node, Any]) -> list[Any]:
    """V of the node each step stands in, by row."""
    return by_row(slow, lambda s: v[s.node])


def td(slow: Slow, v: dict[Node, Any], gamma: Any, rewards: str = "outcome") -> list[Any]:
    """[r +] gamma V(s') - V(s) by row."""
    return by_row(slow, lambda s: (s.reward if rewards == "dense" else 0) + gamma * v[s.to] - v[s.node])


def grouped_mean(slow: Slow, credit: list[Any], key: Callable[[Step], Hashable]) -> list[Any]:
    """The mean of the credits of all known steps with the same key, by row."""
    got: dict[Hashable, list[Any]] = defaultdict(list)
    for step in slow.steps:
        if step.outcome is not None:
            got[key(step)].append(credit[step.row])
    return by_row(slow, lambda s: sum(got[key(s)]) / len(got[key(s)]))


def standardised(
    x: list[float], eps: float = 1e-6, ddof: int = 1, absolute: float = 1e-9, relative: float = 1e-6
) -> list[float]:
    """(x - mean) / (std + eps); all 0 where the range is within the range rule."""
    if max(x) - min(x) <= absolute + relative * max(abs(one) for one in x):
        return [0.0] * len(x)
    mean = sum(x) / len(x)
    std = (sum((one - mean) ** 2 for one in x) / (len(x) - ddof)) ** 0.5
    return [(one - mean) / (std + eps) for one in x]


def node_centred(slow: Slow, x: list[float]) -> list[float]:
    """x minus the mean of its node, 0 where the node has no spread; a single instance keeps x."""
    base = grouped_mean(slow, x, lambda s: s.node)
    flat = grouped_standard(slow, x, lambda s: s.node)
    several = Counter(step.node for step in slow.steps if step.outcome is not None)
    return by_row(
        slow, lambda s: x[s.row] if several[s.node] == 1 else (0.0 if flat[s.row] == 0 else x[s.row] - base[s.row])
    )


def grouped_standard(
    slow: Slow, x: list[float], key: Callable[[Step], Hashable], eps: float = 1e-6, ddof: int = 1
) -> list[float]:
    """x standardised among all known steps with the same key, by row."""
    rows: dict[Hashable, list[int]] = defaultdict(list)
    for step in slow.steps:
        if step.outcome is not None:
            rows[key(step)].append(step.row)
    out = [float("nan")] * slow.n_rows
    for members in rows.values():
        for row, value in zip(members, standardised([x[r] for r in members], eps, ddof), strict=True):
            out[row] = value
    return out
