"""The picture taken apart and drawn together: prefix tree, lanes, chains, and what is brought into a large picture."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_graphs import graph_of

from graft_core.graph import TrajectoryGraph
from graft_core.insight.picture import ROOT_ID, picture
from graft_core.insight.sketch import collapse, merged
from graft_core.insight.structure import FIRST_CODE, GraphStructure, carried, ink, paint
from graft_core.insight.unfold import lane_order, lanes, prefix_tree


def triples(drawn: GraphStructure) -> list[tuple[str, str, str]]:
    name = dict(zip(drawn.node_id.tolist(), drawn.node_label, strict=True))
    rows = zip(drawn.edge_src.tolist(), drawn.edge_label, drawn.edge_dst.tolist(), strict=True)
    return sorted((name[u], label, name[v]) for u, label, v in rows)


@pytest.fixture
def three() -> TrajectoryGraph:
    """Two rollouts do the same for one step; a third meets them in `hall` after another action."""
    return graph_of(
        ("room take hall open goal", 1.0), ("room take hall close dead", 0.0), ("room walk hall open goal", 0.0)
    )


def test_a_tree_keeps_histories_apart_that_the_merged_graph_joins(three: TrajectoryGraph) -> None:
    assert picture(three, 0).nodes_drawn == 2 + 3  # room, hall, and an end for each outcome and final text
    tree = picture(three, 0, shape="tree")
    assert triples(tree) == [
        ("hall", "close", "failed"), ("hall", "open", "failed"), ("hall", "open", "success"),
        ("room", "take", "hall"), ("room", "walk", "hall"),
    ]  # fmt: skip
    counts = dict(zip(zip(tree.edge_label, tree.edge_dst.tolist(), strict=True), tree.edge_count.tolist(), strict=True))
    assert sorted(counts.values()) == [1, 1, 1, 1, 2]
    halls = tree.rows_of_node(int(three.src[1]))
    assert halls.size == 2 and sorted(tree.node_visits[halls].tolist()) == [1, 2]
    assert tree.nodes_drawn == 1 + 2 + 3 and tree.caption == "6 of 6 nodes, 100 % of steps"


def test_the_same_history_with_another_order_of_actions_is_another_branch() -> None:
    graph = graph_of(("a x b y c", 1.0), ("a y b x c", 1.0), ("a x b x c", 1.0))
    tree = prefix_tree(graph, 0)
    assert tree.node.size == 1 + 2 + 3  # a; b after x, b after y; three ends
    assert np.bincount(tree.dst, minlength=6).max() == 1  # one way into each


def test_lanes_merge_nothing_and_stand_in_order(three: TrajectoryGraph) -> None:
    drawn = picture(three, 0, shape="lanes")
    assert drawn.nodes_drawn == 9 and drawn.edges_drawn == 6
    starts = np.flatnonzero(np.asarray(drawn.node_kind) == "start")
    assert [drawn.node_label[i] for i in starts] == ["r0 · succeeded", "r1 · failed", "r2 · failed"]
    assert np.all(np.diff(drawn.y[starts]) > 0)
    assert all(np.ptp(drawn.y[drawn.lane == rollout]) == 0 for rollout in range(3))
    assert all(np.all(np.diff(drawn.x[drawn.lane == rollout]) > 0) for rollout in range(3))
    assert drawn.caption == "3 of 3 rollouts, 9 of 9 nodes, 100 % of steps"


def test_lanes_are_ordered_by_outcome_then_by_number_in_the_id() -> None:
    graph = graph_of(*[("a x b", outcome) for outcome in (0.0, None, 1.0, *[0.0] * 8, 1.0)])
    assert lane_order(graph.batch, np.arange(12)) == [2, 11, 0, 3, 4, 5, 6, 7, 8, 9, 10, 1]


def test_lanes_are_bounded_taken_in_turn_from_each_outcome_and_the_wanted_ones_first() -> None:
    graph = graph_of(*[("a x b y c", float(k < 6)) for k in range(12)])
    drawn = lanes(graph, 0, 6)
    assert sorted(np.unique(drawn.lane).tolist()) == [0, 6]
    assert 9 in lanes(graph, 0, 6, first=[9]).lane
    shown = picture(graph, 0, shape="lanes", max_nodes=6, rollouts=[9])
    assert shown.caption == "2 of 12 rollouts, 6 of 36 nodes, 16 % of steps"
    assert lanes(graph, 0, 1).lane.size == 3  # one at least


def test_fill_is_the_merged_value_and_ink_the_credit_of_the_steps_carried(three: TrajectoryGraph) -> None:
    v = np.linspace(0.1, 0.9, three.n_nodes)
    credit = np.array([1.0, -1.0, 0.5, np.nan, -0.25, 0.75])  # two steps for each rollout, in path order
    shapes = {shape: picture(three, 0, shape=shape) for shape in ("merged", "tree", "lanes")}
    means = {shape: carried(drawn, credit) for shape, drawn in shapes.items()}
    assert means["lanes"].tolist()[:3] == [1.0, -1.0, 0.5] and np.isnan(means["lanes"][3])
    assert means["lanes"].tolist()[4:] == [-0.25, 0.75]
    tree = dict(zip(triples_in_order(shapes["tree"]), means["tree"].tolist(), strict=True))
    assert tree["room take"] == pytest.approx(0.75) and tree["room walk"] == -0.25
    both = dict(zip(triples_in_order(shapes["merged"]), means["merged"].tolist(), strict=True))
    assert both["room take"] == pytest.approx(0.75)
    for drawn in shapes.values():
        fills = dict(zip(drawn.node_id.tolist(), ink(drawn, v, means[drawn.shape], limit=1.0).nodes, strict=True))
        per_moment = {int(node): fills[int(row)] for row, node in zip(drawn.node_id, drawn.node_of, strict=True)}
        assert [ord(per_moment[node]) - FIRST_CODE for node in range(three.n_nodes)] == np.rint(v * 47).astype(int).tolist()


def triples_in_order(drawn: GraphStructure) -> list[str]:
    name = dict(zip(drawn.node_id.tolist(), drawn.node_label, strict=True))
    return [f"{name[u]} {label}" for u, label in zip(drawn.edge_src.tolist(), drawn.edge_label, strict=True)]


def test_a_chain_is_one_line_with_the_mean_credit_and_its_actions() -> None:
    """Chains between `a` and the ends: one of three steps by two rollouts, one of two by another."""
    graph = graph_of(*[("a p b q c r d", 1.0)] * 2, ("a s e t f", 0.0))
    drawn = picture(graph, 0, max_nodes=3)
    assert sorted(drawn.edge_label) == ["2 steps", "3 steps"]
    assert drawn.caption == "3 of 6 nodes, 100 % of steps, 2 chains of steps as one line"
    long = drawn.edge_label.index("3 steps")
    assert drawn.edge_tip[long] == "3 steps in a row, 2 x, by 2 rollouts\n1. p\n2. q\n3. r"
    credit = np.array([0.1, 0.2, 0.6, 0.1, 0.2, 0.6, -1.0, np.nan])
    means = carried(drawn, credit)
    assert means[long] == pytest.approx(0.3) and means[1 - long] == -1.0
    by_edge = np.full(graph.n_edges, np.nan)
    by_edge[graph.edge[[0, 1, 2, 6]]] = [0.1, 0.2, 0.6, -1.0]
    assert paint(drawn, np.zeros(graph.n_nodes), by_edge, limit=1.0).edges == ink(
        drawn, np.zeros(graph.n_nodes), means, limit=1.0
    ).edges
    width = dict(zip(drawn.node_label, drawn.layer.tolist(), strict=True))
    assert (width["a"], width["failed"], width["success"]) == (0, 2, 3)  # a line is as long as the steps it stands for
    assert drawn.path([0, 1, 2]) == [int(drawn.edge_id[long])]
    assert drawn.first_part(long) == int(graph.edge[0])


def test_only_as_many_chains_close_as_it_takes_the_least_travelled_first() -> None:
    graph = graph_of(*[("a p b q c r d", 1.0)] * 2, ("a s e t f", 0.0))
    assert sorted(picture(graph, 0, max_nodes=5).edge_label) == ["2 steps", "p", "q", "r"]
    assert picture(graph, 0, max_nodes=6).complete


def test_a_chain_ends_where_rollouts_begin_end_part_or_meet() -> None:
    graph = graph_of(("a p b q c", 1.0), ("b q c", 1.0))
    sketch = collapse(merged(graph, 0), 1)
    assert sketch.node.size == 3  # a rollout begins in b
    loops = collapse(merged(graph_of(("a p b w b q c", 1.0)), 0), 1)
    assert loops.node.size == 3  # b is left and entered twice


def test_what_is_asked_for_is_drawn_in_a_large_picture() -> None:
    road = [("s0 a s1 a s2 a end", 1.0)] * 9
    sides = [(f"s0 b{k} p{k} c q{k} d over{k}", float(k % 2)) for k in range(30)]
    graph = graph_of(*road, *sides)
    hidden = int(graph.src[9 * 3 + 7 * 3 + 2])  # q7
    plain = picture(graph, 0, max_nodes=12)
    assert not plain.shows("node", hidden)
    brought = picture(graph, 0, max_nodes=12, nodes=[hidden])
    assert brought.shows("node", hidden) and brought.nodes_drawn <= 12
    row = 9 + 11
    steps = np.arange(*graph.batch.offsets[row : row + 2])
    assert not plain.carries(steps)
    assert picture(graph, 0, max_nodes=12, rollouts=[row]).carries(steps)


def test_several_starts_have_a_root_in_the_tree_and_none_in_lanes() -> None:
    graph = graph_of(("a x c", 1.0), ("a x c", 1.0), ("b y c", 0.0))
    tree = picture(graph, 0, shape="tree")
    assert ROOT_ID in tree.node_id and tree.nodes_drawn == 4
    assert picture(graph, 0, shape="lanes").nodes_drawn == 6


def test_a_tree_is_drawn_without_a_crossing() -> None:
    rng = np.random.default_rng(3)
    words = [" ".join(["s", *(f"a{rng.integers(3)} s{rng.integers(4)}" for _ in range(4))]) for _ in range(20)]
    drawn = picture(graph_of(*[(w, 1.0) for w in words]), 0, shape="tree")
    spot = {int(n): (float(x), float(y)) for n, x, y in zip(drawn.node_id, drawn.x, drawn.y, strict=True)}
    lines = [(spot[int(u)], spot[int(v)]) for u, v in zip(drawn.edge_src, drawn.edge_dst, strict=True)]
    for (a, b) in lines:
        for (c, d) in lines:
            if a[0] == c[0] and b[0] == d[0] and a[1] < c[1]:
                assert b[1] < d[1]
