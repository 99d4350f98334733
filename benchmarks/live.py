"""What Live does here: speed of the tiny model, the hidden-key case, and how often a certain finding is confirmed.

    python benchmarks/live.py [tiny] [hidden] [probe] [cuda]        # all by default; about five minutes

tiny: FrozenLake 8x8 from the shipped checkpoint, 16 rollouts of at most 100 turns per update, path GAE, step size 0.002, two
epochs. hidden: `graft live --env key-door --graph-key no-key` with its defaults. probe: good steps of failed household
rollouts that are marked beyond luck, by stated certainty: 64 continuations by the policy that made them, from the step and
from the policy's own choice; "truly good" counts those whose exact advantage is above 0. cuda: a model of half a billion
random weights scores the actions of 16 x 8 household rollouts (speed only). Seeds are 0, 1, 2, ... throughout and were fixed
before anything was looked at.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from graft_core.environments import make_world
from graft_core.environments.household_tasks import TASKS
from graft_core.environments.policies import scripted_policy
from graft_core.environments.tables import Table, compile_world
from graft_core.fidelity.truth import FiniteTruth, finite_values
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
    exact = {task: _exact(task) for task in TASKS}
    checks, words, truly = [], [], []
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
            table, truth = exact[checks[-1].group_id]
            pair = table.pair(table.numbers[restorer.place(p).saved], checks[-1].action)
            truly.append(float(truth.a(TURNS - int(batch.rank[p]))[pair]) > 0)
    rows = summary_by(checks, words) if checks else []
    for row in rows:
        row["truly"] = sum(good for good, word in zip(truly, words, strict=True) if word == row["certainty"])
    return rows, checks


def _exact(task: str) -> tuple[Table, FiniteTruth]:
    """The task's table and the true values of the policy that plays."""
    table = compile_world(make_world("household", task=task))
    return table, finite_values(table, scripted_policy(table, SKILL), TURNS)


def cuda(turns: int = 8, device: str = "cuda") -> str:
    """Speed and memory of a 0.5 B-class model with random weights on 16 x 8 household rollouts, or why there is none."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        return "cuda: skipped, there is no CUDA device here"
    from transformers import LlamaConfig, LlamaForCausalLM

    from graft_core.live.lm import LMOptions, LMPolicy
    from graft_core.live.models import plain_words, word_tokenizer

    game = make_game("household")
    tokenizer = word_tokenizer([game.make(task).reset(0) for task in game.tasks])
    shape = LlamaConfig(
        vocab_size=32_000, hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16,
        num_key_value_heads=16,
    )  # fmt: skip
    with torch.device(device):
        model = LlamaForCausalLM(shape).to(torch.bfloat16).eval()
    policy = LMPolicy(model, tokenizer, device, LMOptions(batch=1024), plain_words, "half a billion random weights")
    plan = Plan(16, 8, turns)
    sample(game, policy, replace(plan, turns=1))
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    policy.tokens, start = 0, time.perf_counter()
    found = sample(game, policy, plan)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    weights, peak = sum(p.numel() for p in model.parameters()) / 1e6, torch.cuda.max_memory_allocated() / 2**30
    return (
        f"{torch.cuda.get_device_name()}: {weights:.0f} M weights, {found.n_steps} steps in {seconds:.2f} s, "
        f"{policy.tokens / seconds:,.0f} tokens/s, {peak:.1f} GiB at most"
    )


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
            print("| stated certainty | findings | confirmed | share | 95 % | contradicted | truly good |")
            print("|---|---|---|---|---|---|---|")
            for row in rows:
                cells = f"{row['checks']} | {row['confirmed']} | {row['share']:.2f} | {row['low']:.2f} to {row['high']:.2f}"
                print(f"| {row['certainty']} | {cells} | {row['contradicted']} | {row['truly']} |", flush=True)
    if "cuda" in wanted:
        print(f"\n{cuda()}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["tiny", "hidden", "probe", "cuda"])
