"""Credit on the graph, by pencil, against loops, and in its degenerate cases (method.md sec. 4)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk
from slow_reference import (
    Slow,
    build,
    by_row,
    grouped_mean,
    grouped_standard,
    mean_rewards,
    node_centred,
    solve,
    td,
    weights,
)  # fmt: skip

import graft_core as gc
from graft_core.errors import InputError, NotComputableError

GRAPH_NAMES = ("gigpo", "graft_td", "graft", "path_gae", "graft_eq10")


def close(found: Any, wanted: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance, equal_nan=True)


def slow_path_gae(slow: Slow, residual: list[float], discount: float) -> list[float]:
    paths: dict[Any, list[Any]] = defaultdict(list)
    for step in slow.steps:
        paths[step.group, step.rollout].append(step)
    return by_row(
        slow,
        lambda s: sum(
            discount ** (later.rank - s.rank) * residual[later.row]
            for later in paths[s.group, s.rollout]
            if later.rank >= s.rank
        ),
    )


def slow_later(slow: Slow, v: dict[Any, float], gamma: float, lam: float, reach: str, rewards: str) -> list[float]:
    """sum_{k >= 1} (gamma lambda)^k Abar_k of each step, straight from the definition."""
    mean = mean_rewards(slow) if rewards == "dense" else {}
    residual = {e: mean.get(e, 0.0) + gamma * v[e[2]] - v[e[0]] for e in slow.count}
    visit = weights(slow)

    def later(step: Any) -> float:
        total, frontier = 0.0, {step.to: 1.0}
        for k in range(1, step.remaining + 1):
            edges = [e for e in slow.count if e[0] in frontier]
            if not edges:
                break
            if reach == "expectation":
                total += (gamma * lam) ** k * sum(frontier[e[0]] * visit[e] * residual[e] for e in edges)
                ahead: dict[Any, float] = defaultdict(float)
                for e in edges:
                    ahead[e[2]] += frontier[e[0]] * visit[e]
                frontier = dict(ahead)
            else:
                counts = [slow.count[e] if reach == "instances" else 1 for e in edges]
                mean_k = sum(n * residual[e] for n, e in zip(counts, edges, strict=True)) / sum(counts)
                total += (gamma * lam) ** k * mean_k
                frontier = dict.fromkeys((e[2] for e in edges), 1.0)
        return total

    return by_row(slow, later)


@pytest.mark.parametrize("rewards", ["outcome", "dense"])
@pytest.mark.parametrize("sinks", ["split", "merge", "bootstrap"])
def test_every_reach_against_loops(sinks: str, rewards: str) -> None:
    for seed in range(4):
        rows = random_rows(seed, groups=2, unknown=0.2, no_final=0.2, scores=0.3)
        batch, slow = batch_of(rows), build(rows, sinks)
        weighting = ("visits", "distinct")[seed % 2]
        gamma, lam = 0.9, 0.8
        v = solve(slow, gamma, weighting, rewards)
        residual = td(slow, v, gamma, rewards)
        options = {"sinks": sinks, "gamma": gamma, "rewards": rewards, "weighting": weighting}
        close(gc.estimate(batch, "graft_td", **options), residual)
        by_action = grouped_mean(slow, residual, lambda s: (s.node, s.action))
        close(gc.estimate(batch, "graft_td", per="action", **options), by_action)
        along = slow_path_gae(slow, residual, gamma * lam)
        options["lam"] = lam
        close(gc.estimate(batch, "path_gae", **options), along)
        close(gc.estimate(batch, "graft", normalise="none", **options), along)
        scaled = gc.estimate(batch, "graft", normalise="mean", per="action", **options)
        mean_along = grouped_mean(slow, along, lambda s: (s.node, s.action))
        close(scaled, node_centred(slow, mean_along))
        for reach in ("instances", "distinct", "expectation"):
            later = slow_later(slow, v, gamma, lam, reach, rewards)
            found = gc.estimate(batch, "graft", reach=reach, normalise="none", **options)
            close(found, [a + b for a, b in zip(residual, later, strict=True)])


def test_gigpo_against_loops() -> None:
    for seed in range(6):
        rows = random_rows(seed, groups=3, unknown=0.2, scores=0.3)
        batch, slow = batch_of(rows), build(rows)
        returns = by_row(slow, lambda s: 0.9**s.remaining * s.outcome)
        step_part = grouped_standard(slow, returns, lambda s: s.node)
        found = gc.estimate(batch, "gigpo", gamma=0.9, omega=0.5) - gc.estimate(batch, "grpo")
        close(found, 0.5 * np.array(step_part))


def test_gigpo_under_dense_takes_the_remaining_rewards() -> None:
    for seed in range(3):
        rows = random_rows(seed, groups=2, unknown=0.2)
        batch, slow = batch_of(rows), build(rows)
        returns = slow_path_gae(slow, by_row(slow, lambda s: s.reward), 0.95)
        found = gc.estimate(batch, "gigpo", rewards="dense") - gc.estimate(batch, "grpo")
        close(found, grouped_standard(slow, returns, lambda s: s.node))
    with pytest.raises(NotComputableError, match="needs a reward on every step"):
        gc.estimate(batch_of(walk("a", "S:x", 1.0, "E")), "gigpo", rewards="dense")


def test_td_reads_gain_and_loss_off_the_graph() -> None:
    """A failed rollout whose first step reached the state from which others win is not blamed for it."""
    rows = walk("w", "S:door D:open", 1.0, "win") + walk("f", "S:door D:kick", 0.0, "lose")
    rows += walk("x", "S:left", 0.0, "lost")
    td_credit = gc.estimate(batch_of(rows), "graft_td", gamma=1.0)
    assert td_credit == pytest.approx([0.5 - 1 / 3, 0.5, 0.5 - 1 / 3, -0.5, -1 / 3])
    grpo = gc.estimate(batch_of(rows), "grpo")
    assert grpo[2] < 0 < td_credit[2]


def test_lambda_moves_from_the_map_to_the_outcome() -> None:
    batch = batch_of(random_rows(3, groups=4, unknown=0.2))
    graph = gc.build_graph(batch)
    v = gc.solve_values(graph, gamma=0.9).v[graph.src]
    discount = 0.9 ** (batch.remaining + 1)
    close(gc.estimate(batch, "path_gae", gamma=0.9, lam=0.0), gc.estimate(batch, "graft_td", gamma=0.9))
    earned = np.where(batch.step_known, discount * batch.outcome[batch.step_rollout] - v, np.nan)
    close(gc.estimate(batch, "path_gae", gamma=0.9, lam=1.0), batch.to_rows(earned))


def test_per_action_takes_the_luck_out() -> None:
    # the same action from the same state wins once in four
    rows = [r for i in range(4) for r in walk(f"a{i}", "S:try", float(i == 0), f"e{i == 0}")]
    rows += walk("b", "S:rest", 0.0, "eFalse")
    batch = batch_of(rows)
    assert gc.estimate(batch, "graft_td", gamma=1.0) == pytest.approx([0.8, -0.2, -0.2, -0.2, -0.2])
    assert gc.estimate(batch, "graft_td", gamma=1.0, per="action") == pytest.approx([0.05] * 4 + [-0.2])
    # averaged first, then normalised
    scaled = gc.estimate(batch, "graft", gamma=1.0, per="action", normalise="mean", lam=0.0)
    assert scaled == pytest.approx([0.05] * 4 + [-0.2])


@pytest.mark.parametrize("name", GRAPH_NAMES)
def test_one_rollout(name: str) -> None:
    for outcome in (0.0, 1.0, -2.5):
        credit = gc.estimate(batch_of(walk("a", "S:x T:y U:z", outcome, "E")), name)
        assert credit == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)


@pytest.mark.parametrize("name", [*GRAPH_NAMES, "graft_td"])
def test_all_failed_teaches_nothing(name: str) -> None:
    rows = [r for i in range(4) for r in walk(f"a{i}", "S:x T:y S:z"[: 3 + 4 * (i % 3)], 0.0, f"E{i % 2}")]
    assert (gc.estimate(batch_of(rows), name) == 0).all()


def test_all_succeeded_still_prefers_the_short_way() -> None:
    rows = walk("a", "S:x T:y U:z", 1.0, "E") + walk("b", "S:w", 1.0, "E")
    td_credit = gc.estimate(batch_of(rows), "graft_td")
    assert td_credit[3] > 1e-3 > -1e-3 > td_credit[0]
    assert gc.estimate(batch_of(rows), "graft_td", gamma=1.0) == pytest.approx([0, 0, 0, 0], abs=1e-12)


def test_float_residue_is_not_signal() -> None:
    rows = [r for i in range(4) for r in walk(f"a{i}", "S:x T:y", 0.35 + (-1) ** i * 1e-8, "E")]
    batch = batch_of(rows)
    assert (gc.estimate(batch, "gigpo") == 0).all()
    assert np.abs(gc.estimate(batch, "graft_td")).max() < 2e-8
    # residuals are differences: the residue is all there is of them, and eps keeps it small
    assert np.abs(gc.estimate(batch, "graft")).max() < 0.02
    same = [r for i in range(4) for r in walk(f"a{i}", "S:x T:y", 0.1 + 0.2 if i else 0.3, "E")]
    for name in GRAPH_NAMES:
        assert gc.estimate(batch_of(same), name) == pytest.approx(np.zeros(8), abs=1e-9), name


def test_a_single_instance_is_a_sign_or_nothing() -> None:
    rows = walk("a", "S:x T:y", 1.0, "E") + walk("b", "S:x U:y V:z", 0.0, "F")
    # T and U are seen once: V = gamma V', so TD leaves nothing there, while S keeps both its credits
    td_credit = gc.estimate(batch_of(rows), "graft", lam=0.0)
    assert td_credit == pytest.approx([2**-0.5, 0, -(2**-0.5), 0, 0], abs=1e-5)
    # distinct edges: the step into U is averaged over all that leaves U, and U is left once more by another
    more = rows + walk("c", "U:y V:w", 1.0, "E")
    bare = gc.estimate(batch_of(more), "graft", lam=1.0, normalise="none")
    scaled = gc.estimate(batch_of(more), "graft", lam=1.0)
    assert bare[1] == pytest.approx(0.0, abs=1e-12)
    assert scaled[1] == 0.0
    lone = walk("d", "X:go S:x U:y V:z", 0.0, "F")
    bare = gc.estimate(batch_of(more + lone), "graft", lam=1.0, normalise="none")[-4]
    scaled = gc.estimate(batch_of(more + lone), "graft", lam=1.0)[-4]
    assert bare < -0.1
    assert scaled == pytest.approx(bare / (-bare + 1e-6), abs=1e-12)
    assert gc.estimate(batch_of(more + lone), "graft", lam=1.0, normalise="mean")[-4] == bare


def test_a_cycle_without_exit() -> None:
    rows = walk("a", "A:go B:go", 1.0, "A", truncated=True) + walk("b", "A:go B:go", 0.0, "A", truncated=True)
    batch = batch_of(rows)
    for name in GRAPH_NAMES[1:]:
        credit = gc.estimate(batch, name, sinks="bootstrap")
        assert credit == pytest.approx([0.0] * 4, abs=1e-9), name
    for reach in ("instances", "distinct", "expectation"):
        credit = gc.estimate(batch, "graft", sinks="bootstrap", reach=reach, normalise="none")
        assert credit == pytest.approx([0.0] * 4, abs=1e-12)
    with pytest.raises(InputError, match="no rollout leaves"):
        gc.estimate(batch, "graft_td", sinks="bootstrap", gamma=1.0)


@pytest.mark.parametrize("name", GRAPH_NAMES)
def test_unknown_outcomes_are_undefined_and_change_nothing(name: str) -> None:
    rows = random_rows(8, groups=2)
    ghost = walk("ghost", "s0:a s1:b s2:a", None, "s3", group="g0", reward=[0.0, 0.0, 0.0], truncated=True)
    with_ghost = gc.estimate(batch_of(rows + ghost), name)
    assert np.isnan(with_ghost[-3:]).all()
    close(with_ghost[:-3], gc.estimate(batch_of(rows), name), 1e-12)
    for reach in ("instances", "distinct", "expectation"):
        left, right = (
            gc.estimate(batch_of(r), "graft", reach=reach, rewards="dense")[: len(rows)] for r in (rows + ghost, rows)
        )
        close(left, right, 1e-12)


def test_the_frontier_is_a_set_of_nodes() -> None:
    """Two walks of the same length to one node count it once; a frontier of sinks only ends the sum."""
    rows = walk("a", "S:x L:u M:go E:end", 1.0, "win") + walk("b", "S:x R:u M:stop", 0.0, "lose")
    rows += walk("c", "S:x L:v R:u M:go E:end", 1.0, "win")
    batch, slow = batch_of(rows), build(rows)
    v = solve(slow, 0.9)
    found = gc.estimate(batch, "graft", reach="distinct", normalise="none", gamma=0.9, lam=1.0)
    later = slow_later(slow, v, 0.9, 1.0, "distinct", "outcome")
    close(found, np.array(td(slow, v, 0.9)) + later)


def test_given_values_and_graph_are_used() -> None:
    batch = batch_of(random_rows(2))
    graph = gc.build_graph(batch, ["history:1"], sinks="merge")
    values = gc.solve_values(graph, gamma=0.8, weighting="distinct")
    found = gc.estimate(batch, "graft_td", graph=graph, values=values)
    close(found, gc.estimate(batch, "graft_td", rules=["history:1"], sinks="merge", gamma=0.8, weighting="distinct"))
    made_up = gc.Values(np.arange(graph.n_nodes, dtype=float), gamma=0.5)
    shifted = gc.estimate(batch, "graft_td", graph=graph, values=made_up)
    close(shifted, batch.to_rows(np.where(graph.known, 0.5 * graph.dst - graph.src, np.nan)))


def test_long_rollouts_are_not_quadratic_in_memory() -> None:
    path = " ".join(f"s{i % 50}:go" for i in range(3000))
    batch = batch_of(walk("a", path, 1.0, "win") + walk("b", path, 0.0, "lose"))
    for reach in ("instances", "distinct", "expectation"):
        assert np.isfinite(gc.estimate(batch, "graft", reach=reach)).all()
