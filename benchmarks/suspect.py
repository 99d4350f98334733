"""Suspect merges with known truth: how often are they found, and how often does the test cry wolf?

    python benchmarks/suspect.py             the table, on seeds that were not used to choose anything (minutes)
    python benchmarks/suspect.py --quick     a few groups, seconds
    python benchmarks/suspect.py --tuning    the same on the seeds on which the procedure was chosen
    python benchmarks/suspect.py --time      seconds for batches of about 6,400 steps instead

Set-up. One policy per group: softmax of standard normal logits per (true state, action), leaned by LEAN per step that an
action saves, at temperature TEMPERATURE (household: HOUSE_POLICY): in the key-door worlds (without pits) and the household
nearly all rollouts succeed, in about 60 (4x4), 70 (5x5) and 30 steps. Turn limit LIMIT. "Hidden" groups read observations
that leave out "has the key"; a node counts as a merge (positive) where a rollout can be there with and without the key and
some action's true value differs by more than .05. The agent itself knows whether it has the key, except in the line "hidden
from the agent too" (BLIND_POLICY, logits per observation). In the household an action the game does not know ("dance")
answers "Nothing happens." wherever it is tried, and all such moments are one node. All other nodes are true states.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from graft_core.environments import make_world
from graft_core.environments.base import NOTHING_HAPPENS, Outcome, World
from graft_core.environments.policies import softmax_policy
from graft_core.environments.sampler import Paths, sample_paths
from graft_core.environments.tables import Table, compile_world
from graft_core.fidelity.truth import true_values
from graft_core.graph import TrajectoryGraph, build_graph
from graft_core.insight.suspect import Suspects, suspects
from graft_core.rollouts import ROLLOUT_SCHEMA, STEP_SCHEMA, TEXT_SCHEMA, RolloutBatch, table_from_columns

TUNING_SEED, FRESH_SEED = 7, 20261130
GAMMA, DIFFERENCE = 0.99, 0.05
LEAN, TEMPERATURE, LIMIT = 0.8, 1.5, 1000
HOUSE_POLICY, BLIND_POLICY = (1.2, 1.0), (1.0, 1.0)
SHORT_LIMIT = 45
SIZES = (8, 16, 32, 64)
DANCE = "dance"


class Dancing:
    """The household game with one more action, which it does not know: it answers "Nothing happens." """

    def __init__(self, task: str) -> None:
        self.inner: World[Any] = make_world("household", task=task)
        self.name = f"{self.inner.name}, dancing"

    def start(self) -> list[tuple[float, Any]]:
        return [(p, (state, False)) for p, state in self.inner.start()]

    def actions(self, state: Any) -> tuple[str, ...]:
        known = self.inner.actions(state[0])
        return (*known, DANCE) if known else ()

    def transitions(self, state: Any, action: str) -> list[Outcome]:
        if action == DANCE:
            return [Outcome(1.0, (state[0], True), 0.0, False)]
        known = self.inner.transitions(state[0], action)
        return [Outcome(o.probability, (o.state, False), o.reward, o.terminated) for o in known]

    def observation(self, state: Any) -> str:
        return NOTHING_HAPPENS if state[1] else self.inner.observation(state[0])

    def key(self, state: Any) -> str:
        return f"{self.inner.key(state[0])}; {'danced' if state[1] else ''}"

    def success(self, state: Any) -> bool:
        return self.inner.success(state[0])


@dataclass(frozen=True)
class Setting:
    """A row's world: how to make its table, the policy of a group, and the turn limit."""

    name: str
    make: Callable[[], World[Any]]
    limit: int
    lean: float = LEAN
    temperature: float = TEMPERATURE
    blind: bool = False


def _key_door(size: int, hidden: bool, limit: int = LIMIT) -> Setting:
    name = f"key-door {size}x{size}{', key hidden' if hidden else ''}{f', {limit} turns' if limit != LIMIT else ''}"
    return Setting(name, lambda: make_world("key-door", size=size, hide_key=hidden, pits=False), limit)


