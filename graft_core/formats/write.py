"""Writing a batch as a canonical step file: JSONL or Parquet, without loss, so that reading gives an equal batch.

Step rows stand in the order of the batch. A rollout is declared by a row of its own (`step` null) where it has no steps,
has metadata, or would otherwise not appear in the order of the batch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from graft_core.errors import InputError
from graft_core.formats.fields import FIELDS, FORMAT_VERSION, HEADER_KEY
from graft_core.rollouts import RolloutBatch

Ints = npt.NDArray[np.int64]
ROWS_AT_ONCE: Final = 20_000
STEP_NUMBERS: Final = ("reward", "valid", "logprob", "value", "advantage")
ALWAYS: Final = frozenset({"group_id", "rollout_id", "step", "outcome"})
"""Columns that a file has in any case: an empty one must still show what it is."""
ORDER: Final = tuple(f.name for f in FIELDS)


@dataclass(frozen=True)
class Layout:
    """Which rows a file has: the rollout of each, the batch row of its step (-1 = declares), whether it is the last."""

    rollout: Ints
    step: Ints
    last: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Texts:
    """A text column: ids, -1 = none."""

    ids: Ints


def write_jsonl(batch: RolloutBatch, path: str | os.PathLike[str]) -> None:
    """Write a canonical JSONL file, format 1; the file appears only when it is complete."""
    with replacing(path) as stream:
        stream.write(b'{"%s": %d}\n' % (HEADER_KEY.encode(), FORMAT_VERSION))
        for block in _row_blocks(batch):
            stream.write(block)


def write_parquet(batch: RolloutBatch, path: str | os.PathLike[str]) -> None:
    """Write a canonical Parquet file, format 1; the file appears only when it is complete."""
    import pyarrow.parquet as pq

    columns = row_columns(batch)
    arrays = {n: _dictionary(c.ids, batch.text_array) if isinstance(c, Texts) else c for n, c in columns.items()}
    if "admissible" in arrays:
        arrays["admissible"] = _text_lists(arrays["admissible"], batch.text_array)
    kept = [n for n in ORDER if n in ALWAYS or arrays[n].null_count < len(arrays[n])]
    table = pa.table({n: arrays[n] for n in kept}).replace_schema_metadata({HEADER_KEY: str(FORMAT_VERSION)})
    with replacing(path) as stream:
        pq.write_table(table, stream, compression="zstd")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream into a temporary file beside `path`, which takes its place at the end and vanishes on an error."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            yield stream
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(f"{target}: cannot be written ({error.strerror or error})") from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def layout(batch: RolloutBatch) -> Layout:
    """The rows of the file of a batch, declaring rows put in front of the steps that they must precede."""
    rollout = batch.step_rollout_rows
    none = batch.n_steps
    first = np.full(batch.n_rollouts, none, dtype=np.int64)
    first[rollout[::-1]] = np.arange(none - 1, -1, -1)
    before = np.minimum.accumulate(first[::-1])[::-1]
    metadata = np.asarray(batch.rollouts.column("metadata").is_valid())
    declared = np.flatnonzero((first == none) | metadata | (before < first))
    at = before[declared]
    last_rows = batch.order[batch.offsets[1:][batch.lengths > 0] - 1]
    last = np.zeros(none, dtype=np.bool_)
    last[last_rows] = True
    last = np.insert(last, at, batch.lengths[declared] == 0)
    return Layout(np.insert(rollout, at, declared), np.insert(np.arange(none, dtype=np.int64), at, -1), last)


def row_columns(batch: RolloutBatch) -> dict[str, Any]:
    """The columns of the file: Arrow arrays, and `Texts` for text columns."""
    _check_ids(batch)
    rows = layout(batch)
    at_rollout = pa.array(rows.rollout)
    at_step = pa.array(rows.step, mask=rows.step < 0)
    at_last = pa.array(rows.rollout, mask=~rows.last)
    at_declaration = pa.array(rows.rollout, mask=rows.step >= 0)
    rollouts, steps = batch.rollouts, batch.steps

    def take(table: pa.Table, name: str, at: pa.Array) -> pa.Array:
        taken = pc.take(table.column(name), at)
        return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken

    def ids(table: pa.Table, name: str, at: pa.Array) -> Texts:
        return Texts(pc.fill_null(take(table, name, at), -1).to_numpy(zero_copy_only=False).astype(np.int64))

    columns: dict[str, Any] = {
        n: take(rollouts, n, at_rollout) for n in ("group_id", "rollout_id", "outcome", "success", "train_step", "task_family")
    }
    for name in ("order_doubtful", "group_assumed"):
        flags = take(rollouts, name, at_rollout)
        columns[name] = pc.if_else(flags, flags, pa.scalar(None, pa.bool_()))
    for name in ("terminated", "truncated"):
        columns[name] = pc.and_(take(rollouts, name, at_rollout), pa.array(rows.last | (rows.step < 0)))
    columns |= {n: take(steps, n, at_step) for n in ("step", "admissible", "tokens", *STEP_NUMBERS)}
    columns |= {n: ids(steps, n, at_step) for n in ("observation", "state", "action", "action_text")}
    columns["next_observation"] = ids(rollouts, "final_observation", at_last)
    columns["next_state"] = ids(rollouts, "final_state", at_last)
    columns["final_value"] = take(rollouts, "final_value", at_last)
    columns["metadata"] = pc.coalesce(take(steps, "metadata", at_step), take(rollouts, "metadata", at_declaration))
    return columns


def _check_ids(batch: RolloutBatch) -> None:
    pairs = list(zip(batch.group.tolist(), batch.rollout_ids, strict=True))
    if len(set(pairs)) < len(pairs):
        seen: set[tuple[int, str]] = set()
        group, rollout = next(p for p in pairs if p in seen or seen.add(p))  # type: ignore[func-returns-value]
        raise InputError(
            f"two rollouts have group {batch.group_ids[group]!r} and id {rollout!r}; a file needs distinct ids per group"
        )


def _dictionary(ids: Ints, texts: pa.Array) -> pa.Array:
    """A dictionary column that holds only the texts it uses."""
    used, codes = np.unique(ids, return_inverse=True)
    none = len(used) > 0 and used[0] < 0
    words = texts.take(pa.array(used[1:] if none else used))
    codes = codes - (1 if none else 0)
    plain = words.cast(pa.string()) if words.nbytes < 2**31 - 1 else words
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32(), mask=codes < 0), plain)


def _text_lists(lists: pa.Array, texts: pa.Array) -> pa.Array:
    """Lists of text ids as lists of texts."""
    flat = lists.flatten()
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, texts.take(flat), mask=lists.is_null())


def _row_blocks(batch: RolloutBatch) -> Iterator[bytes]:
    """The lines of the JSONL file, some thousand at a time."""
    columns = row_columns(batch)
    texts = batch.text_array.to_pylist()
    n = len(columns["step"])
    readers = {name: _values(columns[name], name, texts) for name in ORDER if name in columns}
    used = {name: read for name, read in readers.items() if read is not None or name in ALWAYS}
    for start in range(0, n, ROWS_AT_ONCE):
        stop = min(n, start + ROWS_AT_ONCE)
        block = [read(start, stop) if read else [None] * (stop - start) for read in used.values()]
        names = list(used)
        lines = []
        for values in zip(*block, strict=True):
            row = {k: v for k, v in zip(names, values, strict=True) if v is not None or k in ALWAYS}
            lines.append(orjson.dumps(row))
        yield b"\n".join([*lines, b""])


def _values(column: Any, name: str, texts: list[str]) -> Callable[[int, int], list[Any]] | None:
    """How to get the JSON values of some rows of a column; None where it holds nothing."""
    if isinstance(column, Texts):
        words = [*texts, None]
        ids = column.ids
        return (lambda a, b: [words[i] for i in ids[a:b].tolist()]) if (ids >= 0).any() else None
    if column.null_count == len(column):
        return None
    if name == "admissible":
        return lambda a, b: [None if v is None else [texts[i] for i in v] for v in column[a:b].to_pylist()]
    if name in ("metadata", "tokens"):
        return lambda a, b: [None if v is None else orjson.Fragment(v) for v in column[a:b].to_pylist()]
    return lambda a, b: column[a:b].to_pylist()
