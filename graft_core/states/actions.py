"""`actions:k`: two moments are the same when the observation and the last k executed actions are.

Shorter pasts count as they are. k = 0 changes nothing.
"""

from __future__ import annotations

from functools import partial

from graft_core.rollouts import RolloutBatch
from graft_core.states.base import (
    Keys,
    StateRule,
    action_before,
    extended_rank,
    factorise,
    paired,
    text_hashes,
    whole_parameter,
    without_texts,
)


def _depth(parameter: str) -> int:
    return whole_parameter("actions", parameter)


def _actions(batch: RolloutBatch, keys: Keys, parameter: str) -> Keys:
    made = without_texts(keys)
    for back in range(1, min(_depth(parameter), int(extended_rank(batch).max(initial=0))) + 1):
        codes, distinct = factorise(action_before(batch, back))
        made = paired(made, codes, partial(text_hashes, batch.text_array, distinct))
    return made


RULE = StateRule(
    name="actions",
    meaning="this observation and the last k actions are identical",
    stage="key",
    apply=_actions,
    parameter="k, a whole number",
    default="1",
    rank=21,
    check=_depth,
)
