"""`action_set`: two moments are the same when the observation and the set of admissible actions are.

The order of the actions does not count. Steps without a list, and final states, have an unknown set of their own.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from graft_core.constants import NO_TEXT
from graft_core.errors import UsageError
from graft_core.rollouts import RolloutBatch
from graft_core.states.base import Keys, StateRule, factorise, paired, step_positions, text_hashes


def _action_set(batch: RolloutBatch, keys: Keys, parameter: str) -> Keys:
    from graft_core.states._kernels import set_hashes

    lists = batch.steps.column("admissible").combine_chunks()
    lists = pa.concat_arrays(lists.chunks) if isinstance(lists, pa.ChunkedArray) else lists
    if lists.null_count == len(lists):
        raise UsageError("rule action_set: no step of these rollouts lists its admissible actions")
    given = np.asarray(lists.is_valid())
    members, distinct = factorise(lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64))
    sizes = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    sets = set_hashes(offsets, members, text_hashes(batch.text_array, distinct))
    codes, kinds = factorise(sets.view(np.int64))
    other = np.full(keys.codes.size, NO_TEXT, dtype=np.int64)
    other[step_positions(batch)] = np.where(given, codes, NO_TEXT)[batch.order]
    return paired(keys, other, lambda: kinds.view(np.uint64))


RULE = StateRule("action_set", "the text and the admissible actions are identical", "key", _action_set, rank=24)
