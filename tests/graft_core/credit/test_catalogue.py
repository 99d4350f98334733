"""The rest of the catalogue by pencil and against loops, with its degenerate cases (method.md sec. 5)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk
from slow_catalogue import gain_of, gated, slow_hgpo, worth_of
from slow_reference import build, by_row, grouped_mean, grouped_standard, standardised

import graft_core as gc
from graft_core.errors import NotComputableError

NAN = float("nan")
SEEDS = range(8)


def close(found: Any, wanted: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance, equal_nan=True)


def rows_of(seed: int, **odds: float) -> list[dict[str, Any]]:
    return random_rows(seed, groups=3, **({"unknown": 0.2, "no_final": 0.2, "scores": 0.3, "empty": 0.1} | odds))


def rollouts_of(rows: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[float | None, int]]:
    """Outcome and length of each rollout."""
    found: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        entry = found.setdefault((row["group_id"], row["rollout_id"]), [row["outcome"], 0])
        entry[1] += row["step"] is not None
    return {key: (outcome, length) for key, (outcome, length) in found.items()}


def per_rollout(rows: list[dict[str, Any]], credit: dict[tuple[str, str], float]) -> list[float]:
    return [credit.get((r["group_id"], r["rollout_id"]), NAN) for r in rows if r["step"] is not None]


# -- outcomes only ---------------------------------------------------------------------------------------------


def test_reinforce_pp_baseline_against_loops() -> None:
    for seed in SEEDS:
        rows = rows_of(seed) + walk("only", "S:x", 0.7, group="lonely")
        known = {k: r for k, (r, _) in rollouts_of(rows).items() if r is not None}
        x = {}
        for key, outcome in known.items():
            peers = [r for k, r in known.items() if k[0] == key[0]]
            if len(peers) > 1:
                spread = max(peers) - min(peers) > 1e-9 + 1e-6 * max(abs(r) for r in peers)
                x[key] = outcome - sum(peers) / len(peers) if spread else 0.0
        scaled = dict(zip(x, standardised(list(x.values())), strict=True))
        close(gc.estimate(batch_of(rows), "reinforce_pp_baseline"), per_rollout(rows, dict.fromkeys(known, 0.0) | scaled))


def test_reinforce_pp_baseline_by_pencil() -> None:
    rows = walk("a", "S:x", 1.0) + walk("b", "S:x", 0.0) + walk("c", "S:x", 3.0, group="h") + walk("d", "S:x", 1.0, group="h")
    x = np.array([0.5, -0.5, 1.0, -1.0])
    close(gc.estimate(batch_of(rows), "reinforce_pp_baseline", eps=0.0), x / np.std(x, ddof=1))
    close(gc.estimate(batch_of(rows), "reinforce_pp_baseline", eps=0.0, ddof=0), x / np.std(x))


def test_opo_against_loops() -> None:
    for seed in SEEDS:
        rows = rows_of(seed)
        found = rollouts_of(rows)
        credit = {}
        for key, (outcome, _) in found.items():
            peers = [(r, length) for k, (r, length) in found.items() if k[0] == key[0] and r is not None]
            if outcome is not None and sum(length for _, length in peers):
                credit[key] = outcome - sum(r * length for r, length in peers) / sum(length for _, length in peers)
        close(gc.estimate(batch_of(rows), "opo"), per_rollout(rows, credit))
    flat = walk("a", "S:x S:x", 0.35 + 1e-8) + walk("b", "S:x", 0.35 - 1e-8)
    assert (gc.estimate(batch_of(flat), "opo") == 0).all()


def test_maxrl() -> None:
    rows = walk("a", "S:x", 1.0) + walk("b", "S:x", 0.0) + walk("c", "S:x", 0.9) + walk("d", "S:x", None)
    rows += walk("e", "S:x", 0.0, group="h") + walk("f", "S:x", 0.2, group="h")
    rows += walk("i", "S:x", 1.0, group="k") + walk("j", "S:x", 5.0, group="k")
    close(gc.estimate(batch_of(rows), "maxrl"), [2, -1, -1, NAN, 0, 0, 0, 0], 1e-12)
    flagged = walk("a", "S:x", 0.2, success=True) + walk("b", "S:x", 0.9, success=False)
    close(gc.estimate(batch_of(flagged), "maxrl"), [1, -1], 1e-12)


def test_grpo_step_index_against_loops() -> None:
    for seed in SEEDS:
        rows = rows_of(seed)
        slow, batch = build(rows), batch_of(rows)
        outcome = by_row(slow, lambda s: s.outcome)
        close(gc.estimate(batch, "grpo_step_index"), grouped_standard(slow, outcome, lambda s: (s.group, s.rank)))
        remaining = [NAN] * slow.n_rows
        for s in slow.steps:
            mine = [x for x in slow.steps if (x.group, x.rollout) == (s.group, s.rollout) and x.rank >= s.rank]
            remaining[s.row] = sum(x.reward for x in mine)
        close(
            gc.estimate(batch, "grpo_step_index", rewards="dense"),
            grouped_standard(slow, remaining, lambda s: (s.group, s.rank)),
        )


def test_sas_against_loops() -> None:
    rows = []
    for r, (length, outcome) in enumerate([(10, 1.0), (10, 0.0), (7, 1.0), (3, 0.0), (4, 0.0), (20, None)]):
        logprob = [-((7 * t + 3 * r) % 5) / 10 for t in range(length)]  # with ties
        rows += walk(f"r{r}", " ".join(f"s{t}:x" for t in range(length)), outcome, logprob=logprob)
    batch = batch_of(rows)
    grpo, found = gc.estimate(batch, "grpo"), gc.estimate(batch, "sas")
    start = 0
    for length, outcome in [(10, 1.0), (10, 0.0), (7, 1.0), (3, 0.0), (4, 0.0)]:
        chosen = [row["logprob"] for row in rows[start : start + length]]
        order = sorted(range(length), key=lambda t, c=chosen, o=outcome: (c[t] if o else -c[t], t))
        zeroed = set(order[: math.floor(0.3 * length + 1e-9)])
        for t in range(length):
            assert found[start + t] == (0.0 if t in zeroed else grpo[start + t])
        start += length
    assert np.isnan(found[start:]).all()


def test_sas_needs_log_probs_on_every_step() -> None:
    rows = walk("a", "S:x " * 4, 1.0, logprob=[-0.1, None, -0.3, -0.4]) + walk("b", "S:x " * 4, 0.0, logprob=[-4, -3, -2, -1])
    found = gc.estimate(batch_of(rows), "sas")
    assert np.isnan(found[:4]).all()
    grpo = gc.estimate(batch_of(rows), "grpo")
    assert found[4:].tolist() == [grpo[4], grpo[5], grpo[6], 0.0]
    bare = batch_of(walk("a", "S:x", 1.0))
    with pytest.raises(NotComputableError, match="sas needs the step column 'logprob', which this file does not have"):
        gc.estimate(bare, "sas")


# -- nodes -----------------------------------------------------------------------------------------------------


def test_rtmc_against_loops() -> None:
    for seed in SEEDS:
        rows = rows_of(seed)
        slow = build(rows)
        for gamma in (0.9, 1.0):
            returns = by_row(slow, lambda s, g=gamma: g**s.remaining * s.outcome)
            of_action = grouped_mean(slow, returns, lambda s: (s.node, s.action))
            of_node = grouped_mean(slow, returns, lambda s: s.node)
            close(gc.estimate(batch_of(rows), "rtmc", gamma=gamma), np.array(of_action) - np.array(of_node), 2e-6)


def test_salt_against_loops() -> None:
    for seed in SEEDS:
        rows = rows_of(seed)
        slow, batch = build(rows), batch_of(rows)
        for options in ({}, {"statistics": "steps"}, {"singleton": "raw"}):
            grpo = list(gc.estimate(batch, "grpo", **options))
            wanted = grouped_mean(slow, grpo, lambda s: (s.node, s.action, s.to))
            close(gc.estimate(batch, "salt", **options), wanted)
            close(gc.estimate(batch, "salt", sinks="merge", **options), wanted)


@pytest.mark.parametrize("k", [0, 1, 2, 5])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.5])
def test_hgpo_against_loops(k: int, alpha: float) -> None:
    for seed in range(4):
        rows = rows_of(seed)
        slow = build(rows)
        returns = by_row(slow, lambda s: 0.95**s.remaining * s.outcome)
        close(gc.estimate(batch_of(rows), "hgpo", k=k, alpha=alpha), slow_hgpo(slow, returns, k, alpha))


def test_graphgpo_against_loops() -> None:
    for seed in SEEDS:
        rows = rows_of(seed)
        slow, batch = build(rows), batch_of(rows)
        for omega in (0.1, 0.8):
            worth = worth_of(rows, slow, omega)
            wanted = np.array(grouped_standard(slow, worth, lambda s: s.node)) + gc.estimate(batch, "grpo")
            for sinks in ("split", "merge", "bootstrap"):
                close(gc.estimate(batch, "graphgpo", omega=omega, sinks=sinks), wanted)


def test_rewardflow_against_loops() -> None:
    for seed in SEEDS:
        rows = rows_of(seed)
        slow, batch = build(rows), batch_of(rows)
        for gamma in (0.5, 0.99, 1.0):
            gain = gain_of(rows, slow, gamma)
            wanted = np.array(grouped_standard(slow, gain, lambda s: s.node)) + gc.estimate(batch, "grpo")
            close(gc.estimate(batch, "rewardflow", gamma=gamma), wanted)


def test_distances_by_pencil() -> None:
    rows = walk("win", "S:x A:x", 1.0, "A") + walk("lose", "S:y B:y", 0.0, "A") + walk("lost", "S:z C:z", 0.0, "Q")
    # the last step of the winner leads to success, not to A; the loser's last step leads to A, one hop from success
    credit = gc.estimate(batch_of(rows), "graphgpo", omega=0.5) - gc.estimate(batch_of(rows), "grpo")
    # d: A 1, S 2, B 2, C unreachable = 4 (the largest finite is 2, plus 1): S compares 10/2, 10/4, 10/8
    scaled = standardised([10 * 0.5, 10 * 0.25, 10 * 0.125])
    close(credit, [scaled[0], 0, scaled[1], 0, scaled[2], 0])


def test_no_success_means_no_distance() -> None:
    rows = walk("a", "S:x A:x", 0.0, "E") + walk("b", "S:y S:z", 0.5, "A") + walk("c", "S:y", 0.2)
    for name in ("graphgpo", "rewardflow"):
        close(gc.estimate(batch_of(rows), name), gc.estimate(batch_of(rows), "grpo"), 0)


@pytest.mark.parametrize("name", ["graphgpo", "rewardflow", "gigpo"])
def test_episode_parts_follow_statistics_and_singleton(name: str) -> None:
    rows = rows_of(2, empty=0.0) + walk("only", "S:x S:y", 0.7, group="lonely")
    batch = batch_of(rows)
    for options in ({"statistics": "steps"}, {"singleton": "raw"}, {"statistics": "steps", "singleton": "raw"}):
        difference = gc.estimate(batch, name, **options) - gc.estimate(batch, name)
        close(difference, gc.estimate(batch, "grpo", **options) - gc.estimate(batch, "grpo"))


def test_bepo_gate() -> None:
    for seed in SEEDS:
        rows = rows_of(seed)
        for sinks in ("split", "merge", "bootstrap"):
            slow, batch = build(rows, sinks), batch_of(rows)
            graph_part = gc.estimate(batch, "path_gae", sinks=sinks, lam=0.5, per="action")
            rest = gc.estimate(batch, "dr_grpo")
            wanted = gated(slow, graph_part, rest)
            close(gc.estimate(batch, "bepo_gated", sinks=sinks, lam=0.5, per="action"), wanted)
