"""The table of speeds as Markdown, from a run of `graft bench --json`.

    graft bench --json > benchmarks/measured.json
    python benchmarks/table.py benchmarks/measured.json > benchmarks/measured.md

Without a file it reads standard input. Nothing is measured here: `graft_core/bench` does that.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HEAD = "| work | wall | CPU | target | beside it | peak memory |\n|---|---|---|---|---|---|"


def seconds(value: float | None) -> str:
    """'12.3 ms', '1.23 s', or nothing."""
    if value is None:
        return ""
    return f"{value * 1e3:.1f} ms" if value < 0.1 else f"{value:.2f} s"


def row(line: dict[str, Any]) -> str:
    """One measured line as a row of the table."""
    figure, target = line["figure"], line["target"]
    if figure is not None:
        goal = f"{figure:.1f}x for 10x the steps" + (f", at most {target:g}x" if target is not None else "")
    else:
        goal = f"at most {seconds(target)}" if target is not None else ""
    if line["met"] is False:
        goal += " (missed)"
    peers = "; ".join(f"{p['name']} {seconds(p['seconds'])} ({p['ratio']:,.1f}x)" for p in line["peers"])
    peak = f"{line['peak'] / 1e6:,.0f} MB, at most {line['peak_allowed'] / 1e6:,.0f}" if line["peak"] else ""
    return f"| {line['work']} | {seconds(line['wall'])} | {seconds(line['cpu'])} | {goal} | {peers} | {peak} |"


def table(run: dict[str, Any]) -> str:
    """The whole document: the machine, then one row per line."""
    here = run["machine"]
    words = (
        f"{here['cores']} cores, load {here['load'] or 0:.1f}, Python {here['python']}, numpy {here['numpy']}, "
        f"numba {here['numba']}, pyarrow {here['pyarrow']}. Ratios are by CPU time, in one run."
    )
    return "\n".join([words, "", HEAD, *map(row, run["lines"])])


if __name__ == "__main__":
    source = Path(sys.argv[1]).read_text() if len(sys.argv) > 1 else sys.stdin.read()
    print(table(json.loads(source)))
