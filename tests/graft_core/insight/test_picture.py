"""What is drawn of one group: nodes and edges chosen, shapes, sizes, bends, words and colours."""

from __future__ import annotations

import json

import numpy as np
import pytest
from drawn_graphs import graph_of

from graft_core.graph import TrajectoryGraph
from graft_core.insight.palette import NO_CREDIT, NO_VALUE
from graft_core.insight.picture import ROOT_ID, picture
from graft_core.insight.structure import FIRST_CODE, legend, mean_per_edge, paint


def numbers(characters: str) -> list[int]:
    return [ord(character) - FIRST_CODE for character in characters]


@pytest.fixture
def small() -> TrajectoryGraph:
    """Two rollouts meet in `hall`; one of unknown outcome goes its own way."""
    return graph_of(
        ("room take hall open goal", 1.0),
        ("room walk hall wait hall close dead", 0.0),
        ("room sing roof jump lost", None),
    )


def test_shapes_follow_from_what_a_node_is(small: TrajectoryGraph) -> None:
    drawn = picture(small, 0)
    kinds = dict(zip(drawn.node_label, drawn.node_kind))
    assert kinds == {
        "room": "start", "hall": "ordinary", "roof": "ordinary",
        "success": "success", "failed": "failure", "outcome unknown": "unknown",
    }  # fmt: skip
    assert set(drawn.node_kind) <= {symbol for symbol, _ in legend()}
    assert drawn.caption == "6 of 6 nodes, 100 % of steps"


def test_every_transition_is_an_edge_of_its_own(small: TrajectoryGraph) -> None:
    drawn = picture(small, 0)
    name = dict(zip(drawn.node_id.tolist(), drawn.node_label))
    edges = sorted(
        (name[u], action, name[v]) for u, action, v in zip(drawn.edge_src.tolist(), drawn.edge_label, drawn.edge_dst.tolist())
    )
    assert edges == [
        ("hall", "close", "failed"), ("hall", "open", "success"), ("hall", "wait", "hall"),
        ("roof", "jump", "outcome unknown"), ("room", "sing", "roof"), ("room", "take", "hall"), ("room", "walk", "hall"),
    ]  # fmt: skip
    assert drawn.edge_count.tolist() == [1] * 7
    bends = [drawn.edge_curve[at] for at, action in enumerate(drawn.edge_label) if action in ("take", "walk")]
    assert bends[0] != bends[1]  # parallel edges part
    assert drawn.steps_drawn == drawn.steps_total == 7


def test_edges_that_lead_back_bow_and_there_and_back_do_not_coincide() -> None:
    graph = graph_of(("a go b back a go b on c", 1.0))
    drawn = picture(graph, 0)
    bends = dict(zip(drawn.edge_label, drawn.edge_curve.tolist()))
    assert bends["back"] > 0.1 and bends["go"] > 0.1  # both to their own left: to opposite sides
    assert bends["on"] == 0


def test_a_task_root_is_drawn_before_different_starts() -> None:
    graph = graph_of(("a x c", 1.0), ("a x c", 1.0), ("b y c", 0.0))
    drawn = picture(graph, 0)
    root = drawn.node_id.tolist().index(ROOT_ID)
    assert drawn.node_kind[root] == "root" and drawn.layer[root] == 0
    assert drawn.x[root] == drawn.x.min()
    to = {drawn.node_label[drawn.node_id.tolist().index(v)]: count for u, v, count in
          zip(drawn.edge_src.tolist(), drawn.edge_dst.tolist(), drawn.edge_count.tolist()) if u == ROOT_ID}  # fmt: skip
    assert to == {"a": 2, "b": 1}
    assert drawn.nodes_drawn == drawn.nodes_total == 4  # the root is not one of the graph's nodes
    assert drawn.edges_drawn == drawn.edges_total
    assert len(set(drawn.edge_id.tolist())) == drawn.edge_id.size
    inks = paint(drawn, np.full(graph.n_nodes, 0.5), np.zeros(graph.n_edges), root_value=1.0)
    assert numbers(inks.nodes)[root] == 47
    from_root = [n for n, u in zip(numbers(inks.edges), drawn.edge_src.tolist()) if u == ROOT_ID]
    assert from_root == [NO_CREDIT] * 2  # no step, no credit


def test_only_the_asked_group_is_drawn() -> None:
    graph = graph_of(("a x b", 1.0, "one"), ("a x b y c", 0.0, "two"))
    first, second = picture(graph, 0), picture(graph, 1)
    assert (first.nodes_total, second.nodes_total) == (2, 3)
    assert not set(first.node_id) & set(second.node_id) and not set(first.edge_id) & set(second.edge_id)
    with pytest.raises(IndexError, match="group 2 has no nodes; groups are 0 to 1"):
        picture(graph, 2)


