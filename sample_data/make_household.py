"""Makes `household.jsonl`: eight household tasks, eight rollouts each, by a scripted, distracted agent.

Run `python sample_data/make_household.py [OUT]`. Running it again writes the same bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from graft_core.environments.base import WorldEnvironment, draw
from graft_core.environments.household import household
from graft_core.environments.household_tasks import TASKS
from graft_core.environments.policies import scripted_policy
from graft_core.environments.tables import Floats, Table, compile_world

# The first seed with 26 successes and two tasks of equal outcomes; not chosen by how well any method does.
SEED = 5
GROUP_SIZE = 8
MAX_STEPS = 20
# How often the agent does what brings it closer. One task is too easy and one too hard: these teach nothing.
SKILL = {
    "cool apple": 0.42,
    "heat mug": 0.45,
    "clean plate": 0.35,
    "shelve book": 0.8,
    "cool glass": 0.38,
    "heat bread": 0.48,
    "clean fork": 0.35,
    "two for the desk": 0.3,
}
TEMPTING = {"look": 0.35, "go": 0.8, "eat": 0.6, "put": 0.9, "heat": 0.9}
NOT_UNDERSTOOD = 0.02  # share of turns in which the agent says something that the game does not take
NONSENSE = ("examine room", "use fridge", "take everything", "open window")


def rollout(
    table: Table, policy: Floats, rng: np.random.Generator, seed: int
) -> tuple[list[dict[str, Any]], bool, bool]:
    """Play one rollout; returns its steps, whether it succeeded and whether the game ended by itself."""
    game = WorldEnvironment(table.world)
    observation, done = game.reset(seed), False
    steps: list[dict[str, Any]] = []
    while not done and len(steps) < MAX_STEPS:
        state, admissible = game.state_key(), game.admissible()
        number = table.numbers[state]
        shares = policy[table.pair_start[number] : table.pair_start[number + 1]]
        valid = rng.random() >= NOT_UNDERSTOOD
        action = admissible[draw(shares, rng)] if valid else NONSENSE[int(rng.integers(len(NONSENSE)))]
        after, reward, done = game.step(action)
        steps.append(
            {
                "step": len(steps),
                "observation": observation,
                "action": action,
                "reward": reward,
                "valid": valid,
                "admissible": list(admissible),
                "state": table.keys[number],
            }
        )
        observation = after
    steps[-1] |= {"next_observation": observation, "next_state": table.keys[table.numbers[game.state_key()]]}
    return steps, game.success(), done


def make_rows(seed: int = SEED) -> Iterator[dict[str, Any]]:
    """All rows of the file, without its first line."""
    for number, (name, task) in enumerate(TASKS.items()):
        if name not in SKILL:
            continue
        table = compile_world(household(name))
        policy = scripted_policy(table, SKILL[name], TEMPTING)
        for r in range(GROUP_SIZE):
            steps, success, ended = rollout(table, policy, np.random.default_rng([seed, number, r]), seed)
            for step in steps:
                yield {
                    "group_id": name,
                    "rollout_id": f"r{r + 1}",
                    **step,
                    "outcome": 1.0 if success else 0.0,
                    "success": success,
                    "terminated": ended,
                    "truncated": not ended,
                    "task_family": task.family,
                    # once per rollout is enough, and keeps the file small
                    **({"metadata": {"goal": task.goal}} if step["step"] == 0 else {}),
                }


def write(path: Path, seed: int = SEED) -> None:
    """Write the canonical step file, UTF-8, one row per line."""
    lines = [{"graft_format": 1}, *make_rows(seed)]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8", newline="\n")


def main(arguments: list[str]) -> None:
    write(Path(arguments[0]) if arguments else Path(__file__).with_name("household.jsonl"))


if __name__ == "__main__":
    main(sys.argv[1:])
