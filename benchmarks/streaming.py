"""Reading a large canonical JSONL file: time beside pyarrow's own JSON reader, and peak memory beside the text in the file.

    python benchmarks/streaming.py [MEGABYTES] [--keep FOLDER]

Default: 1,000 MB, written into a temporary folder (or into FOLDER, where the file stays). Each reader runs in a process of its
own. Targets: at most 3 times pyarrow's time, and at most 3 times the decoded text + 300 MB. Decoded text: the bytes of all
observations and actions, every row counted. A time is the smaller of wall and processor time over pyarrow's same clock: on a
busy machine the wall clock counts what others do. Exit status 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import orjson

TASKS_AT_ONCE = 50
ROLLOUTS, STEPS, PLACES = 8, 25, 40
PROSE = "You are in a room with a table, a shelf and two drawers. On the table you see a mug, a book and a key. "
MOST_TIME, MOST_TEXT, MORE_BYTES = 3.0, 3.0, 300e6


def write(path: Path, size: int) -> int:
    """Write about `size` bytes of household-like steps; returns the bytes of the texts in them."""
    text = task = 0
    with path.open("wb") as stream:
        while stream.tell() < size:
            lines = []
            for _ in range(TASKS_AT_ONCE):
                task += 1
                for rollout in range(ROLLOUTS):
                    for step in range(STEPS):
                        place = (step * (rollout + 3) + task) % PLACES
                        seen = f"task {task}, place {place}: {PROSE[place:]}{PROSE[: 50 + place]}"
                        done = f"go to place {(place + rollout) % PLACES}"
                        text += len(seen) + len(done)
                        row: dict[str, Any] = {"group_id": f"task {task}", "rollout_id": f"r{rollout}", "step": step}
                        row |= {"observation": seen, "action": done, "reward": 0.0, "logprob": -0.25 * place}
                        if step == STEPS - 1:
                            row |= {"outcome": float(rollout % 2), "terminated": True}
                        lines.append(orjson.dumps(row))
            stream.write(b"\n".join([*lines, b""]))
    return text


def read(reader: str, path: str) -> dict[str, Any]:
    """Read a file with one reader: its size in rows, time of both clocks, peak memory of this process."""
    if reader == "pyarrow":
        import pyarrow.json

        begun, spent = time.perf_counter(), time.process_time()
        rows = pyarrow.json.read_json(path).num_rows
    else:
        import graft_core

        begun, spent = time.perf_counter(), time.process_time()
        rows = graft_core.load(path).n_steps
    wall, cpu = time.perf_counter() - begun, time.process_time() - spent
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"rows": rows, "wall": wall, "cpu": cpu, "peak": peak}


def measure(reader: str, path: Path) -> dict[str, Any]:
    """`read` in a process of its own."""
    command = [sys.executable, __file__, "--read", reader, str(path)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


def report(path: Path, text: int) -> bool:
    """Print both readers and the ratios; whether both targets are met."""
    found = {reader: measure(reader, path) for reader in ("pyarrow", "graft")}
    ours, theirs = found["graft"], found["pyarrow"]
    print(f"{path.stat().st_size / 1e6:,.0f} MB, {ours['rows']:,} steps, {text / 1e6:,.0f} MB of text, "
          f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")  # fmt: skip
    print("| reader | wall s | CPU s | peak MB |\n|---|---|---|---|")
    for reader, one in found.items():
        print(f"| {reader} | {one['wall']:.2f} | {one['cpu']:.2f} | {one['peak'] / 1e6:,.0f} |")
    ratios = {clock: ours[clock] / theirs[clock] for clock in ("wall", "cpu")}
    allowed = MOST_TEXT * text + MORE_BYTES
    print(f"\ntime: {ratios['wall']:.2f}x by the wall clock, {ratios['cpu']:.2f}x of processor time (at most {MOST_TIME:g}x)")
    print(f"peak memory: {ours['peak'] / text:.2f}x the text; {ours['peak'] / 1e6:,.0f} MB of at most {allowed / 1e6:,.0f} MB")
    assert ours["rows"] == theirs["rows"], "both must read every row"
    return min(ratios.values()) <= MOST_TIME and ours["peak"] <= allowed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("megabytes", nargs="?", type=float, default=1000.0)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the file lies, and stays")
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        print(json.dumps(read(*given.read)))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        path = (given.keep or Path(temporary)) / f"steps-{given.megabytes:g}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        return 0 if report(path, write(path, int(given.megabytes * 1e6))) else 1


if __name__ == "__main__":
    sys.exit(main())
