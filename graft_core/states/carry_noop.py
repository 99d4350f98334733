"""`carry_noop`: an observation that says that nothing happened keeps the state before it.

Default text: "Nothing happens.", whatever its case and outer white space; `carry_noop:TEXT` names another,
`carry_noop:/EXPRESSION/` every text that the expression finds. A first observation stays as it is. A final state is carried
too: a rollout that ends on "Nothing happens." ends in the state before.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graft_core.rollouts import RolloutBatch
from graft_core.states._text import expression, used_codes
from graft_core.states.base import Keys, StateRule, extended_rank

DEFAULT = "Nothing happens."


def _check(parameter: str) -> None:
    if parameter.startswith("/"):
        expression("carry_noop", parameter)


def says_nothing(texts: pa.Array, parameter: str) -> pa.Array:
    """Which texts say that nothing happened, by a text or an expression between slashes. bool[len(texts)]."""
    if parameter.startswith("/"):
        return pc.match_substring_regex(texts, pattern=expression("carry_noop", parameter))
    return pc.equal(pc.utf8_lower(pc.utf8_trim_whitespace(texts)), pa.scalar(parameter.strip().lower(), texts.type))


def _carry(batch: RolloutBatch, keys: Keys, parameter: str) -> Keys:
    assert keys.texts is not None
    used = used_codes(keys)
    noop = np.zeros(len(keys.texts) + 1, dtype=bool)
    noop[used] = np.asarray(says_nothing(keys.texts.take(pa.array(used)), parameter or DEFAULT))
    at = np.arange(keys.codes.size)
    stays = noop[keys.codes] & (extended_rank(batch) > 0)
    # a first observation always counts, so the last position that does never lies in another rollout
    source = np.maximum.accumulate(np.where(stays, 0, at))
    return Keys(keys.codes[source], keys.final_missing, keys.texts, None, keys.rules)


RULE = StateRule(
    name="carry_noop",
    meaning="a text such as “Nothing happens.” keeps the state before it",
    stage="text",
    apply=_carry,
    parameter="TEXT or /EXPRESSION/",
    default=DEFAULT,
    rank=11,
    check=_check,
)
