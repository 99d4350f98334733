"""`prefix`: two moments are the same when everything so far is, observations and actions: the graph is a tree."""

from __future__ import annotations

from graft_core.rollouts import RolloutBatch
from graft_core.states._chain import chained
from graft_core.states.base import Keys, StateRule, extended_rank


def _prefix(batch: RolloutBatch, keys: Keys, parameter: str) -> Keys:
    return chained(batch, keys, extended_rank(batch) > 0)


RULE = StateRule("prefix", "everything so far is identical (a tree)", "key", _prefix, rank=22)
