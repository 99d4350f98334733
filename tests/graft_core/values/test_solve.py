"""Node values against pencil, Gaussian elimination and brute force (method.md sec. 3)."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk
from slow_reference import at_nodes, build, max_values, solve

import graft_core as gc
from graft_core.errors import InputError, NotComputableError, UsageError
from graft_core.rollouts import RolloutBatch
from graft_core.values import _kernels as kernels
from graft_core.values.system import DataWarning

NAN = float("nan")


def at_steps(batch: RolloutBatch, values: gc.Values, graph: gc.TrajectoryGraph) -> list[float]:
    """V of each known step's node in row order, NaN where the step's outcome is unknown."""
    found = np.where(batch.step_known, values.v[graph.src], NAN)
    return list(batch.to_rows(found))


def test_pencil() -> None:
    # S goes to D twice and to L once; L goes back to S; D wins once, loses once
    rows = walk("a", "S:left L:back S:door D:open", 1.0, "win") + walk("b", "S:door D:kick", 0.0, "lose")
    graph = gc.build_graph(batch_of(rows))
    v = gc.solve_values(graph, gamma=0.5).v
    d = 0.25
    s = (2 / 3 * 0.5 * d) / (1 - 1 / 3 * 0.5 * 0.5)
    assert v == pytest.approx([s, 0.5 * s, d, 1.0, 0.0], abs=1e-15)


def test_a_self_loop_costs_only_the_discount() -> None:
    graph = gc.build_graph(batch_of(walk("a", "S:wait S:go", 1.0, "win")))
    v = gc.solve_values(graph, gamma=0.9).v
    assert v[0] == pytest.approx(0.5 * 0.9 / (1 - 0.5 * 0.9))
    assert gc.estimate(graph.batch, "graft_td", gamma=0.9)[0] == pytest.approx((0.9 - 1) * v[0])


@pytest.mark.parametrize("rewards", ["outcome", "dense"])
@pytest.mark.parametrize("weighting", ["visits", "distinct"])
@pytest.mark.parametrize("sinks", ["split", "merge", "bootstrap"])
def test_against_gaussian_elimination(sinks: str, weighting: str, rewards: str) -> None:
    for seed in range(15):
        rows = random_rows(seed, groups=2, unknown=0.2, no_final=0.2, scores=0.3, empty=0.1)
        batch, slow = batch_of(rows), build(rows, sinks)
        graph = gc.build_graph(batch, sinks=sinks)
        gamma = (0.3, 0.9, 0.99, 0.999)[seed % 4]
        v = solve(slow, gamma, weighting, rewards)
        found = gc.solve_values(graph, gamma=gamma, weighting=weighting, rewards=rewards)
        np.testing.assert_allclose(at_steps(batch, found, graph), at_nodes(slow, v), rtol=0, atol=1e-10)


@pytest.mark.parametrize("prior", [0.5, 2.0, 100.0])
@pytest.mark.parametrize("rewards", ["outcome", "dense"])
def test_prior_against_gaussian_elimination(prior: float, rewards: str) -> None:
    for seed in range(6):
        rows = random_rows(seed, groups=2, unknown=0.2, scores=0.3)
        batch, slow = batch_of(rows), build(rows)
        graph = gc.build_graph(batch)
        v = solve(slow, 0.95, "visits", rewards, prior)
        found = gc.solve_values(graph, gamma=0.95, prior=prior, rewards=rewards)
        np.testing.assert_allclose(at_steps(batch, found, graph), at_nodes(slow, v), rtol=0, atol=1e-10)


def test_prior_pulls_a_rare_node_more_than_a_common_one() -> None:
    rows = [row for i in range(9) for row in walk(f"a{i}", "C:go", 0.0, "lose")] + walk("b", "R:go", 1.0, "win")
    graph = gc.build_graph(batch_of(rows))
    assert gc.solve_values(graph, gamma=1.0).v[:2] == pytest.approx([0.0, 1.0])
    assert gc.solve_values(graph, gamma=1.0, prior=1.0).v[:2] == pytest.approx([0.01, 0.55])


@pytest.mark.parametrize("rewards", ["outcome", "dense"])
def test_max_against_brute_force(rewards: str) -> None:
    for seed in range(10):
        rows = random_rows(seed, groups=2, unknown=0.2, scores=0.3)
        batch, slow = batch_of(rows), build(rows)
        graph = gc.build_graph(batch)
        v = max_values(slow, 0.9, rewards)
        found = gc.solve_values(graph, gamma=0.9, weighting="max", rewards=rewards)
        np.testing.assert_allclose(at_steps(batch, found, graph), at_nodes(slow, v), rtol=0, atol=1e-10)


def test_max_leaves_no_positive_td_credit() -> None:
    for seed in range(5):
        batch = batch_of(random_rows(seed, unknown=0.2))
        td = gc.estimate(batch, "graft_td", weighting="max")
        assert np.nanmax(td) <= 1e-9
        assert np.nanmin(td) < -0.1


def test_distinct_counts_each_kind_of_action_once() -> None:
    rows = [row for i in range(3) for row in walk(f"a{i}", "S:good", 1.0, "win")] + walk("b", "S:bad", 0.0, "lose")
    graph = gc.build_graph(batch_of(rows))
    assert gc.solve_values(graph, gamma=1.0).v[0] == pytest.approx(0.75)
    assert gc.solve_values(graph, gamma=1.0, weighting="distinct").v[0] == pytest.approx(0.5)


def test_distinct_keeps_the_outcome_shares_of_one_action() -> None:
    rows = walk("a", "S:try", 1.0, "win") + walk("b", "S:try", 0.0, "lose") + walk("c", "S:try", 0.0, "lose")
    rows += walk("d", "S:other", 0.0, "lose")
    graph = gc.build_graph(batch_of(rows))
    assert gc.solve_values(graph, gamma=1.0, weighting="distinct").v[0] == pytest.approx(1 / 6)


def test_unknown_outcomes() -> None:
    rows = walk("a", "S:go M:go", 1.0, "E") + walk("b", "S:go U:go", None, "F")
    graph = gc.build_graph(batch_of(rows))
    v = gc.solve_values(graph, gamma=0.5).v
    by_text = {graph.batch.text(int(t)): float(x) for t, x in zip(graph.node_text, v, strict=True)}
    assert by_text["S"] == 0.25  # the unknown rollout weighs nothing
    assert np.isnan(by_text["U"])
    assert np.isnan(by_text["F"])
    assert np.isnan(gc.solve_values(graph, gamma=0.5, weighting="max").v).sum() == 2


def test_a_dense_value_is_the_outcome_value_before_one_discount() -> None:
    """With one reward at the end V_dense = V_outcome / gamma under `split`."""
    rows = []
    for i, (path, outcome) in enumerate([("S:l L:b S:d D:o", 1.0), ("S:d D:k", 0.0), ("S:d D:o", 2.5), ("S:d D:o", -1.0)]):
        length = len(path.split())
        rows += walk(f"r{i}", path, outcome, f"end{outcome}", reward=[0.0] * (length - 1) + [outcome])
    graph = gc.build_graph(batch_of(rows))
    ordinary = slice(0, graph.n_ordinary)
    by_outcome, dense = (gc.solve_values(graph, gamma=0.9, rewards=r).v for r in ("outcome", "dense"))
    assert dense[ordinary] == pytest.approx(by_outcome[ordinary] / 0.9, abs=1e-12)
    assert (dense[graph.node_is_sink] == 0).all()


def test_dense_needs_every_reward() -> None:
    batch = batch_of(walk("a", "S:x S:y", 1.0, "E", reward=[0.5, None]))
    with pytest.raises(NotComputableError, match=r"1 of 2 steps have none \(first: group g, rollout a, step 1\)"):
        gc.solve_values(gc.build_graph(batch), rewards="dense")
    # a rollout that does not count needs none
    spare = batch_of(walk("a", "S:x", 1.0, "E", reward=[0.5]) + walk("b", "S:x", None, "E"))
    assert gc.solve_values(gc.build_graph(spare), rewards="dense").v[0] == 0.5


def test_dense_warns_once_where_rewards_are_not_the_outcome() -> None:
    rows = walk("a", "S:x S:y", 1.0, "E", reward=[0.25, 0.75]) + walk("b", "S:x", 0.5, "E", reward=[0.25])
    rows += walk("c", "S:x", None, "E", reward=[9.0]) + walk("d", "", 1.0)
    batch = batch_of(rows)

    def twice() -> None:
        gc.solve_values(gc.build_graph(batch), rewards="dense")
        gc.estimate(batch, "gigpo", rewards="dense")

    with pytest.warns(DataWarning, match=r"of 1 of 3 rollouts .* \(first: group g, rollout b: 0\.25 against 0\.5\)") as seen:
        twice()
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fine = batch_of(rows[:2])
        gc.solve_values(gc.build_graph(fine), rewards="dense")
        gc.solve_values(gc.build_graph(batch))


def ring(n: int, leave: str | None) -> list[dict[str, object]]:
    """A walk round n states and on through state 0; `leave` is where another rollout wins from."""
    path = " ".join(f"c{i % n}:on" for i in range(n + 1))
    rows = walk("round", path, 0.0, "c1", truncated=True)
    other = walk("other", "c1:on c2:on", 0.0, "c0", truncated=True)
    return rows + (walk("out", f"c1:on {leave}:leave", 1.0, "win") if leave else other)


def sprawl(kind: str, n: int, rollouts: int) -> list[dict[str, object]]:
    """Rollouts over n states that all hang together: random jumps, short hops, or a ring that is rarely left."""
    rng = np.random.default_rng(n)
    rows = walk("round", " ".join(f"c{i}:on" for i in range(n)), 0.0, "c0", truncated=True)
    for r in range(rollouts):
        if kind == "jumps":
            where = rng.integers(0, n, 60)
        elif kind == "hops":
            where = (rng.integers(0, n) + np.cumsum(rng.integers(-2, 3, 60))) % n
        else:
            where = (rng.integers(0, n) + np.arange(60)) % n
        rows += walk(f"r{r}", " ".join(f"c{i}:move" for i in where), float(r % 3) - 0.5, f"end{r}")
    return rows


@pytest.mark.parametrize(
    ("kind", "n", "rollouts"), [("jumps", 130, 30), ("jumps", 500, 60), ("hops", 300, 120), ("ring", 500, 20)]
)
def test_a_large_component_against_numpy(kind: str, n: int, rollouts: int) -> None:
    graph = gc.build_graph(batch_of(sprawl(kind, n, rollouts)), sinks="bootstrap")
    use = graph.count_known > 0
    nodes, starts = kernels.strong_components(
        graph.indptr, graph.edge_dst, use, ~graph.node_is_sink & (graph.visits_known > 0)
    )
    assert np.diff(starts).max() > kernels.DENSE_LIMIT
    assert nodes.size == graph.n_ordinary
    for gamma in (0.5, 0.99, 0.9999, 1.0 - 1e-6, 1.0):
        k = graph.n_ordinary
        share = graph.count / graph.visits[graph.edge_src]
        a, b = np.eye(k), np.zeros(k)
        for u, v, p in zip(graph.edge_src, graph.edge_dst, share, strict=True):
            if v < k:
                a[u, v] -= gamma * p
            else:
                b[u] += gamma * p * graph.sink_value[v]
        found = gc.solve_values(graph, gamma=gamma).v[:k]
        np.testing.assert_allclose(found, np.linalg.solve(a, b), rtol=0, atol=1e-10)


def test_strong_components_against_networkx() -> None:
    import networkx as nx

    for seed in range(10):
        graph = gc.build_graph(batch_of(random_rows(seed, groups=3, states=8)))
        active = ~graph.node_is_sink
        nodes, starts = kernels.strong_components(graph.indptr, graph.edge_dst, np.ones(graph.n_edges, bool), active)
        found = [frozenset(nodes[a:b].tolist()) for a, b in pairwise(starts)]
        peer = nx.DiGraph()
        peer.add_nodes_from(np.flatnonzero(active).tolist())
        inner = active[graph.edge_dst]
        peer.add_edges_from(zip(graph.edge_src[inner].tolist(), graph.edge_dst[inner].tolist(), strict=True))
        assert set(found) == {frozenset(c) for c in nx.strongly_connected_components(peer)}
        # reverse topological: whatever an edge leads to stands in the same component or an earlier one
        place = {node: i for i, members in enumerate(found) for node in members}
        assert all(place[v] <= place[u] for u, v in peer.edges)


@pytest.mark.parametrize("n", [3, 40])
def test_a_cycle_without_exit_is_worth_nothing(n: int) -> None:
    graph = gc.build_graph(batch_of(ring(n, None)), sinks="bootstrap")
    assert not graph.node_is_sink.any()
    assert gc.solve_values(graph).v == pytest.approx(np.zeros(n), abs=1e-12)


def test_a_cycle_without_exit_is_worth_its_discounted_reward_under_dense() -> None:
    rows = walk("a", "A:go B:go", 0.0, "A", truncated=True, reward=[1.0, 3.0])
    rows += walk("b", "A:go B:go", 0.0, "A", truncated=True, reward=[2.0, 5.0])
    graph = gc.build_graph(batch_of(rows), sinks="bootstrap")
    v = gc.solve_values(graph, gamma=0.5, rewards="dense").v
    assert v == pytest.approx([(1.5 + 0.5 * 4.0) / 0.75, (4.0 + 0.5 * 1.5) / 0.75])


def test_a_cycle_with_an_exit_has_a_value_without_discount() -> None:
    graph = gc.build_graph(batch_of(ring(5, "c3")), sinks="bootstrap")
    assert gc.solve_values(graph, gamma=1.0).v == pytest.approx(np.ones(graph.n_nodes))


@pytest.mark.parametrize("n", [3, 250])
def test_gamma_one_names_a_cycle_without_exit(n: int) -> None:
    graph = gc.build_graph(batch_of(ring(n, None)), sinks="bootstrap")
    with pytest.raises(InputError, match=f"group g: gamma 1 has no value for a cycle of {n} states that no rollout leaves"):
        gc.solve_values(graph, gamma=1.0)
    # with a prior too: the mean it pulls towards has no value either
    with pytest.raises(InputError, match="no rollout leaves"):
        gc.solve_values(graph, gamma=1.0, prior=1.0)


def test_gamma_one_names_a_state_that_only_leads_to_itself() -> None:
    rows = walk("a", "A:wait A:wait", 0.0, "A", truncated=True) + walk("b", "A:wait", 0.0, "A", truncated=True)
    with pytest.raises(InputError, match="a cycle of 1 states"):
        gc.solve_values(gc.build_graph(batch_of(rows), sinks="bootstrap"), gamma=1.0)


def test_gamma_one_stops_at_two_thousand_states() -> None:
    fine = gc.build_graph(batch_of(ring(2000, "c7")), sinks="bootstrap")
    assert gc.solve_values(fine, gamma=1.0).v == pytest.approx(np.ones(fine.n_nodes))
    large = gc.build_graph(batch_of(ring(2001, "c7")), sinks="bootstrap")
    with pytest.raises(InputError, match="cycles of up to 2000 states, this one has 2001; expected gamma below 1"):
        gc.solve_values(large, gamma=1.0)
    assert gc.solve_values(large, gamma=0.999).v.max() == 1.0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"gamma": 1.5}, "gamma: 1.5 is not allowed, expected a number above 0 up to 1"),
        ({"gamma": 0.0}, "gamma: 0.0 is not allowed"),
        ({"gamma": NAN}, "gamma: nan is not allowed"),
        ({"gamma": "high"}, "gamma: 'high' is not allowed"),
        ({"gamma": True}, "gamma: True is not allowed"),
        ({"weighting": "mean"}, "weighting: 'mean' is not allowed, expected one of visits, distinct, max"),
        ({"rewards": "sparse"}, "rewards: 'sparse' is not allowed, expected one of outcome, dense"),
        ({"solver": "fast"}, "solver: 'fast' is not allowed, expected one of direct, gauss_seidel, jacobi"),
        ({"prior": -1}, "prior: -1 is not allowed, expected a number of at least 0"),
        ({"prior": 1.0, "weighting": "distinct"}, "prior 1 works with weighting 'visits' only, not with 'distinct'"),
        ({"prior": 1.0, "weighting": "max"}, "prior 1 works with weighting 'visits' only, not with 'max'"),
        ({"gamma": 1.0, "weighting": "max"}, "gamma 1 has no answer with weighting 'max', .*: expected gamma below 1"),
        ({"gamma": 1.0, "solver": "jacobi"}, "gamma 1 has no answer with solver 'jacobi', .*: expected gamma below 1"),
        ({"gamma": 1.0, "solver": "gauss_seidel"}, "gamma 1 has no answer with solver 'gauss_seidel'"),
    ],
)
def test_wrong_options(options: dict[str, object], sentence: str) -> None:
    graph = gc.build_graph(batch_of(walk("a", "S:go", 1.0, "E")))
    with pytest.raises(UsageError, match=sentence.replace("(", r"\(")):
        gc.solve_values(graph, **options)


def test_values_are_remembered_by_their_options() -> None:
    graph = gc.build_graph(batch_of(random_rows(1)))
    first = gc.solve_values(graph)
    assert gc.solve_values(graph, gamma=0.99) is first
    assert gc.solve_values(graph, gamma=0.9) is not first
    assert gc.solve_values(graph, weighting="distinct") is not first
    assert gc.solve_values(graph, prior=1.0) is not first
    assert gc.solve_values(graph, rewards="dense") is not first
    assert gc.solve_values(graph, solver="jacobi") is not first
