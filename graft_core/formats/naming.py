"""Which rows belong to one rollout and one group, when several files are loaded together.

Group ids that a file gives merge across files: splitting a batch over files changes nothing. They are kept apart where
the same ids mean different things: task ids of different task sets, and files that use the same (group, rollout) ids
for steps that overlap (two runs that both count from zero).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from graft_core.formats.columns import LARGEST_COUNT, NO_COUNT
from graft_core.formats.rows import Rows

Ints = npt.NDArray[np.int64]
SEPARATOR: Final = "/"


def pair_codes(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> Ints:
    """One number per pair of numbers, numbered in order of first appearance."""
    import pyarrow as pa

    low = int(second.min(initial=0))
    span = int(second.max(initial=0)) - low + 1
    key = np.multiply(first, span, dtype=np.int64)
    key += second
    key -= low
    return np.asarray(pa.array(key).dictionary_encode().indices, dtype=np.int64)


def key_code(rows: Rows, text: str) -> int:
    """The number of a key, added if new."""
    pool = rows.pools.keys
    return pool.setdefault(text, len(pool))


def assume_groups(rows: Rows, group: Ints, rollout: Ints, file: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Fill missing groups (in place): from other rows of the rollout, else with one group per file.

    Returns where the file's group had to be assumed.
    """
    missing = group < 0
    if missing.any() and not missing.all():
        _adopt_groups(group, rollout, file)
        missing = group < 0
    if missing.any():
        labels = np.array([key_code(rows, f.source.label) for f in rows.files], dtype=np.int64)
        group[missing] = labels[file[missing]]
    return missing


def _adopt_groups(group: Ints, rollout: Ints, file: npt.NDArray[np.int32]) -> None:
    """Rows without a group take that of their rollout's other rows in the same file, where these agree."""
    pair = pair_codes(file, rollout)
    named = group >= 0
    low = np.full(int(pair.max()) + 1, np.iinfo(np.int64).max)
    high = np.full(len(low), -1, dtype=np.int64)
    np.minimum.at(low, pair[named], group[named])
    np.maximum.at(high, pair[named], group[named])
    found = np.where(low == high, high, -1)[pair]
    adopt = ~named & (rollout >= 0) & (found >= 0)
    group[adopt] = found[adopt]


def separate_task_sets(rows: Rows, group: Ints, task_set: Ints) -> None:
    """Put the task set in front of group ids (in place) where a task id occurs in two task sets, or in one and in a file
    that names no task set."""
    if not len(group) or not (task_set >= 0).any():
        return
    span = len(rows.pools.keys) + 1
    pairs = np.unique(group * span + (task_set + 1))
    ids, sets = np.unique(pairs // span, return_counts=True)
    clashing = np.unique(pairs[np.isin(pairs // span, ids[sets > 1])] % span) - 1
    clashing = clashing[clashing >= 0]
    if len(clashing):
        rows.note(f"{len(clashing)} task sets use the same task ids for different tasks; their names were put in front")
        _prefix(rows, group, task_set, np.isin(task_set, clashing))


def separate_files(rows: Rows, group: Ints, rollout: Ints, step: Ints, file: npt.NDArray[np.int32]) -> Ints | None:
    """Put the file's label in front of group ids (in place) of files that reuse (group, rollout) ids.

    A rollout may be continued in another file, with other step numbers; a step that two files give, or a rollout that
    two files only declare, means that the ids were used twice. Then returns the number of each row's (group, rollout)
    as the files have it, -1 where it has no rollout id.
    """
    if len(rows.files) < 2 or not len(file):
        return None
    use = np.flatnonzero(rollout >= 0)
    if not len(use):
        return None
    pair = pair_codes(group[use], rollout[use])
    at_step = pair_codes(pair, np.where(step[use] == NO_COUNT, -LARGEST_COUNT - 1, step[use]))
    first_file = np.zeros(int(at_step.max()) + 1, dtype=np.int32)
    first_file[at_step[::-1]] = file[use][::-1]
    clash = np.flatnonzero(first_file[at_step] != file[use])
    if not len(clash):
        return None
    reused = {int(f) for f in np.unique(np.concatenate([file[use][clash], first_file[at_step[clash]]]))}
    labels = np.array([key_code(rows, f.source.label) for f in rows.files], dtype=np.int64)
    record = rows.places()[1][use[clash[0]]]
    _prefix(rows, group, labels[file], np.isin(file, list(reused)))
    place = rows.files[int(file[use[clash[0]]])]
    rows.warn(
        "group_ids_reused",
        f"{len(reused)} files use the same group and rollout ids; their groups are kept apart by file name",
        place.source.where(int(record), place.unit),
        len(np.unique(pair[clash])),
    )
    said = np.full(len(file), -1, dtype=np.int64)
    said[use] = pair
    return said


def _prefix(rows: Rows, group: Ints, prefix: Ints, where: npt.NDArray[np.bool_]) -> None:
    """Replace group ids by "prefix/group" where told, in place."""
    chosen = np.flatnonzero(where)
    names, span = list(rows.pools.keys), len(rows.pools.keys)
    pairs, inverse = np.unique(prefix[chosen] * span + group[chosen], return_inverse=True)
    new = [key_code(rows, f"{names[p // span]}{SEPARATOR}{names[p % span]}") for p in pairs.tolist()]
    group[chosen] = np.array(new, dtype=np.int64)[inverse]
