"""`exact`: two moments are the same when the observation texts are identical."""

from __future__ import annotations

from graft_core.rollouts import RolloutBatch
from graft_core.states.base import Keys, StateRule


def _same(batch: RolloutBatch, keys: Keys, parameter: str) -> Keys:
    return keys


RULE = StateRule(
    name="exact",
    meaning="the text is identical",
    stage="text",
    apply=_same,
    rank=1,
)
