"""Suspect merges: shuffles and exchanged pieces are what they should be, by enumeration, and chance keeps its promise."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from row_batches import batch_of, random_rows
from suspect_groups import graph_of, random_walks

from graft_core.graph import build_graph
from graft_core.insight import _suspect_kernels as kernels
from graft_core.insight import _suspect_node_kernels as node_kernels
from graft_core.insight import suspect
from graft_core.insight._suspect_group import Walks, _stages, corrected, gate, node_tests, walks_of


def state(seed: int) -> np.ndarray:
    return np.array([seed], np.uint64)


# -- the uniform shuffle ------------------------------------------------------------------------------------


def circuit(walks: Walks, seed: int | None) -> tuple[int, ...]:
    """The group's circuit as it is, or in one shuffle."""
    starts, targets = kernels.exits(walks.path, walks.offsets, walks.ends, walks.n_nodes, walks.n_ends)
    if seed is not None:
        kernels.reorder(starts, targets, state(seed))
    unused = [iter(targets[a:b].tolist()) for a, b in itertools.pairwise(starts.tolist())]
    read = [len(unused) - 1]  # the root
    for _ in range(targets.size):
        read.append(next(unused[read[-1]]))
    return tuple(read[1:])


def edges(walked: tuple[int, ...], root: int) -> Counter[tuple[int, int]]:
    return Counter(itertools.pairwise((root, *walked)))


def test_a_shuffle_keeps_first_states_and_step_counts_and_reads_every_step() -> None:
    graph = build_graph(batch_of(random_rows(3, groups=1, rollouts=12, empty=0.2, no_final=0.3)))
    walks = walks_of(graph, 0)
    root = walks.n_nodes + walks.n_ends
    own = circuit(walks, None)
    assert own[: int(walks.offsets[1])] == tuple(walks.path[: walks.offsets[1]].tolist())
    assert own.count(root) == walks.rows.size
    different = 0
    for seed in range(200):
        shuffled = circuit(walks, seed)
        assert edges(shuffled, root) == edges(own, root)
        different += shuffled != own
    assert different > 150


def all_circuits(walks: Walks) -> set[tuple[int, ...]]:
    """Every vertex sequence from the root with the group's edge counts, by trying all ways."""
    root = walks.n_nodes + walks.n_ends
    left = edges(circuit(walks, None), root)
    found: set[tuple[int, ...]] = set()

    def go(here: int, so_far: list[int], rest: int) -> None:
        if not rest:
            found.add(tuple(so_far))
            return
        for (u, v), n in list(left.items()):
            if u == here and n:
                left[u, v] -= 1
                go(v, [*so_far, v], rest - 1)
                left[u, v] += 1

    go(root, [], sum(left.values()))
    return found


def test_shuffles_are_uniform_among_all_groups_with_the_same_counts() -> None:
    """By enumeration: every possible group comes up equally often (chi-squared within four standard errors)."""
    graph = graph_of("A:x B:x A:x C:x", "B:x C:x A:x", "A:x C:x C:x")
    walks = walks_of(graph, 0)
    possible = all_circuits(walks)
    assert 20 < len(possible) < 600
    draws = 100 * len(possible)
    seen = Counter(circuit(walks, seed) for seed in range(draws))
    assert set(seen) == possible
    chi = sum((n - 100) ** 2 / 100 for n in seen.values())
    assert abs(chi - (len(possible) - 1)) < 4 * np.sqrt(2 * len(possible))


def test_coverage_of_the_group_is_counted_by_hand() -> None:
    graph = graph_of("A:x B:x A:x", "A:x C:x B:x", "A:x A:x")
    walks = walks_of(graph, 0)
    column, width = walks.columns()
    assert width == 2  # C is visited once: its coverage cannot vary
    counts = kernels.shuffled_cover(
        walks.path, walks.offsets, walks.ends, walks.n_nodes, walks.n_ends, column, width, 0, state(0)
    )
    assert counts[0].tolist() == [3, 2]


