"""Two rollouts that go on differently at a suspect node, to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graft_core.insight._suspect_group import Walks, previous, walks_of
from graft_core.insight._suspect_split import met_before
from graft_core.rollouts import BoolArray, IntArray

if TYPE_CHECKING:
    from graft_core.insight.suspect import Suspects


@dataclass(frozen=True)
class Moment:
    """One visit: rollout row, path position of the step, its t, and whether w was met before and is met afterwards."""

    rollout: int
    position: int
    t: int
    met_before: bool
    met_after: bool


@dataclass(frozen=True)
class Pair:
    """Two visits of one node that differ in what came before and in what followed.

    w: the node that one rollout had met before and the other had not; -1 where the last step before tells them apart.
    """

    node: int
    w: int
    one: Moment
    other: Moment


def pair(found: Suspects, node: int) -> Pair | None:
    """Two rollouts that go on differently at `node`, the shortest that show it; None where there are no such two visits.

    Node found by the pooled or own test: one that had met w before and need not meet it again, one that had not and does.
    Found by the next-node test: the same action, another step before, another node after.
    """
    from graft_core.insight.suspect import TESTS

    walks = walks_of(found.graph, int(found.graph.node_group[node]))
    here = np.flatnonzero(walks.keys == node)
    if not here.size:
        return None
    via = int(found.via[node])
    if TESTS[found.test[node]] == "next" or via < 0:
        return _by_last_step(walks, node, int(here[0]))
    return _by_milestone(walks, node, int(here[0]), via)


def _by_milestone(walks: Walks, node: int, u: int, via: int) -> Pair | None:
    w = int(np.flatnonzero(walks.keys == via)[0])
    before, _ = met_before(walks, w)
    visits = np.flatnonzero(walks.path == u)
    starts, stops = walks.offsets[walks.walk_of_step[visits]], walks.offsets[walks.walk_of_step[visits] + 1]
    at = np.flatnonzero(walks.path == w)
    later = np.append(at, walks.path.size)[np.searchsorted(at, visits, side="right")] < stops
    lengths = stops - starts
    walk = walks.walk_of_step[visits]
    one = _best(before[visits], ~later, lengths, visits)
    other = _best(~before[visits] & (walk != walk[max(one, 0)]), later, lengths, visits)
    if other < 0:  # only within one rollout
        other = _best(~before[visits], later, lengths, visits)
    if one < 0 or other < 0:
        return None
    found = [_moment(walks, int(visits[k]), bool(before[visits[k]]), bool(later[k])) for k in (one, other)]
    return Pair(node, via, *found)


def _best(needed: BoolArray, wanted: BoolArray, lengths: IntArray, visits: IntArray) -> int:
    """The visit in the shortest rollout among those needed, wanted ones first; -1 where there is none."""
    chosen = np.flatnonzero(needed)
    if not chosen.size:
        return -1
    return int(chosen[np.lexsort((visits[chosen], lengths[chosen], ~wanted[chosen]))[0]])


def _by_last_step(walks: Walks, node: int, u: int) -> Pair | None:
    visits = np.flatnonzero(walks.path == u)
    came, went, act = previous(walks, walks.pair)[visits], walks.next[visits], walks.pair[visits]
    best, pick = 0.0, None
    for a in np.unique(act).tolist():
        own = np.flatnonzero(act == a)
        table = np.unique(np.stack([came[own], went[own]]), axis=1, return_inverse=True)[1].reshape(-1)
        for cell in np.unique(table).tolist():
            k = own[np.flatnonzero(table == cell)[0]]
            excess = (table == cell).sum() - (came[own] == came[k]).sum() * (went[own] == went[k]).sum() / own.size
            rest = own[(came[own] != came[k]) & (went[own] != went[k])]
            rest = rest[np.argsort(walks.walk_of_step[visits[rest]] == walks.walk_of_step[visits[k]], kind="stable")]
            if rest.size and excess > best:
                best, pick = float(excess), (k, rest[0])
    if pick is None:
        return None
    return Pair(node, -1, *[_moment(walks, int(visits[k]), False, False) for k in pick])


def _moment(walks: Walks, at: int, before: bool, after: bool) -> Moment:
    walk = int(walks.walk_of_step[at])
    return Moment(int(walks.rows[walk]), int(walks.positions[at]), int(at - walks.offsets[walk]), before, after)
