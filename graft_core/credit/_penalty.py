"""`invalid_penalty`: what an invalid action costs the step itself (method.md sec. 5, shared options)."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from graft_core.credit.base import Inputs
from graft_core.errors import NotComputableError
from graft_core.rollouts import BoolArray, FloatArray


def invalid(inputs: Inputs) -> BoolArray:
    """Whether the file calls each step's action invalid (not said = valid). bool[n_steps]."""
    column = inputs.batch.steps.column("valid")
    if column.null_count == inputs.batch.n_steps:
        raise NotComputableError("invalid_penalty needs the step column 'valid', which this file does not have")
    said = np.asarray(pc.fill_null(column, True).to_numpy(), dtype=bool)
    return ~said[inputs.batch.order]


def penalised(inputs: Inputs, quantity: FloatArray) -> FloatArray:
    """The per-step quantity with `invalid_penalty` taken off on invalid steps; it is not carried to other steps."""
    size = inputs.options.get("invalid_penalty", 0.0)
    if not size or not inputs.batch.n_steps:
        return quantity
    return quantity - size * invalid(inputs)
