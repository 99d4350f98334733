"""What a finer key would do to one group: parting its nodes, and whether that helps to foretell the next node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graft_core.graph import TrajectoryGraph
from graft_core.insight._suspect_group import Walks, gate, previous
from graft_core.rollouts import BoolArray, IntArray


@dataclass(frozen=True)
class Effect:
    """What one rule, added behind the others, does to one group.

    p: the group test again, with the finer keys (NaN: nothing left to test). silenced: p is above the alarm's level or
    nothing is left. nodes: ordinary nodes then. shared: share of steps whose node two or more rollouts visit then. gain:
    how much better the next node is foretold, given state and action, from the other rollouts (log-likelihood per step;
    above 0: the finer key helps; not above 0 says nothing).
    """

    rule: str
    meaning: str
    p: float
    silenced: bool
    nodes: int
    shared: float
    gain: float

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "p": None if np.isnan(self.p) else self.p}


def met_before(walks: Walks, w: int) -> tuple[BoolArray, BoolArray]:
    """Whether each step's walk has met node w before that step, and whether each walk has met it when it ends."""
    at = np.arange(walks.path.size)
    last = np.maximum.accumulate(np.where(walks.path == w, at, -1))
    starts = np.repeat(walks.offsets[:-1], np.diff(walks.offsets))
    before = np.concatenate([[-1], last[:-1]])[: at.size]
    return before >= starts, last[walks.offsets[1:] - 1] >= walks.offsets[:-1]


def parted(walks: Walks, step: IntArray, end: IntArray) -> Walks:
    """The same walks with every node parted by a code per step, and what they end in by a code per walk (from 0)."""
    width = int(max(step.max(initial=0), end.max(initial=0))) + 1
    keys, path = np.unique(walks.path * width + step, return_inverse=True)
    ends = np.unique(walks.ends * width + end, return_inverse=True)[1]
    pair = np.unique(walks.pair * width + step, return_inverse=True)[1]
    to = np.empty_like(path)
    to[:-1] = path[1:]
    to[walks.offsets[1:] - 1] = keys.size + ends
    wanted = walks.after * width + end
    place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    after = np.where((walks.after >= 0) & (keys[place] == wanted), place, -1)
    return replace(walks, path=path, keys=keys, pair=pair, next=to, ends=ends, after=after)


def parts(graph: TrajectoryGraph, walks: Walks, rule: str, w: int = -1) -> tuple[IntArray, IntArray]:
    """The code per step and per walk by which a proposed rule parts the nodes. w: local node of `visited`."""
    last = walks.offsets[1:] - 1
    there = graph.batch.final_observation[walks.rows] >= 0  # an end without observation is told apart by its outcome only
    name = rule.partition(":")[0]
    if name == "visited":
        step, end = met_before(walks, w)
        return step.astype(np.int64), (end & there).astype(np.int64)
    if name == "history":
        return previous(walks, walks.path) + 1, (walks.path[last] + 1) * there
    if name == "actions":
        codes = np.unique(graph.batch.action[walks.positions], return_inverse=True)[1]
        return previous(walks, codes) + 1, (codes[last] + 1) * there
    step_key, final_key = guarded(graph)
    codes = np.unique(np.concatenate([step_key[walks.positions], final_key[walks.rows]]), return_inverse=True)[1]
    return codes[: walks.path.size], codes[walks.path.size :]


def guarded(graph: TrajectoryGraph) -> tuple[IntArray, IntArray]:
    """Keys per step and per rollout's final state with `guard` added behind the graph's rules."""
    if "guarded" not in graph.memo:
        from graft_core.states import state_keys

        graph.memo["guarded"] = state_keys(graph.batch, [*graph.rules, "guard"])
    made: tuple[IntArray, IntArray] = graph.memo["guarded"]
    return made


def low_information(graph: TrajectoryGraph) -> BoolArray:
    """Whether `guard` would keep apart some visit of each node. bool[n_nodes]."""
    if "low_information" not in graph.memo:
        step_key, _ = guarded(graph)
        pairs = np.unique(np.stack([graph.src, step_key]), axis=1)[0]
        graph.memo["low_information"] = np.bincount(pairs, minlength=graph.n_nodes) > 1
    made: BoolArray = graph.memo["low_information"]
    return made


def effect(
    graph: TrajectoryGraph, walks: Walks, rule: str, meaning: str, seed: int, level: float, draws: int, w: int = -1
) -> Effect:
    """Test the group again with its nodes parted by `rule`."""
    step, end = parts(graph, walks, rule, w)
    made = parted(walks, step, end)
    p = gate(made, seed, draws)
    return Effect(
        rule=rule,
        meaning=meaning,
        p=p,
        silenced=not p <= level,
        nodes=made.n_nodes,
        shared=float((made.visitors()[made.path] >= 2).mean()),
        gain=gain(walks, step),
    )


def gain(walks: Walks, part: IntArray) -> float:
    """Mean log-likelihood gain per step of the next node given (u, a), parted by a code per step; each rollout left out.

    p0 = (n(u,a,v) + .5) / (n(u,a) + .5 k), p1 = (n(u,a,h,v) + 2 p0) / (n(u,a,h) + 2), k = next nodes of (u, a).
    """
    walk = walks.walk_of_step
    fine = np.unique(walks.pair * (int(part.max(initial=0)) + 1) + part, return_inverse=True)[1]
    width = int(walks.next.max(initial=0)) + 1
    edge = walks.pair * width + walks.next
    kinds = np.bincount(np.unique(edge) // width, minlength=int(walks.pair.max(initial=0)) + 1)[walks.pair]
    p0 = (_elsewhere(edge, walk) + 0.5) / (_elsewhere(walks.pair, walk) + 0.5 * kinds)
    p1 = (_elsewhere(fine * width + walks.next, walk) + 2.0 * p0) / (_elsewhere(fine, walk) + 2.0)
    return float(np.mean(np.log(p1) - np.log(p0)))


def _elsewhere(code: IntArray, walk: IntArray) -> IntArray:
    """For each step: how many steps of other walks have its code."""
    dense = np.unique(code, return_inverse=True)[1]
    own = np.unique(dense * (int(walk.max(initial=0)) + 1) + walk, return_inverse=True)[1]
    made: IntArray = np.bincount(dense)[dense] - np.bincount(own)[own]
    return made
