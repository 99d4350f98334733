"""FrozenLake against Gymnasium, key-door and the layered graph against what can be said of them beforehand."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from graft_core.environments import WorldEnvironment, make_world
from graft_core.environments.tables import compile_world
from graft_core.errors import UsageError


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("slippery", [False, True])
def test_frozen_lake_has_the_dynamics_of_gymnasium(size: int, slippery: bool) -> None:
    gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed (extra: live)")
    theirs = gymnasium.make("FrozenLake-v1", map_name=f"{size}x{size}", is_slippery=slippery).unwrapped.P
    world = make_world("frozen-lake", size=size, slippery=slippery)
    compared = 0
    for number, by_action in theirs.items():
        state = divmod(number, size)
        if not world.actions(state):
            assert all(done for results in by_action.values() for _, _, _, done in results)
            continue
        for action, results in zip(("left", "down", "right", "up"), (by_action[k] for k in range(4)), strict=True):
            expected: defaultdict[tuple[object, ...], float] = defaultdict(float)
            for chance, after, reward, done in results:
                expected[divmod(after, size), float(reward), bool(done)] += chance
            ours = {(o.state, o.reward, o.terminated): o.probability for o in world.transitions(state, action)}
            assert ours == pytest.approx(dict(expected))
            compared += 1
    assert compared == 4 * {4: 11, 8: 53}[size]


def test_frozen_lake_shortest_way() -> None:
    assert compile_world(make_world("frozen-lake", size=4)).distances()[0] == 6
    assert compile_world(make_world("frozen-lake", size=8)).distances()[0] == 14


@pytest.mark.parametrize(("size", "steps"), [(4, 10), (5, 12), (6, 12)])
def test_key_door_needs_the_key(size: int, steps: int) -> None:
    table = compile_world(make_world("key-door", size=size))
    assert table.distances()[0] == steps
    for state in table.states:
        if table.world.success(state):
            assert state.has_key  # type: ignore[attr-defined]


def test_the_locked_door_stops_and_the_key_opens() -> None:
    game = WorldEnvironment(make_world("key-door", size=4))
    game.reset(0)
    for action in ("right", "down", "right"):
        text, _, _ = game.step(action)
    assert text == "You are at row 2, column 2. You have no key."
    for action in ("left", "down", "down"):
        text, _, _ = game.step(action)
    assert text == "You are at row 4, column 1. You have the key."
    for action in ("up", "up", "right", "right"):
        text, _, done = game.step(action)
    assert text == "You are at row 2, column 3, in the doorway. You have the key."
    assert not done


def test_hiding_the_key_merges_exactly_the_states_that_differ_in_it() -> None:
    table = compile_world(make_world("key-door", size=4, hide_key=True))
    places: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
    kinds: defaultdict[str, set[bool]] = defaultdict(set)
    for state, text in zip(table.states, table.observations, strict=True):
        places[text].add(state[:2])  # type: ignore[index]
        kinds[text].add(state.has_key)  # type: ignore[attr-defined]
    assert all(len(cells) == 1 for cells in places.values())
    assert sum(len(k) == 2 for k in kinds.values()) >= 5
    assert len(set(table.keys)) == table.n_states
    open_table = compile_world(make_world("key-door", size=4))
    assert len(set(open_table.observations)) == open_table.n_states


def test_pits_end_rollouts_and_can_be_switched_off() -> None:
    deadly, safe = (compile_world(make_world("key-door", size=5, pits=pits)) for pits in (True, False))
    assert np.any(deadly.terminal & ~deadly.success)
    assert np.array_equal(safe.terminal, safe.success)


def test_slip_moves_in_any_direction() -> None:
    world = make_world("key-door", size=6, slip=0.2)
    (first,) = [state for _, state in world.start()]
    chances = {o.state[:2]: o.probability for o in world.transitions(first, "right")}  # type: ignore[index]
    assert chances == pytest.approx({(2, 2): 0.85, (2, 0): 0.05, (3, 1): 0.05, (1, 1): 0.05})


def test_layered_graph_has_the_promised_shape() -> None:
    table = compile_world(make_world("layered", layers=8, width=8, actions=3, stochastic=0.3, seed=4))
    rooms = np.array(table.states)
    assert rooms[table.terminal, 0].tolist() == [8] * int(table.terminal.sum())
    assert np.all(rooms[table.result_state, 0] == rooms[table.pair_state[table.result_pair], 0] + 1)
    assert np.all(np.diff(table.pair_start)[~table.terminal] == 3)
    results = np.diff(table.result_start)
    assert set(results.tolist()) == {1, 2}
    assert 0.15 < np.mean(results == 2) < 0.45
    assert 0 < table.success.sum() < table.terminal.sum()


def test_layered_graphs_differ_by_seed_only() -> None:
    one, same, other = (make_world("layered", seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_stochastic_actions_keep_their_share() -> None:
    table = compile_world(make_world("layered", layers=40, width=20, stochastic=0.3, seed=0))
    share = float(np.mean(np.diff(table.result_start) == 2))
    assert abs(share - 0.3) < 4 * np.sqrt(0.3 * 0.7 / table.n_pairs)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("frozen-lake", {"size": 5}),
        ("key-door", {"size": 3}),
        ("key-door", {"slip": 2}),
        ("layered", {"width": 1}),
        ("layered", {"stochastic": -1}),
    ],
)
def test_values_out_of_range_are_named(name: str, options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=name):
        make_world(name, **options)
