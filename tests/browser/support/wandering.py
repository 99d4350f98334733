"""Made-up rollouts that merge, branch, turn back and wait, of any size."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa

from graft_core.rollouts import ROLLOUT_SCHEMA, STEP_SCHEMA, TEXT_SCHEMA, RolloutBatch

ROOMS = ("kitchen", "hall", "bedroom", "garage", "pantry", "cellar", "garden", "attic", "study", "porch")
THINGS = ("apple", "mug", "lamp", "knife", "plate", "key", "book", "towel", "pan", "egg")
VERBS = ("take", "open", "clean", "heat", "put", "look at", "go to", "close")
HOSTILE = (
    "<img src=x onerror=\"window.__ran=1;alert('ran')\">",
    "<script>window.__ran=1;alert('ran')</script>",
    "</script><svg onload=window.__ran=1>",
    "\u202ereversed\u202c \u0007bell \u200bhidden",
    '=HYPERLINK("http://example.com")',
)


def batch_of(rollouts: list[dict[str, Any]]) -> RolloutBatch:
    """A batch from plain rollouts: {"outcome", "final", "path": [(observation, action), ...]}."""
    ids: dict[str, int] = {}

    def text(words: str) -> int:
        return ids.setdefault(words, len(ids))

    heads, steps = [], []
    for row, rollout in enumerate(rollouts):
        for t, (observation, action) in enumerate(rollout["path"]):
            steps.append({"rollout": row, "step": t, "observation": text(observation), "action": text(action)})
        heads.append(
            {
                "group_id": "g0", "rollout_id": f"r{row}", "outcome": rollout["outcome"], "group_assumed": False,
                "n_steps": len(rollout["path"]), "final_observation": text(rollout["final"]), "order_doubtful": False,
                "terminated": True, "truncated": False, "source": f"made:{row}", "metadata": "{}",
            }
        )  # fmt: skip
    return RolloutBatch(
        rollouts=pa.Table.from_pylist(heads, schema=ROLLOUT_SCHEMA),
        steps=pa.Table.from_pylist(steps, schema=STEP_SCHEMA),
        texts=pa.Table.from_pylist([{"id": i, "text": words} for words, i in ids.items()], schema=TEXT_SCHEMA),
    )


def random_batch(n_nodes: int, hostile: bool, roots: bool) -> RolloutBatch:
    """The rollouts of `wander` as a batch."""
    return batch_of(wander(n_nodes, hostile, roots, max(6, n_nodes // 6)))


def write_rollouts(path: Path, rollouts: list[dict[str, Any]], task: str = "g0") -> Path:
    """Rollouts of one task as a canonical step file."""
    lines = []
    for row, rollout in enumerate(rollouts):
        ends = len(rollout["path"]) - 1
        for t, (observation, action) in enumerate(rollout["path"]):
            line = {"group_id": task, "rollout_id": f"r{row}", "step": t, "observation": observation, "action": action,
                    "outcome": rollout["outcome"], "terminated": True}  # fmt: skip
            lines.append(json.dumps(line | ({"next_observation": rollout["final"]} if t == ends else {})))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def wander(n_nodes: int, hostile: bool, roots: bool, n_rollouts: int) -> list[dict[str, Any]]:
    """Rollouts that wander over about `n_nodes` states: merging, branching, turning back, waiting."""
    rng = random.Random(n_nodes)
    width = max(2, round(n_nodes**0.5 / 1.4))
    depth = max(2, n_nodes // width)
    rollouts = []
    for number in range(n_rollouts):
        at, place, path = 0, (rng.randrange(3) if roots else 0), []
        while at < depth:
            choice = rng.choice((0, 0, 0, 1, 1, 2)) if rng.random() < 0.9 else 3 + rng.randrange(2)
            path.append((_state(at, place, hostile), _action(choice, at, place, hostile)))
            if choice == 3:
                continue
            at = max(at - 2, 0) if choice == 4 else at + 1
            stray = number % width if at == 1 else place + (0, 1, -1, 0, 0)[choice]
            place = min(max(stray, 0), width - 1)
        won = rng.random() < 0.25 + 0.5 * place / width
        unknown = number % 17 == 5
        final = f"The end of it, {ROOMS[place % 10]}." if number % 3 else "You solved it."
        rollouts.append({"path": path, "final": final, "outcome": None if unknown else float(won)})
    return rollouts


def _state(at: int, place: int, hostile: bool) -> str:
    if hostile and (at + place) % 3 == 0:
        return f"{HOSTILE[(at + place) % len(HOSTILE)]} {at}.{place}"
    room, thing = ROOMS[place % 10], THINGS[(at * 7 + place) % 10]
    return f"You are in the {room} {place}. You see a {thing}, a shelf {at} and nothing else of interest."


def _action(choice: int, at: int, place: int, hostile: bool) -> str:
    if hostile and (at + place) % 4 == 0:
        return HOSTILE[(at * 3 + place) % len(HOSTILE)]
    return f"{VERBS[choice]} {THINGS[(at + place) % 10]} {at % 4}"
