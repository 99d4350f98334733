"""`graft bench`: how quick the library is here, measured against its targets and against other ways of doing the work."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from graft_core.commands._common import Command, json_text
from graft_core.errors import UsageError

if TYPE_CHECKING:
    from graft_core.bench.rows import Line

JUDGED = (
    "Times are judged by the smaller of wall and CPU time (on a busy machine the wall clock counts what others do), growth by\n"
    "the clock that grew least, ratios by CPU time. Every timing is on a batch not analysed before; compiled code was\n"
    "warmed on a small one first."
)


def _arguments(parser: argparse.ArgumentParser) -> None:
    limits = "a training batch takes over 20 ms, Parquet to five estimators over 3 s, or 10x the steps over 12x the time"
    parser.add_argument("--check", action="store_true", help=f"exit 1 when {limits}")
    parser.add_argument("--quick", action="store_true", help="small batches, to see that it runs; says nothing about speed")
    parser.add_argument("--only", action="append", metavar="ROW", help="measure this row only; repeat for several (see below)")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.epilog = (
        "Rows: keys, values, estimator, parquet, train, growth (10 M steps: up to 7 GB of memory), findings, import, start."
    )


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value * 1e3:.1f} ms" if value < 0.1 else f"{value:.2f} s"


def _words(line: Line) -> str:
    """One line of the table, what it is compared with indented below."""
    if line.figure is not None:
        target, measured = f"<= {line.target:g}x" if line.target is not None else "", f"{line.figure:.1f}x"
    else:
        target, measured = f"<= {_seconds(line.target)}" if line.target is not None else "", ""
    verdict = {None: "", True: "ok", False: "MISSED"}[line.met]
    peak = f"{line.peak / 1e6:,.0f} MB <= {line.peak_allowed / 1e6:,.0f} MB" if line.peak and line.peak_allowed else ""
    cells = f"{line.work:<66} {_seconds(line.wall):>9} {_seconds(line.cpu):>9} {measured:>6} {target:>10} {verdict:<6} {peak}"
    below = [
        f"    {peer.ratio:,.1f}x quicker than {peer.name} ({_seconds(peer.seconds)}{'; ' + peer.note if peer.note else ''})"
        for peer in line.peers
    ]
    return "\n".join([cells.rstrip(), *below, *(f"    {note}" for note in line.notes)])


def _run(given: argparse.Namespace) -> int:
    from graft_core.bench.rows import QUICK, ROWS, Sizes, machine, measure
    from graft_core.registry import pick

    if given.check and given.quick:
        raise UsageError("--check judges full sizes, --quick measures small ones: expected one of the two")
    names = list(dict.fromkeys(given.only or ROWS))
    for name in names:
        pick(ROWS, name, "row")
    here = machine()
    if not given.json:
        print(f"{here['cores']} cores, load {here['load'] or 0:.1f}, Python {here['python']}, numpy {here['numpy']}, "
              f"numba {here['numba']}, pyarrow {here['pyarrow']}, pandas {here['pandas']}\n{JUDGED}\n")  # fmt: skip
        print(f"{'work':<66} {'wall':>9} {'CPU':>9} {'':>6} {'target':>10} {'':<6} peak memory")
    lines = []
    for line in measure(names, QUICK if given.quick else Sizes()):
        lines.append(line)
        if not given.json:
            print(_words(line), flush=True)
    missed = [line.work for line in lines if line.missed]
    if given.json:
        print(json_text({"machine": here, "quick": given.quick, "lines": [line.as_dict() for line in lines], "missed": missed}))
    if not given.check:
        return 0
    for work in missed:
        print(f"graft: missed: {work}", file=sys.stderr)
    return 1 if missed else 0


COMMAND = Command("bench", "measure how quick the library is here, beside its targets and peers", _arguments, _run, rank=90)
