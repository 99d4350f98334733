"""The rows of a load, read back as columns, with groups, rollouts and step numbers settled: where assembly starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graft_core.formats import checks, naming
from graft_core.formats.columns import NO_COUNT
from graft_core.formats.fields import ALL_FIELDS
from graft_core.formats.rows import DEFAULTS, Rows
from graft_core.rollouts import Rejection

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass
class Assembly:
    """Everything known about the rows of a load while rollouts are being built from them."""

    rows: Rows
    columns: dict[str, Any]
    file: npt.NDArray[np.int32]
    record: Ints
    texts: pa.Array
    group: Ints
    assumed: Bools
    step: Ints
    is_step: Bools
    roll: Ints
    n: int
    reused: Ints | None
    bad: checks.BadRollouts

    def get(self, name: str) -> Any:
        return self.columns[name]

    def place(self, row: int) -> str:
        """file:line of a row."""
        file = self.rows.files[int(self.file[row])]
        return file.source.where(int(self.record[row]), file.unit)


@dataclass(frozen=True)
class Kept:
    """Which rows and rollouts made it into the batch; `unnamed` marks rows without a rollout id."""

    row: Bools
    rollout: Bools


def prepare(rows: Rows) -> Assembly:
    """Read the columns back, settle groups and rollouts, number steps."""
    columns: dict[str, Any] = {}
    for spec in ALL_FIELDS:
        column = rows.column(spec)
        if column is None and spec.kind in DEFAULTS:
            dtype, default = DEFAULTS[spec.kind]
            column = np.broadcast_to(np.array(default, dtype=dtype), rows.n_rows)
        columns[spec.name] = column
    texts = _one_pool(rows, columns)
    file, record = rows.places()
    group, rollout = columns["group_id"].astype(np.int64), columns["rollout_id"].astype(np.int64)
    assumed = naming.assume_groups(rows, group, rollout, file) | (columns["group_assumed"] == 1)
    if given(columns["task_set"]):
        naming.separate_task_sets(rows, group, columns["task_set"].astype(np.int64))
    step, is_step = columns["step"].copy(), columns["action"] >= 0
    reused = naming.separate_files(rows, group, rollout, step, file)
    if (rollout >= 0).all():
        roll = naming.pair_codes(group, rollout)
    else:
        roll = np.full(rows.n_rows, -1, dtype=np.int64)
        named = np.flatnonzero(rollout >= 0)
        roll[named] = naming.pair_codes(group[named], rollout[named])
    n = int(roll.max(initial=-1)) + 1
    a = Assembly(rows, columns, file, record, texts, group, assumed, step, is_step, roll, n, reused, checks.BadRollouts())
    _settle_steps(a)
    return a


def given(column: npt.NDArray[Any]) -> bool:
    """Whether any row has the field: where none has, the column is its default, stored once for all rows."""
    return column.strides != (0,)


def _one_pool(rows: Rows, columns: dict[str, Any]) -> pa.Array:
    """Make texts unique over all pools and renumber the text columns (in place) accordingly."""
    filled = [pool for pool in rows.arrow_pools if len(pool)]
    if not filled:
        return rows.all_texts()
    if len(filled) == 1 and not rows.pools.texts:
        return filled[0].cast(pa.large_string())  # every pool holds each of its texts once
    encoded = rows.all_texts().dictionary_encode()
    remap = np.append(np.asarray(encoded.indices, dtype=np.int32), np.int32(-1))
    for spec in ALL_FIELDS:
        column = columns.get(spec.name)
        if column is not None and spec.kind == "text":
            columns[spec.name] = remap[column]
        elif column is not None and spec.kind == "texts":
            columns[spec.name] = map_lists(column, remap)
    return encoded.dictionary


def map_lists(column: pa.ChunkedArray, remap: npt.NDArray[np.int32]) -> pa.ChunkedArray:
    """Renumber the text ids inside a list column."""
    chunks = []
    for chunk in column.chunks:
        values = pa.array(remap[chunk.values.to_numpy(zero_copy_only=False)], pa.int32())
        chunks.append(pa.ListArray.from_arrays(chunk.offsets, values, mask=chunk.is_null()))
    return pa.chunked_array(chunks, pa.list_(pa.int32()))


def _settle_steps(a: Assembly) -> None:
    """Rows without rollout id are rejected; steps without a number get one; a number without an action is bad."""
    unnamed = np.flatnonzero(a.roll < 0)
    _, firsts = np.unique(np.stack([a.file[unnamed], a.record[unnamed]]), axis=1, return_index=True)
    reasons = dict(a.rows.bad) if len(unnamed) else {}
    for row in unnamed[np.sort(firsts)].tolist():
        reason = reasons.get(row, "")
        if not reason.startswith(("rollout_id ", "group_id ")):
            reason = "rollout_id is missing, so it is not known whose step this is"
        a.rows.list_rejection(Rejection(a.place(row), reason))
    named = a.roll >= 0
    a.is_step &= named
    numbered = a.step != NO_COUNT
    for row in np.flatnonzero(named & ~a.is_step & numbered).tolist():
        a.bad.add(int(a.roll[row]), row, "the row has a step number but no action")
    missing = a.is_step & ~numbered
    unusable = {position for position, _ in a.rows.bad}
    if missing.any() and not unusable.issuperset(np.flatnonzero(missing).tolist()):
        checks.number_missing_steps(a.roll, a.step, a.is_step, missing, a.n, a.bad)
        first = int(np.flatnonzero(missing)[0])
        a.rows.warn("step_missing", "steps have no number; the order of the file was used", a.place(first), int(missing.sum()))
