"""`parsed`: two actions are the same when the environment executed the same thing.

What was executed is the reader's work: the text inside the last action tag, a tool's name with canonical JSON
arguments, or the recorded action where there is nothing to parse.
"""

from __future__ import annotations

from graft_core.rollouts import IntArray, RolloutBatch
from graft_core.states.base import ActionRule


def _parsed(batch: RolloutBatch, parameter: str) -> IntArray:
    return batch.action


ACTION_RULE = ActionRule("parsed", "the executed action is identical", _parsed, rank=1)