HIDDEN = {4: _key_door(4, True), 5: _key_door(5, True)}
CLEAN = {4: _key_door(4, False), 5: _key_door(5, False)}
CLEAN_CUT = _key_door(4, False, SHORT_LIMIT)
HIDDEN_CUT = _key_door(4, True, SHORT_LIMIT)
BLIND = Setting("key-door 4x4, key hidden from the agent too", HIDDEN[4].make, LIMIT, *BLIND_POLICY, True)
ICE = Setting("frozen lake 8x8, slippery", lambda: make_world("frozen-lake", size=8, slippery=True), LIMIT)
DANCED = Setting("household, “Nothing happens.”", lambda: Dancing("cool apple"), LIMIT, *HOUSE_POLICY)
HOUSE = Setting("household", lambda: make_world("household", task="cool apple"), LIMIT, *HOUSE_POLICY)


@cache
def table_of(setting: Setting) -> Table:
    return compile_world(setting.make())


def policy(setting: Setting, seed: list[int]) -> np.ndarray:
    """The policy of one group (see the module's text)."""
    table, rng = table_of(setting), np.random.default_rng(seed)
    far = table.distances()
    known = np.isfinite(far)
    closer = -table.expected(np.where(known, far, far[known].max() + 1.0))
    logits = rng.standard_normal(table.n_pairs) + setting.lean * closer
    if setting.blind:
        reads = [(table.observations[s], a) for s, a in zip(table.pair_state.tolist(), table.pair_action, strict=True)]
        codes = np.unique([f"{text}|{action}" for text, action in reads], return_inverse=True)[1]
        logits = (np.bincount(codes, logits) / np.bincount(codes))[codes]
    return softmax_policy(table, logits, setting.temperature)


def as_batch(paths: Paths) -> RolloutBatch:
    """The sampled rollouts as a batch of texts: states that read alike have one text."""
    table = paths.table
    texts = list(dict.fromkeys([*table.observations, *table.pair_action]))
    number = {text: i for i, text in enumerate(texts)}
    seen = np.array([number[text] for text in table.observations], np.int32)
    n = paths.group.size
    rollouts = {
        "group_id": [f"g{g}" for g in paths.group.tolist()],
        "rollout_id": [f"r{r}" for r in range(n)],
        "outcome": paths.outcome,
        "terminated": paths.terminated,
        "truncated": ~paths.terminated,
        "n_steps": paths.n_steps.astype(np.int32),
        "final_observation": seen[paths.final_state],
        "order_doubtful": np.zeros(n, dtype=bool),
        "group_assumed": np.zeros(n, dtype=bool),
    }
    steps = {
        "rollout": paths.rollout.astype(np.int32),
        "step": paths.step.astype(np.int32),
        "observation": seen[paths.state],
        "action": np.array([number[text] for text in table.pair_action], np.int32)[paths.pair],
    }
    return RolloutBatch(
        table_from_columns(rollouts, ROLLOUT_SCHEMA, n),
        table_from_columns(steps, STEP_SCHEMA, paths.state.size),
        table_from_columns({"id": np.arange(len(texts), dtype=np.int32), "text": texts}, TEXT_SCHEMA, len(texts)),
    )


@dataclass(frozen=True, eq=False)
class Sample:
    """Groups of one setting as a graph, and which of its nodes are merges that matter. positive: bool[n_nodes]."""

    graph: TrajectoryGraph
    paths: Paths
    positive: np.ndarray


def sample(setting: Setting, groups: int, size: int, seed: int) -> Sample:
    """`groups` groups of `size` rollouts, each with a policy of its own; the same whatever the other groups are."""
    table = table_of(setting)
    policies = [policy(setting, [seed, size, g]) for g in range(groups)]
    paths = sample_paths(table, policies, groups, size, setting.limit, [seed, size])
    graph = build_graph(as_batch(paths))
    return Sample(graph, paths, positives(setting, graph, policies))


def positives(setting: Setting, graph: TrajectoryGraph, policies: Sequence[np.ndarray]) -> np.ndarray:
    """Which nodes merge states that matter: hidden key with values that differ, or the "Nothing happens." node."""
    table, found = table_of(setting), np.zeros(graph.n_nodes, bool)
    texts = np.array([graph.batch.text(int(t)) for t in graph.node_text], dtype=object)
    ordinary = np.flatnonzero(~graph.node_is_sink)
    if setting is DANCED:
        found[ordinary] = texts[ordinary] == NOTHING_HAPPENS
    if not getattr(table.world, "hide_key", False):
        return found
    alike: dict[str, list[int]] = {}
    for state in np.flatnonzero(~table.terminal).tolist():
        alike.setdefault(table.observations[state], []).append(state)
    for g, one in enumerate(policies):
        q = true_values(table, one, GAMMA).q
        matters = {}
        for text, states in alike.items():
            values = [q[table.pair_start[s] : table.pair_start[s + 1]] for s in states]
            matters[text] = len(values) == 2 and float(np.abs(values[0] - values[1]).max()) > DIFFERENCE
        own = ordinary[graph.node_group[ordinary] == g]
        found[own] = [matters[text] for text in texts[own]]
    return found


