"""Tables, policies and the sampler: against exact chances, and row by row against the dynamics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from graft_core.environments import Outcome, make_world
from graft_core.environments.policies import policy_with_success, random_policy, scripted_policy, softmax_policy
from graft_core.environments.sampler import rows_of, sample_paths, sample_rollouts, take
from graft_core.environments.tables import compile_world
from graft_core.errors import UsageError
from graft_core.fidelity.truth import finite_values, success_probability


@dataclass(frozen=True)
class Broken:
    """A world with something wrong in it."""

    results: tuple[Outcome, ...]
    name: str = "broken"

    def start(self) -> list[tuple[float, str]]:
        return [(1.0, "a")]

    def actions(self, state: str) -> tuple[str, ...]:
        return ("go",) if state == "a" else ()

    def transitions(self, state: str, action: str) -> list[Outcome]:
        return list(self.results)

    def observation(self, state: str) -> str:
        return state

    def key(self, state: str) -> str:
        return state

    def success(self, state: str) -> bool:
        return state == "b"


def test_a_world_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(UsageError, match=r"sum to 0\.9"):
        compile_world(Broken((Outcome(0.9, "b", 1.0, True),)))
    with pytest.raises(UsageError, match="terminated"):
        compile_world(Broken((Outcome(1.0, "b", 1.0, False),)))
    with pytest.raises(UsageError, match="more than 3 states"):
        compile_world(make_world("frozen-lake"), max_states=3)


def test_a_rollout_that_ends_before_it_starts_is_declared_with_step_null() -> None:
    class Over(Broken):
        def start(self) -> list[tuple[float, str]]:
            return [(1.0, "b")]

    rows = sample_rollouts(Over(()), np.zeros(0), 1, 2, 5, 0)
    assert [(r["rollout_id"], r["step"], r["outcome"]) for r in rows] == [("r1", None, 1.0), ("r2", None, 1.0)]


@pytest.mark.parametrize("seed", [0, 1])
def test_policies_sum_to_one_in_every_state(seed: int) -> None:
    table = compile_world(make_world("key-door", size=5))
    policies = [random_policy(table, seed), random_policy(table, seed, 0.01), scripted_policy(table, 0.4, {"up": 0.0})]
    for policy in policies:
        total = np.bincount(table.pair_state, policy, minlength=table.n_states)
        assert total[~table.terminal] == pytest.approx(1.0)


def test_softmax_of_known_logits() -> None:
    table = compile_world(make_world("frozen-lake"))
    logits = np.tile(np.log([1.0, 2.0, 3.0, 4.0]), table.n_pairs // 4)
    assert softmax_policy(table, logits)[:4] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert softmax_policy(table, logits, 0.5)[:4] == pytest.approx(np.array([1, 4, 9, 16]) / 30)
    with pytest.raises(UsageError, match="temperature"):
        softmax_policy(table, logits, 0.0)


def test_scripted_policy_with_full_skill_takes_the_shortest_way() -> None:
    table = compile_world(make_world("household", task="heat mug"))
    paths = sample_paths(table, scripted_policy(table, 1.0), 1, 20, 50, 0)
    assert paths.success.all()
    assert paths.n_steps.tolist() == [7] * 20


@pytest.mark.parametrize("name", ["frozen-lake", "key-door", "layered"])
def test_policy_with_success_keeps_its_promise(name: str) -> None:
    table = compile_world(make_world(name))
    chances = [success_probability(table, policy_with_success(table, [3, k], 0.05, 0.4)) for k in range(12)]
    assert min(chances) >= 0.05
    assert max(chances) <= 0.4
    assert max(chances) - min(chances) > 0.1
    assert np.array_equal(policy_with_success(table, 5), policy_with_success(table, 5))


def test_policy_with_success_says_when_there_is_none() -> None:
    table = compile_world(make_world("frozen-lake", slippery=True))
    with pytest.raises(UsageError, match="no policy"):
        policy_with_success(table, 0, 0.99, 1.0, tries=2)


@pytest.mark.parametrize(("name", "options"), [("frozen-lake", {"slippery": True}), ("layered", {}), ("key-door", {})])
def test_sampled_success_agrees_with_the_exact_chance(name: str, options: dict[str, bool]) -> None:
    table = compile_world(make_world(name, **options))
    policy = policy_with_success(table, 7, 0.2, 0.4)
    n, limit = 6000, 25
    exact = float(table.start @ finite_values(table, policy, limit, gamma=1.0).v[limit])
    paths = sample_paths(table, policy, 2, n // 2, limit, 11)
    assert abs(paths.success.mean() - exact) < 4 * np.sqrt(exact * (1 - exact) / n)
    assert paths.n_steps.max() <= limit
    assert np.array_equal(~paths.terminated, ~table.terminal[paths.final_state])


def test_actions_are_chosen_with_the_policys_probabilities() -> None:
    table = compile_world(make_world("frozen-lake", size=8))
    policy = random_policy(table, 1)
    policy[table.pair_start[0]] = 0.0  # never left from the start
    policy[:4] /= policy[:4].sum()
    paths = sample_paths(table, policy, 1, 20_000, 1, 3)
    counts = np.bincount(paths.pair, minlength=4)[:4]
    assert counts[0] == 0
    assert counts / 20_000 == pytest.approx(policy[:4], abs=0.015)


def test_a_group_does_not_depend_on_how_many_there_are_and_each_may_have_its_policy() -> None:
    table = compile_world(make_world("frozen-lake"))
    policies = [random_policy(table, k, 0.3) for k in range(3)]
    together = sample_rollouts(table, policies, 3, 4, 30, 9)
    first = sample_rollouts(table, policies[0], 1, 4, 30, 9)
    assert [r for r in together if r["group_id"] == "g0"] == first
    shared = sample_rollouts(table, policies[1], 2, 4, 30, 9)
    assert [r for r in together if r["group_id"] == "g1"] == [r for r in shared if r["group_id"] == "g1"]
    with pytest.raises(ValueError, match="expected 1 or 2 policies"):
        sample_paths(table, policies, 2, 4, 30, 9)


@pytest.mark.parametrize(("name", "options"), [("household", {"task": "clean fork"}), ("frozen-lake", {"slippery": True})])
def test_every_row_is_a_move_of_the_world(name: str, options: dict[str, object]) -> None:
    world = make_world(name, **options)
    table = compile_world(world)
    rows = rows_of(sample_paths(table, random_policy(table, 2), 2, 5, 12, 4), ["x", "y"], "family", admissible=True)
    state_of = dict(zip(table.keys, table.states, strict=True))
    assert {(r["group_id"], r["rollout_id"]) for r in rows} == {(g, f"r{k}") for g in "xy" for k in range(1, 6)}
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        state = state_of[row["state"]]
        last = "next_state" in row
        after = row["next_state"] if last else following["state"]  # type: ignore[index]
        assert row["action"] in row["admissible"] == list(world.actions(state))
        assert row["observation"] == world.observation(state)
        assert (state_of[after], row["reward"]) in [(o.state, o.reward) for o in world.transitions(state, row["action"])]
        assert ("next_observation" in row) == last
        if last:
            assert row["terminated"] == (not world.actions(state_of[after])) == (not row["truncated"])
            assert row["outcome"] == float(row["success"]) == float(world.success(state_of[after]))
            assert following is None or following["step"] == 0
        else:
            assert following is not None
            assert following["step"] == row["step"] + 1


def test_take_keeps_whole_rollouts() -> None:
    table = compile_world(make_world("frozen-lake"))
    paths = sample_paths(table, random_policy(table, 0), 1, 6, 20, 0)
    some = take(paths, [4, 1])
    rows, all_rows = rows_of(some), rows_of(paths)
    for new, old in (("r1", "r5"), ("r2", "r2")):
        strip = [{k: v for k, v in r.items() if k != "rollout_id"} for r in rows if r["rollout_id"] == new]
        assert strip == [{k: v for k, v in r.items() if k != "rollout_id"} for r in all_rows if r["rollout_id"] == old]


def test_sampling_does_not_lose_precision_in_large_tables() -> None:
    table = compile_world(make_world("household", task="cool apple"))
    policy = random_policy(table, 0)
    paths = sample_paths(table, policy, 40, 8, 60, 1)
    assert np.array_equal(table.pair_state[paths.pair], paths.state)
    assert np.array_equal(table.result_state[table.result_start[paths.pair]], paths.next_state)
