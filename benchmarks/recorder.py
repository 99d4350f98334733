"""What recording a step costs, in microseconds: wall time of `Recorder.step`, median and 99th percentile.

    python benchmarks/recorder.py [FOLDER]

FOLDER is where the run is written (default: a temporary one); name one on the disk that your runs use.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from graft_core.runs import record

STEPS = 20_000
LENGTH = 25
SIZES = (200, 2_000, 20_000)
TARGET = 50.0


def measure(folder: Path, size: int, flush_every: int) -> np.ndarray:
    """Microseconds of each recorded step with observations of `size` bytes; ends and training steps come in between."""
    texts = [f"room {i}: " + "you see a thing. " * (size // 17) for i in range(50)]
    took = np.empty(STEPS)
    with record(folder / f"run_{size}_{flush_every}", flush_every=flush_every) as rec:
        for number in range(STEPS):
            rollout, step = divmod(number, LENGTH)
            if number % (LENGTH * 64) == 0:
                rec.train_step(number // (LENGTH * 64) + 1)
            group, text = f"task {rollout // 8}", texts[number % 50]
            start = time.perf_counter()
            rec.step(group, rollout, step, text, "take apple", reward=0.0, state="4:2", logprob=-0.25)
            took[number] = time.perf_counter() - start
            if step == LENGTH - 1:
                rec.end(group, rollout, 1.0, terminated=True, next_observation="done")
    return took * 1e6


def main(folder: Path) -> None:
    print("| bytes of an observation | flush_every | mean us | median us | 99 % us | target |")
    print("|---|---|---|---|---|---|")
    for size in SIZES:
        for flush_every in (1, 64):
            took = measure(folder, size, flush_every)
            mean, middle, high = took.mean(), *np.percentile(took, [50, 99])
            print(f"| {size:,} | {flush_every} | {mean:.1f} | {middle:.1f} | {high:.1f} | at most {TARGET:.0f} |")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
