"""`guard`: a low-information observation is kept apart by the state and the action before it.

Low-information is an observation that is empty, says that nothing happened, or is an error message; and one that a task's
rollouts reach from many unrelated (state, action) pairs: from at least m different states by at least m different actions
(`guard:m`, default 8; a cell of a grid has four neighbours, a page that every page links to is reached by one action).
Shortness alone is no reason. Several in a row are told apart by the whole row. A rollout's first observation stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graft_core.rollouts import IntArray, RolloutBatch
from graft_core.states._chain import chained
from graft_core.states._low_information import KINDS, low_information
from graft_core.states._nodes import raw_text_ids
from graft_core.states._text import used_codes
from graft_core.states.base import Keys, StateRule, action_before, extended_rank, extended_rollout, factorise, whole_parameter

MANY = 8
MANY_ORIGINS = len(KINDS)
REASONS = (*KINDS, "many origins")
"""Why a position counts as low-information, by its code; 0 = it does not."""


def _many(parameter: str) -> int:
    return whole_parameter("guard", parameter, 2)


@dataclass(frozen=True)
class Origins:
    """Per position: how many different states and how many different actions its key is reached from, in its task."""

    states: IntArray
    actions: IntArray


def origins(batch: RolloutBatch, keys: Keys) -> Origins:
    """Count what leads to each key, task by task. First observations have no origin."""
    inner = np.flatnonzero(extended_rank(batch) > 0)
    group = batch.group[extended_rollout(batch)]
    node, _ = factorise(group * (keys.n_codes + 1) + keys.codes)
    n_nodes = int(node.max(initial=-1)) + 1

    def distinct(before: IntArray) -> IntArray:
        width = int(before.max(initial=0)) + 1
        pairs = factorise(node[inner] * width + before)[1]
        return np.bincount(pairs // width, minlength=n_nodes)[node]

    return Origins(distinct(keys.codes[inner - 1]), distinct(factorise(action_before(batch)[inner])[0]))


def reasons(batch: RolloutBatch, keys: Keys, many: int = MANY) -> npt.NDArray[np.int8]:
    """Why each position is low-information (see `REASONS`). int8[n_steps + n_rollouts]."""
    if keys.texts is not None:
        used = used_codes(keys)
        kind = np.zeros(len(keys.texts) + 1, dtype=np.int8)
        kind[used] = low_information(keys.texts.take(pa.array(used)))
        made = kind[keys.codes]
    else:
        codes, ids = factorise(raw_text_ids(batch))
        real = np.flatnonzero(ids >= 0)
        kind = np.zeros(ids.size, dtype=np.int8)
        kind[real] = low_information(batch.text_array.take(pa.array(ids[real])))
        made = kind[codes]
    found = origins(batch, keys)
    crowded = (made == 0) & (found.states >= many) & (found.actions >= many)
    return np.where(crowded, np.int8(MANY_ORIGINS), made)


def _guard(batch: RolloutBatch, keys: Keys, parameter: str) -> Keys:
    low = reasons(batch, keys, _many(parameter)) > 0
    return chained(batch, keys, low & (extended_rank(batch) > 0))


RULE = StateRule(
    name="guard",
    meaning="the text is identical, and an empty, error or no-op text is kept apart by what came before it",
    stage="key",
    apply=_guard,
    parameter="m, from how many states and actions is many",
    default=str(MANY),
    rank=25,
    check=_many,
)
