"""Parquet files as readers open them: texts stay dictionaries, and a small file that unpacks to far too much is refused.

A Parquet file can say in a few bytes that a text of a megabyte stands in a million rows. As a dictionary it takes no more
than the file says; what makes Python values of it asks `decoded_bytes` first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graft_core.errors import InputError
from graft_core.formats.limits import FEWEST_STEPS, STEPS_PER_BYTE
from graft_core.formats.source import BOMB, Source, seekable

BROKEN: Final = (pa.ArrowException, OSError, UnicodeDecodeError)


@contextmanager
def opened(source: Source) -> Iterator[Any]:
    """The `ParquetFile` of a source; `InputError` where it is broken or unpacks to far more than rollouts do."""
    import pyarrow.parquet as pq

    try:
        with seekable(source) as stream:
            metadata = pq.ParquetFile(stream).metadata
            _check(metadata, source)
            _check_names(metadata.schema.to_arrow_schema().names, source)
            columns = [metadata.schema.column(i) for i in range(metadata.num_columns)]
            stream.seek(0)
            yield pq.ParquetFile(stream, read_dictionary=[c.path for c in columns if c.physical_type == "BYTE_ARRAY"])
    except BROKEN as error:
        first = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise InputError(f"{source.name}: the Parquet file is broken ({first})") from error


def _check(metadata: Any, source: Source) -> None:
    """Compare what the file says of itself with its size. (Of its columns nothing is asked: that ends the process where the
    file is broken.)"""
    size = source.path.stat().st_size
    most = max(FEWEST_STEPS, STEPS_PER_BYTE * size)
    if metadata.num_rows > most:
        raise InputError(
            f"{source.name}: it says that it has {metadata.num_rows:,} rows; of {size:,} bytes at most {most:,.0f} are read"
        )
    if sum(max(0, metadata.row_group(i).total_byte_size) for i in range(metadata.num_row_groups)) > source.most_expanded():
        raise InputError(f"{source.name}: {BOMB}")


def _check_names(names: list[str], source: Source) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{source.name}: two columns have the name {twice!r}; rename one of them")


def decoded_bytes(array: pa.Array) -> int:
    """How many bytes the values of an array take once every one stands for itself."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        indices = array.indices.drop_null().to_numpy(zero_copy_only=False)
        words = array.dictionary
        if not (pa.types.is_string(words.type) or pa.types.is_large_string(words.type) or pa.types.is_binary(words.type)):
            return int(array.nbytes)
        sizes = pc.fill_null(pc.binary_length(words), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        if len(indices) and not 0 <= indices.min() <= indices.max() < len(words):  # Arrow does not look
            raise pa.ArrowInvalid("a value refers to a text that is not there")
        return int(sizes[indices].sum()) if len(indices) else 0
    if pa.types.is_struct(kind):
        return sum(decoded_bytes(part) for part in array.flatten())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        return decoded_bytes(array.values if pa.types.is_map(kind) else array.flatten())
    return int(array.nbytes)


def checked(table: pa.Table) -> pa.Table:
    """The table, once it is known that its values refer to texts that are there."""
    for column in table.columns:
        for chunk in column.chunks:
            decoded_bytes(chunk)
    return table


def check_decoded(table: pa.Table | pa.RecordBatch, source: Source, before: int = 0) -> int:
    """The decoded bytes of a table and those `before`; `InputError` where they are more than a file of this size holds."""
    total = before
    for column in table.columns:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        total += sum(decoded_bytes(chunk) for chunk in chunks)
    if total > source.most_expanded():
        raise InputError(f"{source.name}: {BOMB}")
    return total


def python_values(column: Any) -> list[Any]:
    """The Python values of an Arrow column or table; decimals become numbers (see `number`)."""
    if hasattr(column, "schema"):
        columns = [python_values(part) for part in column.columns]
        return [dict(zip(column.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):  # times beyond those that Python knows
        values = [_value(scalar) for scalar in column]
    return [_deep(value, number) for value in values] if _has_decimals(column.type) else values


def _value(scalar: Any) -> Any:
    """The Python value; of a time that Python does not know the number in the file."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return getattr(scalar, "value", None)


def number(value: Decimal) -> int | float | str:
    """A decimal as a whole number, or as the float that is written with the same digits; else as text: no digit is lost."""
    if value == value.to_integral_value():
        return int(value)
    short = float(value)
    return short if Decimal(repr(short)) == value else format(value, "f").rstrip("0")


def _has_decimals(kind: Any) -> bool:
    if pa.types.is_decimal(kind):
        return True
    if pa.types.is_dictionary(kind):
        return _has_decimals(kind.value_type)
    return any(_has_decimals(kind.field(i).type) for i in range(kind.num_fields))


def _deep(value: Any, change: Callable[[Decimal], Any]) -> Any:
    if isinstance(value, Decimal):
        return change(value)
    if isinstance(value, dict):
        return {key: _deep(held, change) for key, held in value.items()}
    if isinstance(value, (list, tuple)):
        return [_deep(held, change) for held in value]
    return value
