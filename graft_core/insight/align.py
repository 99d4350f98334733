"""Two things side by side: two rollouts where they share moments, and two settings on the same steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from graft_core.constants import SIGN_TOLERANCE
from graft_core.credit import estimators
from graft_core.credit.estimate import graph_of
from graft_core.errors import UsageError
from graft_core.graph import TrajectoryGraph
from graft_core.insight.compare import Agreement, Comparison, agreement, scales
from graft_core.insight.measures import graph_measures
from graft_core.options import GAMMA
from graft_core.rollouts import FloatArray, IntArray, RolloutBatch
from graft_core.settings import Settings
from graft_core.values import solve_values

MOST_CELLS: Final = 25_000_000
"""Above this many pairs of steps a faster search is used, which may find fewer shared moments."""

MOST_LISTED: Final = 500
"""Steps whose signs differ, at most this many of them listed."""


@dataclass(frozen=True)
class AlignedRow:
    """One row of two rollouts side by side: path positions of the steps, None where one has nothing to show.

    shared: both steps leave the same moment. same_action: and take the same action there.
    """

    left: int | None
    right: int | None
    shared: bool = False
    same_action: bool = False


def align_rollouts(graph: TrajectoryGraph, left: int, right: int) -> tuple[AlignedRow, ...]:
    """Rows of two rollouts (rollout rows of the batch) aligned at a longest common subsequence of moments.

    Every step of both stands in exactly one row, in its own order. Between two shared moments, what each did alone stands
    side by side. Rollouts of different tasks share nothing.
    """
    starts = graph.batch.offsets[[left, right]].tolist()
    ends = graph.batch.offsets[[left + 1, right + 1]].tolist()
    a, b = graph.src[starts[0] : ends[0]], graph.src[starts[1] : ends[1]]
    rows: list[AlignedRow] = []
    at = [0, 0]
    for i, j in [*_common(a, b), (a.size, b.size)]:
        for k in range(max(i - at[0], j - at[1])):
            p, q = at[0] + k, at[1] + k
            rows.append(AlignedRow(starts[0] + p if p < i else None, starts[1] + q if q < j else None))
        if i < a.size and j < b.size:
            p, q = starts[0] + i, starts[1] + j
            rows.append(AlignedRow(p, q, True, bool(graph.pair[p] == graph.pair[q])))
        at = [i + 1, j + 1]
    return tuple(rows)


def _common(a: IntArray, b: IntArray) -> list[tuple[int, int]]:
    """Index pairs of a longest common subsequence, the earliest one."""
    if a.size * b.size > MOST_CELLS:
        from difflib import SequenceMatcher

        blocks = SequenceMatcher(None, a.tolist(), b.tolist(), autojunk=False).get_matching_blocks()
        return [(block.a + k, block.b + k) for block in blocks for k in range(block.size)]
    length = np.zeros((a.size + 1, b.size + 1), dtype=np.int32)  # of the longest one in a[i:], b[j:]
    for i in range(a.size - 1, -1, -1):
        here = np.maximum(length[i + 1, :-1], length[i + 1, 1:] + (b == a[i]))
        length[i, :-1] = np.maximum.accumulate(here[::-1])[::-1]
    pairs, i, j = [], 0, 0
    while i < a.size and j < b.size:
        if a[i] == b[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif length[i + 1, j] >= length[i, j + 1]:
            i += 1
        else:
            j += 1
    return pairs


@dataclass(frozen=True, eq=False)
class Pair:
    """Two settings on one batch. Credits are float64[n_steps] in path order, which no setting changes.

    names: what to call each side. comparison: agreement and scale, with the left side as the reference.
    """

    left: Settings
    right: Settings
    names: tuple[str, str]
    credits: tuple[FloatArray, FloatArray]
    comparison: Comparison

    @property
    def agreement(self) -> Agreement:
        return self.comparison.agreements[0]

    @property
    def same_units(self) -> bool:
        """Whether a difference of the two credits means something: neither is divided by a standard deviation."""
        return _plain_units(self.left) and _plain_units(self.right)

    @cached_property
    def points(self) -> Points:
        return _points(*self.credits)

    @cached_property
    def rank_gap(self) -> FloatArray:
        """Rank of the left credit minus rank of the right one, as shares of all shared steps (-1 to 1); NaN elsewhere."""
        from scipy.stats import rankdata

        both = self.points.owner >= 0
        gap = np.full(both.size, np.nan)
        ranks = [rankdata(np.where(np.abs(c[both]) <= SIGN_TOLERANCE, 0.0, c[both])) for c in self.credits]
        gap[both] = (ranks[0] - ranks[1]) / max(int(both.sum()), 1)
        return gap

    @property
    def difference(self) -> FloatArray:
        """Left minus right per step (path order): of credits where the units are the same, else of ranks (`rank_gap`)."""
        return self.credits[0] - self.credits[1] if self.same_units else self.rank_gap

    def order(self) -> IntArray:
        """Path positions of all differences, largest first: of values where the units are the same, else of ranks."""
        size = np.abs(self.difference)
        some = np.flatnonzero(size > SIGN_TOLERANCE)
        return some[np.argsort(-size[some], kind="stable")]

    def inside(self, box: tuple[float, float, float, float]) -> IntArray:
        """Path positions of the steps whose two credits lie in x0 <= A <= x1 and y0 <= B <= y1."""
        a, b = self.credits
        x0, x1, y0, y1 = box
        return np.flatnonzero((a >= x0) & (a <= x1) & (b >= y0) & (b <= y1))


@dataclass(frozen=True, eq=False)
class Points:
    """Distinct pairs of credits: a, b, how many steps have them (count) and the first of these (path position).

    owner: the point of each step, -1 where one of the credits is undefined.
    """

    a: FloatArray
    b: FloatArray
    count: IntArray
    first: IntArray
    owner: IntArray


def _points(a: FloatArray, b: FloatArray) -> Points:
    both = np.flatnonzero(~np.isnan(a) & ~np.isnan(b))
    values = np.round(np.stack([a[both], b[both]], axis=1), 9) + 0.0
    kept, first, owner, count = np.unique(values, axis=0, return_index=True, return_inverse=True, return_counts=True)
    owners = np.full(a.size, -1, dtype=np.int64)
    owners[both] = owner.ravel()
    return Points(kept[:, 0], kept[:, 1], count, both[first], owners)


def _plain_units(settings: Settings) -> bool:
    value = settings.resolved(settings.estimator).get("normalise", "none")
    return settings.estimator in ("graft_td", "path_gae", "graft", "graft_eq10") and value != "mean_std"


def pair(batch: RolloutBatch, left: Settings, right: Settings) -> Pair:
    """The credits of each side's estimator (normalised as set), how far they agree and how their scales differ.

    Raises a `GraftError` where either cannot be computed on this batch.
    """
    names = names_of(left, right)
    a, b = (s.credit(batch, s.estimator)[batch.order] for s in (left, right))
    given = {names[0]: a, names[1]: b}
    agreed = agreement(names[0], a, names[1], b, MOST_LISTED)
    return Pair(left, right, names, (a, b), Comparison(given, {}, (agreed,), scales(given, names[0])))


def names_of(left: Settings, right: Settings) -> tuple[str, str]:
    """Names for the two sides: the estimators' titles, told apart by A and B where they are the same."""
    a, b = (estimators()[s.estimator].title for s in (left, right))
    return (a, b) if a != b else (f"A: {a}", f"B: {b}")


