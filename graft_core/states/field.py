"""`field:PATH`: two moments are the same when a field of the step is, such as a state hash.

PATH is `state` (the file's state column), `observation.a.b` (inside an observation that is JSON), or a path into the step's
metadata, where a reader keeps the columns it does not know: `metadata.a.b`, or just `a.b`. Parts are keys or list positions.
The final state is `next_state`, the final observation, or `next_` and the path in the last step's metadata; where there is
none, the rollout has no final state. A step without the field is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from graft_core.constants import NO_TEXT
from graft_core.errors import UsageError
from graft_core.rollouts import IntArray, RolloutBatch
from graft_core.states.base import Keys, StateRule, final_positions, step_positions


def parts(parameter: str) -> tuple[str, list[str]]:
    """(source, keys) of a path: source is `state`, `observation` or `metadata`."""
    words = parameter.split(".")
    if not all(words):
        raise UsageError(f"rule field:{parameter}: expected a column or a path such as state, hash or observation.room.id")
    if words[0] == "state" and len(words) == 1:
        return "state", []
    if words[0] in ("observation", "metadata") and len(words) > 1:
        return words[0], words[1:]
    return "metadata", words


def _walk(value: Any, keys: Iterable[str]) -> str | None:
    """What stands at the path as a text (canonical JSON for all but strings), None if nothing does."""
    for key in keys:
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.lstrip("-").isdigit() and -len(value) <= int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    if value is None or isinstance(value, str):
        return value
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _read(words: list[str | None], keys: list[str]) -> list[str | None]:
    found: list[str | None] = []
    for word in words:
        try:
            found.append(None if word is None else _walk(orjson.loads(word), keys))
        except orjson.JSONDecodeError:
            found.append(None)
    return found


class _Values:
    """Values by text, numbered as they come."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def codes(self, array: pa.Array | pa.ChunkedArray, read: Callable[[list[str | None]], list[str | None]]) -> IntArray:
        """One code per row, -1 for nothing; every distinct row is read once."""
        array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
        encoded = array.dictionary_encode()
        values = read(encoded.dictionary.to_pylist())
        table = [NO_TEXT if v is None else self.numbers.setdefault(v, len(self.numbers)) for v in values]
        rows = encoded.indices.fill_null(len(table)).to_numpy(zero_copy_only=False)
        return np.array([*table, NO_TEXT], dtype=np.int64)[rows]


def _metadata(batch: RolloutBatch, keys: list[str]) -> tuple[IntArray, IntArray, pa.Array]:
    values = _Values()
    steps = values.codes(batch.steps.column("metadata"), lambda words: _read(words, keys))[batch.order]
    following = ["next_" + keys[0], *keys[1:]]
    some = batch.lengths > 0
    last = batch.order[batch.offsets[1:][some] - 1]
    final = np.full(batch.n_rollouts, NO_TEXT, dtype=np.int64)
    final[some] = values.codes(batch.steps.column("metadata").take(pa.array(last)), lambda words: _read(words, following))
    return steps, final, pa.array(list(values.numbers), pa.large_string())


def _observation(batch: RolloutBatch, old: Keys, keys: list[str]) -> tuple[IntArray, IntArray, pa.Array]:
    assert old.texts is not None
    values = _Values()
    missing = old.codes >= len(old.texts)
    words = old.texts.take(pa.array(np.where(missing, 0, old.codes), mask=missing))
    codes = values.codes(words, lambda distinct: _read(distinct, keys))
    return codes[step_positions(batch)], codes[final_positions(batch)], pa.array(list(values.numbers), pa.large_string())


def _field(batch: RolloutBatch, keys: Keys, parameter: str) -> Keys:
    source, path = parts(parameter)
    if source == "state":
        steps, final, texts = batch.step_ids("state"), batch.final_state, batch.text_array
    elif source == "metadata":
        steps, final, texts = _metadata(batch, path)
    else:
        steps, final, texts = _observation(batch, keys, path)
    lacking = np.flatnonzero(steps == NO_TEXT)
    if lacking.size:
        p = int(lacking[0])
        row = int(batch.step_rollout[p])
        raise UsageError(
            f"rule field:{parameter}: {lacking.size} of {batch.n_steps} steps have no such field, the first is step "
            f"{int(batch.step_index[p])} of rollout {batch.rollout_ids[row]} (group {batch.group_ids[int(batch.group[row])]})"
        )
    codes = np.empty_like(keys.codes)
    codes[step_positions(batch)] = steps
    codes[final_positions(batch)] = np.where(final == NO_TEXT, len(texts), final)
    return Keys(codes, final == NO_TEXT, texts, None, keys.rules)


RULE = StateRule(
    name="field",
    meaning="a field of the step is identical, such as a state hash",
    stage="text",
    apply=_field,
    parameter="PATH: state, a metadata key, or observation.KEY",
    rank=12,
    check=parts,
)
