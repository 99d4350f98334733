"""Failed household rollouts of which it is known which step was good and which one lost the task.

Each comes in a group of its own, with siblings that the same policy played. Nothing is put into a rollout
by hand: it is drawn from the policy like its siblings, and kept when the exact dynamics say that it has one
clear blunder and one clearly good step, in places that siblings also visit. Outcomes of the siblings play
no part in the choice, except that a group must have both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graft_core.environments.household import household
from graft_core.environments.household_tasks import TASKS
from graft_core.environments.policies import scripted_policy
from graft_core.environments.sampler import Paths, rows_of, sample_paths, take
from graft_core.environments.tables import Floats, compile_world
from graft_core.errors import UsageError
from graft_core.fidelity.truth import Truth, true_values

SKILL = 0.5
TEMPTING = {"look": 0.35, "go": 0.8}
MAX_STEPS = 40
CANDIDATES = 60
LEAST_GOOD, LEAST_DROP = 0.05, 0.15  # true advantage of the good step, true fall of the chance at the blunder
CLEARER = 1.25  # the blunder falls this much deeper than any other step of its rollout
WITNESSES = 3  # siblings that visit each of the places concerned


@dataclass(frozen=True)
class Planted:
    """Where the truth is in one failed rollout.

    The good step has the rollout's largest true advantage (`good_advantage`); the blunder is the step after
    which success is impossible, and its true TD residual (`blunder_advantage`) is the rollout's lowest.
    """

    group_id: str
    rollout_id: str
    good_step: int
    good_advantage: float
    blunder_step: int
    blunder_advantage: float


def planted_batch(
    n: int = 50, siblings: int = 15, seed: int = 0, gamma: float = 0.99
) -> tuple[list[dict[str, Any]], list[Planted]]:
    """Rows of the canonical step file with `n` groups, one planted rollout in each, and where the truth is.

    Groups go through the tasks in turn and are called "cool apple 1" and so on; the planted rollout is the
    last of its group. True values are those without turn limit, discounted by `gamma`.
    """
    rows: list[dict[str, Any]] = []
    found: list[Planted] = []
    names = list(TASKS)
    truths: dict[str, tuple[Floats, Truth, Floats]] = {}
    for g in range(n):
        name = names[g % len(names)]
        if name not in truths:
            table = compile_world(household(name))
            policy = scripted_policy(table, SKILL, TEMPTING)
            truths[name] = policy, true_values(table, policy, gamma), table.distances()
        paths, good, blunder = _group(*truths[name], siblings, [seed, g])
        group_id = f"{name} {g // len(names) + 1}"
        rows += rows_of(paths, [group_id], task_family=TASKS[name].family, admissible=True)
        last = paths.rollout == siblings
        advantages = _advantages(truths[name][1], paths)[last]
        found.append(
            Planted(
                group_id,
                f"r{siblings + 1}",
                good,
                float(advantages[good]),
                blunder,
                float(advantages[blunder]),
            )
        )
    return rows, found


def _group(
    policy: Floats, truth: Truth, far: Floats, siblings: int, seed: list[int]
) -> tuple[Paths, int, int]:
    """Siblings and, last, the planted rollout, with its good step and its blunder."""
    table = truth.table
    for attempt in range(200):
        paths = sample_paths(table, policy, 1, siblings + CANDIDATES, MAX_STEPS, [*seed, attempt])
        if not 0 < paths.success[:siblings].sum() < siblings:
            continue
        witnesses = _witnesses(paths, siblings)
        advantages = _advantages(truth, paths)
        for r in range(siblings, siblings + CANDIDATES):
            if not np.isinf(far[paths.final_state[r]]):
                continue
            steps = np.flatnonzero(paths.rollout == r)
            planted = _planted(advantages[steps], np.isinf(far[paths.next_state[steps]]))
            if planted is None:
                continue
            at = steps[list(planted)]
            if min(*witnesses[paths.state[at]], witnesses[paths.next_state[at[0]]]) >= WITNESSES:
                return take(paths, [*range(siblings), r]), *planted
    raise UsageError(f"{table.world.name}: no rollout to plant among {siblings} siblings; try more siblings")


def _advantages(truth: Truth, paths: Paths) -> Floats:
    """True advantage of every step; the game is deterministic, so it is the true TD residual."""
    return truth.td(paths.state, paths.next_state)


def _witnesses(paths: Paths, siblings: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """[S], how many siblings are ever in each state."""
    sibling = paths.rollout < siblings
    visits = np.unique(np.stack([paths.rollout[sibling], paths.state[sibling]]), axis=1)
    return np.bincount(visits[1], minlength=paths.table.n_states).astype(np.int64)


def _planted(advantages: Floats, lost_after: np.ndarray[Any, np.dtype[np.bool_]]) -> tuple[int, int] | None:
    """The good step and the blunder of a lost rollout, or None where they are not clear."""
    good, blunder = int(np.argmax(advantages)), int(np.argmax(lost_after))
    others = np.delete(advantages, blunder)
    if not others.size or good > blunder or advantages[good] < LEAST_GOOD:
        return None
    if advantages[blunder] > -LEAST_DROP or advantages[blunder] > CLEARER * others.min():
        return None
    return good, blunder
