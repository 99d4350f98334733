"""Check by rollout: many fresh continuations from a recorded step and from each rival action, against the shown credit.

A credit says "this action is worth so much more than what the policy usually does here". So the action's value is compared
with that of the policy's own choice: Q(s, a) - V(s), both as mean discounted outcomes of fresh continuations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from graft_core.errors import UsageError
from graft_core.live.games import Game, state_text
from graft_core.live.policy import Floats, Policy, Situation
from graft_core.live.restore import Place, Restorer, fresh_seeds, ready
from graft_core.live.sampler import prompt_of
from graft_core.rollouts import RolloutBatch

TRIES: Final = 64
LEVEL: Final = 0.95
CONFIRMED, CONTRADICTED, OPEN = "confirmed", "contradicted", "open"


@dataclass(frozen=True)
class Arm:
    """Continuations after one action (None: the policy's own choice): successes, Wilson's interval, mean value."""

    action: str | None
    tries: int
    successes: int
    success: float
    low: float
    high: float
    value: float


@dataclass(frozen=True)
class Check:
    """One step checked: `difference` = value of the taken action minus that of the policy's own choice, with interval.

    verdict: `confirmed` where the interval excludes 0 on the credit's side, `contradicted` on the other, else `open`.
    """

    group_id: str
    rollout_id: str
    step: int
    action: str
    credit: float
    usual: Arm
    taken: Arm
    rivals: tuple[Arm, ...]
    difference: float
    low: float
    high: float
    verdict: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def wilson(successes: int, tries: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's interval of a proportion."""
    from scipy.stats import binomtest

    if not tries:
        return 0.0, 1.0
    found = binomtest(successes, tries).proportion_ci(level, method="wilson")
    return float(found.low), float(found.high)


def difference(a: Floats, b: Floats, level: float = LEVEL) -> tuple[float, float, float]:
    """Mean a - mean b of values in 0..1 with an interval: Welch's, after adding one 0 and one 1 to each side.

    The two added values are Agresti and Caffo's (2000); without them two constant samples would leave an interval of no width.
    """
    from scipy.stats import t

    more_a, more_b = np.append(a, [0.0, 1.0]), np.append(b, [0.0, 1.0])
    each = more_a.var(ddof=1) / more_a.size, more_b.var(ddof=1) / more_b.size
    error = math.sqrt(sum(each))
    degrees = sum(each) ** 2 / (each[0] ** 2 / (more_a.size - 1) + each[1] ** 2 / (more_b.size - 1))
    middle = float(more_a.mean() - more_b.mean())
    half = float(t.ppf(0.5 + level / 2, degrees)) * error
    return float(a.mean() - b.mean()), middle - half, middle + half


def verdict_of(credit: float, low: float, high: float) -> str:
    """What an interval of the true difference says about the sign of a credit."""
    if (credit > 0 and low > 0) or (credit < 0 and high < 0):
        return CONFIRMED
    if (credit > 0 and high < 0) or (credit < 0 and low > 0):
        return CONTRADICTED
    return OPEN


def continuations(
    game: Game, place: Place, action: str | None, policy: Policy, tries: int, turns: int, seed: tuple[int, ...] = (0,),
    gamma: float = 0.99, history: int = 0,
) -> tuple[Floats, Floats]:
    """(success 0/1, discounted value) of `tries` fresh continuations of at most `turns` steps, [tries] each.

    The first step is `action`, or the policy's own choice where it is None. Value = gamma^(steps to the end) x success.
    """
    if turns < 1 or tries < 1:
        raise UsageError(f"tries {tries}, turns {turns}: expected at least 1 of each")
    games = [ready(game, place, number) for number in fresh_seeds(seed, tries)]
    luck = np.random.default_rng([*seed, 4]).random((turns, tries, 2))
    told, goal = (place.task if len(game.tasks) > 1 else ""), game.goals.get(place.task, "")
    past = [[f"{seen}\n> {done}" for seen, done in place.past] for _ in games]
    seen = [observation for _, observation in games]
    length, success = np.zeros(tries), np.zeros(tries)
    alive = list(range(tries))
    for turn in range(turns):
        if not alive:
            break
        if turn == 0 and action is not None:
            actions = [action] * tries
        else:
            situations = []
            for k in alive:
                prompt, state = prompt_of(past[k], seen[k], history), state_text(games[k][0])
                admissible = tuple(games[k][0].admissible())
                situations.append(
                    Situation(f"{goal}\n{prompt}" if goal else prompt, f"{told}: {state}" if told else state, admissible)
                )
            actions = [choice.action for choice in policy.choose(situations, luck[turn, alive])]
        left = []
        for k, done in zip(alive, actions, strict=True):
            past[k].append(f"{seen[k]}\n> {done}")
            seen[k], _, ended = games[k][0].step(done)
            length[k] += 1
            if not ended:
                left.append(k)
        alive = left
    for k, (one, _) in enumerate(games):
        success[k] = float(one.success())
    return success, success * gamma**length


def arm_of(action: str | None, success: Floats, value: Floats) -> Arm:
    """The summary of one action's continuations."""
    won = int(success.sum())
    low, high = wilson(won, success.size)
    return Arm(action, int(success.size), won, won / success.size, low, high, float(value.mean()))


def check_step(
    game: Game, restorer: Restorer, position: int, credit: float, policy: Policy, tries: int = TRIES, turns: int | None = None,
    seed: int = 0, gamma: float = 0.99, history: int = 0, rivals: bool = True, tell: Callable[[int, int], None] | None = None,
) -> Check:
    """Check the credit of the step at a path position.

    turns: the rollout's limit, against which the steps before count; by default that of the file's rollouts. tell: is told
    after each action how many were played on, and of how many.
    """
    batch = restorer.batch
    place = restorer.place(position)
    left = max(1, (turns or turn_limit(batch) or game.turns) - int(batch.rank[position]))
    taken = batch.text(int(batch.action[position]))
    row = int(batch.step_rollout[position])
    one, _ = ready(game, place, 0)
    others = [action for action in one.admissible() if action != taken] if rivals else []
    arms: dict[str | None, tuple[Floats, Floats]] = {}
    for number, action in enumerate([None, taken, *others]):
        own = (seed, position, number)
        arms[action] = continuations(game, place, action, policy, tries, left, own, gamma, history)
        if tell is not None:
            tell(number + 1, 2 + len(others))
    middle, low, high = difference(arms[taken][1], arms[None][1])
    return Check(
        batch.group_ids[int(batch.group[row])], batch.rollout_ids[row], int(batch.step_index[position]), taken, credit,
        arm_of(None, *arms[None]), arm_of(taken, *arms[taken]), tuple(arm_of(a, *arms[a]) for a in others),
        middle, low, high, verdict_of(credit, low, high),
    )  # fmt: skip


def turn_limit(batch: RolloutBatch) -> int:
    """The turn limit the file shows: the length of its longest rollout that was cut off, 0 where none was."""
    cut = batch.lengths[batch.truncated]
    return int(cut.max()) if cut.size else 0


def find_step(batch: RolloutBatch, name: str) -> int:
    """Path position of a step named `group/rollout/step`. Raises UsageError where there is none."""
    parts = name.rsplit("/", 2)
    if len(parts) == 3 and parts[2].isdigit():
        group, rollout, step = parts
        for row, (g, r) in enumerate(zip(batch.group.tolist(), batch.rollout_ids, strict=True)):
            if batch.group_ids[g] == group and r == rollout:
                at = np.flatnonzero(batch.step_index[batch.offsets[row] : batch.offsets[row + 1]] == int(step))
                if at.size:
                    return int(batch.offsets[row] + at[0])
    raise UsageError(f"step {name!r}: not in this batch; expected GROUP/ROLLOUT/STEP such as 'cool apple/r5/4'")
