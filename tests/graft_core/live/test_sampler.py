"""Sampling: an ordinary batch, the same live and read back, the same whatever else is sampled; and what goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graft_core as gc
from graft_core.errors import UsageError
from graft_core.live.games import make_game
from graft_core.live.sampler import EnvironmentFailed, Plan, Sampled, sample
from graft_core.live.tabular import TabularPolicy
from graft_core.rollouts import batch_rows


def sampled(spec: str, **plan: Any) -> Sampled:
    return sample(make_game(spec), TabularPolicy(0, 1.0), Plan(**plan))


@pytest.mark.parametrize("spec", ["key-door", "frozen-lake:size=4,slippery=true", "household", "worlds:Corridor"])
def test_live_and_read_back_are_the_same_batch_with_the_same_credits(spec: str, tmp_path: Path) -> None:
    game, plan = make_game(spec), Plan(groups=3, group_size=6, turns=15, seed=(4, 1), update=1)
    with gc.record(tmp_path / "run", flush_every=10) as recorder:
        live = sample(game, TabularPolicy(0, 1.0), plan, recorder).batch
    back, report = gc.load(tmp_path / "run", report=True)
    assert report.warnings == ()
    assert back.rollout_ids == live.rollout_ids
    mine, theirs = batch_rows(live), batch_rows(back)
    for ours, read in zip(mine[0], theirs[0], strict=True):
        assert {k: v for k, v in ours.items() if k != "group_id"} == {k: v for k, v in read.items() if k != "group_id"}
        assert ours["group_id"] in read["group_id"]
    assert mine[1] == theirs[1]
    for name in ("graft_td", "path_gae", "graft", "grpo", "gigpo", "graphgpo"):
        assert gc.estimate(live, name).tobytes() == gc.estimate(back, name).tobytes(), name


def test_a_rollout_does_not_depend_on_how_many_groups_there_are() -> None:
    one = batch_rows(sampled("layered", groups=1, group_size=5, turns=12).batch)
    two = batch_rows(sampled("layered", groups=2, group_size=5, turns=12).batch)
    assert [r for r in two[1] if r["rollout"] < 5] == one[1]
    assert len(two[0]) == 10


def test_rollouts_of_a_group_share_the_first_state_but_not_the_luck() -> None:
    batch = sampled("frozen-lake:size=4,slippery=true", groups=1, group_size=16, turns=30).batch
    first = batch.observation[batch.offsets[:-1]]
    assert len(set(first.tolist())) == 1
    ends = {(batch.text(int(o)), n) for o, n in zip(batch.final_observation, batch.lengths, strict=True)}
    assert len(ends) > 3


def test_moves_and_chances_are_those_of_the_policy() -> None:
    game, policy = make_game("frozen-lake:size=4"), TabularPolicy(0, 1.0)
    found = sample(game, policy, Plan(groups=1, group_size=400, turns=1))
    share = np.exp(policy.logits[0]) / np.exp(policy.logits[0]).sum()
    counts = np.bincount([c.chosen for c in found.choices], minlength=4) / 400
    assert np.abs(counts - share).max() < 3.5 * np.sqrt(0.25 / 400)
    assert [c.logprob for c in found.choices] == pytest.approx(np.log(share[[c.chosen for c in found.choices]]).tolist())


def test_the_turn_limit_cuts_off_and_says_so() -> None:
    batch = sampled("key-door", groups=1, group_size=8, turns=3).batch
    assert batch.truncated.all() and not batch.terminated.any()
    assert batch.lengths.tolist() == [3] * 8
    assert batch.outcome.tolist() == [0.0] * 8


def test_household_groups_are_tasks_with_their_families_and_goals() -> None:
    found = sampled("household", groups=10, group_size=2, turns=4)
    rows = batch_rows(found.batch)[0]
    assert [r["group_id"] for r in rows[::2]][:2] == ["cool apple", "heat mug"]
    assert rows[0]["task_family"] == "cool"
    assert rows[16]["group_id"] == "look at letter"
    first = found.situations[0]
    assert first.prompt.startswith("Put a cool apple on the table.\nYou are in the living room.")
    assert first.state.startswith("cool apple: living room;")


def test_history_puts_the_past_turns_before_the_present() -> None:
    found = sampled("worlds:Corridor", groups=1, group_size=1, turns=4, history=2)
    texts, done = [s.prompt for s in found.situations], [c.action for c in found.choices]
    assert texts[0] == "cell 0"
    assert texts[1].splitlines()[:2] == ["cell 0", f"> {done[0]}"]
    assert texts[3].count("\n> ") == 2


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("raises", r"raised at step \d+ of walk / r\d+, action '\w+': ValueError: the floor gave way; (\d+) steps were kept"),
        ("stuck", r"no admissible action before step 2 of walk / r\d+, state '2'"),
    ],
)
def test_trouble_is_named_and_what_was_sampled_is_kept(trouble: str, said: str, tmp_path: Path) -> None:
    game = make_game("worlds:Corridor", trouble=trouble)
    with pytest.raises(EnvironmentFailed, match=said), gc.record(tmp_path / "run", flush_every=1000) as recorder:
        sample(game, TabularPolicy(), Plan(groups=1, group_size=8, turns=12), recorder)
    batch = gc.load(tmp_path / "run")
    assert batch.n_steps > 0
    assert np.isnan(batch.outcome).all()


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("frozen-lak", r"unknown environment 'frozen-lak' \(did you mean 'frozen-lake'\?\)"),
        ("frozen-lake:sise=4", r"unknown option of frozen-lake 'sise' \(did you mean 'size'\?\)"),
        ("frozen-lake:size=big", "frozen-lake: size: 'big' is not allowed, expected int"),
        ("frozen-lake:slippery=maybe", "expected true or false"),
        ("frozen-lake:size=5", "size 5 is not allowed"),
        ("no_such_module:Maze", "cannot import 'no_such_module'"),
        ("worlds:Maze", "'worlds' has no 'Maze'"),
        ("toy-text:Blackjack-v1", "have no table of moves"),
    ],
)
def test_a_wrong_environment_is_named(spec: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_game(spec).make("")


def test_a_class_that_is_no_game_says_what_it_lacks() -> None:
    with pytest.raises(UsageError, match="lacks step, admissible, state_key, success"):
        make_game("worlds:NoGame").make("")


def test_graph_keys_are_names_or_rules() -> None:
    game = make_game("key-door")
    assert game.rules("no-key") == (r"masked:/You have (the|no) key\./",)
    assert game.rules("field:state") == ("field:state",)
    with pytest.raises(UsageError, match=r"key-door.* also knows no-key"):
        game.rules("nonsense")


def test_the_hidden_key_merges_states_that_differ_in_the_key_only() -> None:
    batch = sampled("key-door", groups=1, group_size=16, turns=60).batch
    whole, hidden = gc.build_graph(batch), gc.build_graph(batch, rules=make_game("key-door").rules("no-key"))
    assert hidden.n_nodes < whole.n_nodes
    words = {batch.text(int(o)) for o in batch.observation}
    assert any(w.endswith("You have the key.") for w in words) and any(w.endswith("You have no key.") for w in words)
