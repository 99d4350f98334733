"""What text rules share: mapping the distinct texts behind keys, and regular expressions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graft_core.errors import UsageError
from graft_core.rollouts import IntArray, RolloutBatch
from graft_core.states.base import Keys, factorise

AT_ONCE = 20_000  # texts per piece of work; Arrow releases the interpreter lock, so pieces run side by side


def used_codes(keys: Keys) -> IntArray:
    """Codes that occur, ascending, without the one that stands for a missing observation."""
    count = 0 if keys.texts is None else len(keys.texts)
    return np.flatnonzero(np.bincount(keys.codes, minlength=count)[:count])


def in_pieces(texts: pa.Array, function: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """function(texts), long arrays in pieces on two threads; the order stays."""
    if len(texts) <= AT_ONCE:
        return function(texts)
    pieces = [texts.slice(at, AT_ONCE) for at in range(0, len(texts), AT_ONCE)]
    with ThreadPoolExecutor(2) as pool:
        return pa.concat_arrays(list(pool.map(function, pieces)))


def map_texts(keys: Keys, function: Callable[[pa.Array], pa.Array]) -> Keys:
    """Keys whose texts are function(texts): texts that become equal become one key. Each distinct text is mapped once."""
    if keys.texts is None:
        raise AssertionError("a text rule behind a key rule")
    used = used_codes(keys)
    encoded = in_pieces(keys.texts.take(pa.array(used)), function).dictionary_encode()
    table = np.full(len(keys.texts) + 1, len(encoded.dictionary), dtype=np.int64)
    table[used] = encoded.indices.to_numpy(zero_copy_only=False)
    return Keys(table[keys.codes], keys.final_missing, encoded.dictionary, None, keys.rules)


def map_actions(batch: RolloutBatch, function: Callable[[pa.Array], pa.Array]) -> IntArray:
    """Dense action codes by function(text of the executed action). int64[n_steps]; each distinct text is mapped once."""
    codes, distinct = factorise(batch.action)
    real = distinct >= 0
    words = batch.text_array.take(pa.array(distinct[real]))
    table = np.zeros(distinct.size, dtype=np.int64)
    encoded = in_pieces(words, function).dictionary_encode()
    table[real] = encoded.indices.to_numpy(zero_copy_only=False)
    table[~real] = len(encoded.dictionary)
    return table[codes]


def normalised(texts: pa.Array) -> pa.Array:
    """NFKC, lower case, white space collapsed to single spaces and trimmed."""
    from graft_core.states._kernels import single_spaces

    folded = pc.utf8_lower(pc.utf8_normalize(texts, form="NFKC")).cast(pa.large_string())
    _, offsets, data = pa.concat_arrays([folded]).buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[folded.offset : folded.offset + len(folded) + 1]
    letters = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
    collapsed, ends = single_spaces(letters, ends)
    return pa.LargeStringArray.from_buffers(len(folded), pa.py_buffer(ends), pa.py_buffer(collapsed))


def expression(rule: str, parameter: str) -> str:
    """The regular expression (RE2 syntax) between the slashes of '/.../', checked; a wrong one is a `UsageError`."""
    if len(parameter) < 3 or not (parameter.startswith("/") and parameter.endswith("/")):
        raise UsageError(f"rule {rule}:{parameter}: expected a regular expression between slashes, such as /[0-9]+ left/")
    pattern = parameter[1:-1]
    try:
        pc.match_substring_regex(pa.array([""]), pattern=pattern)
    except pa.ArrowInvalid as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        raise UsageError(f"rule {rule}:{parameter}: not a regular expression (RE2 syntax): {reason}") from None
    return pattern
