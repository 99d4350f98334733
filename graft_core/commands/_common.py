"""What several subcommands share: the command's record, the input arguments, and the option flags."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from graft_core.commands._progress import reading_line
from graft_core.credit import estimators
from graft_core.errors import UsageError
from graft_core.options import Option
from graft_core.rollouts import LoadReport, RolloutBatch
from graft_core.settings import DATA_OPTIONS, Settings, credit_options


@dataclass(frozen=True)
class Command:
    """One subcommand: its name, one line of help, its arguments, and what it does (returns the exit status)."""

    name: str
    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    rank: int = 100


def add_input(parser: argparse.ArgumentParser) -> None:
    """PATH ... and how rollouts are grouped."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file or a directory of rollouts; several are one batch")
    parser.add_argument(
        "--group-by",
        metavar="G",
        help="what makes rollouts one task: file, task, column:NAME (or NAME+NAME), regex:PATTERN or actions",
    )
    parser.add_argument(
        "--success-when",
        metavar="RULE",
        help="which rollouts succeeded: NAME OP NUMBER, such as 'reward >= 1' (a column or metadata key; default outcome >= 1)",
    )


def load_input(given: argparse.Namespace) -> tuple[RolloutBatch, LoadReport]:
    """Load what the command names; how far it got stands on standard error meanwhile where that is a terminal."""
    from graft_core.formats import load

    line = reading_line()
    try:
        return load(given.paths, group_by=given.group_by, report=True, success_when=given.success_when, progress=line)
    finally:
        if line is not None:
            line.clear()


def _flag(parser: argparse.ArgumentParser, option: Option) -> None:
    flags = dict.fromkeys([f"--{option.name.replace('_', '-')}", f"--{option.name}"])
    default = "" if option.default is None else f" (default {option.default})"
    choices = f" [{', '.join(option.choices)}]" if option.choices else ""
    text = (option.meaning + choices + default).replace("%", "%%")
    parser.add_argument(*flags, dest=option.name, metavar=option.name[0].upper(), help=text)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Flags for every option of `Settings`, built from the registries."""
    from graft_core.states.compose import action_rules, rules

    names = ", ".join(f"{r.name}:{r.parameter}" if r.parameter else r.name for r in rules().values())
    parser.add_argument(
        "--rule",
        action="append",
        metavar="R",
        dest="rules",
        help=f"when two moments are the same; repeat to compose, left to right [{names}] (default exact)".replace("%", "%%"),
    )
    for option in DATA_OPTIONS.values():
        if option.name == "actions":
            words = ", ".join(action_rules())
            parser.add_argument("--actions", metavar="A", help=f"{option.meaning} [{words}] (default {option.default})")
        else:
            _flag(parser, option)
    group = parser.add_argument_group("estimator options", "each applies to every named estimator that has it")
    for option in credit_options().values():
        _flag(group, option)  # type: ignore[arg-type]


def read_settings(given: argparse.Namespace, names: Iterable[str], also: Iterable[str] = (), **more: Any) -> Settings:
    """Settings from the flags. An estimator option that none of `names` has (nor `also`) is a `UsageError`."""
    fields: dict[str, Any] = {}
    for name, option in DATA_OPTIONS.items():
        if getattr(given, name) is not None:
            fields[name] = option.check(getattr(given, name))
    if given.rules:
        fields["rules"] = tuple(given.rules)
    chosen = list(names)
    options: dict[str, Any] = {}
    for name, option in credit_options().items():
        word = getattr(given, name)
        if word is None:
            continue
        owners = [e for e in chosen if e in estimators() and estimators()[e].option(name)]
        if not owners and name not in also:
            raise UsageError(f"--{name}: none of the estimators named has it ({', '.join(chosen) or 'none named'})")
        options[name] = option.check(word)
    return Settings(**fields, **more).with_options(**options)


DOUBTS = ("order_doubtful", "group_missing", "observations_missing", "group_ids_reused", "duplicate_rollouts")
"""Warnings that bear on every credit; the others stand in `graft inspect`."""


def tell_doubts(report: LoadReport) -> None:
    """What makes credit on this input unreliable, and how many records were rejected: one line each on stderr."""
    for warning in report.warnings:
        if warning.code in DOUBTS:
            print(f"graft: warning: {warning.sentence} ({warning.code}, {warning.count} times)", file=sys.stderr)
            if warning.code == "order_doubtful":
                print("graft: warning: credit read off the graph is unreliable where steps are out of order", file=sys.stderr)
    if report.rejected:
        print(
            f"graft: warning: {report.rejected} of {report.read} records were rejected; graft inspect says why", file=sys.stderr
        )


def json_text(data: Any) -> str:
    """One JSON document; NaN becomes null."""
    flags = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(data, option=flags).decode()


def report_words(report: LoadReport) -> dict[str, Any]:
    """The load report as plain data."""
    return {
        "files": list(report.files),
        "formats": list(report.formats),
        "read": report.read,
        "accepted": report.accepted,
        "repaired": report.repaired,
        "rejected": report.rejected,
        "rejections": [{"where": r.where, "reason": r.reason, "records": r.records} for r in report.rejections],
        "warnings": [w.as_dict() for w in report.warnings],
        "notes": list(report.notes),
    }
