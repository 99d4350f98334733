"""The sample file: made again, the bytes are the same; and it shows what the first screen promises."""

from __future__ import annotations

import importlib.util
import json
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from graft_core.environments import WorldEnvironment
from graft_core.environments.household import household
from graft_core.environments.household_tasks import TASKS


@pytest.fixture(scope="module")
def script(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_household", root / "sample_data" / "make_household.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rollouts(root: Path) -> dict[tuple[str, str], list[dict[str, Any]]]:
    lines = (root / "sample_data" / "household.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0]) == {"graft_format": 1}
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for line in lines[1:]:
        row = json.loads(line)
        found[row["group_id"], row["rollout_id"]].append(row)
    return found


def test_the_script_writes_the_same_bytes_again(script: ModuleType, root: Path, tmp_path: Path) -> None:
    script.main([str(tmp_path / "again.jsonl")])
    kept = root / "sample_data" / "household.jsonl"
    assert (tmp_path / "again.jsonl").read_bytes() == kept.read_bytes()
    assert kept.stat().st_size < 600_000


def test_eight_tasks_of_eight_with_26_successes_and_two_that_teach_nothing(
    rollouts: dict[tuple[str, str], list[dict[str, Any]]],
) -> None:
    by_task: dict[str, list[float]] = defaultdict(list)
    for (group, _), steps in rollouts.items():
        by_task[group].append(steps[0]["outcome"])
        assert len({step["outcome"] for step in steps}) == 1
    assert set(by_task) == set(list(TASKS)[:8])
    assert all(len(outcomes) == 8 for outcomes in by_task.values())
    assert sum(map(sum, by_task.values())) == 26
    assert [task for task, outcomes in by_task.items() if len(set(outcomes)) == 1] == ["shelve book", "two for the desk"]
    assert [r for g, r in rollouts if g == "cool apple"] == [f"r{k}" for k in range(1, 9)]


def test_replaying_the_actions_gives_the_recorded_texts(rollouts: dict[tuple[str, str], list[dict[str, Any]]]) -> None:
    for (task, _), steps in rollouts.items():
        game = WorldEnvironment(household(task))
        text = game.reset(0)
        for k, step in enumerate(steps):
            assert step["step"] == k
            assert step["observation"] == text
            assert step["admissible"] == list(game.admissible())
            assert step["valid"] == (step["action"] in step["admissible"])
            text, reward, done = game.step(step["action"])
            assert step["reward"] == reward
            assert done == (step is steps[-1] and step["terminated"])
        assert steps[-1]["next_observation"] == text
        assert steps[-1]["success"] == game.success() == bool(steps[-1]["outcome"])
        assert steps[-1]["truncated"] == (len(steps) == 20 and not game.success())


def test_rollouts_share_states_and_go_in_circles(rollouts: dict[tuple[str, str], list[dict[str, Any]]]) -> None:
    steps = [(task, step["state"]) for (task, _), rows in rollouts.items() for step in rows]
    assert 0.5 < 1 - len(set(steps)) / len(steps) < 0.8
    circling = sum(len({s["state"] for s in rows}) < len(rows) for rows in rollouts.values())
    assert circling > 40
    assert 10 < len(steps) / len(rollouts) < 20
