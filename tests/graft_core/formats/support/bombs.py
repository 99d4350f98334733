"""Small files that unpack to 64 MB and more: what is packed behind the end of a file, or in place of it."""

from __future__ import annotations

import functools
import gzip
import io
import random
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq

FILLERS = (
    b" ",
    b"\n",
    b"0",
    b"\0",
    b"[],",
    b'{"":0},',
    b"[",
    b'{"a":[',
    b"x\n",
    b"[]\n",
    b'{"rollout_id":1}\n',
    b'"\xf0\x9f\x98\x80",',
)
SIZE = 70_000_000
KINDS = ("gzip", "zstd", "zip", "zip of many", "parquet texts", "parquet rows", "parquet lists")


@functools.cache
def filler(unit: bytes, method: str) -> bytes:
    """`SIZE` bytes of one unit, packed."""
    data = unit * (SIZE // len(unit))
    return gzip.compress(data, 1) if method == "gzip" else bytes(pa.Codec("zstd").compress(data, asbytes=True))


def _packed(data: bytes, method: str) -> bytes:
    return gzip.compress(data) if method == "gzip" else bytes(pa.Codec("zstd").compress(data, asbytes=True))


@functools.cache
def _zip(unit: bytes, name: str, many: bool) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("header.json", '{"eval": {"task": "t"}, "status": "success"}')
        for number in range(300 if many else 1):
            size = SIZE // 100 if many else 4 * SIZE
            archive.writestr(f"{name}{number}.json", unit * (size // len(unit)))
    return stream.getvalue()


@functools.cache
def _parquet(kind: str) -> bytes:
    n = 20_000
    columns = {"observation": ["o"] * n, "action": ["a"] * n, "rollout_id": ["r"] * n}
    if kind == "parquet texts":
        columns |= {"prompt": ["x" * 1_000_000] * n, "completion": ["c"] * n, "advantage": ["0"] * n}
    elif kind == "parquet rows":
        columns = {name: ["a"] * 3_000_000 for name in columns}
    else:
        columns |= {"extra": [["y" * 100_000] * 5] * n, "admissible": [["z" * 100_000] * 5] * n}
    stream = io.BytesIO()
    pq.write_table(_repeated(columns), stream, compression="zstd")
    return stream.getvalue()


def _repeated(columns: dict[str, list[object]]) -> pa.Table:
    """A table whose texts are dictionaries: a text that stands in every row is stored once."""
    arrays = {}
    for name, values in columns.items():
        one = values[0]
        if isinstance(one, list):
            flat = pa.DictionaryArray.from_arrays(pa.array([0] * (len(one) * len(values)), pa.int32()), pa.array([one[0]]))
            arrays[name] = pa.ListArray.from_arrays(pa.array(range(0, len(one) * len(values) + 1, len(one)), pa.int32()), flat)
        else:
            arrays[name] = pa.DictionaryArray.from_arrays(pa.array([0] * len(values), pa.int32()), pa.array([one]))
    return pa.table(arrays)


def bomb(data: bytes, kind: str, chance: random.Random) -> bytes:
    """A file that unpacks to far more than its size; of the kinds gzip and zstd the beginning is `data`."""
    unit = chance.choice(FILLERS)
    if kind in ("gzip", "zstd"):
        return _packed(data, kind) + filler(unit, kind)
    if kind.startswith("zip"):
        return _zip(unit, "samples/1_epoch_", kind == "zip of many")
    return _parquet(kind)
