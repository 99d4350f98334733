"""Check by rollout against exact values, and the exchange with an outside trainer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest

import graft_core as gc
from graft_core.environments.household import household
from graft_core.environments.policies import scripted_policy
from graft_core.environments.tables import compile_world
from graft_core.errors import InputError, UsageError
from graft_core.fidelity.truth import finite_values
from graft_core.live.behaviour import continuing_policy, counted_policy, scripted
from graft_core.live.exchange import export_probes, import_outcomes
from graft_core.live.games import make_game
from graft_core.live.policy import Situation
from graft_core.live.probe import (
    check_step,
    continuations,
    difference,
    find_step,
    turn_limit,
    verdict_of,
    wilson,
)
from graft_core.live.restore import Restorer
from graft_core.live.sampler import Plan, sample
from graft_core.live.start import PolicyOptions
from graft_core.live.stated import Stated
from graft_core.live.tabular import TabularPolicy


@pytest.fixture(scope="module")
def home(root: Path) -> gc.RolloutBatch:
    return gc.load(root / "sample_data" / "household.jsonl")  # type: ignore[no-any-return]


def test_continuations_have_the_true_value(home: gc.RolloutBatch) -> None:
    game = make_game("household")
    restorer = Restorer(game, home)
    position = find_step(home, "cool apple/r6/9")
    place = restorer.place(position)
    table = compile_world(household("cool apple"))
    policy = scripted_policy(table, 0.5)
    taken, left, gamma = home.text(int(home.action[position])), 20 - 9, 0.9
    truth = finite_values(table, policy, left, gamma)
    state = table.numbers[place.saved]
    given = scripted(game, 0.5)
    own = continuations(game, place, None, given, 3000, left, (1,), gamma)
    forced = continuations(game, place, taken, given, 3000, left, (2,), gamma)
    for (success, value), exact in ((own, truth.v[left][state]), (forced, truth.q(left)[table.pair(state, taken)])):
        error = value.std() / 3000**0.5
        assert abs(value.mean() - exact) < 4 * error + 1e-9
        assert success.sum() >= value.sum()


def test_a_check_says_what_the_exact_advantage_says(home: gc.RolloutBatch) -> None:
    game = make_game("household")
    restorer, policy = Restorer(game, home), scripted(game, 0.6)
    table = compile_world(household("cool glass"))
    shares = scripted_policy(table, 0.6)
    position = find_step(home, "cool glass/r7/10")
    left = 20 - 10
    state = table.numbers[restorer.place(position).saved]
    truth = finite_values(table, shares, left, 0.99).a(left)[table.pair(state, home.text(int(home.action[position])))]
    found = check_step(game, restorer, position, 0.3, policy, 400, seed=3)
    assert found.low <= truth <= found.high
    assert abs(found.difference - truth) < 0.1
    assert {arm.action for arm in found.rivals} | {found.action} == set(table.actions(state))
    again = check_step(game, restorer, position, 0.3, policy, 400, seed=3)
    assert again == found


def test_the_interval_covers_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        p, q = rng.uniform(0, 1, 2)
        a, b = (rng.random(64) < p).astype(float), (rng.random(64) < q).astype(float)
        _, low, high = difference(a, b)
        hits += low <= p - q <= high
    assert 0.92 <= hits / 400 <= 0.99


def test_intervals_and_verdicts_by_hand() -> None:
    assert wilson(0, 10) == pytest.approx((0.0, 0.277533), abs=1e-5)
    middle, low, high = difference(np.zeros(64), np.zeros(64))
    assert middle == 0.0 and low < 0 < high
    assert verdict_of(0.2, 0.1, 0.3) == verdict_of(-0.2, -0.3, -0.1) == "confirmed"
    assert verdict_of(0.2, -0.3, -0.1) == verdict_of(-0.2, 0.1, 0.3) == "contradicted"
    assert verdict_of(0.2, -0.1, 0.3) == verdict_of(0.0, 0.1, 0.3) == "open"


def test_counted_policy_is_the_share_of_tries(home: gc.RolloutBatch) -> None:
    restorer = Restorer(make_game("household"), home)
    policy = counted_policy(restorer)
    first = home.step_ids("state")[0]
    group = home.group[home.step_rollout] == 0
    here = group & (home.step_ids("state") == first)
    place = restorer.place(0)
    actions = household("cool apple").actions(place.saved)
    situation = Situation("", f"cool apple: {home.text(int(first))}", actions)
    row = policy.row(situation)
    done = [home.text(int(a)) for a in home.action[here]]
    expected = np.array([done.count(a) + 0.5 for a in actions])
    shares = np.exp(policy.logits[row, : len(actions)])
    assert shares / shares.sum() == pytest.approx(expected / expected.sum())


def test_a_state_is_found_again_by_replay_where_it_has_no_name() -> None:
    game = make_game("worlds:Restorable")
    batch = sample(game, TabularPolicy(), Plan(groups=1, group_size=4, turns=6)).batch
    restorer = Restorer(game, batch)
    for position in range(batch.n_steps):
        place = restorer.place(position)
        assert place.saved == int(batch.text(int(batch.observation[position])).split()[1])
        assert len(place.past) == batch.rank[position]


def test_what_cannot_be_restored_says_why(home: gc.RolloutBatch) -> None:
    corridor = make_game("worlds:Corridor")
    batch = sample(corridor, TabularPolicy(), Plan(groups=1, group_size=2, turns=4)).batch
    with pytest.raises(InputError, match="cannot save and restore"):
        Restorer(corridor, batch).place(1)
    with pytest.raises(InputError, match="group 'cool apple': names no task of worlds:Restorable"):
        Restorer(make_game("worlds:Restorable"), home).place(0)
    with pytest.raises(InputError, match="step 3 of cool apple / r1: cannot be restored: when its actions are replayed"):
        Restorer(make_game("key-door"), home).place(3)
    with pytest.raises(UsageError, match="expected GROUP/ROLLOUT/STEP"):
        find_step(home, "cool apple/r99/1")


def test_the_turn_limit_is_read_off_the_file(home: gc.RolloutBatch) -> None:
    assert turn_limit(home) == 20


def test_policies_by_name(home: gc.RolloutBatch) -> None:
    game = make_game("household")
    restorer = Restorer(game, home)
    assert continuing_policy("uniform", game, restorer, PolicyOptions()).name == "tabular"
    with pytest.raises(UsageError, match="expected scripted:SKILL"):
        continuing_policy("scripted:much", game, restorer, PolicyOptions())
    with pytest.raises(UsageError, match=r"skill 2\.0 is not allowed"):
        continuing_policy("scripted:2", game, restorer, PolicyOptions())


def test_prefixes_out_and_outcomes_back(home: gc.RolloutBatch, tmp_path: Path) -> None:
    position = find_step(home, "heat mug/r3/1")
    assert export_probes(home, [position], [0.25], tmp_path / "probes.jsonl", 8) == 1
    row = orjson.loads((tmp_path / "probes.jsonl").read_bytes())
    assert (row["probe_id"], row["credit"], row["continuations"]) == ("heat mug/r3/1", 0.25, 8)
    assert len(row["history"]) == 1 and row["history"][0]["observation"].startswith("You are in the study.")
    assert row["action"] not in row["rivals"] and "look" in row["rivals"]
    lines = [{"probe_id": row["probe_id"], "action": None, "outcome": 0, "steps": 5}] * 40
    lines += [{"probe_id": row["probe_id"], "action": row["action"], "outcome": 1, "steps": 2}] * 40
    lines += [{"probe_id": row["probe_id"], "action": "look", "outcome": 1}] * 3
    (tmp_path / "out.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    ((check, stated),) = import_outcomes(tmp_path / "probes.jsonl", tmp_path / "out.jsonl", gamma=0.9)
    assert check.verdict == "confirmed"
    assert check.difference == pytest.approx(0.81)
    assert (check.taken.successes, check.usual.successes, check.rivals[0].tries) == (40, 0, 3)
    assert stated is None and row["stated"] is None
    export_probes(home, [position], [0.25], tmp_path / "probes.jsonl", 8, [Stated(0.25, 0.1, 5.0)])
    assert import_outcomes(tmp_path / "probes.jsonl", tmp_path / "out.jsonl")[0][1] == Stated(0.25, 0.1, 5.0)
    spoilt = (tmp_path / "probes.jsonl").read_text().replace('"degrees":5.0', '"degrees":"x"')
    (tmp_path / "probes.jsonl").write_text(spoilt)
    with pytest.raises(InputError, match=r"probes\.jsonl:1: expected a line that `graft probe export` wrote"):
        import_outcomes(tmp_path / "probes.jsonl", tmp_path / "out.jsonl")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"probe_id": "no/such/1", "outcome": 1}', r"out\.jsonl:1: probe 'no/such/1' is not in"),
        ('{"probe_id": "heat mug/r3/1", "outcome": 2}', r"out\.jsonl:1: expected an outcome from 0 to 1"),
        ('{"probe_id": "heat mug/r3/1", "outcome": 1, "steps": -1}', r"out\.jsonl:1: expected an outcome"),
        ("nonsense", r"out\.jsonl:1: not JSON"),
        ("[1]", r"out\.jsonl:1: expected an object with a probe_id"),
        ('{"probe_id": "heat mug/r3/1", "outcome": 1}', r"out\.jsonl: no probe has outcomes of its action and"),
    ],
)
def test_outcomes_that_cannot_be_used_are_named(home: gc.RolloutBatch, tmp_path: Path, line: str, said: str) -> None:
    export_probes(home, [find_step(home, "heat mug/r3/1")], [0.25], tmp_path / "probes.jsonl")
    (tmp_path / "out.jsonl").write_text(line)
    with pytest.raises(InputError, match=said):
        import_outcomes(tmp_path / "probes.jsonl", tmp_path / "out.jsonl")
