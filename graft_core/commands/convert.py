"""`graft convert PATH -o OUT`: any readable rollouts as canonical JSONL or Parquet, without loss."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from graft_core.commands._common import Command, add_input, load_input
from graft_core.errors import UsageError


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="OUT.jsonl or OUT.parquet")


def _run(given: argparse.Namespace) -> int:
    from graft_core.exports import refuse_overwriting
    from graft_core.formats.write import write_jsonl, write_parquet

    writers = {".jsonl": write_jsonl, ".parquet": write_parquet}
    suffix = Path(given.output).suffix
    if suffix not in writers:
        raise UsageError(f"{given.output}: expected an output name ending in {' or '.join(writers)}")
    batch, report = load_input(given)
    refuse_overwriting(given.output, report.files)
    writers[suffix](batch, Path(given.output))
    print(
        f"{given.output}: {batch.n_rollouts} rollouts, {batch.n_steps} steps; "
        f"{report.rejected} of {report.read} records rejected",
        file=sys.stderr,
    )
    return 0


COMMAND = Command("convert", "write rollouts as canonical JSONL or Parquet", _arguments, _run, rank=5)