def setting_rows(left: Settings, right: Settings) -> list[dict[str, Any]]:
    """What differs between two settings, one row per word: name, left, right."""
    sides = [dict(s.to_words()) for s in (left, right)]
    options = [s.resolved(s.estimator) for s in (left, right)]
    rows = []
    for name in ("estimator", "rules", "actions", "sinks", "weighting", "rewards", "solver", "prior"):
        values = [_word(getattr(s, name)) for s in (left, right)]
        if values[0] != values[1]:
            rows.append({"name": name, "left": values[0], "right": values[1]})
    for name in dict.fromkeys([*options[0], *options[1]]):
        a, b = (_word(o[name]) if name in o else "" for o in options)
        both = name in options[0] and name in options[1]
        if a != b and (both or name in sides[0] or name in sides[1]):
            rows.append({"name": name, "left": a, "right": b})
    return rows


def _word(value: Any) -> str:
    if value is None:
        return "not set"
    return "+".join(value) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else str(value)


def moment_numbers(batch: RolloutBatch, settings: Settings, position: int) -> dict[str, Any]:
    """One step under one setting: node, edge, how many steps and rollouts its moment holds, value before and after."""
    graph = graph_of(batch, **settings.graph_words)
    gamma = settings.resolved(settings.estimator).get("gamma") or GAMMA.default
    v = solve_values(graph, gamma=gamma, **settings.value_words).v
    node, edge = int(graph.src[position]), int(graph.edge[position])
    return {
        "node": node,
        "edge": edge,
        "steps": int(graph.visits[node]),
        "rollouts": int(graph.node_rollouts[node]),
        "before": float(v[node]),
        "after": float(v[graph.dst[position]]),
    }


def lambda_sweep(batch: RolloutBatch, settings: Settings, lambdas: tuple[float, ...]) -> FloatArray:
    """Credit of the settings' estimator at each lambda: float64[len(lambdas), n_steps], path order.

    Raises `UsageError` where the estimator has no lambda.
    """
    name = settings.estimator
    if estimators()[name].option("lam") is None:
        raise UsageError(f"{name} has no lambda; path_gae and graft have one")
    return np.stack([settings.with_options(lam=lam).credit(batch, name)[batch.order] for lam in lambdas])


def batch_measures(batch: RolloutBatch, settings: Settings, credit: FloatArray) -> dict[str, float]:
    """The measures of method.md sec. 7 that papers report, under one setting; NaN where nothing is there to count.

    mean_group_size and in_groups are of steps per moment; visits_one and graph_one are the shares of steps (of known outcome)
    that one rollout alone informs, by equal moments and along the graph; failed_up and success_flat are the shares of
    failed rollouts' steps with credit above 0, and of successful rollouts' steps without.
    """
    found = graph_measures(graph_of(batch, **settings.graph_words))
    success = batch.success[batch.step_rollout]
    defined = ~np.isnan(credit) & batch.step_known
    up = np.nan_to_num(credit) > SIGN_TOLERANCE
    return {
        "mean_group_size": found["mean_group_size"],
        "in_groups": found["group_size_2"],
        "visits_one": found["propagation"]["visits_one"],
        "graph_one": found["propagation"]["graph_one"],
        "failed_up": _share(up[defined & (success == 0)]),
        "success_flat": _share(~up[defined & (success == 1)]),
        "merge_rate": found["merge_rate"],
        "remerge_index": found["remerge_index"],
    }


def _share(chosen: Any) -> float:
    return float(np.mean(chosen)) if chosen.size else float("nan")
