"""Damaged Parquet files: rows with odd values, columns of odd types, and scratched bytes."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ODD_TYPES = (
    pa.string(), pa.large_string(), pa.binary(), pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_(), pa.null(),
    pa.decimal128(38, 4), pa.timestamp("us"), pa.list_(pa.string()), pa.list_(pa.float64()), pa.struct([("a", pa.string())]),
    pa.dictionary(pa.int32(), pa.string()), pa.map_(pa.string(), pa.int64()),
)  # fmt: skip


def _column(values: list[Any], chance: random.Random, odd: float) -> pa.Array:
    """A column of these values, or (by chance `odd`) of another type with what of them fits; JSON text where nothing does."""
    if chance.random() < odd:
        kind = chance.choice(ODD_TYPES)
        try:
            return pa.array(values, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return pa.nulls(len(values), kind)
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([json.dumps(v) for v in values])


def table_bytes(rows: Any, chance: random.Random, odd: float = 0.0) -> bytes:
    """The bytes of a Parquet file of these rows (what is no row is an empty one)."""
    kept = [row if isinstance(row, dict) else {} for row in rows] if isinstance(rows, list) else []
    names = dict.fromkeys(name for row in kept for name in row)
    columns = {
        name.encode("utf-8", "replace").decode(): _column([row.get(name) for row in kept], chance, odd) for name in names
    }
    stream = io.BytesIO()
    options = {"compression": chance.choice(["zstd", "snappy", "none"]), "use_dictionary": chance.random() < 0.7}
    try:
        pq.write_table(pa.table(columns), stream, row_group_size=chance.choice([1, 3, 100]), **options)
    except pa.ArrowException:
        stream = io.BytesIO()
        pq.write_table(pa.table({name: pa.array([json.dumps(row.get(name)) for row in kept]) for name in columns}), stream)
    return stream.getvalue()
