"""Rows: where readers put what they find. Canonical rows of all files of one load, kept as columns block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graft_core.formats.codes import WARNINGS
from graft_core.formats.columns import NO_COUNT, Issues, Pools, from_values
from graft_core.formats.fields import ALL_FIELDS, Field, Plan, apply_plan, make_plan
from graft_core.formats.limits import HOPELESS
from graft_core.formats.source import Source
from graft_core.rollouts import Rejection, Warning_

DEFAULTS: Final[dict[str, tuple[Any, Any]]] = {
    "key": (np.int32, -1),
    "text": (np.int32, -1),
    "number": (np.float64, np.nan),
    "flag": (np.int8, -1),
    "count": (np.int64, NO_COUNT),
}
LISTED_REJECTIONS: Final = 200
KNOWN_PLANS: Final = 10_000
RECORD_BITS: Final = 40


@dataclass
class FileRows:
    """What one file contributed: which reader read it, how its records are named, how many it could not use."""

    source: Source
    format: str
    unit: str = "line"
    unreadable: int = 0
    rows_before: int = 0
    bad_before: int = 0


@dataclass
class Block:
    """Consecutive rows of one file: columns by field name (missing = no row has it)."""

    n: int
    file: int
    records: npt.NDArray[np.int64]
    columns: dict[str, Any]
    outcome_said: npt.NDArray[np.bool_] | None
    pool: int = 0


def _by_field(rows: list[dict[str, Any]], shapes: set[tuple[str, ...]]) -> dict[str, Sequence[Any]]:
    """The values of every field that occurs; fields that all rows have are taken out in one go."""
    everywhere = sorted(set.intersection(*map(set, shapes)))
    anywhere = set().union(*shapes)
    values: dict[str, Sequence[Any]] = {}
    if len(everywhere) > 1:
        values.update(zip(everywhere, zip(*map(itemgetter(*everywhere), rows), strict=True), strict=True))
    for name in anywhere - values.keys():
        values[name] = [row.get(name) for row in rows]
    return values


def _said(name: str, rows: list[dict[str, Any]], shapes: set[tuple[str, ...]]) -> npt.NDArray[np.bool_]:
    """Where a field is present, null or not."""
    present = {name in shape for shape in shapes}
    if len(present) == 1:
        return np.full(len(rows), present.pop(), dtype=np.bool_)
    return np.fromiter((name in row for row in rows), np.bool_, len(rows))


@dataclass
class Rows:
    """Collects canonical rows, rejections and warnings of one load."""

    files: list[FileRows] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    pools: Pools = field(default_factory=Pools)
    arrow_pools: list[pa.Array] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)
    repaired: list[int] = field(default_factory=list)
    """`record_key` of every record in which something was put right."""
    rejections: list[Rejection] = field(default_factory=list)
    unlisted: int = 0
    n_rows: int = 0
    _plans: dict[tuple[str, ...], Plan] = field(default_factory=dict)
    _warnings: dict[str, list[Any]] = field(default_factory=dict)
    _notes: dict[str, int] = field(default_factory=dict)

    def start(self, source: Source, format_name: str, unit: str = "line") -> None:
        """Begin a file; everything added from now on belongs to it."""
        self.files.append(FileRows(source, format_name, unit, 0, self.n_rows, len(self.bad)))

    def record_key(self, record: int) -> int:
        """One number for a record of the present file."""
        return (len(self.files) - 1) << RECORD_BITS | record

    def where(self, record: int) -> str:
        """The place of a record of the present file."""
        file = self.files[-1]
        return file.source.where(record, file.unit)

    def warn(self, code: str, sentence: str, where: str = "", count: int = 1) -> None:
        """Count one more warning of a code; the sentence and place of the first are kept."""
        if code not in WARNINGS:
            raise AssertionError(f"warning code {code!r} is not in formats/codes.py")
        entry = self._warnings.setdefault(code, [sentence, 0, where])
        entry[1] += count

    def note(self, sentence: str, count: int = 1) -> None:
        """Count one more harmless thing that the report should mention."""
        self._notes[sentence] = self._notes.get(sentence, 0) + count

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(f"{sentence} ({n}x)" for sentence, n in self._notes.items())

    @property
    def warnings(self) -> tuple[Warning_, ...]:
        return tuple(Warning_(code, s, n, where) for code, (s, n, where) in self._warnings.items())

    def reject(self, record: int, reason: str, records: int = 1) -> None:
        """Records that could not be read at all, so that it is not known to which rollout they belong."""
        self.files[-1].unreadable += records
        self.list_rejection(Rejection(self.where(record), reason, records))

    def hopeless(self) -> bool:
        """Whether so many records of the present file, and nearly all, cannot be used that the rest need not be read."""
        file = self.files[-1]
        unusable = file.unreadable + len(self.bad) - file.bad_before
        return unusable >= HOPELESS and unusable >= 0.99 * (file.unreadable + self.n_rows - file.rows_before)

    def list_rejection(self, rejection: Rejection) -> None:
        """Keep a rejection for the report; past a limit only their number is kept."""
        if len(self.rejections) < LISTED_REJECTIONS:
            self.rejections.append(rejection)
        else:
            self.unlisted += rejection.records

    def plan(self, keys: tuple[str, ...]) -> Plan:
        """The plan for a set of keys (see `fields`); names read under an alias are told once."""
        found = self._plans.get(keys)
        if found is None:
            found = make_plan(keys)
            if len(self._plans) < KNOWN_PLANS:
                self._plans[keys] = found
        return found

    def add_foreign(self, rows: list[dict[str, Any]], records: Sequence[int]) -> None:
        """Add rows of a canonical file, which may use other names, unknown keys and header lines."""
        shapes = list(map(tuple, rows))
        if not all(self.plan(shape).plain for shape in set(shapes)):
            plans = [self.plan(shape) for shape in shapes]
            kept = [i for i, plan in enumerate(plans) if not plan.header]
            self._tell_aliases([(plans[i], records[i]) for i in kept])
            rows = [rows[i] if plans[i].plain else apply_plan(rows[i], plans[i]) for i in kept]
            records = [records[i] for i in kept]
            shapes = list(map(tuple, rows))
        self.add(rows, records, set(shapes))

    def _tell_aliases(self, used: list[tuple[Plan, int]]) -> None:
        counts: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for plan, record in used:
            if plan.renames:
                counts.setdefault(plan.renames, [0, record])[0] += 1
        for renames, (count, record) in counts.items():
            names = ", ".join(f"{old} as {new}" for old, new in renames)
            self.warn("aliases_used", f"read {names}", self.where(record), count)

    def add(self, rows: list[dict[str, Any]], records: Sequence[int], shapes: set[tuple[str, ...]] | None = None) -> None:
        """Add rows under canonical names; `records` are their places in the file (line or item numbers).

        `shapes` are the key sets that occur, where the caller knows them.
        """
        if not rows:
            return
        shapes = shapes if shapes is not None else set(map(tuple, rows))
        issues = Issues()
        columns: dict[str, Any] = {}
        values = _by_field(rows, shapes)
        for spec in ALL_FIELDS:
            if spec.name in values:
                column = from_values(spec, values[spec.name], self.pools, issues)
                if column is not None:
                    columns[spec.name] = column
        said = _said("outcome", rows, shapes)
        self.add_block(columns, np.asarray(records, dtype=np.int64), said, issues)

    def add_block(
        self,
        columns: dict[str, Any],
        records: npt.NDArray[np.int64],
        outcome_said: npt.NDArray[np.bool_],
        issues: Issues,
        pool: int = 0,
    ) -> None:
        """Add finished columns (see `columns`) with what was odd in them."""
        base = self.n_rows
        self.bad.extend((base + position, reason) for position, reason in issues.bad.items())
        self.repaired.extend(self.record_key(int(records[position])) for position in issues.repaired)
        for (code, _), (sentence, position, count) in issues.warnings.items():
            self.warn(code, sentence, self.where(int(records[position])), count)
        self.blocks.append(Block(len(records), len(self.files) - 1, records, columns, outcome_said, pool))
        self.n_rows += len(records)

    # -- reading back, for assembly ------------------------------------------------------------------------

    def column(self, spec: Field) -> Any:
        """One field over all rows, or None where no row has it; `text` numbers count through all pools."""
        if not any(spec.name in block.columns for block in self.blocks):
            return None
        if spec.kind in ("json", "texts"):
            return self._arrow_column(spec)
        dtype, default = DEFAULTS[spec.kind]
        if len(self.blocks) == 1 and not self.pool_offsets()[self.blocks[0].pool]:
            return self.blocks[0].columns[spec.name].astype(dtype, copy=False)  # one block: nothing to string together
        out = np.full(self.n_rows, default, dtype=dtype)
        offsets, at = self.pool_offsets(), 0
        for block in self.blocks:
            values = block.columns.get(spec.name)
            if values is not None:
                shift = offsets[block.pool] if spec.kind == "text" else 0
                out[at : at + block.n] = np.where(values >= 0, values + shift, -1) if shift else values
            at += block.n
        return out

    def _arrow_column(self, spec: Field) -> pa.ChunkedArray:
        kind = pa.string() if spec.kind == "json" else pa.list_(pa.int32())
        offsets, chunks = self.pool_offsets(), []
        for block in self.blocks:
            values = block.columns.get(spec.name)
            if values is None:
                values = pa.nulls(block.n, kind)
            elif spec.kind == "texts" and offsets[block.pool]:
                shifted = pc.add(values.values, pa.scalar(offsets[block.pool], pa.int32()))
                values = pa.ListArray.from_arrays(values.offsets, shifted, mask=values.is_null())
            chunks.append(values)
        return pa.chunked_array(chunks, kind)

    def pool_offsets(self) -> list[int]:
        """Where each pool of texts begins when all are strung together."""
        sizes = [len(self.pools.texts), *(len(pool) for pool in self.arrow_pools)]
        return [0, *np.cumsum(sizes)[:-1].tolist()]

    def all_texts(self) -> pa.Array:
        """All pools strung together (texts may occur twice, once per pool)."""
        own = pa.array(list(self.pools.texts), pa.large_string())
        return pa.concat_arrays([own, *(pool.cast(pa.large_string()) for pool in self.arrow_pools)])

    def places(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """File number and record number of each row."""
        file = np.repeat(np.array([b.file for b in self.blocks], np.int32), [b.n for b in self.blocks])
        empty = np.zeros(0, np.int64)
        return file, np.concatenate([empty, *(b.records for b in self.blocks)])

    def outcome_said(self) -> npt.NDArray[np.bool_]:
        parts = [b.outcome_said if b.outcome_said is not None else np.zeros(b.n, np.bool_) for b in self.blocks]
        return np.concatenate([np.zeros(0, np.bool_), *parts])
