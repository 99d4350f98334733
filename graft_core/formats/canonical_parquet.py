"""Canonical step file, Parquet, format 1: the rows of the JSONL file as columns, read without looking at single rows.

`metadata` and `tokens` hold JSON text. An `outcome` column that is there says "unknown" where it is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graft_core.formats._parquet import check_decoded, checked, opened, python_values
from graft_core.formats.assembly import map_lists
from graft_core.formats.columns import LARGEST_COUNT, NO_COUNT, Issues, Pools, from_values, intern, json_text
from graft_core.formats.fields import FIELDS, Field, Plan, likeness
from graft_core.formats.jsonio import clean_text, dumps, is_json, loads
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source


def detect(head: Head) -> int:
    """Sure where the columns are those of a canonical step row."""
    return likeness(set(head.columns)) if head.kind == "parquet" else 0


def read(source: Source, rows: Rows) -> None:
    """Read a whole file."""
    with _system_memory():
        table = _read_table(source)
        plan = rows.plan(tuple(table.column_names))
        if plan.renames:
            told = ", ".join(f"{old} as {new}" for old, new in plan.renames)
            rows.warn("aliases_used", f"read {told}", rows.where(1), table.num_rows)
        check_decoded(table.select([n for n in table.column_names if not _is_text(table.schema.field(n).type)]), source)
        check_decoded(table.select(list(plan.extras)), source)
        add_table(_canonical(table, plan), rows)


@contextmanager
def _system_memory() -> Iterator[None]:
    """Arrow takes memory from the system's allocator meanwhile.

    It enlarges the long text buffers by remapping where Arrow's own copies them into fresh memory, which doubles the time
    the kernel spends. Every buffer remembers where it came from, so this is safe beside other threads.
    """
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def _read_table(source: Source) -> pa.Table:
    with opened(source) as file:
        return checked(file.read())


def _canonical(table: pa.Table, plan: Plan) -> pa.Table:
    """The table under canonical names, unknown columns moved into the metadata."""
    names = dict(plan.renames)
    extras = python_values(table.select(list(plan.extras))) if plan.extras else []
    table = table.drop_columns(list(plan.extras))
    table = table.rename_columns([names.get(name, name) for name in table.column_names])
    if extras:
        given = python_values(table.column("metadata")) if "metadata" in table.column_names else [None] * len(extras)
        merged = [_merged(old, {k: v for k, v in new.items() if v is not None}) for old, new in zip(given, extras, strict=True)]
        if "metadata" in table.column_names:
            table = table.drop_columns(["metadata"])
        table = table.append_column("metadata", pa.array(merged, pa.string()))
    return table


def _merged(given: Any, extra: dict[str, Any]) -> str | None:
    text = json_text("metadata", given)
    return dumps({**(loads(text.encode())[0] if text else {}), **extra}) if text or extra else None


def add_table(table: pa.Table, rows: Rows) -> None:
    """Add all rows of a table with canonical column names."""
    n = table.num_rows
    issues, texts = Issues(), _Texts()
    columns: dict[str, Any] = {}
    for spec in FIELDS:
        if spec.name in table.column_names:
            column = table.column(spec.name)
            if column.null_count < n:
                columns[spec.name] = _column(spec, column, rows.pools, texts, issues)
    pool, number_of = texts.distinct()
    for spec in FIELDS:
        if spec.name in columns and spec.kind == "text":
            columns[spec.name] = number_of[columns[spec.name]]
        elif spec.name in columns and spec.kind == "texts":
            columns[spec.name] = map_lists(pa.chunked_array([columns[spec.name]]), number_of).chunk(0)
    said = np.full(n, "outcome" in table.column_names, dtype=np.bool_)
    rows.arrow_pools.append(pool)
    rows.add_block(columns, np.arange(1, n + 1, dtype=np.int64), said, issues, len(rows.arrow_pools))


class _Texts:
    """The texts of the columns of one table: a part per column and chunk, made one pool at the end, not copied before."""

    def __init__(self) -> None:
        self.parts: list[pa.Array] = []
        self.size = 0

    def add(self, distinct: pa.Array) -> int:
        """Keep texts; returns the number of the first."""
        first = self.size
        self.parts.append(distinct.cast(pa.large_string()))
        self.size += len(distinct)
        return first

    def column(self, column: pa.ChunkedArray) -> npt.NDArray[np.int32]:
        """Keep the texts of a column; returns the number of each row's text (-1 = none)."""
        if not pa.types.is_dictionary(column.type):
            column = pa.chunked_array([column.dictionary_encode().combine_chunks()])  # one dictionary for all chunks
        numbers = [np.zeros(0, np.int32)]
        for chunk in column.chunks:
            first = self.add(_valid(chunk.dictionary))
            indices = pc.fill_null(chunk.indices.cast(pa.int32()), -1).to_numpy(zero_copy_only=False)
            numbers.append(np.where(indices >= 0, indices + np.int32(first), np.int32(-1)))
        return np.concatenate(numbers)

    def distinct(self) -> tuple[pa.Array, npt.NDArray[np.int32]]:
        """Every text once, and where each kept number stands among them (-1 stays)."""
        if not self.parts:
            return pa.array([], pa.large_string()), np.full(1, -1, np.int32)
        every = [pa.DictionaryArray.from_arrays(pa.array(np.arange(len(p), dtype=np.int32)), p) for p in self.parts]
        chunks = pa.chunked_array(every).unify_dictionaries().chunks
        number_of = np.concatenate([*(chunk.indices.to_numpy() for chunk in chunks), np.full(1, -1, np.int32)])
        return chunks[0].dictionary, number_of


