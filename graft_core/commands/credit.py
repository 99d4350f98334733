"""`graft credit PATH --estimator NAME`: one row per step with the credit of every named estimator."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from graft_core.commands._common import Command, add_input, add_settings, load_input, read_settings, tell_doubts
from graft_core.credit import estimators
from graft_core.credit.estimate import graph_of
from graft_core.errors import InputError, UsageError
from graft_core.registry import pick
from graft_core.rollouts import FloatArray, RolloutBatch
from graft_core.settings import Settings
from graft_core.values import solve_values

SUFFIXES = (".jsonl", ".csv", ".parquet")


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument(
        "--estimator", action="append", default=[], metavar="NAME",
        help=f"repeat for several, or 'all' [{', '.join(estimators())}]",
    )
    parser.add_argument("--values", action="store_true", help="add the column 'value': V of the step's node")
    parser.add_argument("-o", "--output", metavar="OUT", help="write to OUT.jsonl, .csv or .parquet instead of stdout")
    add_settings(parser)


def _columns(batch: RolloutBatch, settings: Settings, given: argparse.Namespace) -> dict[str, FloatArray]:
    columns: dict[str, FloatArray] = {}
    wanted = list(estimators()) if "all" in given.estimator else given.estimator
    for name in dict.fromkeys(wanted):
        try:
            columns[name] = settings.credit(batch, name)
        except InputError as error:
            if "all" not in given.estimator:
                raise
            print(f"graft: no column {name}: {error}", file=sys.stderr)
    if given.values:
        graph = graph_of(batch, **settings.graph_words)
        gamma = dict(settings.given).get("gamma", 0.99)
        columns["value"] = batch.to_rows(solve_values(graph, gamma=gamma, **settings.value_words).v[graph.src])
    return columns


def _words(settings: Settings, columns: dict[str, Any]) -> dict[str, Any]:
    resolved = {name: settings.resolved(name) for name in columns if name in estimators()}
    return {**settings.graph_words, **settings.value_words, "estimators": resolved}


def _run(given: argparse.Namespace) -> int:
    from graft_core.exports import refuse_overwriting, write_rows

    for name in given.estimator:
        if name != "all":
            pick(estimators(), name, "estimator")
    if not given.estimator and not given.values:
        raise UsageError("nothing to compute: expected --estimator NAME, --estimator all or --values")
    if given.output and Path(given.output).suffix not in SUFFIXES:
        raise UsageError(f"{given.output}: expected an output name ending in {', '.join(SUFFIXES)}")
    named = list(estimators()) if "all" in given.estimator else given.estimator
    settings = read_settings(given, named, also=["gamma"] if given.values else [])
    batch, report = load_input(given)
    if given.output:
        refuse_overwriting(given.output, report.files)
    tell_doubts(report)
    columns = _columns(batch, settings, given)
    loaded = {"group_by": given.group_by, "success_when": batch.memo.get("success_when")}
    write_rows(batch, columns, given.output, report.files, {**_words(settings, columns), **loaded})
    return 0


COMMAND = Command("credit", "compute credit per step with one or more estimators", _arguments, _run, rank=4)
