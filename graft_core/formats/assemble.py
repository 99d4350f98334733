"""From collected rows to a batch: rollouts found, checked, and written as the three tables of `RolloutBatch`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graft_core.formats import checks, telling
from graft_core.formats.assembly import Assembly, Kept, given, map_lists, prepare
from graft_core.formats.columns import NO_COUNT
from graft_core.formats.rows import Rows
from graft_core.rollouts import (
    ROLLOUT_SCHEMA,
    STEP_SCHEMA,
    TEXT_SCHEMA,
    RolloutBatch,
    table_from_columns,
)

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
STEP_TEXTS: Final = ("observation", "state", "action", "action_text")
STEP_NUMBERS: Final = ("reward", "logprob", "value", "advantage")


def assemble(rows: Rows, name: str) -> tuple[RolloutBatch, Kept]:
    """Build the batch; rejections and warnings found on the way go into `rows`."""
    a = prepare(rows)
    for position, reason in rows.bad:
        if a.roll[position] >= 0:
            a.bad.add(int(a.roll[position]), position, reason)
    path = checks.path_of(a.roll, a.step, a.is_step)
    last = np.full(a.n, -1, dtype=np.int64)
    last[path.roll] = path.rows
    rollout_columns = _rollout_level(a, path, last)
    kept_rollout = np.ones(a.n, dtype=np.bool_)
    kept_rollout[list(a.bad.reasons)] = False
    kept = Kept((a.roll >= 0) & np.append(kept_rollout, False)[a.roll], kept_rollout)
    telling.reject_bad(a)
    telling.warn_flagged(a, kept)
    telling.warn_duplicates(a, path, kept)
    telling.warn_steps(a, path, kept)
    return _tables(a, rollout_columns, kept, name), kept


def _rollout_level(a: Assembly, path: checks.Path, last: Ints) -> dict[str, Any]:
    """Outcome, flags and the other values that a rollout has once; marks rollouts whose rows disagree."""
    declared = (a.roll >= 0) & ~a.is_step
    named = a.roll >= 0

    def disagree(what: str, values: Any) -> Any:
        return lambda first, second: (
            f"{what} disagrees within one rollout: {_word(values[first])} at {a.place(first)}, "
            f"{_word(values[second])} at {a.place(second)}"
        )

    outcome, success = a.get("outcome"), a.get("success")
    checks.find_conflicts(a.roll, outcome, named & ~np.isnan(outcome), a.n, disagree("outcome", outcome), a.bad)
    checks.find_conflicts(a.roll, success, named & (success >= 0), a.n, disagree("success", success), a.bad)
    columns: dict[str, Any] = {"success": _value_of_first(a, success, success >= 0)}
    roll, rows = np.where(named, a.roll, 0), a.get
    for flag in ("terminated", "truncated"):
        values = np.where(named, rows(flag), -1).astype(np.int8)
        columns[flag] = checks.ending_flag(roll, values, declared, last, disagree(flag, values), a.bad) if a.n else values
    columns["outcome"] = _outcomes(a, path, columns["success"])
    for name in ("train_step", "task_family"):
        values = rows(name)
        given = named & (values != (NO_COUNT if name == "train_step" else -1))
        columns[name] = _value_of_first(a, values, given)
        telling.warn_differing(a, name, values, given, columns[name])
    columns["final_value"] = _value_at_end(a, path, rows("final_value"), declared, last)
    for name, source in (("final_observation", "next_observation"), ("final_state", "next_state")):
        at_last = np.where(last >= 0, rows(source)[last], -1)
        said = _value_of_first(a, rows(source), declared & (rows(source) >= 0))
        columns[name] = np.where(at_last >= 0, at_last, said)
    return columns


def _word(value: Any) -> str:
    """A value as a sentence shows it: flags as words, numbers as numbers."""
    return ("false", "true")[int(value)] if isinstance(value, np.int8) else repr(float(value))


def _value_of_first(a: Assembly, values: npt.NDArray[Any], given: Bools) -> npt.NDArray[Any]:
    """Per rollout the value of its first row that gives one; the field's "none" elsewhere."""
    first = checks.first_row(a.roll, given & (a.roll >= 0), a.n)
    none = np.nan if values.dtype == np.float64 else NO_COUNT if values.dtype == np.int64 else -1
    return np.where(first >= 0, values[first], none).astype(values.dtype) if len(values) else values.copy()


def _value_at_end(
    a: Assembly, path: checks.Path, values: npt.NDArray[np.float64], declared: Bools, last: Ints
) -> npt.NDArray[np.float64]:
    """Per rollout the value on its last step, else on the row that declares it."""
    said = _value_of_first(a, values, declared & ~np.isnan(values))
    at_last = np.where(last >= 0, values[last], np.nan) if len(values) else said
    return np.where(np.isnan(at_last), said, at_last)


def _outcomes(a: Assembly, path: checks.Path, success: npt.NDArray[np.int8]) -> npt.NDArray[np.float64]:
    """The outcome given; present and null = unknown; absent = sum of the rewards if there is any, else unknown."""
    given_values = a.get("outcome")
    given = (a.roll >= 0) & ~np.isnan(given_values)
    null = (a.roll >= 0) & a.rows.outcome_said() & ~given
    outcome = _value_of_first(a, given_values, given)
    has_value = ~np.isnan(outcome)
    has_null = checks.first_row(a.roll, null, a.n)
    reward = a.get("reward")[path.rows]
    counted = ~np.isnan(reward)
    sums = np.bincount(path.roll[counted], weights=reward[counted], minlength=a.n)
    rewarded = np.bincount(path.roll[counted], minlength=a.n) > 0
    summed = ~has_value & (has_null < 0) & rewarded
    outcome[summed] = sums[summed]
    partly = np.flatnonzero(has_value & (has_null >= 0))
    if len(partly):
        place = a.place(int(has_null[partly[0]]))
        a.rows.warn("outcome_partly_null", "some rows of a rollout say that its outcome is unknown", place, len(partly))
    silent = np.flatnonzero(np.isnan(outcome) & (has_null < 0) & (success < 0))
    if len(silent):
        place = a.place(int(checks.first_row(a.roll, a.roll >= 0, a.n)[silent[0]]))
        a.rows.warn("no_outcome", "a rollout has neither outcome nor rewards: unknown", place, len(silent))
    return outcome


