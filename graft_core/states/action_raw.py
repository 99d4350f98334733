"""`raw`: two actions are the same when the model said exactly the same text, reasoning included."""

from __future__ import annotations

from graft_core.rollouts import IntArray, RolloutBatch
from graft_core.states.base import ActionRule


def _raw(batch: RolloutBatch, parameter: str) -> IntArray:
    return batch.action_text


ACTION_RULE = ActionRule("raw", "the full text of the model is identical", _raw, rank=2)
