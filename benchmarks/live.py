"""What Live does here: speed of the tiny model, the hidden-key case, and how often a certain finding is confirmed.

    python benchmarks/live.py [tiny] [hidden] [probe]        # all three by default; about five minutes

tiny: FrozenLake 8x8 from the shipped checkpoint, 16 rollouts of at most 100 turns per update, path GAE, step size 0.002, two
epochs. hidden: `graft live --env key-door --graph-key no-key` with its defaults. probe: good steps of failed household rollouts
that are marked beyond luck, by stated certainty: 64 continuations by the policy that made them, from the step and
from the policy's own choice. Seeds are 0, 1, 2, ... throughout and were fixed before anything was looked at.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from graft_core.environments.household_tasks import TASKS
from graft_core.insight import findings
from graft_core.live.behaviour import scripted
from graft_core.live.games import make_game
from graft_core.live.policy import UpdateOptions
from graft_core.live.probe import Check, check_step, summary_by
from graft_core.live.restore import Restorer
from graft_core.live.run import LiveSettings, run_live
from graft_core.live.sampler import Plan, sample
from graft_core.live.start import PolicyOptions, make_policy
from graft_core.live.table import first_update_at, table_text
from graft_core.live.trainer import TrainOptions, learn

SKILL = 0.4
TURNS = 20
GROUP = 32


def tiny(seeds: int = 5, updates: int = 15, estimator: str = "path_gae") -> list[dict[str, Any]]:
    """Per seed: success by update, median and largest seconds of sampling and updating (after the first, warming update)."""
    game, rows = make_game("frozen-lake"), []
    options = TrainOptions(estimator, update=UpdateOptions(2e-3, 2))
    for seed in range(seeds):
        policy = make_policy(PolicyOptions("tiny", device="cpu"), game, seed)
        success, sampling, updating = [], [], []
        for update in range(1, updates + 1):
            start = time.perf_counter()
            found = sample(game, policy, Plan(1, 16, game.turns, (seed, update), update))
            middle = time.perf_counter()
            learn(policy, found, options)
            sampling.append(middle - start)
            updating.append(time.perf_counter() - middle)
            success.append(found.success)
        passed = first_update_at([{"update": k + 1, "success": s} for k, s in enumerate(success)])
        rows.append(
            {
                "seed": seed, "success": success, "passed": passed, "sampling": float(np.median(sampling[1:])),
                "sampling_most": max(sampling[1:]), "updating": float(np.median(updating[1:])),
                "updating_most": max(updating[1:]),
            }
        )  # fmt: skip
    return rows


def hidden(seeds: int = 10) -> tuple[list[dict[str, Any]], LiveSettings, float]:
    """The table of the hidden-key case, its settings, and how many seconds it took."""
    game = make_game("key-door")
    settings = LiveSettings(
        "key-door", estimators={"graft_td": {}, "path_gae": {"lam": 0.95}, "grpo": {}}, rules=game.rules("no-key"), updates=60,
        seeds=tuple(range(seeds)), turns=game.turns, loss="sum", update=UpdateOptions(3.0, 1), record="none",
    )  # fmt: skip
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        rows = run_live(settings, Path(folder) / "run")
    return rows, settings, time.perf_counter() - start


def probe(batches: int = 10, most: int = 10, tries: int = 64, beyond: bool = True) -> tuple[list[dict[str, Any]], list[Check]]:
    """By stated certainty how many findings are confirmed; `beyond`: only those beyond luck, else the `most` best per batch."""
    game = make_game("household")
    game = replace(game, tasks=tuple(TASKS))
    policy = scripted(game, SKILL)
    checks, words = [], []
    for seed in range(batches):
        batch = sample(game, policy, Plan(len(TASKS), GROUP, TURNS, (seed,))).batch
        found = findings(batch)
        assert found.chance is not None and found.certainty is not None
        picked = [p for p in found.good.tolist() if found.chance.beyond[p] or not beyond]
        one_each = list({int(found.graph.edge[p]): p for p in reversed(picked)}.values())[::-1]
        restorer = Restorer(game, batch)
        for p in one_each if beyond else one_each[:most]:
            credit = float(found.credit[p])
            checks.append(check_step(game, restorer, p, credit, policy, tries, TURNS, seed, rivals=False))
            words.append(found.certainty.word(int(found.graph.edge[p])))
    return summary_by(checks, words) if checks else [], checks


def main(wanted: list[str]) -> None:
    if "tiny" in wanted:
        print("| seed | success at update 1, 5, 10, 15 | passes 0.8 at | sampling s (most) | updating s (most) |")
        print("|---|---|---|---|---|")
        for row in tiny():
            at = ", ".join(f"{row['success'][k - 1]:.2f}" for k in (1, 5, 10, 15))
            took = f"{row['sampling']:.3f} ({row['sampling_most']:.3f}) | {row['updating']:.3f} ({row['updating_most']:.3f})"
            print(f"| {row['seed']} | {at} | {row['passed'] or 'never'} | {took} |", flush=True)
    if "hidden" in wanted:
        rows, settings, seconds = hidden()
        print(f"\n{table_text(rows, settings)}\nall of it: {seconds:.0f} s", flush=True)
    if "probe" in wanted:
        for beyond in (True, False):
            rows, _ = probe(beyond=beyond)
            print("\nbeyond luck" if beyond else "\nthe ten best findings of each batch, beyond luck or not")
            print("| stated certainty | findings | confirmed | share | 95 % | contradicted |\n|---|---|---|---|---|---|")
            for row in rows:
                cells = f"{row['checks']} | {row['confirmed']} | {row['share']:.2f} | {row['low']:.2f} to {row['high']:.2f}"
                print(f"| {row['certainty']} | {cells} | {row['contradicted']} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["tiny", "hidden", "probe"])