def key_text(setting: Setting) -> str:
    """What one reads on the key's cell."""
    table = table_of(setting)
    world: Any = table.world
    (state,) = [s for s in table.states if s.has_key and world.rows[s.row][s.column] == "K"]  # type: ignore[attr-defined]
    return str(world.observation(state))


@dataclass(frozen=True)
class Row:
    """One line of the table; shares are 0..1, NaN where the line has no such thing."""

    setting: str
    size: int
    groups: int
    steps: float
    cut: float
    alarms: float
    recall: float
    recall_tested: float
    flagged_clean: float
    innocent: float
    named: float
    silenced: float
    proposed: float
    seconds: float
    flagged_groups: float


def measure(setting: Setting, groups: int, size: int, seed: int) -> Row:
    """Sample, test, and compare with the truth."""
    made = sample(setting, groups, size, seed)
    began = time.perf_counter()
    found = suspects(made.graph)
    took = time.perf_counter() - began
    return compare(setting, made, found, groups, size, took)


def share(hits: Any, of: Any) -> float:
    return float(np.sum(hits)) / float(np.sum(of)) if np.sum(of) else float("nan")


def compare(setting: Setting, made: Sample, found: Suspects, groups: int, size: int, took: float) -> Row:
    """What was found against what is true."""
    graph, positive = made.graph, made.positive
    seen = positive & (graph.visits > 0)
    tested = ~np.isnan(found.p)
    alarmed = [said for said in found.groups if said.alarm]
    hidden = getattr(table_of(setting).world, "hide_key", False)
    key = key_text(setting) if hidden else ""
    named = [said.w >= 0 and graph.batch.text(int(graph.node_text[said.w])) == key for said in alarmed]
    visited = [next((e for e in said.effects if e.rule.startswith("visited")), None) for said in alarmed]
    offered = [said.rule.startswith("visited" if hidden else "guard") for said in found.groups if said.nodes]
    ends = [e is not None and e.silenced for e in visited]
    return Row(
        setting=setting.name,
        size=size,
        groups=groups,
        steps=made.paths.n_steps.mean(),
        cut=float((~made.paths.terminated).mean()),
        alarms=len(alarmed) / groups,
        recall=share(found.flag & seen, seen),
        recall_tested=share(found.flag & seen & tested, seen & tested),
        flagged_clean=share(found.flag & tested & ~positive, tested & ~positive),
        innocent=share(found.flag & ~positive, found.flag) if positive.any() else float("nan"),
        named=share(named, np.ones(len(named))) if hidden else float("nan"),
        silenced=share(ends, np.ones(len(ends))) if hidden else float("nan"),
        proposed=share(offered, np.ones(len(offered))) if hidden or setting is DANCED else float("nan"),
        seconds=took,
        flagged_groups=share([bool(said.nodes) or said.alarm for said in found.groups], np.ones(groups)),
    )


HEAD = (
    "| world | G | groups | steps | cut | groups alarmed | merges found | of the tested | clean nodes flagged | "
    "innocent among named | W is the key | alarm silenced | right rule first | groups with alarm or flag | s |\n|"
    + "---|" * 15
)


def percent(value: float) -> str:
    return "–" if np.isnan(value) else f"{100 * value:.1f} %"


def line(row: Row) -> str:
    shares = [row.alarms, row.recall, row.recall_tested, row.flagged_clean, row.innocent]
    shares += [row.named, row.silenced, row.proposed]
    cells = [row.setting, row.size, row.groups, f"{row.steps:.0f}", percent(row.cut), *map(percent, shares)]
    return "| " + " | ".join(map(str, [*cells, percent(row.flagged_groups), f"{row.seconds:.1f}"])) + " |"


