"""True values: by pencil, by playing, against a dictionary program, and the limits that they must reach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from graft_core.environments import Outcome, WorldEnvironment, make_world
from graft_core.environments.policies import random_policy, scripted_policy
from graft_core.environments.sampler import sample_paths
from graft_core.environments.tables import Floats, Table, compile_world
from graft_core.errors import UsageError
from graft_core.fidelity import truth as truth_module
from graft_core.fidelity.truth import finite_values, success_probability, true_values


@dataclass(frozen=True)
class Chain:
    """Three states in a row, then success. `go`: one further with `luck`, else stay. `quit`: failure. `rest`: stay."""

    luck: float = 0.8
    trap: bool = False  # `rest` leads to a place from which nothing leads on
    reward_of_rest: float = 0.0
    name: str = "chain"

    def start(self) -> list[tuple[float, str]]:
        return [(1.0, "0")]

    def actions(self, state: str) -> tuple[str, ...]:
        return {"won": (), "lost": (), "cellar": ("rest",)}.get(state, ("go", "quit", "rest"))

    def transitions(self, state: str, action: str) -> list[Outcome]:
        if action == "quit":
            return [Outcome(1.0, "lost", 0.0, True)]
        if action == "rest":
            return [Outcome(1.0, "cellar" if self.trap else state, self.reward_of_rest, False)]
        further = "won" if state == "2" else str(int(state) + 1)
        done = further == "won"
        return [Outcome(self.luck, further, float(done), done), Outcome(1 - self.luck, state, 0.0, False)]

    def observation(self, state: str) -> str:
        return state

    def key(self, state: str) -> str:
        return state

    def success(self, state: str) -> bool:
        return state == "won"


def probabilities(table: Table, **shares: float) -> Floats:
    return np.array(
        [
            shares.get(action, 1.0) if table.states[s] != "cellar" else 1.0
            for s, action in zip(table.pair_state, table.pair_action, strict=True)
        ]
    )


def test_three_states_by_pencil() -> None:
    table = compile_world(Chain())
    policy = probabilities(table, go=0.5, quit=0.1, rest=0.4)
    gamma = 0.9
    exact = true_values(table, policy, gamma)
    # V(k) = .5 g (.8 V(k+1) + .2 V(k)) + .4 g V(k), hence V(k) = .4 g V(k+1) / (1 - .1 g - .4 g)
    ratio = 0.4 * gamma / (1 - 0.5 * gamma)
    v = {"0": ratio**3, "1": ratio**2, "2": ratio, "won": 1.0, "lost": 0.0}
    assert [exact.v[table.numbers[s]] for s in v] == pytest.approx(list(v.values()), abs=1e-12)
    go, quit_, rest = (table.pair(table.numbers["1"], action) for action in ("go", "quit", "rest"))
    assert exact.q[go] == pytest.approx(gamma * (0.8 * v["2"] + 0.2 * v["1"]))
    assert exact.q[quit_] == 0.0
    assert exact.a[rest] == pytest.approx((gamma - 1) * v["1"])
    at = np.array([table.numbers["1"]]), np.array([table.numbers["2"]])
    assert exact.td(*at)[0] == pytest.approx(gamma * v["2"] - v["1"])


def test_chance_of_success_by_pencil() -> None:
    table = compile_world(Chain())
    # with gamma 1 each state is passed with chance .4 / (.4 + .1)
    policy = probabilities(table, go=0.5, quit=0.1, rest=0.4)
    assert success_probability(table, policy) == pytest.approx(0.8**3, abs=1e-12)


def test_dense_values_are_outcome_values_over_gamma() -> None:
    table = compile_world(make_world("frozen-lake", slippery=True))
    policy = random_policy(table, 3)
    outcome, dense = (true_values(table, policy, 0.95, rewards) for rewards in ("outcome", "dense"))
    inner = ~table.terminal
    assert dense.v[inner] == pytest.approx(outcome.v[inner] / 0.95, abs=1e-12)
    assert dense.v[table.terminal] == pytest.approx(0.0)
    assert dense.a == pytest.approx(outcome.a / 0.95, abs=1e-12)
    into_goal = table.result_state == np.flatnonzero(table.success & table.terminal)[0]
    state, after = table.pair_state[table.result_pair[into_goal]], table.result_state[into_goal]
    assert dense.td(state, after, 1.0) == pytest.approx(outcome.td(state, after) / 0.95)


@pytest.mark.parametrize(("name", "options"), [("frozen-lake", {"slippery": True}), ("key-door", {}), ("layered", {})])
def test_values_agree_with_a_dictionary_program(name: str, options: dict[str, bool]) -> None:
    world = make_world(name, **options)
    table = compile_world(world)
    policy = random_policy(table, 11)
    gamma = 0.97
    chance = {(table.states[s], a): p for s, a, p in zip(table.pair_state, table.pair_action, policy, strict=True)}
    v = {s: float(world.success(s) and not world.actions(s)) for s in table.states}
    for _ in range(1500):  # sweeps in place: an algorithm of another kind
        for s in table.states:
            if world.actions(s):
                v[s] = sum(
                    chance[s, a] * gamma * o.probability * v[o.state] for a in world.actions(s) for o in world.transitions(s, a)
                )
    exact = true_values(table, policy, gamma)
    assert exact.v == pytest.approx([v[s] for s in table.states], abs=1e-12)
    assert table.per_state(policy, exact.a) == pytest.approx(0.0, abs=1e-12)
    q = gamma * sum(o.probability * v[o.state] for o in world.transitions(table.states[0], table.pair_action[1]))
    assert exact.q[1] == pytest.approx(q, abs=1e-12)


def test_values_agree_with_playing() -> None:
    world = Chain()
    table = compile_world(world)
    policy = probabilities(table, go=0.5, quit=0.2, rest=0.3)
    gamma, n = 0.9, 4000
    exact = true_values(table, policy, gamma)
    rng = np.random.default_rng(2)
    game = WorldEnvironment(world)
    returns = []
    for k in range(n):
        game.reset(k)
        turns = 0
        while game.admissible():
            game.step(str(rng.choice(game.admissible(), p=[0.5, 0.2, 0.3])))
            turns += 1
        returns.append(gamma**turns * game.success())
    assert abs(np.mean(returns) - exact.v[0]) < 4 * np.std(returns) / np.sqrt(n)


def test_the_turn_limit_counts_and_its_limit_is_no_limit() -> None:
    table = compile_world(make_world("frozen-lake"))
    policy = random_policy(table, 5)
    exact = true_values(table, policy, 0.9)
    finite = finite_values(table, policy, 400, 0.9)
    assert finite.v[400] == pytest.approx(exact.v, abs=1e-12)
    assert finite.a(400) == pytest.approx(exact.a, abs=1e-12)
    assert finite.v[0].tolist() == [float(s) for s in table.success & table.terminal]
    assert finite.v[5][0] == 0.0  # the shortest way takes six
    assert finite.v[6][0] > 0.0
    assert np.all(np.diff(finite.v, axis=0) >= 0)


def test_finite_values_agree_with_sampling_under_the_limit() -> None:
    table = compile_world(make_world("household", task="shelve book"))
    policy = scripted_policy(table, 0.5)
    limit, n = 10, 4000
    finite = finite_values(table, policy, limit, 0.99)
    paths = sample_paths(table, policy, 1, n, limit, 8)
    returns = np.where(paths.success, 0.99**paths.n_steps, 0.0)
    assert abs(returns.mean() - finite.v[limit][0]) < 4 * returns.std() / np.sqrt(n)
    left = limit - paths.step
    advantages = finite.advantages(paths.pair, left)
    k = 7
    expected = 0.99 * finite.v[left[k] - 1][paths.next_state[k]] - finite.v[left[k]][paths.state[k]]
    assert advantages[k] == pytest.approx(expected, abs=1e-12)
    # what was promised at the start and gained on the way is what came out: advantages telescope in a sure world
    gained = np.bincount(paths.rollout, 0.99**paths.step * advantages, minlength=n)
    assert finite.v[limit][0] + gained == pytest.approx(returns, abs=1e-9)


def test_three_solvers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    table = compile_world(make_world("household", task="clean fork"))
    policy = scripted_policy(table, 0.4)
    sparse = true_values(table, policy, 0.95).v
    monkeypatch.setattr(truth_module, "DENSE_STATES", 10_000)
    assert true_values(table, policy, 0.95).v == pytest.approx(sparse, abs=1e-10)
    monkeypatch.setattr(truth_module, "DENSE_STATES", 0)
    monkeypatch.setattr(truth_module, "LU_STATES", 0)
    assert true_values(table, policy, 0.95).v == pytest.approx(sparse, abs=1e-10)
    with pytest.raises(UsageError, match="too many"):
        success_probability(table, policy)


def test_a_place_that_leads_nowhere_is_worth_nothing() -> None:
    table = compile_world(Chain(luck=1.0, trap=True))
    policy = probabilities(table, go=0.5, quit=0.25, rest=0.25)
    for gamma in (0.9, 1.0):
        exact = true_values(table, policy, gamma)
        assert exact.v[table.numbers["cellar"]] == 0.0
        assert exact.v[table.numbers["0"]] == pytest.approx((0.5 * gamma) ** 3)


def test_resting_for_ever_with_a_reward() -> None:
    table = compile_world(Chain(trap=True, reward_of_rest=0.5))
    policy = probabilities(table, go=0.5, quit=0.25, rest=0.25)
    exact = true_values(table, policy, 0.9, "dense")
    assert exact.v[table.numbers["cellar"]] == pytest.approx(0.5 / (1 - 0.9))
    with pytest.raises(UsageError, match="never ends"):
        true_values(table, policy, 1.0, "dense")


def test_lost_household_states_are_worth_nothing_and_others_something() -> None:
    table = compile_world(make_world("household", task="heat bread"))
    exact = true_values(table, scripted_policy(table, 0.3))
    lost = np.isinf(table.distances())
    assert lost.any()
    assert exact.v[lost].tolist() == [0.0] * int(lost.sum())
    assert exact.v[~lost].min() > 0.0
    assert exact.v.max() == 1.0


@pytest.mark.parametrize("gamma", [0.0, 1.5, float("nan")])
def test_wrong_arguments_are_named(gamma: float) -> None:
    table = compile_world(Chain())
    policy = probabilities(table, go=0.5, quit=0.25, rest=0.25)
    with pytest.raises(UsageError, match="gamma"):
        true_values(table, policy, gamma)
    with pytest.raises(UsageError, match="rewards"):
        true_values(table, policy, 0.9, "sparse")
    with pytest.raises(UsageError, match="horizon"):
        finite_values(table, policy, -1)
    with pytest.raises(ValueError, match="policy"):
        true_values(table, policy[:-1], 0.9)
