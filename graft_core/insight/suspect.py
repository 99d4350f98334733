"""Suspect merges: does a node hide a state? Asked of one group's rollouts alone (method.md sec. 6).

If a node is one true state and the policy remembers nothing beyond it, the past does not change what follows, so whole
pieces of rollouts may be exchanged at it. A hidden milestone ("has the key") is met once in every rollout; exchanged
rollouts would sometimes skip it and sometimes meet it twice. Three tests build on that:

- the group alarm: coverage of all nodes against uniform shuffles with the same first states and step counts;
- node tests: loops and tails exchanged at one node, its own surplus or the one that all nodes agree on ("pooled", only
  where the group alarms);
- "same action, elsewhere": whether the next node, given the action, depends on how one came here.

No alarm is never "clean". An agent that remembers more than its state shows raises the first two with a perfect rule.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from graft_core.graph import TrajectoryGraph
from graft_core.insight._suspect_group import BUDGET, DRAWS, NodeTests, Walks, corrected, gate, node_tests, walks_of
from graft_core.insight._suspect_pair import Moment, Pair, pair
from graft_core.insight._suspect_split import Effect, effect, low_information
from graft_core.insight._suspect_words import (
    CANDIDATES,
    MEMORY,
    NEXT_SENTENCE,
    SEEN_TOO_RARELY,
    as_dict,
    name,
    node_sentence,
    sentence,
    summary,
    visited_rule,
)
from graft_core.rollouts import BoolArray, FloatArray, IntArray

__all__ = [
    "LEVEL",
    "LISTED",
    "MEMORY",
    "NEXT_SENTENCE",
    "NODE_LEVEL",
    "POWER",
    "SEEN_TOO_RARELY",
    "TESTS",
    "Effect",
    "GroupSuspicion",
    "Moment",
    "Pair",
    "Power",
    "Suspects",
    "name",
    "node_sentence",
    "pair",
    "sentence",
    "summary",
    "suspects",
    "visited_rule",
]

Progress = Callable[[int, int], None]

LEVEL: Final = 0.03
"""A group alarms at p <= LEVEL: 1 in 30 correct groups does. At G = 16 a hidden key is far beyond it."""

NODE_LEVEL: Final = 0.05
"""Pooled node tests flag at p <= NODE_LEVEL inside an alarm; a rule ends an alarm where p is above it afterwards."""

LISTED: Final = 0.05
"""False-discovery rate at which the own and the next-node test list a node: over the nodes of a group, and apart from them
over the group's nodes that say little (`guard` would keep them apart), which are few and suspect beforehand."""

TESTS: Final = ("", "pooled", "own", "next")
"""Which test flagged a node, by its code; 0 = none."""

ALARM, NODES, NONE, SMALL, CUT, RARE = "alarm", "nodes", "none", "small", "cut", "rare"
SMALL_GROUP: Final = 16
"""Below this many rollouts a quiet group says little."""

MANY_CUT: Final = 0.10
"""From here on the own test lists only nodes that say little: of other nodes it was wrong in 1 of 10 correct groups."""

MOST_STEPS: Final = 0.50
"""A quiet group of which less than this share of steps lies in tested nodes is called `rare`."""


class Power(NamedTuple):
    """What the tests found in worlds with known truth at one group size (benchmarks/suspect.py, 40 groups each; shares).

    alarms: groups with a hidden key (key-door 4x4) that alarm; merges, merges_larger: their nodes that hide it and are
    flagged, and the same in key-door 5x5; no_op: "Nothing happens." nodes flagged; wrong: groups with a correct key that
    alarm (100 to 200 groups, 40 at 64).
    """

    rollouts: int
    alarms: float
    merges: float
    merges_larger: float
    no_op: float
    wrong: float