def test_a_large_group_keeps_the_most_visited_with_a_path_to_each() -> None:
    """30 long side tracks seen once, and a main road seen by all."""
    road = "s0 a s1 a s2 a s3 a end"
    sides = [(f"s0 b{k} p{k} c q{k} c p{k} d r{k} e over{k}", float(k % 2)) for k in range(30)]  # they turn back: no chains
    graph = graph_of(*[(road, 1.0)] * 9, (road.replace(" a ", " z "), 1.0), *sides)
    drawn = picture(graph, 0, max_nodes=25)
    assert drawn.nodes_drawn <= 25
    names = set(drawn.node_label)
    assert {"s0", "s1", "s2", "s3", "success"} <= names
    assert drawn.nodes_total == 4 + 1 + 30 * 4
    reached, before = {int(drawn.node_id[list(drawn.node_kind).index("start")])}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {v for u, v in zip(drawn.edge_src.tolist(), drawn.edge_dst.tolist()) if u in reached}
    assert reached == set(drawn.node_id.tolist())
    assert drawn.steps_drawn == graph.count[drawn.part].sum() < drawn.steps_total == 10 * 4 + 30 * 5
    told = f"{drawn.nodes_drawn} of 125 nodes, {100 * drawn.steps_drawn // 190} % of steps"
    assert drawn.caption == f"{told}, {(drawn.edge_length > 1).sum()} chains of steps as one line"
    start = list(drawn.node_kind).index("start")
    hidden = 32 - sum(u == drawn.node_id[start] for u in drawn.edge_src.tolist())
    assert f"{hidden} edges not drawn" in drawn.node_tip[start]


def test_all_steps_but_one_is_not_all_steps() -> None:
    graph = graph_of(*[("a x b y c", 1.0)] * 400, ("a x b z d", 0.0))
    assert picture(graph, 0, max_nodes=3).caption == "3 of 4 nodes, 99 % of steps"


def test_thin_support_counts_rollouts_not_steps() -> None:
    graph = graph_of(("a go b back a go b on c", 1.0), ("a hop b on c", 1.0))
    drawn = picture(graph, 0)
    thin = dict(zip(drawn.edge_label, drawn.edge_thin.tolist()))
    assert thin == {"go": True, "back": True, "hop": True, "on": False}  # `go` twice, but by one rollout
    assert "2 x, by 1 rollout\ngo" in drawn.edge_tip


def test_size_and_width_grow_with_counts_within_bounds() -> None:
    graph = graph_of(*[("a x b y c", 1.0)] * 40, ("a w d v e", 0.0))
    drawn = picture(graph, 0)
    size, width = dict(zip(drawn.node_label, drawn.node_size)), dict(zip(drawn.edge_label, drawn.edge_width))
    assert size["a"] > size["b"] > size["d"] > 0
    assert width["x"] == pytest.approx(6) and width["w"] == pytest.approx(1)
    nearest = min(
        np.hypot(drawn.x[i] - drawn.x[j], drawn.y[i] - drawn.y[j]) - drawn.node_size[i] - drawn.node_size[j]
        for i in range(drawn.x.size)
        for j in range(i)
    )
    assert nearest > 0


def test_paint_depends_on_values_and_nothing_else_moves(small: TrajectoryGraph) -> None:
    drawn = picture(small, 0)
    v = np.linspace(0, 1, small.n_nodes)
    v[1] = np.nan
    credit = np.linspace(-1, 1, small.n_edges)
    credit[0] = np.nan
    inks = paint(drawn, v, credit, limit=1.0)
    assert inks.version == drawn.version
    assert len(inks.nodes) == drawn.node_id.size and len(inks.edges) == drawn.edge_id.size
    by_node = dict(zip(drawn.node_id.tolist(), numbers(inks.nodes)))
    assert by_node[1] == NO_VALUE and by_node[0] == 0 and by_node[small.n_nodes - 1] == 47
    by_edge = dict(zip(drawn.edge_id.tolist(), numbers(inks.edges)))
    assert by_edge[0] == NO_CREDIT and by_edge[small.n_edges - 1] == 40 and by_edge[1] < 20
    again = picture(small, 0)
    assert again.version == drawn.version and np.array_equal(again.x, drawn.x)


def test_the_default_limit_is_of_what_is_drawn(small: TrajectoryGraph) -> None:
    drawn = picture(small, 0)
    assert paint(drawn, np.zeros(small.n_nodes), np.full(small.n_edges, -0.25)).credit_limit == 0.25
    assert paint(drawn, np.zeros(small.n_nodes), np.zeros(small.n_edges)).credit_limit == 1.0


def test_credit_of_an_edge_is_the_mean_of_its_defined_steps() -> None:
    graph = graph_of(("a x b y c", 1.0), ("a x b y c", 0.0), ("a x b z c", 1.0))
    by_step = np.array([1.0, np.nan, 3.0, np.nan, 8.0, -2.0])
    drawn = picture(graph, 0)
    means = dict(zip(drawn.edge_label, mean_per_edge(graph, by_step)[drawn.edge_id]))
    assert means["x"] == pytest.approx(4.0)
    assert np.isnan(means["y"])
    assert means["z"] == -2.0


def test_partial_scores_are_named() -> None:
    drawn = picture(graph_of(("a x b", 0.25), ("a x b", 0.0)), 0)
    assert sorted(drawn.node_label) == ["a", "failed", "score 0.25"]
    assert sorted(drawn.node_kind) == ["failure", "failure", "start"]


def test_the_message_is_plain_json_with_rows_that_fit(small: TrajectoryGraph) -> None:
    message = json.loads(json.dumps(picture(small, 0).message))
    nodes, edges = len(message["node"]), len(message["edge"])
    assert {len(message[name]) for name in ("kind", "label", "tip", "size", "visits", "x", "y")} == {nodes}
    assert {len(message[name]) for name in ("from", "to", "width", "curve", "thin", "count", "edgeLabel", "edgeTip")} == {edges}
    assert max(message["from"] + message["to"]) < nodes
    assert len(message["palette"]["value"]) == NO_VALUE
    assert all(len(message["palette"][theme][ink]) == NO_CREDIT + 1 for theme in ("light", "dark") for ink in ("firm", "thin"))
