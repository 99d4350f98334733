"""Damaged JSON documents: wrong types, missing keys, odd numbers. A batch that adds up, or one sentence."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from graft_core.errors import InputError
from graft_core.formats import load, write_jsonl

ODD: list[Any] = [
    None,
    True,
    -1,
    1.5,
    10**40,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\ud800",
    [],
    [1],
    {},
    {"a": [{}]},
    "9" * 5000,
]
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "content": "r"},
    {"role": "assistant", "content": "done"},
]
TAU = [
    {"task_id": t, "trial": k, "reward": 1.0, "info": {"task": {"user_id": "u"}}, "traj": CHAT} for t in (0, 1) for k in (0, 1)
]
STEP = {"step": 0, "observation": "o", "action": "<action>a</action>", "step_reward": 0.0, "advantage": 0.1, "entropy": 1.0}
VERL = {
    "global_step": 1,
    "trajectories": [{"traj_id": str(i), "success": True, "episode_reward": 1.0, "steps": [STEP, STEP]} for i in range(9)],
}
ROWS = [
    {"group_id": "g", "rollout_id": i, "step": s, "observation": "o", "action": "a", "reward": 0}
    for i in (1, 2)
    for s in (0, 1)
]


def damaged(value: Any, chance: random.Random) -> Any:
    """The value with one part, somewhere inside, replaced or left out."""
    if isinstance(value, dict) and value and chance.random() > 0.1:
        key = chance.choice(list(value))
        rest = {k: v for k, v in value.items() if k != key}
        return rest if chance.random() < 0.2 else {**value, key: damaged(value[key], chance)}
    if isinstance(value, list) and value and chance.random() > 0.1:
        at = chance.randrange(len(value))
        return [*value[:at], damaged(value[at], chance), *value[at + 1 :]]
    return chance.choice(ODD)


@pytest.mark.parametrize("document", [TAU, VERL, ROWS], ids=["tau-bench", "verl-agent", "canonical-list"])
def test_a_damaged_document_is_read_as_far_as_it_goes(tmp_path: Path, document: Any) -> None:
    chance, path, usable = random.Random(3), tmp_path / "damaged.json", 0
    for _ in range(150):
        value = document
        for _ in range(chance.randrange(1, 4)):
            value = damaged(value, chance)
        path.write_text(json.dumps(value, indent=1))
        try:
            batch, report = load(path, report=True)
        except InputError:
            continue
        usable += 1
        assert report.read == report.accepted + report.rejected
        write_jsonl(batch, tmp_path / "copy.jsonl")
        assert load(tmp_path / "copy.jsonl").equals(batch)
    assert usable > 30
