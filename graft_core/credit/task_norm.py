"""`task_norm`: another estimator's credit, put on one scale per family of tasks.

x = credit of `base`; (x - mean) / (std + eps) over all the batch's steps of one task family with a defined x. Rollouts
without a family form one family. Source: arXiv 2510.04206. Shapes: float64[n_steps].
Degenerate cases: a family of one step, or of equal credits (range rule) -> 0; where `base` is undefined -> NaN.
`base` runs with its own defaults, except for `lam` and, where it is given, `gamma`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from graft_core.credit import _segments as seg
from graft_core.credit.base import Estimator, Inputs, estimator
from graft_core.errors import NotComputableError, UsageError
from graft_core.options import DDOF, EPS, GAMMA, LAM, Option
from graft_core.registry import pick
from graft_core.rollouts import FloatArray, IntArray

NAME = "task_norm"
BASE = Option("base", "grpo", "the estimator whose credit is put on one scale", "credit to put on one scale", "text")


def families(inputs: Inputs) -> IntArray:
    """Task family of each step, from 0; rollouts without one share the first code."""
    import pandas as pd

    names = inputs.batch.rollouts.column("task_family").to_pandas()
    codes, _ = pd.factorize(names)
    return (codes.astype(np.int64) + 1)[inputs.rollout]


def base_credit(inputs: Inputs) -> FloatArray:
    """Credit of the option `base` on the same inputs. float64[n_steps]."""
    from graft_core.credit.estimate import estimators, missing_needs

    others = {name: known for name, known in estimators().items() if name != NAME}
    if inputs["base"] == NAME:
        raise UsageError(f"base: {NAME!r} cannot stand on itself; known: {', '.join(others)}")
    base: Estimator = pick(others, inputs["base"], "base")
    reason = missing_needs(inputs.batch, base)
    if reason:
        raise NotComputableError(reason)
    given = {name: inputs[name] for name in ("gamma", "lam") if base.option(name) and inputs[name] is not None}
    below = replace(inputs, options=base.resolve(given))
    return np.asarray(base.apply(below), dtype=np.float64)


@estimator(
    NAME,
    title="task-family normalisation",
    meaning="another estimator's credit, put on one scale per family of tasks",
    source="arXiv 2510.04206",
    options=(BASE, GAMMA.with_default(None), LAM, EPS, DDOF),
    rank=31,
)
def task_norm(inputs: Inputs) -> FloatArray:
    x = np.where(inputs.known, base_credit(inputs), np.nan)
    defined = np.flatnonzero(~np.isnan(x))
    family = families(inputs)
    n_families = int(family.max(initial=0)) + 1
    x[defined] = seg.standardise(x[defined], family[defined], n_families, inputs["eps"], inputs["ddof"])
    return x
