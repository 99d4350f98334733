"""Playing: all rollouts of all groups advance together, one decision of the policy per turn for all that still live.

Every step goes to the recorder as it is made, and the batch in memory is what reading the run gives. Luck of a rollout
depends on (seed, group, rollout) only, so more groups or a restart change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graft_core.environments import Environment
from graft_core.errors import InputError, UsageError
from graft_core.live.games import Game, can_restore, state_text
from graft_core.live.policy import Choice, Policy, Situation
from graft_core.rollouts import ROLLOUT_SCHEMA, STEP_SCHEMA, TEXT_SCHEMA, RolloutBatch, table_from_columns
from graft_core.runs.recorder import Recorder


@dataclass(frozen=True)
class Plan:
    """What to sample. `seed`: a list of numbers; `update` is the training step, None outside training.

    `history`: turns of the past that the policy reads before the present observation (0 = the observation alone).
    `outcome`: `success` (1 or 0) or `return` (sum of the rewards).
    """

    groups: int = 1
    group_size: int = 16
    turns: int = 50
    seed: tuple[int, ...] = (0,)
    update: int | None = None
    history: int = 0
    outcome: str = "success"


@dataclass
class Live:
    """One rollout under way."""

    number: int
    group_id: str
    rollout_id: str
    family: str | None
    game: Environment
    task: str
    goal: str
    observation: str
    past: list[str] = field(default_factory=list)
    steps: int = 0
    total: float = 0.0
    ended: bool = False
    success: bool = False


@dataclass(frozen=True, eq=False)
class Sampled:
    """A batch with what a trainer needs beside it: situations and choices of its steps, in batch order."""

    batch: RolloutBatch
    situations: list[Situation]
    choices: list[Choice]
    success: float
    invalid: int

    @property
    def n_steps(self) -> int:
        return len(self.choices)


class EnvironmentFailed(InputError):
    """The environment raised, or left nothing to do; what was sampled until then is in the run directory."""


def sample(
    game: Game, policy: Policy, plan: Plan, recorder: Recorder | None = None,
    on_turn: Callable[[int, int], None] | None = None,
) -> Sampled:
    """Sample `groups` x `group_size` rollouts. `on_turn(turn, alive)` is told before each decision.

    Rollouts of a group share the task and the first state. Raises `EnvironmentFailed` where the environment raises or has
    no admissible action before its end: the steps so far are recorded, their rollouts count as broken off.
    """
    if recorder is not None and plan.update is not None:
        recorder.train_step(plan.update)
    rows = _Rows(plan)
    lives = _begin(game, plan)
    luck = np.stack([np.random.default_rng([*plan.seed, 1, r.number]).random((plan.turns, 2)) for r in lives], axis=1)
    alive = lives
    for turn in range(plan.turns):
        if on_turn is not None:
            on_turn(turn, len(alive))
        alive = _turn(alive, policy, plan, luck[turn], rows, recorder)
        if not alive:
            break
    for live in alive:
        _end(live, plan, rows, recorder, truncated=True)
    if recorder is not None:
        recorder.flush()
    return rows.sampled(lives)


def _begin(game: Game, plan: Plan) -> list[Live]:
    lives: list[Live] = []
    for g in range(plan.groups):
        task = game.tasks[g % len(game.tasks)]
        first = int(np.random.default_rng([*plan.seed, 0, g]).integers(2**31))
        title = task or game.name
        name = title if g < len(game.tasks) and plan.groups <= len(game.tasks) else f"{title} #{g // len(game.tasks) + 1}"
        for r in range(plan.group_size):
            number = g * plan.group_size + r
            try:
                one = game.make(task)
                observation = one.reset(first)
                if can_restore(one):
                    own = int(np.random.default_rng([*plan.seed, 2, number]).integers(2**31))
                    observation = one.restore(one.save(), seed=own)
            except (InputError, UsageError):
                raise
            except Exception as error:
                raise EnvironmentFailed(f"{game.name}: the environment raised on reset: {_said(error)}") from error
            told = task if len(game.tasks) > 1 else ""
            lives.append(
                Live(number, name, f"r{r + 1}", game.families.get(task), one, told, game.goals.get(task, ""), observation)
            )
    return lives


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def prompt_of(live_past: Sequence[str], observation: str, history: int) -> str:
    """What the policy reads: the last `history` turns, then the present observation."""
    return "\n".join([*live_past[-history:], observation]) if history else observation


def _turn(
    alive: list[Live], policy: Policy, plan: Plan, luck: Any, rows: _Rows, recorder: Recorder | None
) -> list[Live]:
    known = [_situation(live, plan.history, recorder) for live in alive]
    situations = [situation for situation, _ in known]
    choices = policy.choose(situations, luck[[live.number for live in alive]])
    left = []
    for live, (situation, state), choice in zip(alive, known, choices, strict=True):
        before = live.observation
        reward: float = 0.0
        failed: Exception | None = None
        try:
            live.observation, reward, live.ended = live.game.step(choice.action)
        except Exception as error:
            failed = error
        if failed is not None:
            if recorder is not None:
                recorder.flush()
            raise EnvironmentFailed(
                f"the environment raised at step {live.steps} of {live.group_id} / {live.rollout_id}, action "
                f"{choice.action!r}: {_said(failed)}; {len(rows.choices)} steps were kept"
            ) from failed
        rows.add(live, situation, state, choice, before, float(reward))
        if recorder is not None:
            _record(recorder, live, situation, state, choice, before, float(reward))
        live.steps += 1
        live.total += float(reward)
        if plan.history:
            live.past.append(f"{before}\n> {choice.action}")
        if live.ended:
            _end(live, plan, rows, recorder, truncated=False)
        else:
            left.append(live)
    return left


def _situation(live: Live, history: int, recorder: Recorder | None) -> tuple[Situation, str]:
    """What the policy decides on, and the state as it is recorded (a tabular policy also tells tasks apart)."""
    try:
        admissible = tuple(live.game.admissible())
        state = state_text(live.game)
    except Exception as error:
        raise EnvironmentFailed(
            f"the environment raised before step {live.steps} of {live.group_id} / {live.rollout_id}: {_said(error)}"
        ) from error
    if not admissible:
        if recorder is not None:
            recorder.flush()
        raise EnvironmentFailed(
            f"no admissible action before step {live.steps} of {live.group_id} / {live.rollout_id}, state {state!r}, "
            "though the rollout has not ended; the steps so far were kept"
        )
    prompt = prompt_of(live.past, live.observation, history)
    told = f"{live.task}: {state}" if live.task else state
    return Situation(f"{live.goal}\n{prompt}" if live.goal else prompt, told, admissible), state


def _record(
    recorder: Recorder, live: Live, situation: Situation, state: str, choice: Choice, before: str, reward: float
) -> None:
    recorder.step(
        live.group_id, live.rollout_id, live.steps, before, choice.action, reward,
        action_text=choice.text if choice.text != choice.action else None, state=state,
        admissible=list(situation.admissible), valid=choice.valid, logprob=choice.logprob,
        tokens=list(choice.tokens) or None,
    )  # fmt: skip


def _end(live: Live, plan: Plan, rows: _Rows, recorder: Recorder | None, truncated: bool) -> None:
    live.success = bool(live.game.success())
    outcome = live.total if plan.outcome == "return" else float(live.success)
    rows.end(live, outcome, truncated)
    if recorder is not None:
        recorder.end(
            live.group_id, live.rollout_id, outcome, terminated=not truncated, truncated=truncated, success=live.success,
            next_observation=live.observation, next_state=state_text(live.game), task_family=live.family,
        )  # fmt: skip


class _Rows:
    """Columns of the batch, filled step by step in the order of the record."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.texts: dict[str, int] = {}
        self.situations: list[Situation] = []
        self.choices: list[Choice] = []
        self.steps: dict[str, list[Any]] = {name: [] for name in STEP_SCHEMA.names}
        self.ends: dict[int, dict[str, Any]] = {}

    def text(self, words: str) -> int:
        return self.texts.setdefault(words, len(self.texts))

    def add(self, live: Live, situation: Situation, state: str, choice: Choice, before: str, reward: float) -> None:
        self.situations.append(situation)
        self.choices.append(choice)
        said = None if choice.text == choice.action else self.text(choice.text)
        for name, value in (
            ("rollout", live.number), ("step", live.steps), ("observation", self.text(before)),
            ("state", self.text(state)), ("action", self.text(choice.action)), ("action_text", said),
            ("reward", reward), ("valid", choice.valid), ("admissible", [self.text(a) for a in situation.admissible]),
            ("logprob", choice.logprob), ("tokens", _list_word(choice.tokens)),
        ):  # fmt: skip
            self.steps[name].append(value)

    def end(self, live: Live, outcome: float, truncated: bool) -> None:
        self.ends[live.number] = {
            "outcome": outcome, "success": live.success, "terminated": not truncated, "truncated": truncated,
            "n_steps": live.steps, "final_observation": self.text(live.observation),
            "final_state": self.text(state_text(live.game)), "task_family": live.family,
        }  # fmt: skip

    def sampled(self, lives: list[Live]) -> Sampled:
        ends = [self.ends[live.number] for live in lives]
        columns: dict[str, Any] = {name: [end.get(name) for end in ends] for name in ROLLOUT_SCHEMA.names}
        columns |= {
            "group_id": [live.group_id for live in lives], "rollout_id": [live.rollout_id for live in lives],
            "train_step": [self.plan.update] * len(lives), "order_doubtful": [False] * len(lives),
            "group_assumed": [False] * len(lives),
        }  # fmt: skip
        steps = {name: values for name, values in self.steps.items() if values}
        batch = RolloutBatch(
            table_from_columns(columns, ROLLOUT_SCHEMA, len(lives)),
            table_from_columns(steps, STEP_SCHEMA, len(self.choices)),
            table_from_columns({"id": list(range(len(self.texts))), "text": list(self.texts)}, TEXT_SCHEMA, len(self.texts)),
            "live",
        )
        success = float(np.mean([live.success for live in lives])) if lives else float("nan")
        invalid = sum(not choice.valid for choice in self.choices)
        return Sampled(batch, self.situations, self.choices, success, invalid)


def _list_word(tokens: tuple[int, ...]) -> str | None:
    """Token ids as the JSON the batch keeps."""
    return f"[{','.join(map(str, tokens))}]" if tokens else None