def test_simulated_rollouts_end_at_the_turn_limit_and_cover_as_counted() -> None:
    """A loops on itself or goes to B with equal counts; within 3 steps of A, B is met with chance 3/4."""
    graph = graph_of("A:x A:x B:x", "A:x B:x B:x", "A:x A:x A:x", ends="Eea")
    walks = walks_of(graph, 0)
    assert walks.cut.tolist() == [False, True, True]
    assert walks.after.tolist() == [-1, -1, int(np.flatnonzero(walks.keys == graph.src[0])[0])]
    column, width = walks.columns()
    counts = kernels.simulated_cover(walks.path, walks.offsets, walks.after, walks.n_nodes, 3, column, width, 20000, state(1))
    assert counts[0].tolist() == [3, 2]
    stay = 4 / 6  # A -> A four times (the last one is the cut rollout's), A -> B twice
    assert counts[1:, 1].mean() / 3 == pytest.approx(1 - stay**2, abs=0.01)


# -- pieces ------------------------------------------------------------------------------------------------------


def test_exchanged_pieces_are_all_ways_of_dealing_tails_and_loops() -> None:
    """Against all permutations, done with sets: the distribution of every coverage count is the same."""
    rollouts = ["P U A B U C", "U D U A A U B", "Q U C", "A Q"]
    graph = graph_of(*(" ".join(f"{s}:x" for s in r.split()) for r in rollouts))
    walks = walks_of(graph, 0)
    names = [graph.batch.text(int(graph.node_text[k])) for k in walks.keys.tolist()]
    u = names.index("U")
    column = np.arange(walks.n_nodes)
    cut = node_kernels.pieces(u, walks.path, walks.offsets, column, walks.n_nodes)
    counts = np.empty((walks.n_nodes, 40001), np.int32)
    node_kernels.exchanged_cover(*cut, column, 40000, state(5), counts)

    prefixes, loops, tails, slots = [], [], [], []
    for r in rollouts:
        pieces = [set(part.split()) for part in f" {r} ".split("U")]
        if len(pieces) > 1:
            prefixes.append(pieces[0])
            loops += pieces[1:-1]
            tails.append(pieces[-1])
            slots.append(len(pieces) - 2)
    for name in "ABCDPQ":
        exact: Counter[int] = Counter()
        for tail in itertools.permutations(tails):
            for loop in itertools.permutations(loops):
                given = iter(loop)
                own = zip(prefixes, tail, slots, strict=True)
                met = [p | t | set().union(*(next(given) for _ in range(n))) for p, t, n in own]
                exact[sum(name in m for m in met)] += 1
        total = sum(exact.values())
        seen = Counter(counts[names.index(name), 1:].tolist())
        assert set(seen) == set(exact)
        assert (names.index(name) in node_kernels.varying(*cut)) == (len(exact) > 1)
        for value, n in exact.items():
            assert seen[value] / 40000 == pytest.approx(n / total, abs=0.015)
    assert counts[:, 0].tolist() == [2 if n in "ABC" else 0 if n == "U" else 1 for n in names]


@pytest.mark.parametrize("rollouts", [5, 70, 600])
def test_coverage_is_counted_alike_for_few_and_many_rollouts(rollouts: int) -> None:
    """Two words of bits, and beyond 512 rollouts no bits: against the same dealing done with sets."""
    graph = graph_of(*random_walks(rollouts, 7))
    walks = walks_of(graph, 0)
    u = int(walks.path[0])
    first, size, starts, holders = node_kernels.pieces(u, walks.path, walks.offsets, np.arange(walks.n_nodes), walks.n_nodes)
    asked = np.arange(walks.n_nodes)
    counts = np.empty((asked.size, 301), np.int32)
    node_kernels.exchanged_cover(first, size, starts, holders, asked, 300, state(5), counts)
    tails, stream = first + size - 1, state(5)
    loops = np.array([p for a, n in zip(first, size, strict=True) for p in range(a + 1, a + n - 1)], np.int64)
    holds = [set(holders[a:b].tolist()) for a, b in itertools.pairwise(starts.tolist())]
    for b in range(301):
        if b:
            kernels.shuffle(tails, 0, tails.size, stream)
            kernels.shuffle(loops, 0, loops.size, stream)
        given = iter(loops.tolist())
        lies = [{head, tail, *itertools.islice(given, n - 2)} for head, tail, n in zip(first, tails, size, strict=True)]
        assert counts[:, b].tolist() == [sum(not mine.isdisjoint(has) for mine in lies) for has in holds]


