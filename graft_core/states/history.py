"""`history:k`: two moments are the same when the present and the last k observations are.

Shorter pasts count as they are: with two steps behind it a moment is compared by those two. k = 0 changes nothing.
"""

from __future__ import annotations

import numpy as np

from graft_core.constants import NO_TEXT
from graft_core.rollouts import RolloutBatch
from graft_core.states.base import Keys, StateRule, extended_rank, paired, whole_parameter, without_texts


def _depth(parameter: str) -> int:
    return whole_parameter("history", parameter)


def _history(batch: RolloutBatch, keys: Keys, parameter: str) -> Keys:
    rank = extended_rank(batch)
    made = without_texts(keys)
    for back in range(1, min(_depth(parameter), int(rank.max(initial=0))) + 1):
        earlier = np.full_like(keys.codes, NO_TEXT)
        earlier[back:] = keys.codes[:-back]
        made = paired(made, np.where(rank >= back, earlier, NO_TEXT), lambda: keys.hashes)
    return made


RULE = StateRule(
    name="history",
    meaning="this and the last k observations are identical",
    stage="key",
    apply=_history,
    parameter="k, a whole number",
    default="1",
    rank=20,
    check=_depth,
)
