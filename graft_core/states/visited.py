"""`visited:W`: two moments are the same when the observation is, and whether the rollout has met node W before.

What a hidden milestone such as "has the key" needs; no number of past observations can express it. W is named by

- `visited:TEXT`: the observation text exactly,
- `visited:TEXT*`: how it begins,
- `visited:#0123456789abcdef`: the content hash of its node under the rules that stand before (for long texts).

"Before" is strict: W itself is parted into its first visit and the later ones.
"""

from __future__ import annotations

import numpy as np

from graft_core.errors import UsageError
from graft_core.rollouts import RolloutBatch
from graft_core.states._nodes import named_codes, read_hash
from graft_core.states.base import HashArray, Keys, StateRule, extended_rank, paired


def _check(parameter: str) -> None:
    if parameter in ("", "*"):
        raise UsageError("rule visited: expected a node behind the colon: its text, TEXT* for how it begins, or #hash")
    if parameter.startswith("#"):
        read_hash(parameter, "rule visited")


def _visited(batch: RolloutBatch, keys: Keys, parameter: str) -> Keys:
    here = named_codes(batch, keys, parameter, "visited")[keys.codes]
    rank = extended_rank(batch)
    at = np.arange(keys.codes.size)
    last = np.maximum.accumulate(np.where(here, at, -1))
    before = np.concatenate([[-1], last[:-1]])
    met = (before >= at - rank) & (rank > 0)

    def hashes() -> HashArray:
        return np.array([1, 2], dtype=np.uint64)

    return paired(keys, met.astype(np.int64), hashes)


RULE = StateRule(
    name="visited",
    meaning="this observation is identical, and whether the rollout has met node W before",
    stage="key",
    apply=_visited,
    parameter="W, a text, TEXT* or #hash",
    rank=23,
    check=_check,
)
