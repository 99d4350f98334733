"""Synthetic rollouts of realistic shape: tasks of 8 rollouts with cycles, repeated observations and long texts.

Everything follows from a seed and a task's number, so a batch can be made piece by piece: as arrays, as Arrow columns in
memory, or straight into a Parquet file without holding it in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graft_core.rollouts import RolloutBatch

Ints = npt.NDArray[np.int64]

ROLLOUTS: Final = 8
LENGTHS: Final = np.array([29, 35, 41, 47, 53, 59, 65, 71])  # mean 50
STEPS_OF_TASK: Final = int(LENGTHS.sum())
PLACES: Final = 140  # of which a task's rollouts visit about 76
ACTIONS: Final = ("go north", "go back", "take the lamp from the shelf", "look around", "open the door", "ask for help")
TASKS_AT_ONCE: Final = 250
PROSE: Final = 200_000  # words of filler, about a million letters
FILLER: Final = (
    "the a lamp shelf door table mug drawer cabinet north south kitchen page cart price search result button "
    "you see is on in of and open closed empty clean hot cold apple knife book list click buy now next error line"
)


@dataclass(frozen=True, eq=False)
class Walks:
    """Consecutive tasks as arrays. Per step: task, rollout (both counted from the first task), step, place, action.

    Per rollout: length, final place, success. `first` is the number of the first task.
    """

    first: int
    n_tasks: int
    task: Ints
    rollout: Ints
    step: Ints
    place: Ints
    action: Ints
    length: Ints
    final: Ints
    success: npt.NDArray[np.bool_]


def walks(first: int, n_tasks: int, seed: int = 0) -> Walks:
    """The rollouts of tasks first .. first + n_tasks - 1."""
    random = np.random.default_rng([seed, first, n_tasks])
    drift = random.choice([-3, -1, 0, 1, 1, 2, 3, 5], size=(n_tasks, PLACES, len(ACTIONS)))
    length = random.permuted(np.tile(LENGTHS, (n_tasks, 1)), axis=1).ravel()
    task_of_rollout = np.repeat(np.arange(n_tasks), ROLLOUTS)
    here = np.zeros(length.size, dtype=np.int64)
    places = np.empty((length.size, int(LENGTHS.max())), dtype=np.int64)
    actions = random.integers(len(ACTIONS), size=places.shape)
    final = here
    for t in range(places.shape[1]):
        places[:, t] = here
        slips = random.random(here.size) < 0.05
        moved = np.clip(here + drift[task_of_rollout, here, actions[:, t]] + slips, 0, PLACES - 1)
        here = np.where(t < length, moved, here)
        final = here
    steps = np.arange(places.shape[1]) < length[:, None]
    rollout, step = np.nonzero(steps)
    return Walks(
        first, n_tasks, task_of_rollout[rollout], rollout, step, places[steps], actions[steps], length, final,
        random.random(final.size) < final / PLACES,
    )  # fmt: skip


@cache
def _prose(size: int) -> str:
    random = np.random.default_rng(7)
    words = FILLER.split()
    return " ".join(words[i] for i in random.integers(len(words), size=size))


def texts(codes: Ints, first: int, text_bytes: int) -> list[str]:
    """The observation of each code (task * PLACES + place): a short head of its own, then prose up to `text_bytes`."""
    prose = _prose(PROSE)
    made = []
    for code in codes.tolist():
        task, place = divmod(code, PLACES)
        head = f"Task {first + task}: you are at place {place}. "
        at = (code * 7919 + first) % PROSE
        made.append(head + prose[at : at + text_bytes - len(head)])
    return made


def columns(made: Walks, text_bytes: int = 200) -> dict[str, Any]:
    """Canonical step rows as Arrow columns, every text written out: what a trainer or a file has."""
    seen = made.task * PLACES + made.place
    ended = np.repeat(np.arange(made.n_tasks), ROLLOUTS) * PLACES + made.final
    used, codes = np.unique(np.concatenate([seen, ended]), return_inverse=True)
    words = pa.array(texts(used, made.first, text_bytes), pa.large_string())
    last = made.step == made.length[made.rollout] - 1
    success = made.success[made.rollout]
    task_names = pa.array([f"task-{made.first + i}" for i in range(made.n_tasks)])
    rollout_names = pa.array([f"try-{i}" for i in range(ROLLOUTS)])
    next_code = pa.array(codes[seen.size :][made.rollout], mask=~last)
    return {
        "group_id": task_names.take(pa.array(made.task)),
        "rollout_id": rollout_names.take(pa.array(made.rollout % ROLLOUTS)),
        "step": pa.array(made.step),
        "observation": words.take(pa.array(codes[: seen.size])),
        "action": pa.array(ACTIONS).take(pa.array(made.action)),
        "reward": pa.array(np.where(last & success, 1.0, 0.0)),
        "next_observation": words.take(next_code),
        "outcome": pa.array(success.astype(np.float64)),
        "terminated": pa.array(last & success),
        "truncated": pa.array(last & ~success),
    }


def tables(n_steps: int, text_bytes: int = 200, seed: int = 0) -> Iterator[pa.Table]:
    """At least `n_steps` steps in whole tasks, some hundred tasks at a time."""
    n_tasks = -(-n_steps // STEPS_OF_TASK)
    for first in range(0, n_tasks, TASKS_AT_ONCE):
        yield pa.table(columns(walks(first, min(TASKS_AT_ONCE, n_tasks - first), seed), text_bytes))


def write_parquet(path: str | os.PathLike[str], n_steps: int, text_bytes: int = 200, seed: int = 0) -> int:
    """Write a canonical Parquet file, one row group per piece; returns the bytes of text in it, every row written out."""
    import pyarrow.parquet as pq

    writer, size = None, 0
    try:
        for table in tables(n_steps, text_bytes, seed):
            if writer is None:
                writer = pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
            size += text_size(table)
    finally:
        if writer is not None:
            writer.close()
    return size


def text_size(table: pa.Table) -> int:
    """Bytes of the observations and actions of a table, every row written out."""
    import pyarrow.compute as pc

    names = ("observation", "next_observation", "action")
    return sum(int(pc.sum(pc.binary_length(table.column(name))).as_py() or 0) for name in names)


def batch_of(table: pa.Table) -> RolloutBatch:
    """A batch from canonical Arrow columns in memory, through the reader's own code: checked, nothing analysed yet."""
    from pathlib import Path

    from graft_core.formats.assemble import assemble
    from graft_core.formats.canonical_parquet import FORMAT, add_table
    from graft_core.formats.rows import Rows
    from graft_core.formats.source import Source

    rows = Rows()
    rows.start(Source(Path("memory"), "memory", True), FORMAT.name, FORMAT.unit)
    add_table(table, rows)
    return assemble(rows, "memory")[0]


def fresh(batch: RolloutBatch) -> RolloutBatch:
    """The same tables as a batch on which nothing is remembered."""
    return RolloutBatch(batch.rollouts, batch.steps, batch.texts, batch.name, batch.success_threshold)
