"""`normalised`: two actions are the same when what was executed is, apart from case, white space and Unicode form."""

from __future__ import annotations

from graft_core.rollouts import IntArray, RolloutBatch
from graft_core.states._text import map_actions, normalised
from graft_core.states.base import ActionRule


def _normalised(batch: RolloutBatch, parameter: str) -> IntArray:
    return map_actions(batch, normalised)


ACTION_RULE = ActionRule("normalised", "the executed action is identical apart from case and white space", _normalised, rank=3)
