"""The teaching solvers: what each sweep does, where they stop, and that all solvers agree (method.md sec. 3)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk
from slow_reference import at_nodes, build, solve

import graft_core as gc
from graft_core.errors import UsageError
from graft_core.values import sweeps

SOLVERS = ("gauss_seidel", "jacobi")
CHAIN = walk("a", "A:go B:go C:go", 1.0, "win")


def by_text(graph: gc.TrajectoryGraph, v: np.ndarray) -> dict[str, float]:
    return {graph.batch.text(int(t)): float(x) for t, x in zip(graph.node_text, v, strict=True)}


def test_jacobi_moves_one_step_back_per_sweep() -> None:
    graph = gc.build_graph(batch_of(CHAIN))
    seen = sweeps(graph, "jacobi", gamma=0.5)
    rows = [by_text(graph, v) for v in seen.v]
    assert rows[0] == {"A": 0, "B": 0, "C": 0, "win": 1}
    assert rows[1] == {"A": 0, "B": 0, "C": 0.5, "win": 1}
    assert rows[2] == {"A": 0, "B": 0.25, "C": 0.5, "win": 1}
    assert rows[3] == {"A": 0.125, "B": 0.25, "C": 0.5, "win": 1}
    assert seen.change.tolist() == [0.5, 0.25, 0.125, 0.0]
    assert seen.settled


def test_gauss_seidel_from_the_ends_needs_one_sweep_on_a_chain() -> None:
    graph = gc.build_graph(batch_of(CHAIN))
    seen = sweeps(graph, "gauss_seidel", gamma=0.5)
    assert [graph.batch.text(int(graph.node_text[u])) for u in seen.order] == ["C", "B", "A"]
    assert by_text(graph, seen.v[1]) == {"A": 0.125, "B": 0.25, "C": 0.5, "win": 1}
    assert seen.change.tolist() == [0.5, 0.0]


def test_the_order_is_by_hops_to_the_nearest_end() -> None:
    rows = walk("a", "A:go B:go C:go", 1.0, "win") + walk("b", "A:jump", 0.0, "lose")
    # a ring that only known rollouts enter and that never ends stands last
    rows += walk("c", "X:go Y:go", 0.0, "X", truncated=True) + walk("d", "X:go Y:go", 1.0, "X", truncated=True)
    graph = gc.build_graph(batch_of(rows), sinks="bootstrap")
    order = [graph.batch.text(int(graph.node_text[u])) for u in sweeps(graph).order]
    assert order == ["A", "C", "B", "X", "Y"]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("weighting", ["visits", "distinct", "max"])
@pytest.mark.parametrize("rewards", ["outcome", "dense"])
def test_they_end_where_the_direct_solver_is(solver: str, weighting: str, rewards: str) -> None:
    for seed, gamma in enumerate((0.2, 0.9, 0.99, 0.999)):
        batch = batch_of(random_rows(seed, groups=2, unknown=0.2, scores=0.3))
        graph = gc.build_graph(batch, sinks=("split", "merge", "bootstrap")[seed % 3])
        exact = gc.solve_values(graph, gamma, weighting, rewards).v
        swept = gc.solve_values(graph, gamma, weighting, rewards, solver).v
        np.testing.assert_allclose(swept, exact, rtol=1e-11, atol=1e-10, equal_nan=True)
        seen = sweeps(graph, solver, gamma, weighting, rewards)
        np.testing.assert_allclose(seen.v[-1], exact, rtol=1e-11, atol=1e-10, equal_nan=True)
        assert seen.settled
        assert seen.v.shape == (seen.change.size + 1, graph.n_nodes)
        known = ~np.isnan(exact)
        steps = np.abs(np.diff(seen.v[:, known], axis=0)).max(axis=1)
        np.testing.assert_allclose(steps, seen.change, rtol=0, atol=1e-15)


@pytest.mark.parametrize("solver", SOLVERS)
def test_prior_by_sweeps(solver: str) -> None:
    rows = random_rows(1, groups=2, unknown=0.2)
    batch, slow = batch_of(rows), build(rows)
    found = gc.solve_values(gc.build_graph(batch), 0.9, prior=2.0, solver=solver)
    v = solve(slow, 0.9, prior=2.0)
    graph = gc.build_graph(batch)
    np.testing.assert_allclose(
        np.where(batch.step_known, found.v[graph.src], np.nan), at_nodes(slow, v), rtol=0, atol=1e-10
    )


def two_rings() -> gc.TrajectoryGraph:
    """A slow chain: every state mostly returns to itself."""
    rows = walk("a", " ".join(["A:stay"] * 200 + ["A:go"] + ["B:stay"] * 200 + ["B:go"]), 1.0, "win")
    return gc.build_graph(batch_of(rows))


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_papers_stop_leaves_an_error(solver: str) -> None:
    graph = two_rings()
    exact = gc.solve_values(graph, gamma=0.999).v
    early, sound = (sweeps(graph, solver, 0.999, stop=stop) for stop in ("paper", "sound"))
    error = np.abs(early.v[-1] - exact).max()
    assert 1e-8 < error < 1e-5
    assert np.abs(sound.v[-1] - exact).max() < 1e-10
    assert early.change[-1] < 1e-8 <= early.change[-2]
    assert sound.change[-1] <= 1e-11 * (1 - 0.999) / 0.999 < sound.change[-2]


def test_the_papers_cap() -> None:
    # an outcome of a million keeps the change above 1e-8 for longer than the cap allows
    graph = gc.build_graph(batch_of(walk("a", " ".join(["A:stay"] * 2000 + ["A:go"]), 1e6, "win")))
    seen = sweeps(graph, "jacobi", 0.9, stop="paper")
    assert seen.change.size == math.ceil(math.log(1e-8) / math.log(0.9)) + 50 == 225
    assert seen.change[-1] > 1e-8
    assert not seen.settled
    assert sweeps(graph, "jacobi", 0.9).settled


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"gamma": 1.0}, "gamma 1 has no answer with solver 'gauss_seidel', which is solved by sweeps"),
        ({"solver": "direct"}, "solver: 'direct' is not allowed, expected one of gauss_seidel, jacobi"),
        ({"stop": "soon"}, "stop: 'soon' is not allowed, expected one of sound, paper"),
        ({"gamma": 2}, "gamma: 2 is not allowed"),
        ({"weighting": "x"}, "weighting: 'x' is not allowed"),
        ({"rewards": "x"}, "rewards: 'x' is not allowed"),
    ],
)
def test_wrong_options(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        sweeps(gc.build_graph(batch_of(CHAIN)), **options)


def test_nothing_to_sweep() -> None:
    graph = gc.build_graph(batch_of(walk("a", "S:go", None, "E")))
    for solver in SOLVERS:
        assert np.isnan(gc.solve_values(graph, solver=solver).v).all()
