"""gymnasium's toy_text as worlds: the same moves as gymnasium's own, and our FrozenLake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="the extra `live` is not installed")

from graft_core.environments import WorldEnvironment, make_world  # noqa: E402
from graft_core.environments.tables import compile_world  # noqa: E402
from graft_core.errors import UsageError  # noqa: E402
from graft_core.live.toy_text import ACTIONS, toy_text, toy_text_world  # noqa: E402


@pytest.mark.parametrize("name", ["CliffWalking-v1", "Taxi-v4"])
def test_it_plays_as_gymnasium_does(name: str) -> None:
    theirs: Any = gymnasium.make(name).unwrapped
    ours = toy_text(name)
    assert isinstance(ours, WorldEnvironment)
    rng = np.random.default_rng(0)
    for seed in range(5):
        number, _ = theirs.reset(seed=seed)
        ours.restore((int(number), ""), seed=0)
        for _ in range(60):
            action = int(rng.integers(len(ours.admissible())))
            number, reward, ended, _, _ = theirs.step(action)
            _, our_reward, our_end = ours.step(ACTIONS[name.split("-")[0]][action])
            assert (our_reward, our_end) == (float(reward), bool(ended))
            assert ours.state_key()[0] == number  # type: ignore[index]
            if ended:
                break


@pytest.mark.parametrize("slippery", [False, True])
def test_frozen_lake_is_the_one_we_have(slippery: bool) -> None:
    theirs = compile_world(toy_text_world("FrozenLake-v1", is_slippery=slippery, map_name="8x8"))
    ours = compile_world(make_world("frozen-lake", size=8, slippery=slippery))
    assert theirs.n_states == ours.n_states
    assert theirs.distances()[0] == ours.distances()[0] == 14
    assert theirs.success.sum() == ours.success.sum() == 1
    policy = np.full(ours.n_pairs, 0.25)
    from graft_core.fidelity.truth import finite_values

    chances = [float(t.start @ finite_values(t, policy, 60, 1.0).v[60]) for t in (theirs, ours)]
    assert chances[0] == pytest.approx(chances[1], abs=1e-12)


def test_taxi_is_told_in_words() -> None:
    game = toy_text("Taxi-v4")
    text = game.restore((((0 * 5 + 3) * 5 + 2) * 4 + 1, ""))
    assert text == "The taxi is at row 1, column 4. The guest is waiting at yellow and wants to go to green."


def test_names_and_options_that_are_wrong() -> None:
    with pytest.raises(UsageError, match="expected FrozenLake-vN"):
        toy_text_world("Blackjack-v1")
    with pytest.raises(UsageError, match="FrozenLake-v99"):
        toy_text_world("FrozenLake-v99")
    with pytest.raises(UsageError, match="no_such_option"):
        toy_text_world("FrozenLake-v1", no_such_option=1)
