"""Coverage of the certainty interval: how often does it hold the true advantage?

    python benchmarks/interval_coverage.py            the table, on seeds that were not used to choose anything (minutes)
    python benchmarks/interval_coverage.py --quick    60 groups per world and size, seconds
    python benchmarks/interval_coverage.py --tuning   the same on the seeds on which the constants were chosen

Known worlds, a new policy for every group (true chance of success .05 to .40), at most 300 steps, groups in which some
rollouts succeeded and some failed. One case = one distinct edge (u, a, v) of one group; a case counts once, however
often the edge was taken. The target is the true advantage A(u, a) per action; per transition the true TD residual
gamma V(v) - V(u), which in a deterministic world is the same number.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graft_core.constants import SIGN_TOLERANCE
from graft_core.environments import make_world
from graft_core.environments.policies import policy_with_success
from graft_core.environments.sampler import Paths, sample_paths
from graft_core.environments.tables import Table, compile_world
from graft_core.errors import UsageError
from graft_core.fidelity.truth import true_values
from graft_core.graph import build_graph
from graft_core.insight.certainty import LEVEL, SUPPORT_BINS, certainty
from graft_core.rollouts import ROLLOUT_SCHEMA, STEP_SCHEMA, TEXT_SCHEMA, RolloutBatch, table_from_columns
from graft_core.values import solve_values

TUNING_SEED = 102
FRESH_SEED = 20261130
GAMMA, MAX_STEPS, GROUP_SIZES = 0.99, 300, (16, 64)
LEAST, MOST = 0.80, 0.98
"""What coverage at nominal 90 % is called honest."""

FEWEST_GROUPS = 60  # a cell that fewer groups contribute to is not judged
ROUGH_ALLOWED = 2


@dataclass(frozen=True)
class World:
    """A world of the table. `fresh`: a new one is drawn for every group. `random`: results of actions are random."""

    name: str
    environment: str
    options: tuple[tuple[str, Any], ...] = ()
    fresh: bool = False
    random: bool = False

    def table(self, seed: int) -> Table:
        options = dict(self.options) | ({"seed": seed} if self.fresh else {})
        return compile_world(make_world(self.environment, **options))


WORLDS = (
    World("frozen lake 4x4", "frozen-lake", (("size", 4),)),
    World("frozen lake 4x4, slippery", "frozen-lake", (("size", 4), ("slippery", True)), random=True),
    World("frozen lake 8x8", "frozen-lake", (("size", 8),)),
    World("key-door", "key-door", (("size", 4),)),
    World("layered", "layered", (), fresh=True, random=True),
)
HELD_OUT = (
    World("key-door 5x5", "key-door", (("size", 5),)),
    World("key-door 6x6, 10 % slip", "key-door", (("size", 6), ("slip", 0.1)), random=True),
    World("layered 16x5", "layered", (("layers", 16), ("width", 5)), fresh=True, random=True),
)


@dataclass
class Cell:
    """One world, G, target and support bin: cases held, in all, per group; width, certain and wrong among them."""

    world: str
    group_size: int
    per: str
    support: str
    held: list[int] = field(default_factory=list)
    cases: list[int] = field(default_factory=list)
    width: float = 0.0
    certain: int = 0
    wrong: int = 0

    @property
    def groups(self) -> int:
        return len(self.cases)

    @property
    def coverage(self) -> float:
        return sum(self.held) / sum(self.cases) if self.cases else float("nan")

    @property
    def error(self) -> float:
        """Standard error of the coverage, groups being the independent units."""
        held, cases = np.array(self.held, float), np.array(self.cases, float)
        return float(np.sqrt(np.sum((held - self.coverage * cases) ** 2)) / cases.sum()) if self.cases else float("nan")

    @property
    def judged(self) -> bool:
        return self.groups >= FEWEST_GROUPS

    @property
    def rough(self) -> bool:
        return self.judged and not LEAST <= self.coverage <= MOST


@dataclass(frozen=True, eq=False)
class Sample:
    """Groups of one world: their paths, and the true advantage and TD residual of every step."""

    paths: Paths
    advantage: np.ndarray
    residual: np.ndarray


def words(low: int, high: int | None) -> str:
    return f"{low}+" if high is None else str(low) if low == high else f"{low}-{high}"


def as_batch(paths: Paths) -> RolloutBatch:
    """The sampled rollouts as a batch, without the detour over rows; observations tell the state."""
    table = paths.table
    actions = sorted(set(table.pair_action))
    number = np.array([actions.index(action) for action in table.pair_action]) + table.n_states
    texts = [*table.observations, *actions]
    n = paths.group.size
    rollouts = {
        "group_id": [f"g{g}" for g in paths.group.tolist()],
        "rollout_id": [f"r{r}" for r in range(n)],
        "outcome": paths.outcome,
        "terminated": paths.terminated,
        "truncated": ~paths.terminated,
        "n_steps": paths.n_steps.astype(np.int32),
        "final_observation": paths.final_state.astype(np.int32),
        "order_doubtful": np.zeros(n, dtype=bool),
        "group_assumed": np.zeros(n, dtype=bool),
    }
    steps = {
        "rollout": paths.rollout.astype(np.int32),
        "step": paths.step.astype(np.int32),
        "observation": paths.state.astype(np.int32),
        "action": number[paths.pair].astype(np.int32),
    }
    return RolloutBatch(
        table_from_columns(rollouts, ROLLOUT_SCHEMA, n),
        table_from_columns(steps, STEP_SCHEMA, paths.state.size),
        table_from_columns({"id": np.arange(len(texts), dtype=np.int32), "text": texts}, TEXT_SCHEMA, len(texts)),
    )


def samples(world: World, group_size: int, seed: int, chunk: int = 20) -> Iterator[Sample]:
    """Endless groups, `chunk` at a time (one at a time where each has its own world)."""
    table, first = world.table(0), 0
    while True:
        size = 1 if world.fresh else chunk
        policies: list[np.ndarray] = []
        while len(policies) < size:
            if world.fresh:
                table = world.table(seed * 100_000 + first)
            first += 1
            try:
                policies.append(policy_with_success(table, [seed, group_size, first]))
            except UsageError:  # this world does not allow such a policy; the next one may
                continue
        yield sample(table, policies, group_size, [seed, group_size, first])


def sample(table: Table, policies: Sequence[np.ndarray], group_size: int, seed: list[int]) -> Sample:
    """One group per policy with the truth about each step."""
    paths = sample_paths(table, policies, len(policies), group_size, MAX_STEPS, seed)
    group = paths.group[paths.rollout]
    advantage, residual = np.empty(paths.state.size), np.empty(paths.state.size)
    for g, policy in enumerate(policies):
        truth, own = true_values(table, policy, GAMMA), group == g
        advantage[own] = truth.a[paths.pair[own]]
        residual[own] = truth.td(paths.state[own], paths.next_state[own])
    return Sample(paths, advantage, residual)


def add(cells: dict[tuple[str, int], Cell], made: Sample, sinks: str = "split") -> int:
    """Count the cases of a sample; returns how many of its groups had both outcomes."""
    batch = as_batch(made.paths)
    graph = build_graph(batch, sinks=sinks)
    values = solve_values(graph, gamma=GAMMA)
    group = graph.node_group[graph.edge_src]
    mixed = 0
    for per in dict.fromkeys(per for per, _ in cells):
        found = certainty(graph, values, per)  # type: ignore[arg-type]
        target = np.empty(graph.n_edges)
        target[graph.edge] = made.advantage if per == "action" else made.residual
        numbered = ~np.isnan(found.low)
        held = (target >= found.low - SIGN_TOLERANCE) & (target <= found.high + SIGN_TOLERANCE)
        certain = (found.low > SIGN_TOLERANCE).astype(int) - (found.high < -SIGN_TOLERANCE)
        right = np.where(np.abs(target) <= SIGN_TOLERANCE, 0, np.sign(target))
        for k, (low, high) in enumerate(SUPPORT_BINS):
            cell = cells[per, k]
            here = numbered & (found.support >= low) & (found.support <= (high or found.support.max()))
            cases = np.bincount(group[here], minlength=batch.n_groups)
            covered = np.bincount(group[here & held], minlength=batch.n_groups)
            cell.cases += cases[cases > 0].tolist()
            cell.held += covered[cases > 0].tolist()
            cell.width += float((found.high - found.low)[here].sum()) / 2
            cell.certain += int((here & (certain != 0)).sum())
            cell.wrong += int((here & (certain != 0) & (certain != right)).sum())
        mixed = int(np.unique(group[numbered]).size)
    return mixed


def measure(
    world: World, group_size: int, groups: int, seed: int, most: int | None = None, sinks: str = "split"
) -> list[Cell]:
    """Cells of one world and G from at least `groups` groups with both outcomes.

    Goes on, to `most` groups, while a support bin has fewer than FEWEST_GROUPS groups that reach it.
    """
    pers = ("action", "transition") if world.random else ("action",)
    cells = {
        (per, k): Cell(world.name, group_size, per, words(*bounds))
        for per in pers
        for k, bounds in enumerate(SUPPORT_BINS)
    }
    done = 0
    for made in samples(world, group_size, seed):
        done += add(cells, made, sinks)
        scarce = any(cell.groups < FEWEST_GROUPS for cell in cells.values())
        if done >= groups and (not scarce or done >= (most or groups)):
            break
    return list(cells.values())


def show(cells: Sequence[Cell], details: bool = False) -> str:
    """The table as text: one line per world, G and target, coverage in % with its standard error per support bin."""
    bins = [words(*bounds) for bounds in SUPPORT_BINS]
    lines = [f"{'world':27} {'G':>3} {'per':10} " + "  ".join(f"{name + ' rollouts':>15}" for name in bins)]
    for row in dict.fromkeys((c.world, c.group_size, c.per) for c in cells):
        own = [c for c in cells if (c.world, c.group_size, c.per) == row]
        marks = ["few" if not c.judged else "rough" if c.rough else "" for c in own]
        texts = [f"{100 * c.coverage:5.1f} +-{100 * c.error:3.1f} {mark:5}" for c, mark in zip(own, marks, strict=True)]
        lines.append(f"{row[0]:27} {row[1]:3} {row[2]:10} " + "  ".join(texts))
        if details:
            more = [
                f"{c.groups}g {sum(c.cases)}e w{c.width / max(sum(c.cases), 1):.3f} "
                f"c{100 * c.certain / max(sum(c.cases), 1):.0f}/{100 * c.wrong / max(c.certain, 1):.0f}"
                for c in own
            ]
            lines.append(f"{'':42} " + "  ".join(f"{text:>15}" for text in more))
    return "\n".join(lines)


def verdict(cells: Sequence[Cell]) -> str:
    judged, rough = [c for c in cells if c.judged], [c for c in cells if c.rough]
    per_bin = [
        f"{name}: {100 * np.mean([c.coverage for c in judged if c.support == name]):.1f}"
        for name in (words(*bounds) for bounds in SUPPORT_BINS)
        if any(c.support == name for c in judged)
    ]
    return (
        f"{len(judged)} cells, {len(rough)} outside {100 * LEAST:.0f} to {100 * MOST:.0f} % "
        f"(at most {ROUGH_ALLOWED} may be); mean coverage by rollouts seen: {', '.join(per_bin)}"
    )


def table(
    groups: int, seed: int, most: int | None, worlds: Sequence[World] = WORLDS, sizes: Sequence[int] = GROUP_SIZES,
    sinks: str = "split",
) -> list[Cell]:  # fmt: skip
    """All cells of the table, per action in every world and per transition where results are random."""
    return [
        cell for world in worlds for size in sizes for cell in measure(world, size, groups, seed, most, sinks)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if more than ROUGH_ALLOWED cells are rough."""
    parser = argparse.ArgumentParser(description="coverage of the certainty interval against known truth")
    parser.add_argument("--quick", action="store_true", help="60 groups per world and size, rare cells left open")
    parser.add_argument("--tuning", action="store_true", help="the seed on which the constants were chosen")
    parser.add_argument("--seed", type=int, help="another seed")
    parser.add_argument("--groups", type=int, default=200, help="groups with both outcomes per world and size, at least")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(GROUP_SIZES), help="rollouts per group")
    parser.add_argument("--held-out", action="store_true", help="three other worlds instead")
    parser.add_argument("--sinks", default="split", choices=("split", "merge"))
    parser.add_argument("--details", action="store_true", help="groups, edges, half width, certain / wrong among them (%%)")
    given = parser.parse_args(arguments)
    seed = given.seed if given.seed is not None else TUNING_SEED if given.tuning else FRESH_SEED
    groups, most = (60, 60) if given.quick else (given.groups, max(given.groups, 20_000))
    began = time.perf_counter()
    cells = []
    for world in HELD_OUT if given.held_out else WORLDS:
        for size in given.sizes:
            cells += measure(world, size, groups, seed, most, given.sinks)
            print(f"{world.name}, G {size}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    print(f"Coverage of {100 * LEVEL:.0f} % intervals in %, seed {seed}, sinks {given.sinks}")
    print(show(cells, given.details))
    print(verdict(cells))
    return int(sum(cell.rough for cell in cells) > ROUGH_ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
