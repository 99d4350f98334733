"""`normalised`: two moments are the same when the texts are, apart from case, white space and Unicode form (NFKC)."""

from __future__ import annotations

from graft_core.rollouts import RolloutBatch
from graft_core.states._text import map_texts, normalised
from graft_core.states.base import Keys, StateRule


def _normalised(batch: RolloutBatch, keys: Keys, parameter: str) -> Keys:
    return map_texts(keys, normalised)


RULE = StateRule("normalised", "the text is identical apart from case and white space", "text", _normalised, rank=2)
