"""Group-relative outcome credit, shared by `grpo` and every estimator with an episode part (A^E)."""

from __future__ import annotations

import numpy as np

from graft_core.credit import _segments as seg
from graft_core.credit._penalty import penalised
from graft_core.credit.base import Inputs
from graft_core.options import DDOF, EPS, SINGLETON, STATISTICS
from graft_core.rollouts import FloatArray, IntArray

EPISODE_OPTIONS = (STATISTICS, SINGLETON, EPS, DDOF)
"""Options of every estimator with an episode part."""


def known_rollouts(inputs: Inputs) -> tuple[IntArray, IntArray, FloatArray]:
    """Rows, group codes and outcomes of the rollouts whose outcome is known."""
    rows = np.flatnonzero(inputs.batch.known)
    return rows, inputs.batch.group[rows], inputs.outcome[rows]


def per_step(inputs: Inputs, rows: IntArray, credit: FloatArray) -> FloatArray:
    """One credit per known rollout, copied to its steps; NaN on the steps of the others."""
    spread = np.full(inputs.batch.n_rollouts, np.nan)
    spread[rows] = credit
    return spread[inputs.rollout]


def lone(inputs: Inputs, group: IntArray, outcome: FloatArray, credit: FloatArray) -> FloatArray:
    """Apply `singleton`: a group with one known rollout gets zero, or its raw outcome."""
    alone = seg.counts(group, inputs.batch.n_groups)[group] == 1
    return np.where(alone, outcome if inputs["singleton"] == "raw" else 0.0, credit)


def episode(inputs: Inputs) -> FloatArray:
    """A^E = (R_i - mean) / (std + eps), mean and std over the group's rollouts or over its steps. float64[n_steps].

    Over steps, an estimator with `invalid_penalty` takes it off the invalid step's copy of R.
    """
    rows, group, outcome = known_rollouts(inputs)
    n_groups = inputs.batch.n_groups
    if inputs["statistics"] == "rollouts":
        credit = seg.standardise(outcome, group, n_groups, inputs["eps"], inputs["ddof"])
        return per_step(inputs, rows, lone(inputs, group, outcome, credit))
    step = inputs.known_steps
    outcome_of_step = penalised(inputs, inputs.outcome[inputs.rollout])[step]
    group_of_step = inputs.batch.group[inputs.rollout][step]
    credit_of_step = seg.standardise(outcome_of_step, group_of_step, n_groups, inputs["eps"], inputs["ddof"])
    alone = seg.counts(group, n_groups)[group_of_step] == 1
    raw = outcome_of_step if inputs["singleton"] == "raw" else 0.0
    return inputs.spread(np.where(alone, raw, credit_of_step))