def plan(quick: bool) -> list[tuple[Setting, int, int]]:
    """(setting, groups, G) of every line."""
    few = 10 if quick else 1
    lines = [(HIDDEN[4], 40, 16), (CLEAN[4], 200, 16), (DANCED, 40, 16), (ICE, 200, 16)]
    if not quick:
        lines += [(HIDDEN[5], 40, 16), (CLEAN[5], 100, 16), (HOUSE, 100, 16), (HIDDEN_CUT, 40, 16), (CLEAN_CUT, 100, 16)]
        lines += [(BLIND, 40, 16), (BLIND, 40, 64)]
        lines += [(setting, 40, size) for size in SIZES if size != 16 for setting in (HIDDEN[4], HIDDEN[5], DANCED)]
        lines += [(setting, 100, size) for size in (8, 32) for setting in (CLEAN[4], ICE)]
        lines += [(CLEAN[4], 40, 64)]
    return [(setting, groups // few, size) for setting, groups, size in lines]


def table(seed: int, quick: bool = False, out: Callable[[str], None] | None = None) -> list[Row]:
    """All lines, each passed to `out` as soon as it is there."""
    rows = []
    for setting, groups, size in plan(quick):
        rows.append(measure(setting, groups, size, seed))
        if out is not None:
            out(line(rows[-1]))
    return rows


TARGETS = (
    "at G = 16: alarm >= 95 % hidden, <= 6 % clean; merges found >= 75 %, clean nodes flagged <= 5 % over clean groups; "
    "W the key and alarm silenced >= 80 %; “Nothing happens.” found >= 90 %"
)


def failures(rows: Sequence[Row]) -> list[str]:
    """What misses the targets of method.md sec. 6; one sentence each."""
    by = {(row.setting, row.size): row for row in rows}
    hidden, clean = by[HIDDEN[4].name, 16], by[CLEAN[4].name, 16]
    danced, ice = by[DANCED.name, 16], by[ICE.name, 16]
    wanted = [
        ("hidden groups alarmed", hidden.alarms, 0.95, 1.0),
        ("clean groups alarmed", clean.alarms, 0.0, 0.06),
        ("merges found", hidden.recall, 0.75, 1.0),
        ("clean nodes flagged in clean groups", clean.flagged_clean, 0.0, 0.05),
        ("W is the key", hidden.named, 0.80, 1.0),
        ("alarm silenced", hidden.silenced, 0.80, 1.0),
        ("“Nothing happens.” found", danced.recall, 0.90, 1.0),
        ("slippery groups alarmed", ice.alarms, 0.0, 0.06),
        ("slippery nodes flagged", ice.flagged_clean, 0.0, 0.05),
    ]
    missed = [one for one in wanted if not one[2] <= one[1] <= one[3]]
    return [f"{what}: {percent(got)}, expected {percent(low)} to {percent(high)}" for what, got, low, high in missed]


def speed(seed: int) -> None:
    """Seconds for batches of about 6,400 steps, compiled loops ready."""
    suspects(sample(CLEAN[4], 1, 8, seed).graph)
    batches = [(HIDDEN[4], 7, 16), (CLEAN[4], 7, 16), (HIDDEN[4], 2, 64), (DANCED, 14, 16), (DANCED, 1, 224), (ICE, 12, 16)]
    for setting, groups, size in batches:
        made = sample(setting, groups, size, seed)
        began = time.perf_counter()
        suspects(made.graph)
        took = time.perf_counter() - began
        print(f"{setting.name}: {groups} groups of {size}, {made.graph.batch.n_steps:,} steps, {took:.2f} s")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description="suspect merges against known truth")
    parser.add_argument("--quick", action="store_true", help="a tenth of the groups at G = 16 only")
    parser.add_argument("--tuning", action="store_true", help="the seed on which the procedure was chosen")
    parser.add_argument("--time", action="store_true", help="time batches of about 6,400 steps instead")
    given = parser.parse_args(arguments)
    seed = TUNING_SEED if given.tuning else FRESH_SEED
    if given.time:
        speed(seed)
        return 0
    print(f"Seed {seed}; {TARGETS}\n\n{HEAD}", flush=True)
    missed = failures(table(seed, given.quick, lambda text: print(text, flush=True)))
    print("\n" + ("\n".join(missed) or "All targets are met."))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