def test_next_nodes_are_dealt_within_the_action_only() -> None:
    """Where the action explains all that varies nothing is left to test; where the step before does, p is the smallest."""
    by_action = ["P:x U:a A:x", "Q:x U:b B:x"] * 6
    by_past = ["P:x U:a A:x", "Q:x U:a B:x"] * 6
    for paths, expected in ((by_action, np.nan), (by_past, 1 / 1000)):
        graph = graph_of(*paths)
        walks = walks_of(graph, 0)
        at = [graph.batch.text(int(graph.node_text[k])) for k in walks.keys.tolist()].index("U")
        p = node_tests(walks, False, 3).next[at]
        assert p == pytest.approx(expected, abs=0.003, nan_ok=True)


def test_the_next_node_test_is_the_permutation_test_within_actions() -> None:
    """Against all ways of dealing next nodes within each action, with squared correlations from numpy."""
    starts, before, after = [0, 5, 8], [0, 0, 0, 1, 1, 0, 1, 1], [0, 0, 1, 1, 1, 2, 1, 2]

    def statistic(went: list[int]) -> float:
        def centred(values: list[int], code: int) -> np.ndarray:
            x = (np.array(values) == code).astype(float)
            return np.concatenate([x[a:b] - x[a:b].mean() for a, b in itertools.pairwise(starts)])

        return sum(
            (x @ y) ** 2 / ((x @ x) * (y @ y))
            for x in (centred(before, i) for i in range(2))
            for y in (centred(went, j) for j in range(3))
        )

    ways = [[*a, *b] for a in itertools.permutations(after[:5]) for b in itertools.permutations(after[5:])]
    exact = np.mean([statistic(way) >= statistic(after) - 1e-9 for way in ways])
    assert 0.05 < exact < 0.5
    given = [np.array(x, np.int64) for x in (starts, before, after)]
    p = node_kernels.next_test(*given, 2, 3, np.array([20000], np.int64), state(3))
    assert p == pytest.approx(exact, abs=0.015)


# -- chance keeps its promise --------------------------------------------------------------------------------


def test_the_group_test_is_uniform_where_nothing_is_hidden() -> None:
    """400 groups of walks without a memory: p <= x in a share x of them, within four standard errors."""
    p = [gate(walks_of(graph_of(*random_walks(6, 1000 + g)), 0), g, 99) for g in range(400)]
    values = np.array(p)
    values = values[~np.isnan(values)]  # nothing could vary in a few
    assert values.size > 350
    for x in (0.05, 0.25, 0.5, 0.75):
        assert np.mean(values <= x) <= x + 4 * np.sqrt(x * (1 - x) / 400)
    assert np.mean(values <= 0.5) >= 0.3


def test_many_nodes_get_more_draws_so_that_one_alone_can_stand_out() -> None:
    for nodes in (1, 50, 51, 400):
        assert _stages(999, nodes)[-1] + 1 >= nodes / suspect.LISTED
    assert _stages(999, 50).tolist() == [99, 999, 999]


def test_false_discovery_rates_are_those_of_benjamini_and_hochberg() -> None:
    q = corrected(np.array([0.01, np.nan, 0.04, 0.03, 0.5]))
    assert q.tolist() == pytest.approx([0.04, np.nan, 0.16 / 3, 0.16 / 3, 0.5], nan_ok=True)
