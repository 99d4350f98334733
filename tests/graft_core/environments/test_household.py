"""The household game: its text, its rules, its mistakes, and that its observation tells states apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from graft_core.environments import WorldEnvironment, environments, make_world
from graft_core.environments.household import CARRIED, Household, household
from graft_core.environments.household_tasks import TASKS
from graft_core.environments.tables import compile_world
from graft_core.errors import UsageError

# counted by hand from the tasks
SHORTEST = {
    "cool apple": 6,
    "heat mug": 7,
    "clean plate": 6,
    "shelve book": 4,
    "cool glass": 6,
    "heat bread": 6,
    "clean fork": 6,
    "two for the desk": 11,
}


def play(task: str, *actions: str) -> tuple[WorldEnvironment, list[str], list[bool]]:
    game = WorldEnvironment(household(task))
    texts, ends = [game.reset(0)], []
    for action in actions:
        text, _, done = game.step(action)
        texts.append(text)
        ends.append(done)
    return game, texts, ends


def test_a_walk_to_success_reads_like_this() -> None:
    game, texts, ends = play(
        "cool apple",
        "go to kitchen",
        "take apple from counter",
        "open fridge",
        "cool apple with fridge",
        "go to living room",
        "put apple on table",
    )
    assert texts[0] == (
        "You are in the living room. On the table you see: a book. On the shelf you see nothing. You carry nothing."
    )
    assert texts[1] == (
        "You are in the kitchen. On the counter you see: an apple. In the sink you see nothing. The fridge is closed. "
        "The microwave is closed. There is a rubbish chute. You carry nothing."
    )
    assert texts[4] == (
        "You are in the kitchen. On the counter you see nothing. In the sink you see nothing. In the open fridge you "
        "see nothing. The microwave is closed. There is a rubbish chute. You carry a cool apple."
    )
    assert texts[6] == (
        "You are in the living room. On the table you see: a cool apple, a book. On the shelf you see nothing. "
        "You carry nothing. The task is done."
    )
    assert ends == [False] * 5 + [True]
    assert game.success()
    assert game.admissible() == ()


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_solvable_in_the_number_of_steps_counted_by_hand(task: str) -> None:
    assert compile_world(household(task)).distances()[0] == SHORTEST[task]


@pytest.mark.parametrize("task", TASKS)
def test_observation_and_key_tell_every_state_from_every_other(task: str) -> None:
    table = compile_world(household(task))
    assert len(set(table.observations)) == table.n_states
    assert len(set(table.keys)) == table.n_states


@pytest.mark.parametrize("task", ["heat bread", "clean fork"])
def test_rules_that_hold_in_every_state(task: str) -> None:
    world = household(task)
    assert isinstance(world, Household)
    table = compile_world(world)
    for state in table.states:
        actions = world.actions(state)  # type: ignore[arg-type]
        assert len(set(actions)) == len(actions)
        assert state.places.count(CARRIED) <= 1  # type: ignore[attr-defined]
        for action in actions:
            (result,) = world.transitions(state, action)  # type: ignore[arg-type]
            assert result.probability == 1.0
            assert result.reward == float(world.success(result.state)) == float(result.terminated)
            if action.startswith("go to"):
                assert result.state.open_doors == 0  # type: ignore[attr-defined]
            if action == "look":
                assert result.state == state


@pytest.mark.parametrize(
    ("task", "actions", "said"),
    [
        ("cool apple", ["go to kitchen", "take apple from counter", "eat apple"], "You have eaten the apple."),
        ("cool apple", ["go to kitchen", "take apple from counter", "put apple in chute"], "The apple is lost in the chute."),
        (
            "cool glass",
            ["go to kitchen", "take glass from sink", "open microwave", "heat glass with microwave"],
            "The glass has cracked.",
        ),
        (
            "shelve book",
            ["go to study", "take book from desk", "put book in drawer", "close drawer"],
            "The book is locked in the drawer.",
        ),
        (
            "shelve book",
            ["go to study", "take book from desk", "go to kitchen", "clean book with sink"],
            "The book is soaked and spoilt.",
        ),
    ],
)
def test_mistakes_that_cannot_be_undone(task: str, actions: list[str], said: str) -> None:
    table = compile_world(household(task))
    game, texts, _ = play(task, *actions)
    before, _, _ = play(task, *actions[:-1])
    far = table.distances()
    assert said in texts[-1]
    assert np.isfinite(far[table.numbers[before.state_key()]])
    assert np.isinf(far[table.numbers[game.state_key()]])
    for room in ("kitchen", "living room", "study"):  # remembered wherever the agent goes
        text, _, _ = game.step(f"go to {room}")
        assert said in text or text == "Nothing happens."


def test_a_command_that_is_not_admissible_changes_nothing() -> None:
    game, _, _ = play("cool apple")
    before = game.state_key()
    assert game.step("take apple from counter") == ("Nothing happens.", 0.0, False)
    assert game.step("<b>shout</b>") == ("Nothing happens.", 0.0, False)
    assert game.state_key() == before


def test_restore_goes_back_to_the_saved_moment() -> None:
    game, texts, _ = play("cool apple", "go to kitchen", "take apple from counter")
    saved = game.save()
    game.step("eat apple")
    assert game.restore(saved) == texts[-1]
    assert "eat apple" in game.admissible()


def test_heat_and_cold_replace_each_other_and_cleaning_stays() -> None:
    _, texts, _ = play(
        "cool apple",
        "go to kitchen",
        "take apple from counter",
        "clean apple with sink",
        "open fridge",
        "cool apple with fridge",
        "open microwave",
        "heat apple with microwave",
    )
    assert "You carry a clean cool apple." in texts[5]
    assert "You carry a clean hot apple." in texts[7]


def test_unknown_names_are_answered_with_what_there_is() -> None:
    with pytest.raises(UsageError, match="did you mean 'cool apple'"):
        make_world("household", task="cool aple")
    with pytest.raises(UsageError, match="unknown environment 'houshold'"):
        make_world("houshold")
    with pytest.raises(UsageError, match="unknown option of household 'tusk'"):
        make_world("household", tusk="cool apple")


def test_every_registered_environment_can_be_made_and_played() -> None:
    assert {"household", "frozen-lake", "key-door", "layered"} <= set(environments())
    for info in environments().values():
        game = WorldEnvironment(info.make(**info.options))
        with pytest.raises(RuntimeError, match="reset"):
            game.step("look")
        game.reset(0)
        for turn in itertools.count():
            if not game.admissible() or turn == 5:
                break
            assert game.step(game.admissible()[-1])[0]
