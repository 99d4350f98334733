"""Small groups for the tests of suspect merges."""

from __future__ import annotations

import numpy as np
from row_batches import batch_of, walk

from graft_core.graph import TrajectoryGraph, build_graph


def graph_of(*paths: str, ends: str = "") -> TrajectoryGraph:
    """A group of rollouts "A:x B:y"; `ends` has one letter per rollout, lower case = cut off there."""
    rows = []
    for i, path in enumerate(paths):
        end = ends[i] if ends else "E"
        rows += walk(f"r{i}", path, 1.0, end.upper(), truncated=end.islower(), terminated=not end.islower())
    return build_graph(batch_of(rows))


def random_walks(n: int, seed: int) -> list[str]:
    """Walks without a memory over four states."""
    pick = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        here, path = 0, []
        while here < 4:
            path.append(f"{'ABCD'[here]}:x")
            here = int(pick.choice(5, p=[(0.2, 0.3, 0.2, 0.2, 0.1), (0.3, 0.1, 0.3, 0.1, 0.2)][here % 2]))
        made.append(" ".join(path))
    return made
