"""Cliff, and ten more kinds of household task, counted by hand and checked state by state."""

from __future__ import annotations

import numpy as np
import pytest

from graft_core.environments import WorldEnvironment, make_world
from graft_core.environments.household import household
from graft_core.environments.household_more import MORE_TASKS
from graft_core.environments.household_tasks import TASKS
from graft_core.environments.tables import Table, compile_world
from graft_core.errors import UsageError

# counted by hand from the tasks
SHORTEST = {
    "look at letter": 3,
    "read and shelve": 5,
    "pick two for the table": 7,
    "swap": 4,
    "clean and heat plate": 7,
    "clean and cool glass": 8,
    "throw away letter": 3,
    "hide spoon": 8,
    "hot and cool": 12,
    "breakfast": 10,
}


@pytest.fixture(scope="module", params=list(MORE_TASKS))
def table(request: pytest.FixtureRequest) -> Table:
    return compile_world(household(request.param))


def test_there_are_ten_new_kinds_under_new_names() -> None:
    assert set(SHORTEST) == set(MORE_TASKS)
    assert not set(TASKS) & set(MORE_TASKS)
    assert len({task.family for task in MORE_TASKS.values()} - {task.family for task in TASKS.values()}) == 10


def test_the_shortest_way_and_texts_that_tell_all_states_apart(table: Table) -> None:
    task = table.world.name.removeprefix("household: ")
    assert table.distances()[0] == SHORTEST[task]
    assert len(set(table.observations)) == len(set(table.keys)) == table.n_states


def test_every_task_can_be_lost_for_good(table: Table) -> None:
    lost = np.isinf(table.distances())
    assert 0.05 < lost.mean() < 0.5


def test_a_letter_under_the_lamp_reads_like_this() -> None:
    game = WorldEnvironment(household("look at letter"))
    game.reset(0)
    assert "examine letter with lamp" not in game.admissible()
    game.step("take letter from shelf")
    text, _, _ = game.step("go to study")
    assert text == (
        "You are in the study. On the desk you see nothing. In the drawer you see nothing. There is a lamp on the desk. "
        "You carry a letter."
    )
    text, reward, done = game.step("examine letter with lamp")
    assert text.endswith("You carry a seen letter. The task is done.")
    assert (reward, done, game.success()) == (1.0, True, True)


def test_what_was_seen_stays_seen_when_it_is_heated() -> None:
    game = WorldEnvironment(household("read and shelve"))
    game.reset(0)
    for action in ("take book from counter", "go to study", "examine book with lamp", "put book on desk"):
        game.step(action)
    assert "book: desk, seen" in game.world.key(game.state_key())
    assert not game.success()
    for action in ("take book from desk", "go to living room", "put book on shelf"):
        game.step(action)
    assert game.success()


def test_throwing_away_the_wrong_thing_cannot_be_undone() -> None:
    game = WorldEnvironment(household("throw away letter"))
    game.reset(0)
    for action in ("take book from desk", "go to kitchen", "put book in chute", "go to study", "take letter from desk"):
        game.step(action)
    text, _, done = game.step("go to kitchen")
    assert "The book is lost in the chute." in text
    game.step("put letter in chute")
    assert not game.success() and not done


def test_old_tasks_know_no_lamp() -> None:
    for task in TASKS:
        world = household(task)
        assert not any("lamp" in a for state in compile_world(world).states[:500] for a in world.actions(state))


@pytest.mark.parametrize(("size", "steps"), [({}, 13), ({"height": 3, "width": 5}, 6), ({"deadly": True}, 13)])
def test_the_shortest_way_along_the_cliff(size: dict[str, int], steps: int) -> None:
    assert compile_world(make_world("cliff", **size)).distances()[0] == steps


def test_a_fall_sends_back_and_costs_a_hundred() -> None:
    game = WorldEnvironment(make_world("cliff"))
    assert game.reset(0) == "You stand at row 4, column 1."
    assert game.step("right") == ("You stand at row 4, column 1.", -100.0, False)
    assert game.step("up") == ("You stand at row 3, column 1, above the cliff.", -1.0, False)
    for _ in range(11):
        game.step("right")
    assert game.step("down") == ("You reached the goal at row 4, column 12.", -1.0, True)
    assert game.success()


def test_a_deadly_fall_ends_in_failure() -> None:
    game = WorldEnvironment(make_world("cliff", deadly=True))
    game.reset(0)
    text, reward, done = game.step("right")
    assert (text, reward, done, game.success()) == ("You fell off the cliff at row 4, column 2.", -100.0, True, False)


def test_slipping_shares_out_the_chances() -> None:
    world = make_world("cliff", slip=0.4)
    found = {o.state: o.probability for o in world.transitions((2, 3), "right")}
    # right .6 + .1, up .1, left .1, down falls and is back at the start .1
    assert found == pytest.approx({(2, 4): 0.7, (1, 3): 0.1, (2, 2): 0.1, (3, 0): 0.1})


@pytest.mark.parametrize("options", [{"height": 1}, {"width": 2}, {"slip": 1.5}])
def test_a_cliff_that_cannot_be_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=r"cliff: .* is not allowed"):
        make_world("cliff", **options)
