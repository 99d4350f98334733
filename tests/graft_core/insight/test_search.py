"""Finding moments by their texts, the moments around one, and the rollouts that pass it."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_graphs import graph_of

from graft_core.graph import TrajectoryGraph
from graft_core.insight.search import around, matching, rollouts_at, step_at


@pytest.fixture
def house() -> TrajectoryGraph:
    return graph_of(
        ("Room take-Mug Hall open goal", 1.0), ("Room wait Hall wait Hall close cellar", 0.0),
        ("attic jump Hall open goal", 0.0),
        ("room sing yard", 1.0, "other"),
    )  # fmt: skip


def names(graph: TrajectoryGraph, nodes: object) -> list[str]:
    return [graph.batch.text(int(graph.node_text[node])) for node in np.asarray(nodes).tolist()]


def test_observations_and_actions_match_without_case(house: TrajectoryGraph) -> None:
    assert names(house, matching(house, 0, "hall")) == ["Hall"]
    assert names(house, matching(house, 0, "MUG")) == ["Room"]  # an action that is taken there
    assert names(house, matching(house, 0, "cell")) == ["cellar"]
    assert names(house, matching(house, 1, "room")) == ["room"]
    assert matching(house, 0, "").size == matching(house, 0, "zzz").size == 0


def test_what_looks_like_a_pattern_is_text(house: TrajectoryGraph) -> None:
    assert matching(house, 0, ".").size == matching(house, 0, "[").size == matching(house, 0, "(?i)hall").size == 0


def test_a_batch_without_texts_there_finds_nothing() -> None:
    graph = graph_of(("a x b", 1.0))
    assert matching(graph, 0, "q").tolist() == []


def test_the_busiest_neighbours_come_first_and_are_bounded(house: TrajectoryGraph) -> None:
    hall = int(house.src[1])
    found = around(house, "node", hall)
    assert found[0] == hall and len(set(found)) == len(found)
    assert set(names(house, found)) == {"Hall", "Room", "attic", "goal", "cellar"}
    assert len(around(house, "node", hall, most=1)) <= 3
    edge = int(house.edge[0])
    assert around(house, "edge", edge) == [int(house.edge_src[edge]), int(house.edge_dst[edge])]


def test_rollouts_of_a_moment_and_their_step_there(house: TrajectoryGraph) -> None:
    hall, room = int(house.src[1]), int(house.src[0])
    assert rollouts_at(house, 0, hall) == [0, 1, 2]
    assert rollouts_at(house, 0, room) == [0, 1]
    assert rollouts_at(house, 0, None) == [0, 1, 2]
    end = int(house.end[1])
    assert rollouts_at(house, 0, end) == [1]
    start = int(house.batch.offsets[1])
    assert step_at(house, 1, hall) == start + 1  # the first time
    assert step_at(house, 1, end) == start + 2
    assert step_at(house, 1, None) == start
