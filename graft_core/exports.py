"""Writing one row per step: JSONL, CSV and Parquet, with settings, version and input hashes travelling along."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from graft_core.errors import UsageError
from graft_core.provenance import provenance
from graft_core.rollouts import FloatArray, RolloutBatch

CHUNK = 65536


def step_table(batch: RolloutBatch, columns: Mapping[str, FloatArray]) -> pa.Table:
    """group_id, rollout_id, step and the given float columns (batch order); NaN becomes null."""
    rollout = batch.steps.column("rollout")
    table = {
        "group_id": pc.take(batch.rollouts.column("group_id"), rollout),
        "rollout_id": pc.take(batch.rollouts.column("rollout_id"), rollout),
        "step": batch.steps.column("step"),
    }
    return pa.table({**table, **{name: pa.array(values, from_pandas=True) for name, values in columns.items()}})


def _write_jsonl(table: pa.Table, stream: BinaryIO) -> None:
    for chunk in table.to_batches(max_chunksize=CHUNK):
        stream.write(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in chunk.to_pylist()))


def _write(table: pa.Table, suffix: str, stream: BinaryIO, travels: Mapping[str, Any]) -> None:
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(table.replace_schema_metadata({"graft": orjson.dumps(travels)}), stream, compression="zstd")
    elif suffix == ".csv":
        import pyarrow.csv as csv

        csv.write_csv(table, stream, csv.WriteOptions(quoting_style="needed"))
    else:
        _write_jsonl(table, stream)


def write_rows(
    batch: RolloutBatch, columns: Mapping[str, FloatArray], output: str | None, files: Iterable[str], settings: dict[str, Any]
) -> None:
    """Write the step table to `output` (.jsonl, .csv, .parquet; temporary file and rename), or as JSONL to stdout."""
    table = step_table(batch, columns)
    if output is None:
        _write_jsonl(table, sys.stdout.buffer)
        return
    path = Path(output)
    travels = provenance(files, settings)
    replace_with(path, lambda stream: _write(table, path.suffix, stream, travels))
    if path.suffix != ".parquet":
        meta = path.with_suffix(".meta.json")
        replace_with(meta, lambda stream: stream.write(orjson.dumps(travels, option=orjson.OPT_INDENT_2)))


def refuse_overwriting(output: str | Path, files: Iterable[str]) -> None:
    """A `UsageError` where the output is one of the input files: what was read must not be replaced by what was made."""
    path = Path(output)
    for file in files:
        if path.exists() and Path(file).exists() and path.samefile(file):
            raise UsageError(f"{output}: is one of the input files, which would be lost; expected another name")


def replace_with(path: Path, write: Any) -> None:
    """Write a file whole or not at all: a temporary file beside it, then a rename."""
    if path.is_dir():
        raise UsageError(f"{path}: is a directory, expected the name of a file")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the directory {path.parent} does not exist")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