def _column(spec: Field, column: pa.ChunkedArray, pools: Pools, texts: _Texts, issues: Issues) -> Any:
    """One column of canonical rows from an Arrow column; odd types go through their Python values."""
    kind, plain = spec.kind, column.type
    if kind == "text":
        return texts.column(_as_texts(column))
    if kind == "key" and _is_text(plain):
        indices, distinct = _encoded(column)
        codes = np.append(intern(pools.keys, distinct.to_pylist()), np.int32(-1))
        return codes[indices]
    if kind == "number" and (pa.types.is_floating(plain) or pa.types.is_integer(plain) or pa.types.is_decimal(plain)):
        return _numbers(spec, column, issues)
    if kind == "flag" and pa.types.is_boolean(plain):
        return pc.fill_null(pc.cast(column, pa.int8()), -1).to_numpy().astype(np.int8)
    if kind == "count" and pa.types.is_integer(plain):
        values = pc.fill_null(pc.cast(column, pa.int64(), safe=False), NO_COUNT).to_numpy()
        if np.all((np.abs(values) <= LARGEST_COUNT) | (values == NO_COUNT)):
            return values
    if kind == "texts" and pa.types.is_list(plain) and _is_text(plain.value_type):
        return _lists(column, texts)
    values = _values(column)
    if kind == "texts":
        return _odd_lists(spec, values, texts, issues)
    if kind == "json" and _is_text(plain):
        return pa.array([v if v is None or _is_stored(spec, v) else json_text(spec.name, v) for v in values], pa.string())
    return from_values(spec, values, pools, issues)


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The Python values; decimals exactly, whole ones as whole numbers and others as text without trailing zeros."""
    if not pa.types.is_decimal(column.type):
        return python_values(column)
    return [v if v is None else int(v) if v == int(v) else format(v, "f").rstrip("0") for v in column.to_pylist()]


def _is_stored(spec: Field, text: str) -> bool:
    return is_json(text) and (spec.name != "metadata" or text[:1] == "{")


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _as_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A text column; values of another type become their canonical JSON."""
    if _is_text(column.type):
        return column
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    values: Sequence[Any] = _values(column)
    return pa.chunked_array(
        [pa.array([v if v is None or isinstance(v, str) else dumps(v, sort=True) for v in values], pa.large_string())]
    )


def _encoded(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Positions among the distinct texts (-1 = null), and these."""
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    else:
        column = column.dictionary_encode()  # all chunks share one dictionary: nothing to unify
    array = column.combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    indices = pc.fill_null(array.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return indices, _valid(array.dictionary)


def _valid(distinct: pa.Array) -> pa.Array:
    """The texts, bytes that are no UTF-8 escaped (nulls stay)."""
    try:
        distinct.validate(full=True)
        return distinct
    except pa.ArrowInvalid:
        raw = distinct.cast(pa.large_binary() if pa.types.is_large_string(distinct.type) else pa.binary()).to_pylist()
        return pa.array(
            [None if v is None else clean_text(v.decode("utf-8", "surrogateescape")) for v in raw], pa.large_string()
        )


def _numbers(spec: Field, column: pa.ChunkedArray, issues: Issues) -> npt.NDArray[np.float64]:
    values = np.array(pc.fill_null(pc.cast(column, pa.float64(), safe=False), np.nan).to_numpy())
    odd = ~np.isfinite(values)
    if odd.any():
        odd &= np.asarray(column.is_valid())
        for position in np.flatnonzero(odd).tolist():
            issues.unusable(spec, position, f"is {values[position]}, expected a finite number")
        values[odd] = np.nan
    return values


def _lists(column: pa.ChunkedArray, texts: _Texts) -> pa.Array:
    array = column.combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    flat = array.flatten()
    indices, distinct = _encoded(pa.chunked_array([flat]))
    if (indices < 0).any():  # no text is the empty text
        distinct = pa.concat_arrays([distinct.cast(pa.large_string()), pa.array([""], pa.large_string())])
        indices = np.where(indices < 0, len(distinct) - 1, indices)
    first = texts.add(distinct)
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(indices + first, pa.int32()), mask=array.is_null())


def _odd_lists(spec: Field, values: list[Any], texts: _Texts, issues: Issues) -> Any:
    """Lists of other things than texts, through a pool of their own."""
    own = Pools()
    lists = from_values(spec, values, own, issues)
    first = texts.add(pa.array(list(own.texts), pa.large_string()))
    if lists is None:
        return pa.nulls(len(values), pa.list_(pa.int32()))
    moved = pc.add(lists.values, pa.scalar(first, pa.int32()))
    return pa.ListArray.from_arrays(lists.offsets, moved, mask=lists.is_null())


FORMAT: Final = Format(
    name="canonical-parquet",
    meaning="canonical step file (Parquet): the same rows as columns",
    detected_by="a Parquet file with the columns observation and action, or rollout_id and outcome",
    unit="row",
    detect=detect,
    read=read,
)
