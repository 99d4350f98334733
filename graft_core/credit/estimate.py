"""`estimate`: one estimator on one batch, and the registry of estimators."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from graft_core.credit.base import REGISTERED, Estimator, Inputs, ours
from graft_core.errors import GraftError, NotComputableError, UsageError
from graft_core.graph import TrajectoryGraph, build_graph
from graft_core.options import VALUE_OPTIONS
from graft_core.registry import pick
from graft_core.rollouts import FloatArray, RolloutBatch
from graft_core.values import Values

ALIASES: dict[str, tuple[str, dict[str, Any]]] = {"graft_eq10": ("graft", {"reach": "instances"})}
"""Other names of an estimator, with the options they fix."""

GRAPHS_KEPT = 8


@cache
def _load() -> None:
    import graft_core.credit as package

    for info in pkgutil.iter_modules(package.__path__):
        if not info.name.startswith("_"):
            importlib.import_module(f"{package.__name__}.{info.name}")


def estimators() -> dict[str, Estimator]:
    """All estimators by name, aliases included, the best known first."""
    _load()
    known = dict(sorted(REGISTERED.items(), key=lambda item: (item[1].rank, item[0])))
    for alias, (name, fixed) in ALIASES.items():
        base = known[name]
        options = tuple(o.with_default(fixed[o.name]) if o.name in fixed else o for o in base.options)
        words = ", ".join(f"{key}={value}" for key, value in fixed.items())
        known[alias] = Estimator(
            alias, f"{base.title} ({words})", f"{base.name} with {words}", base.source, base.apply, options, base.needs,
            base.uses, False, tuple(fixed.items()), base.rank + 1,
        )
    return known


def graph_of(
    batch: RolloutBatch, rules: Sequence[str] = ("exact",), actions: str = "parsed", sinks: str = "split"
) -> TrajectoryGraph:
    """The batch's graph under the given rules, built once and remembered on the batch (the last few)."""
    key = ("graph", tuple(rules), actions, sinks)
    if key not in batch.memo:
        graphs = [k for k in batch.memo if k[0] == "graph"]
        if len(graphs) >= GRAPHS_KEPT:
            batch.memo.pop(graphs[0], None)
        batch.memo[key] = build_graph(batch, rules, actions, sinks)
    graph: TrajectoryGraph = batch.memo[key]
    return graph


def missing_needs(batch: RolloutBatch, wanted: Estimator) -> str:
    """Why this batch does not allow an estimator, in one sentence; empty where it does."""
    for column in wanted.needs:
        if batch.steps.column(column).null_count == batch.n_steps:
            return f"{wanted.name} needs the step column {column!r}, which this file does not have"
    return ""


def unavailable(batch: RolloutBatch, name: str, **options: Any) -> str:
    """Why `name` cannot be computed on this batch, in one sentence; empty where it can."""
    try:
        estimate(batch, name, **options)
    except GraftError as error:
        return str(error)
    return ""


def estimate(
    batch: RolloutBatch,
    name: str,
    *,
    rules: Sequence[str] = ("exact",),
    actions: str = "parsed",
    sinks: str = "split",
    graph: TrajectoryGraph | None = None,
    values: Values | None = None,
    **options: Any,
) -> FloatArray:
    """Credit of every step under one estimator: float64[n_steps] in batch order, NaN where undefined.

    rules, actions, sinks: how states, actions and ends are merged (ignored where `graph` is given). values: node
    values to use instead of solving them (their weighting and rewards then hold, and their gamma wherever values are
    used). Other options: see
    `estimators()[name].options` and weighting, rewards, solver, prior. Raises `UsageError` for unknown names or values,
    `GroupMissingError` where groups were only assumed, `NotComputableError` where the batch lacks something.
    """
    wanted: Estimator = pick(estimators(), name, "estimator")
    value_names = [option.name for option in VALUE_OPTIONS]
    value_options = {key: options.pop(key) for key in value_names if key in options}
    for option in VALUE_OPTIONS:
        if option.name in value_options:
            option.check(value_options[option.name])
    resolved = wanted.resolve({key: value for key, value in options.items() if value is not None})
    _hold_fixed(wanted, resolved)
    if values is not None:
        value_options = _follow(values, value_options)
    reason = missing_needs(batch, wanted)
    if reason:
        raise NotComputableError(reason)
    if wanted.uses != "columns":
        batch.require_groups()
    given_graph = graph
    inputs = Inputs(
        batch,
        resolved,
        lambda: given_graph if given_graph is not None else graph_of(batch, rules, actions, sinks),
        value_options,
        values,
        resolved["gamma"] if options.get("gamma") is not None else None,
    )
    credit = wanted.apply(inputs)
    if not (ours(wanted.apply) and credit.flags.writeable and credit.base is None):
        credit = np.array(credit, dtype=np.float64)  # what we write into must be nobody's
    if not isinstance(inputs.known_steps, slice):
        credit[~batch.step_known] = np.nan
    if resolved.get("clip") is not None:
        np.clip(credit, -resolved["clip"], resolved["clip"], out=credit)
    rows: FloatArray = batch.to_rows(credit)
    return rows


def _hold_fixed(wanted: Estimator, resolved: Mapping[str, Any]) -> None:
    for key, value in wanted.fixed:
        if resolved[key] != value:
            raise UsageError(f"{wanted.name} fixes {key} to {value!r}; {resolved[key]!r} is not allowed")


def _follow(values: Values, given: Mapping[str, Any]) -> dict[str, Any]:
    """Weighting, rewards, solver and prior as the given values were solved with; a contradiction is a `UsageError`."""
    own = {"weighting": values.weighting, "rewards": values.rewards, "solver": values.solver, "prior": values.prior}
    for key, value in given.items():
        if own[key] != value:
            raise UsageError(f"{key} {value!r} contradicts the given values, solved with {own[key]!r}")
    return own
