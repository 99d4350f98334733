"""Small graphs written as words: states and actions in turn."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from graft_core.graph import TrajectoryGraph, build_graph
from graft_core.rollouts import ROLLOUT_SCHEMA, STEP_SCHEMA, TEXT_SCHEMA, RolloutBatch


def graph_of(*rollouts: tuple[str, float | None] | tuple[str, float | None, str]) -> TrajectoryGraph:
    """A graph from ("s0 action s1 action s2", outcome[, group]): states and actions in turn, the last state final."""
    ids: dict[str, int] = {}
    heads: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    for row, (words, outcome, *group) in enumerate(rollouts):
        parts = [ids.setdefault(word, len(ids)) for word in words.split()]
        pairs = zip(parts[0::2], parts[1::2])
        steps += [{"rollout": row, "step": t, "observation": s, "action": a} for t, (s, a) in enumerate(pairs)]
        heads.append(
            {
                "group_id": group[0] if group else "g", "rollout_id": f"r{row}", "outcome": outcome,
                "n_steps": len(parts) // 2, "final_observation": parts[-1], "terminated": True, "truncated": False,
                "order_doubtful": False, "group_assumed": False, "source": f"line:{row}", "metadata": "{}",
            }
        )  # fmt: skip
    texts = [{"id": number, "text": word} for word, number in ids.items()]
    return build_graph(
        RolloutBatch(
            pa.Table.from_pylist(heads, schema=ROLLOUT_SCHEMA),
            pa.Table.from_pylist(steps, schema=STEP_SCHEMA),
            pa.Table.from_pylist(texts, schema=TEXT_SCHEMA),
        )
    )