POWER: Final = (
    Power(8, 0.975, 0.582, 0.503, 0.700, 0.020),
    Power(16, 1.000, 0.879, 0.772, 0.950, 0.050),
    Power(32, 1.000, 0.949, 0.946, 1.000, 0.090),
    Power(64, 1.000, 0.960, 0.991, 1.000, 0.025),
)
"""The curve over the group size. `wrong` is chance around LEVEL: 3.4 % of 1,600 further groups of 16 and 32 (level .03).

Where the key is hidden from the agent too: 83 % alarms and 55 % merges at 16 rollouts, 100 % and 93 % at 64.
"""


@dataclass(frozen=True)
class GroupSuspicion:
    """What is said of one group.

    word: `alarm`, `nodes` (no alarm, but single nodes are flagged), or why nothing is said: `none`, `small` (fewer than 16
    rollouts), `cut` (more than a tenth of the rollouts hit the turn limit), `rare` (most steps lie in nodes seen too
    rarely). p: of the group test, NaN where nothing can vary. exact: no rollout was cut, so the shuffles are exact. cut:
    share of rollouts cut. judged: share of steps in nodes seen often enough to exchange pieces at. w: node that the rollouts
    most probably have to have met for things to go on otherwise, -1 where there is none. rule: the rule proposed, "" where
    nothing is flagged. effects: what each candidate rule does, the proposed one first. nodes: flagged nodes, the surest
    first. tested, testable: how many nodes were tested by exchanging pieces, the most visited ones, of how many seen often
    enough; they differ where a group has too many for its budget.
    """

    group: int
    word: str
    p: float
    exact: bool
    rollouts: int
    cut: float
    judged: float
    w: int
    rule: str
    effects: tuple[Effect, ...]
    nodes: tuple[int, ...]
    tested: int = 0
    testable: int = 0

    @property
    def alarm(self) -> bool:
        return self.word == ALARM


@dataclass(frozen=True, eq=False)
class Suspects:
    """Suspect merges of a graph. groups: one `GroupSuspicion` per group code.

    Arrays over nodes: flag (suspect), test (code of `TESTS`, the test that is surest), p (of that test, or of the surest
    test made; NaN = not tested), p_own, p_pooled, p_next, q_own, q_next (false-discovery rate within the group), judged
    (pieces were exchanged at it), left (seen often enough for that too, but the budget went to more visited nodes; all others
    are "seen too rarely to judge", never clean), via (node whose earlier visit
    parts what follows best, -1 where none).
    """

    graph: TrajectoryGraph
    groups: tuple[GroupSuspicion, ...]
    flag: BoolArray
    test: npt.NDArray[np.int8]
    p: FloatArray
    p_own: FloatArray
    p_pooled: FloatArray
    p_next: FloatArray
    q_own: FloatArray
    q_next: FloatArray
    judged: BoolArray
    left: BoolArray
    via: IntArray
    seed: int
    draws: int

    @property
    def alarms(self) -> int:
        return sum(group.alarm for group in self.groups)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return as_dict(self)


def suspects(
    graph: TrajectoryGraph, seed: int = 0, progress: Progress | None = None, draws: int = DRAWS, threads: int | None = None,
    budget: int = BUDGET,
) -> Suspects:  # fmt: skip
    """Test every group of a graph for merges that hide a state.

    draws: shuffles per test. threads: how many work at a time, on groups and on the nodes of each (results do not depend on
    it). progress(done, total) counts groups. budget: steps that the node tests of one group of 6,400 steps or more may lay out
    anew (smaller groups in proportion); the most visited nodes come first, false-discovery rates are over those tested, and
    `left` holds the others. A group's result depends on its own rollouts, its id and the seed only.
    """
    groups = range(graph.batch.n_groups)
    made: list[tuple[_Group, GroupSuspicion]] = []
    workers = threads or min(os.cpu_count() or 1, 8)

    def work(group: int) -> tuple[_Group, GroupSuspicion]:
        one = _examine(graph, group, seed, draws, inner, budget)
        return one, _said(graph, one, draws, inner)

    # pieces of a group are never handed to the pool of groups, whose threads wait for them
    with ThreadPoolExecutor(workers) as pool, ThreadPoolExecutor(workers) as inner:
        for done in pool.map(work, groups):
            made.append(done)
            if progress is not None:
                progress(len(made), len(groups))
    return _collect(graph, made, seed, draws)


