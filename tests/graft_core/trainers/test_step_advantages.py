"""Credit from a trainer's arrays equals credit from a file, in whatever order the steps lie."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import graft_core as gc
from graft_core.errors import InputError


def arrays(path: Path) -> dict[str, list[object]]:
    """The columns of a vector's steps (rollouts without steps have no place in arrays of steps)."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [row for row in rows if row.get("step") is not None]
    names = {
        "group_id": "group_id", "rollout_id": "rollout_id", "step": "step", "state": "observation", "action": "action",
        "reward": "reward", "outcome": "outcome", "next_state": "next_observation", "terminated": "terminated",
        "truncated": "truncated",
    }
    return {ours: [row.get(theirs) for row in rows] for ours, theirs in names.items()}


@pytest.mark.parametrize("name", ["hand", "grid", "slip", "conflicts", "wide", "scores"])
@pytest.mark.parametrize("method", ["graft", "graft_td", "grpo", "gigpo"])
def test_the_same_as_from_the_file(vectors: Path, name: str, method: str) -> None:
    path = vectors / f"{name}.jsonl"
    credit = gc.step_advantages(**arrays(path), method=method)
    assert np.allclose(credit, gc.estimate(gc.load(path), method), atol=1e-12, equal_nan=True)


def test_any_order_and_a_mapping_of_outcomes(vectors: Path) -> None:
    given = arrays(vectors / "grid.jsonl")
    plain = gc.step_advantages(**given, method="graft_td")
    shuffled = np.random.default_rng(1).permutation(len(plain))
    mixed = {name: [values[i] for i in shuffled] for name, values in given.items()}
    outcomes = dict(zip(zip(given["group_id"], given["rollout_id"], strict=True), given["outcome"], strict=True))
    mixed["outcome"] = outcomes  # type: ignore[assignment]
    assert np.allclose(gc.step_advantages(**mixed, method="graft_td"), plain[shuffled], atol=1e-12)


def test_without_outcomes_the_rewards_are_summed(vectors: Path) -> None:
    given = arrays(vectors / "hand.jsonl")
    expected = gc.step_advantages(**given, method="dr_grpo")
    del given["outcome"]
    assert np.allclose(gc.step_advantages(**given, method="dr_grpo"), expected)


def test_unknown_outcomes_are_nan_and_contradictions_an_error() -> None:
    given = {"group_id": [0, 0, 0], "rollout_id": [1, 2, 3], "step": [0, 0, 0], "state": ["s"] * 3, "action": ["a"] * 3}
    credit = gc.step_advantages(**given, outcome=[1.0, 0.0, None], method="dr_grpo")
    assert credit[:2].tolist() == [0.5, -0.5]
    assert np.isnan(credit[2])
    twice = {**given, "rollout_id": [1, 1, 3], "step": [0, 1, 0]}
    with pytest.raises(InputError, match="rollout 1 of group 0 has the outcomes 1 and 0"):
        gc.step_advantages(**twice, outcome=[1.0, 0.0, 0.0])
    with pytest.raises(InputError, match="state has 2 entries"):
        gc.step_advantages(**{**given, "state": ["s", "s"]}, outcome=[1, 0, 0])
