"""Rollouts whose outcomes were changed, as plain rows: batches that are made anew, to hold the quick ways against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from row_batches import batch_of, walk

from graft_core.rollouts import FloatArray, RolloutBatch


def rows_with(rows: list[dict[str, Any]], batch: RolloutBatch, outcome: FloatArray) -> list[dict[str, Any]]:
    """The rows with other outcomes, one per rollout row of the batch."""
    new = dict(zip(_ids(batch), outcome.tolist(), strict=True))
    return [r | {"outcome": None if np.isnan(x := new[r["group_id"], r["rollout_id"]]) else x} for r in rows]


def _ids(batch: RolloutBatch) -> list[tuple[str, str]]:
    return [(batch.group_ids[g], r) for g, r in zip(batch.group.tolist(), batch.rollout_ids, strict=True)]


def one_group(*outcomes: float, path: Callable[[int], str]) -> RolloutBatch:
    rows = [row for i, x in enumerate(outcomes) for row in walk(f"r{i}", path(i), x, "end")]
    return batch_of(rows)
