"""Compile what the app needs, once per machine: `python -m graft_core.warm`.

The compiled loops are cached on disk (numba), so that the first picture does not wait for the compiler. Safe to run
again; takes about half a minute on the first run and a second or two later.
"""

from __future__ import annotations

import sys
import time

from graft_core.rollouts import ROLLOUT_SCHEMA, STEP_SCHEMA, TEXT_SCHEMA, RolloutBatch, table_from_columns


def tiny_batch() -> RolloutBatch:
    """Three rollouts with a loop, a shared moment and both outcomes: enough to touch every compiled loop."""
    texts = ["start", "hall", "door", "won", "lost", "go", "open", "back"]
    paths = [([0, 1, 0, 2], [5, 7, 5, 6], 3, 1.0), ([0, 2], [5, 7], 4, 0.0), ([0, 2], [5, 6], 3, 1.0), ([0, 1], [5, 5], 4, 0.0)]
    steps: dict[str, list[int]] = {"rollout": [], "step": [], "observation": [], "action": []}
    for row, (observations, actions, _, _) in enumerate(paths):
        for step, (observation, action) in enumerate(zip(observations, actions, strict=True)):
            for name, value in zip(steps, (row, step, observation, action), strict=True):
                steps[name].append(value)
    n = len(paths)
    rollouts = {
        "group_id": ["warm"] * n, "rollout_id": [f"r{i}" for i in range(n)], "outcome": [path[3] for path in paths],
        "n_steps": [len(path[0]) for path in paths], "final_observation": [path[2] for path in paths],
        "order_doubtful": [False] * n, "group_assumed": [False] * n,
    }
    return RolloutBatch(
        table_from_columns(rollouts, ROLLOUT_SCHEMA, n),
        table_from_columns(steps, STEP_SCHEMA, len(steps["step"])),
        table_from_columns({"id": list(range(len(texts))), "text": texts}, TEXT_SCHEMA, len(texts)),
        "warm",
    )


def warm() -> float:
    """Run the usual analyses on a tiny batch; returns the seconds it took."""
    from graft_core.credit import estimators, unavailable
    from graft_core.insight import describe, findings
    from graft_core.insight.why import why

    begun = time.perf_counter()
    batch = tiny_batch()
    found = findings(batch)
    why(found, 0)
    describe(batch)
    for name in estimators():
        unavailable(batch, name)
    return time.perf_counter() - begun


if __name__ == "__main__":
    print("Compiling (once on this machine) ...", flush=True)
    sys.stdout.write(f"Ready after {warm():.0f} s.\n")
