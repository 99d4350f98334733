"""The rest of the catalogue by pencil and against loops, with its degenerate cases (method.md sec. 5)."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict, deque
from typing import Any

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk
from slow_reference import Slow, build, by_row, grouped_mean, grouped_standard, standardised

import graft_core as gc
from graft_core.credit.base import CreditWarning
from graft_core.errors import NotComputableError, UsageError

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


def slow_hgpo(slow: Slow, returns: list[float], k: int, alpha: float, eps: float = 1e-6) -> list[float]:
    paths: dict[Any, list[Any]] = defaultdict(list)
    for s in slow.steps:
        paths[s.group, s.rollout].append(s)
    total, weights = defaultdict(float), defaultdict(float)
    for level in range(1, k + 2):
        groups: dict[Any, list[int]] = defaultdict(list)
        for path in paths.values():
            for t, s in enumerate(path):
                if s.outcome is not None and t + 1 >= level:
                    groups[tuple(x.node for x in path[t - level + 1 : t + 1])].append(s.row)
        for members in groups.values():
            if len(members) < 2:
                continue
            items = standardised([returns[row] for row in members], ddof=0)
            for row, item in zip(members, items, strict=True):
                if abs(item) > 1e-7:
                    total[row] += (level + 1) ** alpha * item
                    weights[row] += (level + 1) ** alpha
    return by_row(slow, lambda s: total[s.row] / (weights[s.row] + eps) if weights[s.row] else 0.0)


@pytest.mark.parametrize("k", [0, 1, 2, 5])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.5])
def test_hgpo_against_loops(k: int, alpha: float) -> None:
    for seed in range(4):
        rows = rows_of(seed)
        slow = build(rows)
        returns = by_row(slow, lambda s: 0.95**s.remaining * s.outcome)
        close(gc.estimate(batch_of(rows), "hgpo", k=k, alpha=alpha), slow_hgpo(slow, returns, k, alpha))


def slow_hops(rows: list[dict[str, Any]], slow: Slow) -> tuple[dict[Any, float], dict[Any, Any], dict[str, int]]:
    """d of every node, where each step leads (by row), and the largest finite d of each group."""
    leads: dict[int, Any] = {}
    finals = {(r["group_id"], r["rollout_id"]): r.get("next_observation") for r in rows if r["step"] is not None}
    for i, s in enumerate(slow.steps):
        if s.remaining:
            leads[s.row] = slow.steps[i + 1].node
        elif s.outcome is not None and s.outcome >= 1 - 1e-6:
            leads[s.row] = ("success", s.group)
        elif finals[s.group, s.rollout] is None:
            leads[s.row] = ("nowhere", s.group, s.rollout)
        else:
            leads[s.row] = (s.group, finals[s.group, s.rollout])
    back: dict[Any, set[Any]] = defaultdict(set)
    for s in slow.steps:
        if s.outcome is not None:
            back[leads[s.row]].add(s.node)
    distance: dict[Any, float] = {}
    farthest: dict[str, int] = {}
    for group in {s.group for s in slow.steps}:
        queue, near = deque([("success", group)]), {("success", group): 0}
        while queue:
            here = queue.popleft()
            for node in back[here]:
                if node not in near:
                    near[node] = near[here] + 1
                    queue.append(node)
        farthest[group] = max(near.values())
        distance |= near
    return distance, leads, farthest


def worth_of(rows: list[dict[str, Any]], slow: Slow, omega: float) -> list[float]:
    """10 omega^d(s') by row."""
    distance, leads, farthest = slow_hops(rows, slow)
    return by_row(slow, lambda s: 10 * omega ** distance.get(leads[s.row], farthest[s.group] + 1))


def gain_of(rows: list[dict[str, Any]], slow: Slow, gamma: float) -> list[float]:
    """gamma^d(s') - gamma^d(s) by row, 0 in place of what cannot be reached."""
    distance, leads, _ = slow_hops(rows, slow)

    def value(node: Any) -> float:
        return gamma ** distance[node] if node in distance else 0.0

    return by_row(slow, lambda s: value(leads[s.row]) - value(s.node))


def gated(slow: Slow, inside: list[float], outside: list[float]) -> list[float]:
    """`inside` where the node has two or more successors, else `outside`."""
    after: dict[Any, set[Any]] = defaultdict(set)
    for u, _, v in slow.count:
        after[u].add(v)
    return by_row(slow, lambda s: inside[s.row] if len(after[s.node]) > 1 else outside[s.row])


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


# -- normalisation and critic ----------------------------------------------------------------------------------


def test_task_norm_by_family() -> None:
    rows = []
    for r, (family, outcome, length) in enumerate([("cook", 1.0, 2), ("cook", 0.0, 1), ("heat", 1.0, 3), ("heat", 0.0, 2)]):
        rows += walk(f"r{r}", "S:x " * length, outcome, group=family, task_family=family)
    rows += walk("u", "S:x", None, group="cook", task_family="cook")
    batch = batch_of(rows)
    base = gc.estimate(batch, "dr_grpo")
    wanted = [*standardised(list(base[:3])), *standardised(list(base[3:8])), NAN]
    close(gc.estimate(batch, "task_norm", base="dr_grpo"), wanted)
    close(gc.estimate(batch, "task_norm"), [*standardised(list(gc.estimate(batch, "grpo")[:3])), *wanted[3:]], 1e-5)


def test_task_norm_without_families_is_one_family() -> None:
    rows = rows_of(3)
    batch = batch_of(rows)
    for base, options in (("grpo", {}), ("graft_td", {"gamma": 0.9}), ("path_gae", {"lam": 0.5}), ("hgpo", {})):
        credit = gc.estimate(batch, base, **options)
        known = ~np.isnan(credit)
        wanted = np.full(credit.size, NAN)
        wanted[known] = standardised(list(credit[known]))
        close(gc.estimate(batch, "task_norm", base=base, **options), wanted)
    some = walk("a", "S:x", 1.0, group="h", task_family="cook") + walk("b", "S:x", 0.0, group="h")
    assert (gc.estimate(batch_of(some), "task_norm") == 0).all()  # two families of one step each


def test_task_norm_follows_given_values() -> None:
    batch = batch_of(rows_of(3))
    graph = gc.build_graph(batch)
    values = gc.solve_values(graph, gamma=0.7)
    close(
        gc.estimate(batch, "task_norm", base="graft_td", graph=graph, values=values),
        gc.estimate(batch, "task_norm", base="graft_td", gamma=0.7),
    )


def test_task_norm_names_a_wrong_base() -> None:
    batch = batch_of(rows_of(1))
    with pytest.raises(UsageError, match=r"unknown base 'gropo' \(did you mean 'grpo'\?\)"):
        gc.estimate(batch, "task_norm", base="gropo")
    with pytest.raises(UsageError, match="base: 'task_norm' cannot stand on itself"):
        gc.estimate(batch, "task_norm", base="task_norm")
    with pytest.raises(NotComputableError, match="sas needs the step column 'logprob'"):
        gc.estimate(batch, "task_norm", base="sas")


def test_gae_critic_by_pencil() -> None:
    rows = walk("a", "S:x T:y", 1.0, value=[0.5, 0.8], terminated=True)
    rows += walk("b", "S:x T:y", 0.25, value=[0.5, 0.8], truncated=True, final_value=2.0)
    rows += walk("c", "S:x", None, value=[0.5], terminated=True)
    found = gc.estimate(batch_of(rows), "gae_critic", gamma=0.5, lam=0.5)
    a = [0.0 + 0.4 - 0.5, 1.0 - 0.8]
    b = [0.0 + 0.4 - 0.5, 0.25 + 1.0 - 0.8]
    close(found, [a[0] + 0.25 * a[1], a[1], b[0] + 0.25 * b[1], b[1], NAN], 1e-12)


def test_gae_critic_under_dense() -> None:
    rows = walk("a", "S:x T:y", 5.0, value=[0.5, 0.8], terminated=True, reward=[1.0, 2.0])
    close(gc.estimate(batch_of(rows), "gae_critic", gamma=0.5, lam=0.0, rewards="dense"), [1 + 0.4 - 0.5, 2 - 0.8], 1e-12)
    close(gc.estimate(batch_of(rows), "gae_critic", gamma=0.5, lam=0.0), [0.4 - 0.5, 5 - 0.8], 1e-12)
    bare = walk("a", "S:x", 5.0, value=[0.5], terminated=True)
    with pytest.raises(NotComputableError, match="needs a reward on every step"):
        gc.estimate(batch_of(bare), "gae_critic", rewards="dense")


def test_gae_critic_warns_where_the_end_is_not_said() -> None:
    for fields in ({}, {"truncated": True}, {"final_value": 3.0}):
        rows = walk("a", "S:x", 1.0, value=[0.25], **fields)
        with pytest.warns(CreditWarning, match="1 of 1 rollouts say neither that they terminated nor"):
            found = gc.estimate(batch_of(rows), "gae_critic")
        assert found.tolist() == [0.75]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.estimate(batch_of(walk("a", "S:x", 1.0, value=[0.25], terminated=True)), "gae_critic")
        both = walk("a", "S:x", 1.0, value=[0.25], terminated=True, truncated=True, final_value=3.0)
        assert gc.estimate(batch_of(both), "gae_critic").tolist() == [0.75]
        gc.estimate(batch_of(walk("a", "S:x", 1.0, value=[0.5], truncated=True, final_value=3.0)), "gae_critic")


def test_gae_critic_leaves_rollouts_with_a_missing_value_out() -> None:
    rows = walk("a", "S:x T:y", 1.0, value=[None, 0.5], terminated=True)
    rows += walk("b", "S:x T:y", 1.0, value=[0.5, None], terminated=True) + walk("c", "S:x", 1.0, value=[0.5], terminated=True)
    close(gc.estimate(batch_of(rows), "gae_critic"), [NAN, NAN, NAN, NAN, 0.5])
    with pytest.raises(NotComputableError, match="gae_critic needs the step column 'value'"):
        gc.estimate(batch_of(walk("a", "S:x", 1.0)), "gae_critic")


# -- shared options --------------------------------------------------------------------------------------------


def invalid_rows() -> list[dict[str, Any]]:
    rows = rows_of(6, empty=0.0, unknown=0.1)
    for i, row in enumerate(rows):
        row["valid"] = None if i % 5 == 0 else i % 3 != 0
    return rows


@pytest.mark.parametrize("statistics", ["rollouts", "steps"])
def test_invalid_penalty_against_loops(statistics: str) -> None:
    rows = invalid_rows()
    slow, batch = build(rows), batch_of(rows)
    fine = 0.1 * np.array([row["valid"] is False for row in rows])
    episode = gc.estimate(batch, "grpo")
    if statistics == "steps":
        copies = list(np.array(by_row(slow, lambda s: s.outcome)) - fine)
        episode = np.array(grouped_standard(slow, copies, lambda s: s.group))
    returns = list(np.array(by_row(slow, lambda s: 0.95**s.remaining * s.outcome)) - fine)
    step_part = np.array(grouped_standard(slow, returns, lambda s: s.node))
    options = {"invalid_penalty": 0.1, "statistics": statistics}
    close(gc.estimate(batch, "gigpo", **options), episode + step_part)
    worth = list(np.array(worth_of(rows, slow, 0.8)) - fine)
    close(gc.estimate(batch, "graphgpo", **options), episode + np.array(grouped_standard(slow, worth, lambda s: s.node)))
    close(gc.estimate(batch, "hgpo", invalid_penalty=0.1), slow_hgpo(slow, returns, 2, 1.0))


def test_invalid_penalty_needs_its_column() -> None:
    batch = batch_of(rows_of(1))
    for name in ("gigpo", "hgpo", "graphgpo"):
        with pytest.raises(NotComputableError, match="invalid_penalty needs the step column 'valid'"):
            gc.estimate(batch, name, invalid_penalty=0.1)
        close(gc.estimate(batch, name, invalid_penalty=0.0), gc.estimate(batch, name), 0)


def test_clip_bounds_the_finished_credit() -> None:
    batch = batch_of(rows_of(4))
    for name, entry in gc.estimators().items():
        if entry.needs:
            continue
        plain = gc.estimate(batch, name)
        close(gc.estimate(batch, name, clip=0.2), np.clip(plain, -0.2, 0.2), 0)
        assert entry.option("clip") is not None
    for wrong in (0, -1.0, "x"):
        with pytest.raises(UsageError, match=r"clip: .* is not allowed, expected a number above 0"):
            gc.estimate(batch, "grpo", clip=wrong)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("hgpo", {"k": -1}, "k: -1 is not allowed, expected a whole number from 0 to 50"),
        ("hgpo", {"k": 1.5}, "k: 1.5 is not allowed"),
        ("hgpo", {"alpha": -0.5}, "alpha: -0.5 is not allowed"),
        ("graphgpo", {"omega": 1.5}, "omega: 1.5 is not allowed, expected a number from 0 to 1"),
        ("gigpo", {"omega": -1}, "omega: -1 is not allowed"),
        ("gigpo", {"invalid_penalty": -0.1}, "invalid_penalty: -0.1 is not allowed"),
        ("graft_td", {"solver": "newton"}, "solver: 'newton' is not allowed, expected one of direct, gauss_seidel, jacobi"),
        ("graft_td", {"gamma": 1.0, "solver": "jacobi"}, "expected gamma below 1"),
        ("opo", {"eps": 0.1}, "opo has no option 'eps'; it has: clip"),
    ],
)
def test_wrong_options(name: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        gc.estimate(batch_of(rows_of(1)), name, **options)


def test_every_estimator_of_the_catalogue_is_there() -> None:
    assert set(gc.estimators()) == {
        "grpo", "dr_grpo", "rloo", "reinforce_pp_baseline", "opo", "maxrl", "grpo_step_index", "gigpo", "rtmc", "salt", "hgpo",
        "graphgpo", "rewardflow", "graft_td", "graft", "graft_eq10", "path_gae", "bepo_gated", "sas", "task_norm", "gae_critic",
    }  # fmt: skip
    defaults = {name: {o.name: o.default for o in e.options} for name, e in gc.estimators().items()}
    assert {"gamma": 0.95, "k": 2, "alpha": 1.0, "ddof": 0, "eps": 1e-6}.items() <= defaults["hgpo"].items()
    assert {"omega": 0.8, "statistics": "rollouts", "invalid_penalty": 0.0}.items() <= defaults["graphgpo"].items()
    assert defaults["rtmc"]["gamma"] == defaults["rewardflow"]["gamma"] == 0.99
    assert {"gamma": 0.99, "lam": 0.95}.items() <= defaults["gae_critic"].items()
    assert {"gamma": 0.99, "lam": 0.95}.items() <= defaults["bepo_gated"].items()
    assert defaults["task_norm"]["base"] == "grpo"


@pytest.mark.parametrize("outcome", [0.0, 1.0, -2.0, 0.35])
def test_one_rollout_and_equal_outcomes(outcome: float) -> None:
    """What each estimator says where there is nothing to compare."""
    one = batch_of(walk("a", "S:x T:y", outcome, "E"))
    residue = 1e-8 if outcome == 0.35 else 0.0
    same = batch_of([r for i in range(3) for r in walk(f"a{i}", "S:x T:y", outcome + (-1) ** i * residue, "E")])
    for name, entry in gc.estimators().items():
        if entry.needs:
            continue
        close(gc.estimate(one, name), [0.0, 0.0], 1e-9)
        if not (outcome == 0.35 and name.startswith(("graft", "path", "bepo", "task"))):
            close(gc.estimate(same, name), [0.0] * 6, 1e-9)


def test_unknown_outcomes_change_nothing_for_anyone() -> None:
    rows = rows_of(8, unknown=0.0, empty=0.0)
    for i, row in enumerate(rows):
        row |= {"logprob": -(i % 7) / 7, "value": (i % 5) / 5, "terminated": True}
    columns = {"reward": [0.0] * 3, "logprob": [-1.0] * 3, "value": [0.1] * 3}
    ghost = walk("ghost", "s0:a s1:b s2:a", None, "s3", group="g0", terminated=True, **columns)
    for name in gc.estimators():
        found = gc.estimate(batch_of(rows + ghost), name)
        assert np.isnan(found[-3:]).all(), name
        close(found[:-3], gc.estimate(batch_of(rows), name), 1e-12)
