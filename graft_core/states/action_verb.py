"""`verb`: two actions are the same when their first word is: the verb, the tool's name, the command.

`go to desk 1` is "go", `search[red shoes]` and `search {"q": "shoes"}` are "search".
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from graft_core.rollouts import IntArray, RolloutBatch
from graft_core.states._text import map_actions
from graft_core.states.base import ActionRule

_FIRST_WORD = r"^\s*(?P<verb>[^\s\[({<:;,|]*)"


def _verbs(texts: pa.Array) -> pa.Array:
    return pc.utf8_lower(pc.struct_field(pc.extract_regex(texts, pattern=_FIRST_WORD), "verb"))


def _verb(batch: RolloutBatch, parameter: str) -> IntArray:
    return map_actions(batch, _verbs)


ACTION_RULE = ActionRule("verb", "the first word of the executed action is identical", _verb, rank=4)
