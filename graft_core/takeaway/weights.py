"""Steps with weights, for a trainer: which steps to learn from, and how much."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from graft_core.insight.findings import Findings
from graft_core.rollouts import IntArray, RolloutBatch
from graft_core.settings import Settings, train


def train_settings(found: Findings) -> Settings:
    """The *Train* preset (path credit, lambda .95, normalised within nodes) on the graph and values of these findings."""
    now = found.settings
    same = {**now.graph_words, **now.value_words, "baseline": now.baseline, "gamma": dict(now.given).get("gamma")}
    return train().with_options(**same)


def positions_named(batch: RolloutBatch, keys: Iterable[tuple[str, str, int]]) -> IntArray:
    """Path positions of steps given as (group_id, rollout_id, step), in path order; names not in the batch are left out."""
    wanted = set(keys)
    names = zip(batch.step_rollout.tolist(), batch.step_index.tolist(), strict=True)
    groups, rollouts = batch.group_ids, batch.rollout_ids
    named = ((groups[int(batch.group[row])], rollouts[row], step) for row, step in names) if wanted else ()
    return np.asarray([at for at, key in enumerate(named) if key in wanted], dtype=np.int64)


def training_weights(found: Findings, positions: IntArray | None = None, settings: Settings | None = None) -> pa.Table:
    """group_id, rollout_id, step, weight: one row per chosen step, in the order given.

    positions: path positions (default: the good steps of failed rollouts, best first; `np.arange(batch.n_steps)` for
    all). The weight is the credit of the settings' estimator (default: credit A of the findings), the advantage by which
    a trainer multiplies the log-probability of the step's tokens. It is null where the estimator leaves it undefined; such
    a step has to be left out of the loss, not taken for 0. It may be negative: under `train_settings(found)` lambda is
    .95, credit is then nearly the outcome minus the value, and most good steps of failed rollouts weigh less than 0.
    """
    batch = found.batch
    chosen = settings or found.settings
    at = np.asarray(found.good if positions is None else positions, dtype=np.int64)
    rollout = pa.array(batch.step_rollout[at])
    weight = chosen.credit(batch, chosen.estimator)[batch.order][at]
    return pa.table(
        {
            "group_id": batch.rollouts.column("group_id").take(rollout),
            "rollout_id": batch.rollouts.column("rollout_id").take(rollout),
            "step": batch.step_index[at],
            "weight": pa.array(weight, from_pandas=True),
        }
    )
