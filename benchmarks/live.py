"""What Live does here: speed of the tiny model, the hidden-key case, and how often a certain finding is confirmed.

    python benchmarks/live.py [tiny] [hidden] [probe] [history] [cuda]        # all by default; about ten minutes

tiny: FrozenLake 8x8 from the shipped checkpoint, 16 rollouts of at most 100 turns per update, path GAE, step size 0.002, two
epochs. hidden: `graft live --env key-door --graph-key no-key` with its defaults. probe: good steps of failed household
rollouts by stated certainty: 64 continuations by the policy that made them, from the step and from the policy's own choice;
their signs should agree as often as the stated interval and the noise of the continuations let expect; "truly good" counts
those whose exact advantage is above 0. history: prompts that hold the whole past, read whole and remembered. cuda: a model of
half a billion random weights scores the actions of 16 x 8 household rollouts (speed only). Seeds are 0, 1, 2, ... throughout
and were fixed before anything was looked at.
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
from graft_core.live.probe import Check, check_step
from graft_core.live.restore import Restorer
from graft_core.live.run import LiveSettings, run_live
from graft_core.live.sampler import Plan, sample
from graft_core.live.start import PolicyOptions, make_policy
from graft_core.live.stated import by_certainty, certainty_table, stated_at
from graft_core.live.table import first_update_at, table_text
from graft_core.live.trainer import TrainOptions, learn

SKILL = 0.4
TURNS = 20
GROUP = 32
PICKS = {
    "beyond": "all findings beyond luck",
    "any": "ten findings of each batch picked at random, beyond luck or not",
    "best": "the ten best findings of each batch, beyond luck or not",
}


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


def probe(which: str = "beyond", batches: int = 10, tries: int = 64) -> tuple[list[dict[str, Any]], list[Check]]:
    """By stated certainty how many findings hold: of each batch all `beyond` luck, the `best` ten, or `any` ten.

    `truly`, in the row `all`: how many have an exact advantage above 0, in `exact` their mean.
    """
    game = make_game("household")
    game = replace(game, tasks=tuple(TASKS))
    policy = scripted(game, SKILL)
    exact = {task: _exact(task) for task in TASKS}
    checks, stated, truly = [], [], []
    for seed in range(batches):
        batch = sample(game, policy, Plan(len(TASKS), GROUP, TURNS, (seed,))).batch
        found = findings(batch)
        assert found.chance is not None and found.certainty is not None
        picked = [p for p in found.good.tolist() if found.chance.beyond[p] or which != "beyond"]
        one_each = list({int(found.graph.edge[p]): p for p in reversed(picked)}.values())[::-1]
        restorer = Restorer(game, batch)
        if which == "any":
            np.random.default_rng(seed).shuffle(one_each)
        for p in one_each if which == "beyond" else one_each[:10]:
            credit = float(found.credit[p])
            checks.append(check_step(game, restorer, p, credit, policy, tries, TURNS, seed, rivals=False))
            stated.append(stated_at(found.certainty, int(found.graph.edge[p])))
            table, truth = exact[checks[-1].group_id]
            pair = table.pair(table.numbers[restorer.place(p).saved], checks[-1].action)
            truly.append(float(truth.a(TURNS - int(batch.rank[p]))[pair]))
    rows = by_certainty(checks, stated)
    said = np.array([one is not None for one in stated])
    rows[-1] |= {"truly": int((np.array(truly)[said] > 0).sum()), "exact": float(np.mean(np.array(truly)[said]))}
    return rows, checks


def _exact(task: str) -> tuple[Table, FiniteTruth]:
    """The task's table and the true values of the policy that plays."""
    table = compile_world(make_world("household", task=task))
    return table, finite_values(table, scripted_policy(table, SKILL), TURNS)


def history(
    hidden: int = 64, layers: int = 2, rollouts: int = 16, turns: int = 20, device: str = "cpu"
) -> dict[str, Any]:
    """Seconds and tokens to sample household rollouts whose prompts hold the whole past: read whole, then remembered.

    A model of random weights scores the actions, each divided by its tokens, so that rollouts differ. `same`: whether the
    actions are; `apart`: the largest difference of a log-probability.
    """
    import torch

    from graft_core.live.lm import LMOptions, LMPolicy
    from graft_core.live.models import plain_words, tiny_model, word_tokenizer

    game = make_game("household:task=heat mug")
    table = _exact("heat mug")[0]
    tokenizer = word_tokenizer([">", *game.goals.values(), *table.observations, *set(table.pair_action)])
    model = tiny_model(tokenizer, 0, hidden, layers).to(device).eval()
    torch.set_num_threads(1 if hidden < 256 else torch.get_num_threads())
    row: dict[str, Any] = {"weights": sum(p.numel() for p in model.parameters()) / 1e6}
    found = []
    for remembers in (False, True):
        options = LMOptions(length_normalised=True, remembers=remembers)
        policy = LMPolicy(model, tokenizer, device, options, plain_words, "random weights")
        sample(game, policy, Plan(1, 2, 3, (9,), history=turns))  # warms up
        policy.reader.tokens, start, work = 0, time.perf_counter(), time.process_time()
        found.append(sample(game, policy, Plan(1, rollouts, turns, history=turns)))
        word = "remembered" if remembers else "whole"
        row[word] = (time.perf_counter() - start, time.process_time() - work, policy.reader.tokens)
    row["same"] = [c.action for c in found[0].choices] == [c.action for c in found[1].choices]
    row["apart"] = max(abs(a.logprob - b.logprob) for a, b in zip(found[0].choices, found[1].choices, strict=False))
    return row


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
    policy.reader.tokens, start = 0, time.perf_counter()
    found = sample(game, policy, plan)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    weights, peak = sum(p.numel() for p in model.parameters()) / 1e6, torch.cuda.max_memory_allocated() / 2**30
    return (
        f"{torch.cuda.get_device_name()}: {weights:.0f} M weights, {found.n_steps} steps in {seconds:.2f} s, "
        f"{policy.reader.tokens / seconds:,.0f} tokens/s, {peak:.1f} GiB at most"
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
        for which, meaning in PICKS.items():
            rows, _ = probe(which)
            print(f"\n{meaning}")
            print(f"{certainty_table(rows)}\ntruly good, by exact dynamics: {rows[-1]['truly']} of {rows[-1]['checks']}, mean "
                  f"advantage {rows[-1]['exact']:+.3f}", flush=True)  # fmt: skip
    if "history" in wanted:
        print("\n| million weights | read whole: s (CPU s), tokens | remembered | CPU faster | same actions | log-prob apart |")
        print("|---|---|---|---|---|---|")
        for shape in ((64, 2, 16, 20), (256, 6, 16, 20), (704, 12, 8, 12)):
            row = history(*shape)
            cells = " | ".join(f"{row[w][0]:.2f} ({row[w][1]:.2f}), {row[w][2]:,}" for w in ("whole", "remembered"))
            faster = row["whole"][1] / row["remembered"][1]
            print(f"| {row['weights']:.1f} | {cells} | {faster:.1f} | {row['same']} | {row['apart']:.1e} |", flush=True)
    if "cuda" in wanted:
        print(f"\n{cuda()}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["tiny", "hidden", "probe", "history", "cuda"])