def _tables(a: Assembly, rollout_columns: dict[str, Any], kept: Kept, name: str) -> RolloutBatch:
    """The three tables, with only the texts that are still used."""
    first = checks.first_row(a.roll, a.roll >= 0, a.n)[kept.rollout]
    renumber = np.cumsum(kept.rollout) - 1
    rows = np.flatnonzero(a.is_step & kept.row)
    whole = len(rows) == a.rows.n_rows
    take = slice(None) if whole else rows  # nothing to copy where every row is kept
    steps: dict[str, Any] = {
        "rollout": a.roll.astype(np.int32) if whole and kept.rollout.all() else renumber[a.roll[take]].astype(np.int32),
        "step": a.step[take].astype(np.int32),
        "valid": _flags(a.get("valid")[take]) if given(a.get("valid")) else None,
        **{field: _numbers(a.get(field)[take]) for field in STEP_NUMBERS if given(a.get(field))},
    }
    for field in ("tokens", "metadata", "admissible"):
        if a.get(field) is not None:
            steps[field] = a.get(field) if whole else a.get(field).take(pa.array(rows))
    ids = {field: a.get(field)[take] for field in STEP_TEXTS}
    ids |= {field: rollout_columns[field][kept.rollout] for field in ("final_observation", "final_state")}
    texts, renumbered, steps_admissible = _used_texts(a.texts, ids, steps.get("admissible"))
    steps |= {field: _ids(renumbered[field]) for field in STEP_TEXTS}
    if steps_admissible is not None:
        steps["admissible"] = steps_admissible
    rollouts = _rollout_table(a, rollout_columns, kept, first, np.bincount(steps["rollout"], minlength=len(first)))
    rollouts |= {field: _ids(renumbered[field]) for field in ("final_observation", "final_state")}
    return RolloutBatch(
        table_from_columns(rollouts, ROLLOUT_SCHEMA, len(first)),
        table_from_columns(steps, STEP_SCHEMA, len(rows)),
        table_from_columns({"id": np.arange(len(texts), dtype=np.int32), "text": texts}, TEXT_SCHEMA, len(texts)),
        name,
    )


def _rollout_table(
    a: Assembly, columns: dict[str, Any], kept: Kept, first: Ints, n_steps: npt.NDArray[np.int64]
) -> dict[str, Any]:
    keys = pa.array(list(a.rows.pools.keys), pa.string())
    family = columns["task_family"][kept.rollout]
    train_step = columns["train_step"][kept.rollout]
    doubtful = np.zeros(a.n, dtype=np.bool_)
    doubtful[a.roll[(a.roll >= 0) & (a.get("order_doubtful") == 1)]] = True
    assumed = np.zeros(a.n, dtype=np.bool_)
    assumed[a.roll[(a.roll >= 0) & a.assumed]] = True
    out = {
        "group_id": keys.take(pa.array(a.group[first])),
        "rollout_id": keys.take(pa.array(a.get("rollout_id")[first])),
        "outcome": _numbers(columns["outcome"][kept.rollout]),
        "n_steps": n_steps.astype(np.int32),
        "train_step": pa.array(train_step, mask=train_step == NO_COUNT),
        "task_family": keys.take(pa.array(family, mask=family < 0)),
        "final_value": _numbers(columns["final_value"][kept.rollout]),
        "order_doubtful": doubtful[kept.rollout],
        "group_assumed": assumed[kept.rollout],
        "source": [a.place(row) for row in first.tolist()],
    }
    out |= {flag: _flags(columns[flag][kept.rollout]) for flag in ("success", "terminated", "truncated")}
    metadata = a.get("metadata")
    if metadata is not None:
        said = (a.roll >= 0) & ~a.is_step & np.asarray(metadata.is_valid())
        row = checks.first_row(a.roll, said, a.n)[kept.rollout]
        out["metadata"] = metadata.take(pa.array(row, mask=row < 0))
    return out


def _flags(values: npt.NDArray[np.int8]) -> pa.Array:
    return pa.array(values == 1, mask=values < 0)


def _numbers(values: npt.NDArray[np.float64]) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))


def _ids(values: npt.NDArray[np.int32]) -> pa.Array:
    return pa.array(values.astype(np.int32), mask=values < 0)


def _used_texts(
    texts: pa.Array, ids: dict[str, npt.NDArray[np.int32]], lists: pa.ChunkedArray | None
) -> tuple[pa.Array, dict[str, npt.NDArray[np.int32]], pa.ChunkedArray | None]:
    """Leave out texts that nothing refers to; returns the texts and the renumbered columns."""
    used = np.zeros(len(texts) + 1, dtype=np.bool_)
    for column in ids.values():
        used[column] = True
    if lists is not None:
        for chunk in lists.chunks:
            used[np.asarray(chunk.flatten())] = True
    used[-1] = False
    if used[:-1].all():
        return texts, ids, lists
    renumber = np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)
    if lists is not None:
        lists = map_lists(lists, renumber)
    return texts.filter(pa.array(used[:-1])), {k: renumber[v] for k, v in ids.items()}, lists
