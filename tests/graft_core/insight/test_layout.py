"""Positions of drawn graphs: distances, order, gaps, and that nothing but the graph itself decides them."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from graft_core.insight.layout import SHORTEST_ROW, _with_gaps, lane_positions, layered_positions, tree_positions


def random_graph(n: int, seed: int, edges: int) -> tuple[np.ndarray, np.ndarray]:
    """A connected random directed graph with cycles, parallel edges and self loops."""
    rng = np.random.default_rng(seed)
    tree = np.array([rng.integers(max(0, v - 6), v) for v in range(1, n)])
    src = np.concatenate([tree, rng.integers(0, n, edges)])
    dst = np.concatenate([np.arange(1, n), rng.integers(0, n, edges)])
    return src, dst


def test_the_column_is_the_fewest_steps_from_any_start() -> None:
    src, dst = random_graph(80, 1, 60)
    _, _, layer = layered_positions(80, src, dst, [0, 17])
    graph = nx.MultiDiGraph(zip(src.tolist(), dst.tolist()))
    fewest = nx.multi_source_dijkstra_path_length(graph, {0, 17}, weight=None)
    assert layer.tolist() == [fewest[node] for node in range(80)]


def test_x_rises_with_the_column_and_is_the_same_within_one() -> None:
    src, dst = random_graph(60, 2, 30)
    x, _, layer = layered_positions(60, src, dst, [0])
    at = {int(column): set(x[layer == column]) for column in layer}
    assert all(len(places) == 1 for places in at.values())
    ordered = [at[column].pop() for column in sorted(at)]
    assert np.all(np.diff(ordered) > 0)


def test_a_cycle_leads_back_instead_of_growing() -> None:
    x, _, layer = layered_positions(3, [0, 1, 2], [1, 2, 0], [0])
    assert layer.tolist() == [0, 1, 2]
    assert x[0] < x[1] < x[2]


def test_an_ending_stands_behind_everything_that_leads_to_it() -> None:
    #  0 -> 1 -> 2 -> 3, and the ending 4 is reached from 0 and from 3
    _, _, near = layered_positions(5, [0, 1, 2, 0, 3], [1, 2, 3, 4, 4], [0])
    _, _, behind = layered_positions(5, [0, 1, 2, 0, 3], [1, 2, 3, 4, 4], [0], sinks=[0, 0, 0, 0, 1])
    assert near[4] == 1
    assert behind[4] == 4


def test_unreachable_nodes_share_a_last_column() -> None:
    _, _, layer = layered_positions(5, [0, 3], [1, 4], [0])
    assert layer.tolist() == [0, 1, 2, 2, 2]
    x, y, alone = layered_positions(3, [], [], [])
    assert alone.tolist() == [0, 0, 0] and len(set(y)) == 3 and len(set(x)) == 1


def test_the_same_graph_gives_the_same_picture_whatever_the_order_of_its_edges() -> None:
    src, dst = random_graph(120, 3, 100)
    mixed = np.random.default_rng(9).permutation(src.size)
    one, other = layered_positions(120, src, dst, [0]), layered_positions(120, src[mixed], dst[mixed], [0])
    for left, right in zip(one, other):
        assert np.array_equal(left, right)


def test_nodes_of_a_column_keep_their_distance() -> None:
    src, dst = random_graph(400, 4, 300)
    x, y, layer = layered_positions(400, src, dst, [0])
    for column in range(int(layer.max()) + 1):
        here = np.flatnonzero(layer == column)
        places = np.stack([x[here], y[here]])
        apart = np.hypot(*(places[:, :, None] - places[:, None, :]))
        np.fill_diagonal(apart, np.inf)
        assert apart.min() > 0.5 * SHORTEST_ROW


def test_a_tree_is_drawn_without_crossings() -> None:
    tree = nx.balanced_tree(3, 4, create_using=nx.DiGraph)
    names = np.random.default_rng(5).permutation(tree.number_of_nodes())
    src, dst = (names[list(side)] for side in zip(*tree.edges))
    _, y, layer = layered_positions(names.size, src, dst, [names[0]])
    for column in range(int(layer.max())):
        here = np.flatnonzero(layer[src] == column)
        order = here[np.lexsort((y[dst[here]], y[src[here]]))]
        assert np.all(np.diff(y[dst[order]]) > 0)


def test_sweeps_remove_crossings() -> None:
    src, dst = random_graph(150, 6, 40)

    def crossings(sweeps: int) -> int:
        _, y, layer = layered_positions(150, src, dst, [0], sweeps=sweeps)
        total = 0
        for column in range(int(layer.max())):
            here = np.flatnonzero((layer[src] == column) & (layer[dst] == column + 1))
            a, b = y[src[here]], y[dst[here]]
            total += int(np.sum((a[:, None] - a) * (b[:, None] - b) < 0)) // 2
        return total

    assert crossings(4) < 0.9 * crossings(0)


def test_a_path_is_a_straight_line() -> None:
    _, y, _ = layered_positions(30, np.arange(29), np.arange(1, 30), [0])
    assert np.ptp(y) == pytest.approx(0)


def test_three_hundred_nodes_fill_a_wide_rectangle() -> None:
    width = 15
    src = np.concatenate([np.zeros(width), np.arange(1, 286)]).astype(int)
    dst = np.concatenate([np.arange(1, width + 1), np.arange(width + 1, 301)]).astype(int)
    x, y, _ = layered_positions(301, src, dst, [0])
    assert 1.5 < np.ptp(x) / np.ptp(y) < 3
    assert np.ptp(x) == pytest.approx(1100) and np.ptp(y) == pytest.approx(520)


def test_heights_are_the_least_squares_answer() -> None:
    wish = np.random.default_rng(7).normal(size=50).cumsum()[::-1] * 3
    gap = 1.7
    expected = isotonic_regression(wish - gap * np.arange(50)).x + gap * np.arange(50)
    np.testing.assert_allclose(_with_gaps(wish.tolist(), gap), expected, atol=1e-9)


def test_nothing_and_one_node() -> None:
    assert all(part.size == 0 for part in layered_positions(0, [], [], []))
    x, y, layer = layered_positions(1, [0], [0], [0])
    assert (x[0], y[0], layer[0]) == (0, 0, 0)


def test_a_node_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="edge_dst holds node 7; expected 0 to 2"):
        layered_positions(3, [0], [7], [0])


def test_a_line_that_stands_for_several_steps_is_as_many_columns_long() -> None:
    src, dst = np.array([0, 0, 1]), np.array([1, 2, 2])
    _, _, plain = layered_positions(3, src, dst, [0])
    assert plain.tolist() == [0, 1, 1]
    _, _, layer = layered_positions(3, src, dst, [0], lengths=[1, 5, 2])
    assert layer.tolist() == [0, 1, 3]  # by way of 1 it is nearer
    _, _, end = layered_positions(3, src, dst, [0], sinks=[False, False, True], lengths=[1, 5, 2])
    assert end.tolist() == [0, 1, 5]  # an ending stands behind all that leads to it


def test_a_tree_has_a_row_for_each_leaf_and_parents_amid_their_children() -> None:
    src, dst = np.array([0, 0, 1, 1]), np.array([1, 2, 3, 4])
    x, y, layer = tree_positions(5, src, dst, [0], np.array([1, 3, 1, 1]))
    assert layer.tolist() == [0, 1, 3, 2, 2]
    assert y[3] < y[4] < y[2]
    assert y[1] == pytest.approx((y[3] + y[4]) / 2) and y[0] == pytest.approx((y[1] + y[2]) / 2)
    assert np.all(np.diff(x[[0, 1, 3, 2]]) > 0)


def test_lanes_are_straight_and_evenly_apart() -> None:
    x, y = lane_positions(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 0]))
    assert y[0] == y[1] and y[2] == y[3] and y[4] - y[2] == pytest.approx(y[2] - y[0])
    assert x[0] == x[2] == x[4] and x[1] > x[0]
