"""Who was in a moment (node), what they did there, and how they ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from graft_core.graph import TrajectoryGraph
from graft_core.insight._words import excerpt
from graft_core.rollouts import FloatArray, IntArray, RolloutBatch
from graft_core.values import Values

ACTION_LENGTH = 80


@dataclass(frozen=True)
class Ended:
    """How some rollouts ended. mean_outcome is over those of known outcome, NaN if there are none."""

    rollouts: int
    succeeded: int
    failed: int
    unknown: int
    mean_outcome: float

    @property
    def known(self) -> int:
        return self.succeeded + self.failed

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "known": self.known}


@dataclass(frozen=True)
class ActionHere:
    """One action taken from a moment.

    action: excerpt of rollout text; text_id: where the whole stands. count: step instances (count_known: of known
    outcome); ended: distinct rollouts that did it here. value_after: mean V of where it led, credit: mean residual
    [r +] gamma V(after) - V(here); both over known instances, NaN if none. chosen: it is the action asked about.
    """

    pair: int
    action: str
    text_id: int
    count: int
    count_known: int
    ended: Ended
    value_after: float
    credit: float
    chosen: bool

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ended": self.ended.as_dict()}


def ended(batch: RolloutBatch, rows: IntArray) -> Ended:
    """How the distinct rollouts among `rows` ended."""
    rows = np.unique(rows)
    outcome, success = batch.outcome[rows], batch.success[rows]
    known = ~np.isnan(outcome)
    return Ended(
        rollouts=int(rows.size),
        succeeded=int((success == 1).sum()),
        failed=int((success == 0).sum()),
        unknown=int(np.isnan(success).sum()),
        mean_outcome=float(outcome[known].mean()) if known.any() else float("nan"),
    )


def value_word(batch: RolloutBatch, values: Values) -> str:
    """What V is in plain words: a chance only where every known outcome is 0 or 1 and nothing else is rewarded."""
    if "binary" not in batch.memo:
        known = batch.outcome[batch.known]
        batch.memo["binary"] = bool(np.all((known == 0.0) | (known == 1.0)))
    return "chance of success" if batch.memo["binary"] and values.rewards == "outcome" else "expected score"


def steps_at(graph: TrajectoryGraph, node: int) -> IntArray:
    """Path positions of the steps that leave a node, in path order."""
    if "steps_at" not in graph.memo:
        order = np.argsort(graph.src, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(graph.src, minlength=graph.n_nodes))])
        graph.memo["steps_at"] = order, starts
    order, starts = graph.memo["steps_at"]
    at: IntArray = order[starts[node] : starts[node + 1]]
    return at


def residuals(graph: TrajectoryGraph, values: Values) -> FloatArray:
    """[r_t +] gamma V(s') - V(s) of every step in path order, NaN where the outcome is unknown (Eq. 8)."""
    key = ("residuals", id(values))
    if key not in graph.memo:
        td = values.gamma * values.v[graph.dst] - values.v[graph.src]
        if values.rewards == "dense":
            td = td + graph.batch.reward
        graph.memo[key] = values, np.where(graph.known, td, np.nan)  # values: keeps the id its own
    found: FloatArray = graph.memo[key][1]
    return found


def actions_at(
    graph: TrajectoryGraph, values: Values, steps: Iterable[int] | IntArray, chosen_pair: int = -1
) -> tuple[ActionHere, ...]:
    """The actions of the given steps (all leaving one node), most successes first, then most instances."""
    batch = graph.batch
    steps = np.asarray(steps, dtype=np.int64)
    td = residuals(graph, values)
    found = []
    for pair in np.unique(graph.pair[steps]).tolist():
        own = steps[graph.pair[steps] == pair]
        known = own[batch.step_known[own]]
        text = int(graph.pair_text[pair])
        found.append(
            ActionHere(
                pair=pair,
                action=excerpt(batch.text(text), ACTION_LENGTH),
                text_id=text,
                count=int(own.size),
                count_known=int(known.size),
                ended=ended(batch, batch.step_rollout[own]),
                value_after=float(values.v[graph.dst[known]].mean()) if known.size else float("nan"),
                credit=float(td[known].mean()) if known.size else float("nan"),
                chosen=pair == chosen_pair,
            )
        )
    return tuple(sorted(found, key=lambda a: (-a.ended.succeeded, -a.count, a.pair)))
