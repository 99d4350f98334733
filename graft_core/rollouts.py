"""RolloutBatch: the one thing that flows through the house.

A batch is three immutable Arrow tables. Text is stored once in `texts` and referred to by id (its row number).

rollouts, one row each:
    group_id, rollout_id (string), outcome (float64, null = unknown), success (bool, null = unknown),
    terminated, truncated (bool, null = not said), n_steps (int32), train_step (int64), task_family (string),
    final_observation, final_state (text id), final_value (float64), order_doubtful, group_assumed (bool),
    source (string "file:line"), metadata (JSON string)
steps, one row each, in the order of the file:
    rollout (row of `rollouts`, int32), step (int32), observation, state, action, action_text (text ids, int32),
    reward (float64), valid (bool), admissible (list of text ids), logprob, value, advantage (float64),
    tokens (JSON string), metadata (JSON string)
`action` is what the environment executed, `action_text` what the model said (null where they are the same).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graft_core.constants import NO_TEXT, SUCCESS_TOLERANCE
from graft_core.errors import GroupMissingError, InputError

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

ROLLOUT_SCHEMA: Final = pa.schema(
    [
        ("group_id", pa.string()),
        ("rollout_id", pa.string()),
        ("outcome", pa.float64()),
        ("success", pa.bool_()),
        ("terminated", pa.bool_()),
        ("truncated", pa.bool_()),
        ("n_steps", pa.int32()),
        ("train_step", pa.int64()),
        ("task_family", pa.string()),
        ("final_observation", pa.int32()),
        ("final_state", pa.int32()),
        ("final_value", pa.float64()),
        ("order_doubtful", pa.bool_()),
        ("group_assumed", pa.bool_()),
        ("source", pa.string()),
        ("metadata", pa.string()),
    ]
)
STEP_SCHEMA: Final = pa.schema(
    [
        ("rollout", pa.int32()),
        ("step", pa.int32()),
        ("observation", pa.int32()),
        ("state", pa.int32()),
        ("action", pa.int32()),
        ("action_text", pa.int32()),
        ("reward", pa.float64()),
        ("valid", pa.bool_()),
        ("admissible", pa.list_(pa.int32())),
        ("logprob", pa.float64()),
        ("value", pa.float64()),
        ("advantage", pa.float64()),
        ("tokens", pa.string()),
        ("metadata", pa.string()),
    ]
)
TEXT_SCHEMA: Final = pa.schema([("id", pa.int32()), ("text", pa.large_string())])


@dataclass(frozen=True)
class Warning_:
    """One thing a reader wants people to know: a stable code, a sentence, how often, and where it was first seen."""

    code: str
    sentence: str
    count: int = 1
    where: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {"code": self.code, "sentence": self.sentence, "count": self.count, "where": self.where}


@dataclass(frozen=True)
class Rejection:
    """One record (or run of records) that could not be used: where it stands and why."""

    where: str
    reason: str
    records: int = 1


@dataclass(frozen=True)
class LoadReport:
    """What became of every record of the input; always read = accepted + rejected, repaired is part of accepted."""

    files: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    read: int = 0
    accepted: int = 0
    repaired: int = 0
    rejected: int = 0
    rejections: tuple[Rejection, ...] = ()
    warnings: tuple[Warning_, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.read != self.accepted + self.rejected:
            raise AssertionError(f"load report does not add up: {self.read} != {self.accepted} + {self.rejected}")


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    if column.num_chunks == 1:
        return column.chunk(0)  # combining would copy it
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _ids(table: pa.Table, name: str) -> IntArray:
    column = table.column(name)
    filled = pc.fill_null(column, NO_TEXT) if column.null_count else column
    return _frozen(filled.to_numpy().astype(np.int64))


def _floats(table: pa.Table, name: str) -> FloatArray:
    column = table.column(name)
    filled = pc.fill_null(column, float("nan")) if column.null_count else column
    return _frozen(filled.to_numpy().astype(np.float64))


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class RolloutBatch:
    """Rollouts of any number of tasks, columnar and immutable (see the module's text for the columns).

    Everything derived is memoised on the batch. "Path order" sorts steps by (rollout row, step index); `order[p]` is
    the batch row of path position p. Arrays named here are in path order unless they say "row".
    """

    rollouts: pa.Table
    steps: pa.Table
    texts: pa.Table
    name: str = ""
    success_threshold: float = 1.0 - SUCCESS_TOLERANCE
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for table, schema, what in (
            (self.rollouts, ROLLOUT_SCHEMA, "rollouts"),
            (self.steps, STEP_SCHEMA, "steps"),
            (self.texts, TEXT_SCHEMA, "texts"),
        ):
            if table.schema.names != schema.names:
                raise InputError(f"{what}: columns are {table.schema.names}, expected {schema.names}")

    @property
    def n_rollouts(self) -> int:
        return int(self.rollouts.num_rows)

    @property
    def n_steps(self) -> int:
        return int(self.steps.num_rows)

    def __repr__(self) -> str:
        return f"RolloutBatch({self.name!r}, {self.n_groups} groups, {self.n_rollouts} rollouts, {self.n_steps} steps)"

    # -- rollouts (one entry per rollout row) ---------------------------------------------------------------

    @cached_property
    def outcome(self) -> FloatArray:
        """Outcome per rollout row, NaN = unknown; a success flag without outcome counts as 1 or 0."""
        outcome = np.array(_floats(self.rollouts, "outcome"))
        flags = self.rollouts.column("success")
        if flags.null_count < self.n_rollouts and np.isnan(outcome).any():
            said = pc.fill_null(pc.cast(flags, pa.float64()), float("nan")).to_numpy()
            outcome = np.where(np.isnan(outcome), said, outcome)
        return _frozen(outcome)

    @cached_property
    def known(self) -> BoolArray:
        """Whether the outcome of each rollout row is known."""
        return _frozen(~np.isnan(self.outcome))

    @cached_property
    def success(self) -> FloatArray:
        """1 success, 0 failure, NaN unknown per rollout row: the file's flag, else outcome >= `success_threshold`."""
        derived = np.where(self.known, (self.outcome >= self.success_threshold).astype(np.float64), np.nan)
        flags = self.rollouts.column("success")
        if flags.null_count == self.n_rollouts:
            return _frozen(derived)
        said = pc.fill_null(pc.cast(flags, pa.float64()), float("nan")).to_numpy()
        return _frozen(np.where(np.isnan(said), derived, said))

    @cached_property
    def group_ids(self) -> list[str]:
        """Group ids in order of first appearance; `group` holds positions in this list."""
        return [str(v) for v in pc.unique(self.rollouts.column("group_id")).to_pylist()]

    @cached_property
    def group(self) -> IntArray:
        """Group code per rollout row."""
        encoded = _column(self.rollouts, "group_id").dictionary_encode()
        return _frozen(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64))

    @property
    def n_groups(self) -> int:
        return len(self.group_ids)

    @cached_property
    def rollout_ids(self) -> list[str]:
        return [str(v) for v in self.rollouts.column("rollout_id").to_pylist()]

    @cached_property
    def truncated(self) -> BoolArray:
        """Whether each rollout row was cut off (not said = no)."""
        return _frozen(np.asarray(pc.fill_null(self.rollouts.column("truncated"), False).to_numpy()))

    @cached_property
    def terminated(self) -> BoolArray:
        return _frozen(np.asarray(pc.fill_null(self.rollouts.column("terminated"), False).to_numpy()))

    @cached_property
    def final_observation(self) -> IntArray:
        """Text id of each rollout's final observation, -1 where the file has none."""
        return _ids(self.rollouts, "final_observation")

    @cached_property
    def final_state(self) -> IntArray:
        return _ids(self.rollouts, "final_state")

    @cached_property
    def lengths(self) -> IntArray:
        """Number of steps per rollout row."""
        return _frozen(np.bincount(self.step_rollout_rows, minlength=self.n_rollouts).astype(np.int64))

    @property
    def groups_assumed(self) -> bool:
        return bool(pc.any(self.rollouts.column("group_assumed"), min_count=0).as_py())

    def require_groups(self) -> None:
        """Raise `GroupMissingError` where groups were only assumed (design.md, "Groups")."""
        if self.groups_assumed:
            raise GroupMissingError(
                "this batch names no task (group) per rollout, so credit that compares rollouts of one task would mix "
                "tasks; choose one with --group-by file, task, column:NAME or regex:PATTERN"
            )

    # -- steps ---------------------------------------------------------------------------------------------

    @cached_property
    def step_rollout_rows(self) -> IntArray:
        """Rollout row of each step, in batch row order."""
        return _ids(self.steps, "rollout")

    @cached_property
    def order(self) -> IntArray:
        """Batch row of each path position (steps sorted by rollout row, then step index, then file order)."""
        rollout, step = self.step_rollout_rows, _ids(self.steps, "step")
        if self.n_steps == 0:
            return _frozen(np.zeros(0, dtype=np.int64))
        key = rollout * (int(step.max()) - int(step.min()) + 2) + (step - int(step.min()))
        if bool(np.all(key[1:] > key[:-1])):
            return _frozen(np.arange(self.n_steps, dtype=np.int64))
        return _frozen(np.argsort(key, kind="stable").astype(np.int64))

    @cached_property
    def in_path_order(self) -> bool:
        """Whether batch rows already stand in path order (then scattering is a copy)."""
        return bool(np.array_equal(self.order, np.arange(self.n_steps)))

    def to_rows(self, path_values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Put one value per path position back into batch row order."""
        if self.in_path_order:
            return path_values
        rows = np.empty_like(path_values)
        rows[self.order] = path_values
        return rows

    def _path(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values if self.in_path_order else _frozen(values[self.order])

    @cached_property
    def step_rollout(self) -> IntArray:
        """Rollout row of each step."""
        return self._path(self.step_rollout_rows)

    @cached_property
    def offsets(self) -> IntArray:
        """Steps of rollout row i stand at path positions offsets[i]:offsets[i + 1]."""
        return _frozen(np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64))

    @cached_property
    def rank(self) -> IntArray:
        """t of each step: its rank within its rollout, from 0."""
        return _frozen(np.arange(self.n_steps, dtype=np.int64) - self.offsets[self.step_rollout])

    @cached_property
    def remaining(self) -> IntArray:
        """T - 1 - t of each step: how many steps of its rollout come after it."""
        return _frozen(self.lengths[self.step_rollout] - 1 - self.rank)

    @cached_property
    def step_index(self) -> IntArray:
        """The file's own step number of each step."""
        return self._path(_ids(self.steps, "step"))

    @cached_property
    def step_known(self) -> BoolArray:
        """Whether the outcome of each step's rollout is known."""
        return _frozen(self.known[self.step_rollout])

    @cached_property
    def observation(self) -> IntArray:
        """Text id of the observation seen before each step (-1 = none)."""
        return self._path(_ids(self.steps, "observation"))

    @cached_property
    def action(self) -> IntArray:
        """Text id of the executed action of each step."""
        return self._path(_ids(self.steps, "action"))

    @cached_property
    def action_text(self) -> IntArray:
        """Text id of what was said at each step; the executed action where the file keeps no more."""
        said = self._path(_ids(self.steps, "action_text"))
        return _frozen(np.where(said == NO_TEXT, self.action, said))

    @cached_property
    def reward(self) -> FloatArray:
        """Step reward, NaN where the file gives none."""
        return self._path(_floats(self.steps, "reward"))

    def step_column(self, name: str) -> FloatArray:
        """A numeric step column (`logprob`, `value`, `advantage`) in path order, NaN where missing."""
        return self._path(_floats(self.steps, name))

    def step_ids(self, name: str) -> IntArray:
        """A text-id step column (`state`, ...) in path order, -1 where missing."""
        return self._path(_ids(self.steps, name))

    # -- texts ---------------------------------------------------------------------------------------------

    @cached_property
    def text_array(self) -> pa.Array:
        return _column(self.texts, "text")

    def text(self, text_id: int) -> str:
        """The text of one id; empty for -1."""
        return "" if text_id < 0 else str(self.text_array[int(text_id)].as_py())

    def equals(self, other: RolloutBatch) -> bool:
        """Whether both hold the same rollouts and steps in the same order (text ids may differ; sources do not count)."""
        return batch_rows(self) == batch_rows(other)


def batch_rows(batch: RolloutBatch) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rollouts and steps as plain dictionaries with texts in place of ids: for comparing and for small exports."""
    texts = batch.text_array.to_pylist()

    def words(rows: list[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
        for row in rows:
            for name in names:
                if row[name] is not None:
                    row[name] = texts[row[name]]
        return rows

    rollouts = words(batch.rollouts.drop_columns(["source"]).to_pylist(), ["final_observation", "final_state"])
    steps = words(batch.steps.to_pylist(), ["observation", "state", "action", "action_text"])
    for row in steps:
        if row["admissible"] is not None:
            row["admissible"] = [texts[i] for i in row["admissible"]]
    return rollouts, steps


def table_from_columns(columns: Mapping[str, Any], schema: pa.Schema, n_rows: int) -> pa.Table:
    """An Arrow table of `schema` from the given columns; columns that are not given are all null."""
    arrays = []
    nulls: dict[pa.DataType, pa.Array] = {}  # shared by the columns of a kind
    for name, kind in zip(schema.names, schema.types, strict=True):
        values = columns.get(name)
        if values is None:
            if kind not in nulls:
                nulls[kind] = pa.nulls(n_rows, kind)
            arrays.append(nulls[kind])
        elif isinstance(values, (pa.Array, pa.ChunkedArray)):
            arrays.append(values.cast(kind))
        else:
            arrays.append(pa.array(values, type=kind, from_pandas=False))
    return pa.Table.from_arrays(arrays, schema=schema)
