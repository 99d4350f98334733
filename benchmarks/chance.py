"""What "beyond luck" is worth: how often it marks where nothing is, how much of the good it marks, and what it costs.

    python benchmarks/chance.py            all tables (a minute or two)
    python benchmarks/chance.py --quick    fewer batches

Seeds are fixed here, and none of them was used to choose the method. Three questions:

1. Nothing to find: 100 batches whose outcomes were dealt anew. The list at 5 % has to be empty at least 90 times.
2. Something to find: worlds with known dynamics, a new policy for every task (true chance of success .05 to .40), at most
   300 steps. Of the listed steps with a true advantage above 0 ("truly good"), what share is marked; and how many marked
   steps are not truly good. "one choice" is the hard case: eight turns among four rooms at random, and the outcome
   hangs on one turn alone, so nearly all listed steps are worth nothing.
3. Seconds for 6,400 steps and 200 shuffles.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graft_core import load
from graft_core.constants import SIGN_TOLERANCE
from graft_core.environments import make_world
from graft_core.environments.policies import policy_with_success
from graft_core.environments.sampler import Paths, sample_paths
from graft_core.environments.tables import compile_world
from graft_core.fidelity.truth import true_values
from graft_core.insight.chance import chance, shuffled
from graft_core.rollouts import ROLLOUT_SCHEMA, STEP_SCHEMA, TEXT_SCHEMA, RolloutBatch, table_from_columns
from graft_core.settings import LOOK, Settings

ROOT = Path(__file__).resolve().parent.parent
SEED = 20261130
MAX_STEPS = 300
GROUP_SIZES = (8, 16, 32, 64)
RUNS, ALLOWED = 100, 10
"""Null batches, and how many of them may have a mark."""

Bools = npt.NDArray[np.bool_]
Known = tuple[RolloutBatch, Bools]
"""A batch, and for each step (path order) whether its true advantage is above 0."""


# -- batches ----------------------------------------------------------------------------------------------------------


def make_batch(
    group: Sequence[int] | npt.NDArray[Any],
    lengths: npt.NDArray[Any],
    observation: npt.NDArray[Any],
    final: npt.NDArray[Any],
    action: npt.NDArray[Any],
    outcome: npt.NDArray[Any],
    texts: list[str],
) -> RolloutBatch:
    """A batch from arrays: group, length, final observation and outcome per rollout; texts as numbers in `texts`."""
    n = len(group)
    rollouts = {
        "group_id": [f"g{g}" for g in group],
        "rollout_id": [f"r{i}" for i in range(n)],
        "outcome": outcome.astype(np.float64),
        "n_steps": lengths.astype(np.int32),
        "final_observation": final.astype(np.int32),
        "group_assumed": [False] * n,
        "order_doubtful": [False] * n,
    }
    rank = np.arange(observation.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    steps = {
        "rollout": np.repeat(np.arange(n), lengths).astype(np.int32),
        "step": rank.astype(np.int32),
        "observation": observation.astype(np.int32),
        "action": action.astype(np.int32),
    }
    words = {"id": np.arange(len(texts)), "text": texts}
    return RolloutBatch(
        table_from_columns(rollouts, ROLLOUT_SCHEMA, n),
        table_from_columns(steps, STEP_SCHEMA, observation.size),
        table_from_columns(words, TEXT_SCHEMA, len(texts)),
    )


def batch_of(paths: Paths) -> RolloutBatch:
    """Sampled paths as a batch; the full state is the observation."""
    actions = list(dict.fromkeys(paths.table.pair_action))
    number = np.array([actions.index(a) for a in paths.table.pair_action]) + paths.table.n_states
    texts = [*paths.table.keys, *actions]
    return make_batch(
        paths.group, paths.n_steps, paths.state, paths.final_state, number[paths.pair], paths.success, texts
    )


def sampled(environment: str, tasks: int, group_size: int, seed: int, **options: Any) -> Known:
    """A batch of `tasks` groups from a known world, a random policy for each."""
    table = compile_world(make_world(environment, **options))
    policies = [policy_with_success(table, [seed, task]) for task in range(tasks)]
    paths = sample_paths(table, policies, tasks, group_size, MAX_STEPS, [seed, tasks])
    advantage = np.stack([true_values(table, policy).a for policy in policies])
    return batch_of(paths), advantage[paths.group[paths.rollout], paths.pair] > SIGN_TOLERANCE


def one_choice(tasks: int, group_size: int, seed: int) -> Known:
    """Eight turns among four rooms at random; the fourth turn alone decides (success .70 against .15).

    Behind it the rooms remember which way it went, so that the state is complete. Only steps into the good
    branch have a true advantage above 0.
    """
    turns, rooms, decides = 8, 4, 3
    rng = np.random.default_rng([seed, tasks, group_size])
    n = tasks * group_size
    room = rng.integers(0, rooms, (n, turns + 1))
    room[:, 0] = 0
    good = room[:, decides + 1] == 0
    outcome = rng.random(n) < np.where(good, 0.70, 0.15)
    turn = np.arange(turns + 1)
    code = (turn * rooms + room) * 2 + (good[:, None] & (turn > decides))
    n_codes = (turns + 1) * rooms * 2
    texts = [*(f"turn {c // 2 // rooms}, room {c // 2 % rooms}{', good' * (c % 2)}" for c in range(n_codes)), "walk"]
    action = np.full(n * turns, n_codes)
    batch = make_batch(
        np.repeat(np.arange(tasks), group_size), np.full(n, turns), code[:, :-1].ravel(), code[:, -1], action, outcome, texts
    )
    return batch, (good[:, None] & (turn[:-1] == decides)).ravel()


# -- 1: nothing to find -----------------------------------------------------------------------------------------------


def null_sources() -> dict[str, Callable[[], RolloutBatch]]:
    """Batches whose outcomes get dealt anew, by name."""
    return {
        "household sample, 8 tasks x 8": lambda: load(ROOT / "sample_data" / "household.jsonl"),
        "frozen lake 4x4, 8 tasks x 16": lambda: sampled("frozen-lake", 8, 16, SEED)[0],
        "frozen lake 4x4, 1 task x 64": lambda: sampled("frozen-lake", 1, 64, SEED)[0],
        "key-door 4x4, 4 tasks x 32": lambda: sampled("key-door", 4, 32, SEED)[0],
        "one choice, 4 tasks x 32": lambda: one_choice(4, 32, SEED)[0],
    }


def false_lists(batch: RolloutBatch, runs: int = RUNS, settings: Settings = LOOK) -> int:
    """In how many of `runs` batches with outcomes dealt anew something is marked beyond luck."""
    return sum(
        bool(chance(shuffled(batch, SEED + run), settings, seed=run).beyond.any()) for run in range(runs)
    )


def null_table(runs: int) -> Iterator[str]:
    yield f"\n1. Nothing to find: batches with a mark, of {runs} (5 % stated; at most {ALLOWED} of {RUNS} allowed)"
    for name, make in null_sources().items():
        yield f"   {name:<34}{false_lists(make(), runs):>4}"
    path = LOOK.with_options(estimator="path_gae", lam=0.25)
    source = "frozen lake 4x4, 8 tasks x 16"
    yield f"   {source + ', path GAE':<40}{false_lists(null_sources()[source](), runs, path)}"


# -- 2: something to find ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Power:
    """Listed steps over some batches: truly good, those of them marked, marked ones that are not truly good.

    wrong_share: share of wrong marks, mean over the batches (0 for an empty list).
    """

    good: int
    listed: int
    marked: int
    wrong: int
    wrong_share: float

    @property
    def share(self) -> float:
        return self.marked / self.good if self.good else float("nan")


def power(make: Callable[[int], Known], batches: int, settings: Settings = LOOK) -> Power:
    """Mark `batches` batches, made from numbers 0, 1, ..., and compare with the truth."""
    good = listed = marked = wrong = 0
    shares = []
    for number in range(batches):
        batch, truly = make(number)
        found = chance(batch, settings, seed=number)
        on_list = ~np.isnan(found.p)
        good += int((on_list & truly).sum())
        listed += int(on_list.sum())
        marked += int((found.beyond & truly).sum())
        wrong += int((found.beyond & ~truly).sum())
        shares.append((found.beyond & ~truly).sum() / max(1, found.beyond.sum()))
    return Power(good, listed, marked, wrong, float(np.mean(shares)))


def lake_power(group_size: int, tasks: int, batches: int) -> Power:
    """FrozenLake 4x4: what the list marks of the truly good steps."""
    return power(lambda n: sampled("frozen-lake", tasks, group_size, SEED + 1000 * group_size + n), batches)


def power_table(scale: int) -> Iterator[str]:
    yield "\n2. Something to find: truly good steps on the list, share marked; wrong marks (mean share per batch)"
    yield f"   {'':<44}{'G':>4}{'batches':>9}{'listed':>8}{'truly good':>12}{'marked':>9}{'wrong':>7}{'share':>8}"

    def line(name: str, group_size: int, batches: int, found: Power) -> str:
        return (
            f"   {name:<44}{group_size:>4}{batches:>9}{found.listed:>8}{found.good:>12}{found.share:>9.0%}"
            f"{found.wrong:>7}{found.wrong_share:>8.1%}"
        )

    for tasks, batches in ((1, 10 * scale), (8, 2 * scale)):
        for size in GROUP_SIZES:
            name = f"frozen lake 4x4, {tasks} task{'s' * (tasks > 1)}"
            yield line(name, size, batches, lake_power(size, tasks, batches))
    action = LOOK.with_options(per="action")
    path = LOOK.with_options(estimator="path_gae", lam=0.25)
    others: tuple[tuple[str, Settings, Callable[[int, int], Known]], ...] = (
        ("frozen lake 8x8", LOOK, lambda size, n: sampled("frozen-lake", 4, size, SEED + n, size=8)),
        ("frozen lake slippery, per action", action, lambda size, n: sampled("frozen-lake", 4, size, SEED + n, slippery=True)),
        ("key-door 4x4", LOOK, lambda size, n: sampled("key-door", 4, size, SEED + n)),
        ("one choice", LOOK, lambda size, n: one_choice(4, size, SEED + n)),
        ("one choice, path GAE .25", path, lambda size, n: one_choice(4, size, SEED + n)),
        ("frozen lake 4x4, path GAE .25", path, lambda size, n: sampled("frozen-lake", 4, size, SEED + n)),
    )
    for name, settings, make in others:
        for size in (16, 64):
            found = power(lambda n, make=make, size=size: make(size, n), 2 * scale, settings)  # type: ignore[misc]
            yield line(f"{name}, 4 tasks", size, 2 * scale, found)


# -- 3: cost ----------------------------------------------------------------------------------------------------------


def random_batch(tasks: int, group_size: int, turns: int, rooms: int, seed: int = SEED) -> RolloutBatch:
    """Rollouts that walk among `rooms` rooms at random: the fewer rooms, the more is merged and the longer the loops."""
    rng = np.random.default_rng(seed)
    n = tasks * group_size
    room = rng.integers(1, rooms, (n, turns + 1))
    room[:, 0] = 0
    group = np.repeat(np.arange(tasks), group_size)
    texts = [*(f"room {i}" for i in range(rooms)), "walk"]
    return make_batch(
        group, np.full(n, turns), room[:, :-1].ravel(), room[:, -1], np.full(n * turns, rooms), rng.random(n) < 0.3, texts
    )


def time_table() -> Iterator[str]:
    yield "\n3. Seconds for 6,400 steps and 200 shuffles (best of 3; the graph is given)"
    chance(random_batch(2, 4, 5, 4))
    cases = {
        "16 tasks x 8 x 50, 20 rooms": random_batch(16, 8, 50, 20),
        "16 tasks x 8 x 50, 200 rooms": random_batch(16, 8, 50, 200),
        "16 tasks x 8 x 50, nothing shared": random_batch(16, 8, 50, 1_000_000),
        "1 task x 128 x 50, 200 rooms": random_batch(1, 128, 50, 200),
        "1 task x 64 x 100, 1,000 rooms": random_batch(1, 64, 100, 1000),
        "1 task x 64 x 100, nothing shared": random_batch(1, 64, 100, 1_000_000),
        "1,600 tasks x 4 x 1": random_batch(1600, 4, 1, 5),
    }
    for name, batch in cases.items():
        yield f"   {name:<36}{best_time(batch, LOOK):>7.2f}"
    for name in ("gigpo", "path_gae", "graft"):
        first = "16 tasks x 8 x 50, 20 rooms"
        yield f"   {first + ', ' + name:<44}{best_time(cases[first], LOOK.with_options(estimator=name), 1):>7.2f}"


def best_time(batch: RolloutBatch, settings: Settings, tries: int = 3) -> float:
    seconds = []
    for _ in range(tries):
        start = time.perf_counter()
        chance(batch, settings)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="False marks, power and cost of the shuffle test.")
    parser.add_argument("--quick", action="store_true", help="fewer batches")
    quick = parser.parse_args(arguments).quick
    for table in (null_table(20 if quick else RUNS), power_table(1 if quick else 5), time_table()):
        for line in table:
            print(line, flush=True)


if __name__ == "__main__":
    main()