@dataclass(frozen=True, eq=False)
class _Group:
    """One group's walks (None: it has no step), tests, and what they flag; arrays over its nodes (local codes)."""

    group: int
    seed: int
    walks: Walks | None
    p: float = float("nan")
    tests: NodeTests | None = None
    q_own: FloatArray | None = None
    q_next: FloatArray | None = None
    test: npt.NDArray[np.int8] | None = None
    via: IntArray | None = None
    w: int = -1


def _seed_of(graph: TrajectoryGraph, group: int, seed: int) -> int:
    from xxhash import xxh3_64_intdigest

    return int(xxh3_64_intdigest(f"{seed}/{graph.batch.group_ids[group]}".encode()) >> 2)


def _examine(graph: TrajectoryGraph, group: int, seed: int, draws: int, pool: Executor, budget: int) -> _Group:
    walks = walks_of(graph, group)
    own_seed = _seed_of(graph, group, seed)
    if not walks.path.size:
        return _Group(group, own_seed, None)
    p = gate(walks, own_seed, draws)
    alarm = bool(p <= LEVEL)
    tests = node_tests(walks, alarm, own_seed, draws, pool, budget)
    little = low_information(graph)[walks.keys]
    q_own, q_next = _corrected_apart(tests.own, little), _corrected_apart(tests.next, little)
    test = np.zeros(walks.n_nodes, np.int8)
    test[q_next <= LISTED] = TESTS.index("next")
    test[(q_own <= LISTED) & (little | (walks.cut.mean() <= MANY_CUT))] = TESTS.index("own")
    if alarm:
        test[tests.pooled <= NODE_LEVEL] = TESTS.index("pooled")
    w, via = _milestones(walks, tests, alarm)
    return _Group(group, own_seed, walks, p, tests, q_own, q_next, test, via, w)


def _corrected_apart(p: FloatArray, little: BoolArray) -> FloatArray:
    """False-discovery rates of the nodes that say little among themselves, and of the others among themselves."""
    q = np.empty(p.size)
    for part in (little, ~little):
        q[part] = corrected(p[part])
    return q


def _milestones(walks: Walks, tests: NodeTests, alarm: bool) -> tuple[int, IntArray]:
    """The node whose coverage all tested nodes find too even, and for each tested node the one that parts it best."""
    via = np.full(walks.n_nodes, -1, np.int64)
    squares = tests.surplus**2
    if not squares.size or not squares.max() > 0:
        return -1, via
    total = squares.sum(axis=0)
    w = int(total.argmax())
    own = np.where(squares.max(axis=1) > 0, squares.argmax(axis=1), -1)
    if alarm:
        own = np.where(squares[:, w] > 0, w, own)
    via[tests.tested] = own
    return w, via


def _said(graph: TrajectoryGraph, made: _Group, draws: int, pool: Executor) -> GroupSuspicion:
    """The group's word and the rule that would part its nodes."""
    rollouts = int((graph.batch.group == made.group).sum())
    walks = made.walks
    if walks is None or made.tests is None or made.test is None:
        return GroupSuspicion(made.group, RARE, float("nan"), True, rollouts, 0.0, 0.0, -1, "", (), ())
    tested, left = made.tests.tested, made.tests.left
    cut, judged = float(walks.cut.mean()), float(np.isin(walks.path, np.concatenate([tested, left])).mean())
    alarm = bool(made.p <= LEVEL)
    flagged = np.flatnonzero(made.test > 0)
    flagged = flagged[np.lexsort((flagged, _surest(made)[flagged]))]
    word = ALARM if alarm else NODES if flagged.size else _quiet(rollouts, cut, judged)
    effects = _effects(graph, made, walks, alarm, draws, pool) if word in (ALARM, NODES) else ()
    return GroupSuspicion(
        group=made.group,
        word=word,
        p=made.p,
        exact=not walks.cut.any(),
        rollouts=rollouts,
        cut=cut,
        judged=judged,
        w=int(walks.keys[made.w]) if alarm and made.w >= 0 else -1,
        rule=effects[0].rule if effects else "",
        effects=effects,
        nodes=tuple(walks.keys[flagged].tolist()),
        tested=int(tested.size),
        testable=int(tested.size + left.size),
    )


