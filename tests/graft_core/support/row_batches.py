"""Batches from plain rows, and random ones: what the tests feed the library without its readers."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

from graft_core.rollouts import ROLLOUT_SCHEMA, STEP_SCHEMA, TEXT_SCHEMA, RolloutBatch, table_from_columns

ROLLOUT_FIELDS = ("outcome", "success", "terminated", "truncated", "final_value", "task_family", "train_step")
STEP_FIELDS = ("reward", "valid", "logprob", "value", "advantage")


def batch_of(rows: Iterable[dict[str, Any]], name: str = "rows") -> RolloutBatch:
    """A batch from rows of the canonical step file; the last non-null value of a rollout's field counts."""
    rollouts: dict[tuple[str, str], dict[str, Any]] = {}
    steps: list[dict[str, Any]] = []
    texts: dict[str, int] = {}

    def text(words: str | None) -> int | None:
        return None if words is None else texts.setdefault(words, len(texts))

    for row in rows:
        if "graft_format" in row:
            continue
        key = (row["group_id"], row["rollout_id"])
        rollout = rollouts.setdefault(key, {"n_steps": 0, "row": len(rollouts)})
        rollout.update({k: row[k] for k in ROLLOUT_FIELDS if row.get(k) is not None})
        if row.get("next_observation") is not None:
            rollout["final_observation"] = text(row["next_observation"])
        if row.get("step") is None:
            continue
        rollout["n_steps"] += 1
        step = {k: row[k] for k in STEP_FIELDS if row.get(k) is not None}
        step |= {"rollout": rollout["row"], "step": row["step"], "observation": text(row["observation"])}
        step |= {"action": text(row["action"]), "action_text": text(row.get("action_text"))}
        steps.append(step)

    def columns(records: Sequence[dict[str, Any]], names: Sequence[str]) -> dict[str, list[Any]]:
        return {n: [r.get(n) for r in records] for n in names if any(r.get(n) is not None for r in records)}

    made = columns(list(rollouts.values()), ROLLOUT_SCHEMA.names)
    made |= {"group_id": [g for g, _ in rollouts], "rollout_id": [r for _, r in rollouts]}
    made |= {"order_doubtful": [False] * len(rollouts), "group_assumed": [False] * len(rollouts)}
    return RolloutBatch(
        table_from_columns(made, ROLLOUT_SCHEMA, len(rollouts)),
        table_from_columns(columns(steps, STEP_SCHEMA.names), STEP_SCHEMA, len(steps)),
        table_from_columns({"id": list(range(len(texts))), "text": list(texts)}, TEXT_SCHEMA, len(texts)),
        name,
    )


def walk(rollout: str, path: str, outcome: float | None, final: str | None = None, **fields: Any) -> list[dict[str, Any]]:
    """Rows of one rollout: path "S:left L:back" means S, left, L, back and then `final`.

    Lists among `fields` are one value per step; other fields go on every row. `group` is the group, "g" if not given.
    """
    group = fields.pop("group", "g")
    rows = []
    for t, word in enumerate(path.split()):
        observation, action = word.split(":")
        row = {"group_id": group, "rollout_id": rollout, "step": t, "observation": observation, "action": action}
        row["outcome"] = outcome
        row |= {k: v[t] if isinstance(v, list) else v for k, v in fields.items()}
        rows.append(row)
    if not rows:
        rows = [{"group_id": group, "rollout_id": rollout, "step": None, "outcome": outcome, **fields}]
    elif final is not None:
        rows[-1]["next_observation"] = final
    return rows


def random_rows(seed: int, groups: int = 3, rollouts: int = 6, states: int = 6, **odds: float) -> list[dict[str, Any]]:
    """Random rollouts over few states: cycles, self-loops, stochastic moves, shared final states, turn limits.

    odds: `unknown` (share of unknown outcomes), `scores` (share of outcomes other than 0 and 1), `no_final`, `empty`,
    `forward` (1 = a tree-like walk that never returns). Every step has a reward.
    """
    pick = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for g in range(groups):
        for r in range(rollouts):
            outcome: float | None = float(pick.random() < 0.5)
            if pick.random() < odds.get("scores", 0.0):
                outcome = round(pick.uniform(-2, 3), 2)
            if pick.random() < odds.get("unknown", 0.0):
                outcome = None
            length = 0 if pick.random() < odds.get("empty", 0.0) else pick.randint(1, 9)
            here, path = pick.randrange(min(2, states)), []
            for _ in range(length):
                path.append(f"s{here}:{pick.choice('ab')}")
                here = min(here + pick.randint(0, 2), states) if pick.random() < 0.7 else pick.randrange(states)
            final = None if pick.random() < odds.get("no_final", 0.0) else f"s{here}"
            rewards = [round(pick.uniform(-1, 1), 2) for _ in path]
            truncated = pick.random() < 0.4
            rows += walk(
                f"r{r}", " ".join(path), outcome, final, group=f"g{g}", reward=rewards or None,
                truncated=truncated, terminated=not truncated,
            )  # fmt: skip
    return rows
