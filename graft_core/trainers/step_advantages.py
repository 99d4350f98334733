"""`step_advantages`: credit of the steps of a training batch that lie in a trainer's arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graft_core.credit import estimate
from graft_core.errors import InputError
from graft_core.rollouts import (
    ROLLOUT_SCHEMA,
    STEP_SCHEMA,
    TEXT_SCHEMA,
    FloatArray,
    IntArray,
    RolloutBatch,
    table_from_columns,
)

Column = Sequence[Any] | npt.NDArray[Any]


def step_advantages(
    group_id: Column,
    rollout_id: Column,
    step: Column,
    state: Column,
    action: Column,
    reward: Column | None = None,
    outcome: Column | Mapping[Any, float | None] | None = None,
    next_state: Column | None = None,
    terminated: Column | None = None,
    truncated: Column | None = None,
    method: str = "graft",
    **options: Any,
) -> FloatArray:
    """Credit of every step, from one entry per step in any order: float64[n], NaN where the outcome is unknown.

    group_id, rollout_id, state, action: anything that is equal where things are the same (texts, integers, tuples;
    compared by their text). step: order within the rollout. outcome: one entry per step (the same for a rollout) or a
    mapping from (group_id, rollout_id); None or NaN = unknown; not given: the sum of the rollout's rewards. next_state:
    used on the last step of a rollout, as the state it ended in. method and options: as in `estimate`. Raises `InputError`
    where columns differ in length or outcomes of one rollout contradict.
    """
    columns = {"group_id": group_id, "rollout_id": rollout_id, "step": step, "state": state, "action": action}
    optional = {"reward": reward, "next_state": next_state, "terminated": terminated, "truncated": truncated}
    n = len(step)
    for name, values in {**columns, **{k: v for k, v in optional.items() if v is not None}}.items():
        if len(values) != n:
            raise InputError(f"{name} has {len(values)} entries, expected one per step ({n})")
    names = list(zip(map(_text, group_id), map(_text, rollout_id), strict=True))
    rows: dict[tuple[str, str], int] = {}
    rollout = np.array([rows.setdefault(name, len(rows)) for name in names], dtype=np.int64)
    order = np.lexsort((np.asarray(step), rollout))
    last = np.zeros(len(rows), dtype=np.int64)
    last[rollout[order]] = order
    texts: dict[str, int] = {}
    rewards = np.full(n, np.nan) if reward is None else np.asarray(reward, dtype=np.float64)
    made = {
        "group_id": [name[0] for name in rows],
        "rollout_id": [name[1] for name in rows],
        "outcome": _outcomes(outcome, rollout, rewards, list(rows), names, group_id, rollout_id),
        "terminated": None if terminated is None else [bool(terminated[i]) for i in last.tolist()],
        "truncated": None if truncated is None else [bool(truncated[i]) for i in last.tolist()],
        "n_steps": np.bincount(rollout, minlength=len(rows)),
        "final_observation": None if next_state is None else _ids([next_state[i] for i in last.tolist()], texts),
        "order_doubtful": [False] * len(rows),
        "group_assumed": [False] * len(rows),
    }
    steps = {
        "rollout": rollout, "step": np.asarray(step, dtype=np.int64), "observation": _ids(state, texts),
        "action": _ids(action, texts), "reward": pa.array(rewards, from_pandas=True),
    }
    batch = RolloutBatch(
        table_from_columns(made, ROLLOUT_SCHEMA, len(rows)),
        table_from_columns(steps, STEP_SCHEMA, n),
        table_from_columns({"id": list(range(len(texts))), "text": list(texts)}, TEXT_SCHEMA, len(texts)),
        "step_advantages",
    )
    return estimate(batch, method, **options)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{type(value).__name__}:{value!r}" if isinstance(value, bytes) else str(value)


def _ids(values: Column, texts: dict[str, int]) -> list[int | None]:
    return [None if value is None else texts.setdefault(_text(value), len(texts)) for value in values]


def _outcomes(
    given: Any, rollout: IntArray, rewards: FloatArray, rows: list[Any], names: list[Any], group: Column, member: Column
) -> list[float | None]:
    """One outcome per rollout; None = unknown."""
    if given is None:
        return list(np.bincount(rollout, weights=np.nan_to_num(rewards), minlength=len(rows)).tolist())
    if isinstance(given, Mapping):
        given = [given.get((g, m)) for g, m in zip(group, member, strict=True)]
    if len(given) != len(names):
        raise InputError(f"outcome has {len(given)} entries, expected one per step ({len(names)})")
    found: list[float | None] = [None] * len(rows)
    for row, value in zip(rollout.tolist(), given, strict=True):
        known = None if value is None or value != value else float(value)
        if known is not None and found[row] is not None and found[row] != known:
            raise InputError(f"rollout {rows[row][1]} of group {rows[row][0]} has the outcomes {found[row]:g} and {known:g}")
        found[row] = known if known is not None else found[row]
    return found