def _quiet(rollouts: int, cut: float, judged: float) -> str:
    if judged < MOST_STEPS:
        return RARE
    if cut > MANY_CUT:
        return CUT
    return SMALL if rollouts < SMALL_GROUP else NONE


def _surest(made: _Group) -> FloatArray:
    """p of the test that flags each node, else the least of the tests made."""
    assert made.tests is not None and made.test is not None
    every = np.stack([made.tests.pooled, made.tests.own, made.tests.next])
    least = np.where(np.isnan(every).all(axis=0), np.nan, np.fmin.reduce(every, axis=0))
    flagged = np.flatnonzero(made.test > 0)
    least[flagged] = every[made.test[flagged] - 1, flagged]
    return np.asarray(least)


def _effects(
    graph: TrajectoryGraph, made: _Group, walks: Walks, alarm: bool, draws: int, pool: Executor
) -> tuple[Effect, ...]:
    """Effects of the candidate rules, the proposed one first.

    Where the group alarms: the first that ends the alarm, `guard` first if a flagged node says little, then `visited`,
    `history:1`, `actions:1`; `visited` if none does. Without alarm: `guard` if a flagged node says little, else the one
    that foretells the next node best.
    """
    assert made.test is not None
    names: list[tuple[str, str, int]] = []
    if low_information(graph)[walks.keys[made.test > 0]].any():
        names.append(("guard", CANDIDATES["guard"], -1))
    if made.w >= 0:
        w = int(walks.keys[made.w])
        names.append((visited_rule(graph, w), CANDIDATES["visited"], made.w))
    names += [(rule, CANDIDATES[rule], -1) for rule in ("history:1", "actions:1")]
    found = list(
        pool.map(lambda one: effect(graph, walks, one[0], one[1], made.seed, NODE_LEVEL, draws, one[2]), names)
    )
    if alarm:
        usual = next((e for e in found if e.rule.startswith("visited")), found[0])
        best = next((e for e in found if e.silenced), usual)
    else:
        best = found[0] if found[0].rule == "guard" else max(found, key=lambda e: e.gain)
    return (best, *(e for e in found if e is not best))


def _collect(graph: TrajectoryGraph, made: list[tuple[_Group, GroupSuspicion]], seed: int, draws: int) -> Suspects:
    n = graph.n_nodes
    p, own, pooled, after, q_own, q_next = (np.full(n, np.nan) for _ in range(6))
    test, via, judged, left = np.zeros(n, np.int8), np.full(n, -1, np.int64), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for one, _ in made:
        if one.walks is None or one.tests is None or one.test is None or one.via is None:
            continue
        at = one.walks.keys
        own[at], pooled[at], after[at], p[at] = one.tests.own, one.tests.pooled, one.tests.next, _surest(one)
        q_own[at], q_next[at], test[at] = one.q_own, one.q_next, one.test
        judged[at[one.tests.tested]], left[at[one.tests.left]] = True, True
        via[at] = np.where(one.via >= 0, at[one.via], -1)
    groups = tuple(said for _, said in made)
    return Suspects(graph, groups, test > 0, test, p, own, pooled, after, q_own, q_next, judged, left, via, seed, draws)
