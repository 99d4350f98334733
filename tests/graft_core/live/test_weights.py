"""What the update sees, against the trainer's own gradient."""

from __future__ import annotations

import numpy as np
import pytest

import graft_core as gc
from graft_core.errors import UsageError
from graft_core.live.games import make_game
from graft_core.live.policy import Lesson, UpdateOptions
from graft_core.live.sampler import Plan, Sampled, sample
from graft_core.live.tabular import TabularPolicy
from graft_core.live.trainer import TrainOptions, learn
from graft_core.live.weights import LOSSES, loss_weights, scaled_credit, token_counts, update_shares


def two_groups() -> tuple[TabularPolicy, Sampled]:
    policy = TabularPolicy(1, 0.5)
    found = sample(make_game("household:task=throw away letter"), policy, Plan(groups=2, group_size=12, turns=25))
    assert 0 < found.success < 1
    return policy, found


def test_weights_by_pencil() -> None:
    tokens, rollout = np.array([1, 3, 2, 2]), np.array([0, 0, 1, 1])
    assert loss_weights(tokens, rollout, "step") == pytest.approx([0.25] * 4)
    assert loss_weights(tokens, rollout, "token") == pytest.approx([1 / 8, 3 / 8, 2 / 8, 2 / 8])
    assert loss_weights(tokens, rollout, "sequence") == pytest.approx([1 / 8, 3 / 8, 1 / 4, 1 / 4])
    assert loss_weights(tokens, rollout, "sum") == pytest.approx([0.5] * 4)
    with pytest.raises(UsageError, match="loss: 'mean' is not allowed"):
        loss_weights(tokens, rollout, "mean")


def test_scaling_leaves_signs_and_makes_undefined_nothing() -> None:
    scaled = scaled_credit(np.array([3.0, -4.0, np.nan]), "rms")
    assert scaled == pytest.approx(np.array([3.0, -4.0, 0.0]) / np.sqrt(12.5))
    assert scaled_credit(np.array([0.0, 0.0]), "rms").tolist() == [0.0, 0.0]
    assert scaled_credit(np.array([3.0, np.nan]), "none").tolist() == [3.0, 0.0]


@pytest.mark.parametrize("loss", LOSSES)
def test_shares_are_the_trainers_own_weights(loss: str) -> None:
    policy, found = two_groups()
    options = TrainOptions("path_gae", loss=loss, update=UpdateOptions(step_size=0.1, epochs=1))
    learned = learn(policy, found, options)
    shares = update_shares(found.batch, learned.credit, loss)
    assert np.abs(shares.pull - learned.report.pull).max() < 1e-12
    assert shares.share.sum() == pytest.approx(1.0, abs=1e-12)
    for rows in (shares.by_verb(), shares.by_rollout()):
        assert sum(row["share"] for row in rows) == pytest.approx(1.0, abs=1e-9)
        assert sum(row["pull"] for row in rows) == pytest.approx(learned.report.pull.sum(), abs=1e-9)
        assert sum(row["steps"] for row in rows) == found.n_steps
    by_verb = {row["name"]: row for row in shares.by_verb()}
    texts = [found.batch.text(i) for i in found.batch.to_rows(found.batch.action).tolist()]
    went = np.array([text.startswith("go ") for text in texts])
    assert by_verb["go"]["steps"] == went.sum()
    assert by_verb["go"]["share"] == pytest.approx(shares.share[went].sum())


def test_shares_follow_the_clip_after_some_epochs() -> None:
    policy, found = two_groups()
    learned = learn(policy, found, TrainOptions("grpo", loss="step", update=UpdateOptions(step_size=40.0, epochs=3, clip=0.2)))
    assert learned.report.clipped > 0
    # the log-probabilities of the third epoch: two epochs of the same update, made again
    again, same = two_groups()
    weight = loss_weights(token_counts(same.batch), same.batch.step_rollout_rows, "step")
    lesson = Lesson(same.situations, same.choices, scaled_credit(gc.estimate(same.batch, "grpo")), weight)
    again.improve(lesson, UpdateOptions(step_size=40.0, epochs=2, clip=0.2))
    rows = np.array([again.row(s) for s in same.situations])
    new = again._logprobs(rows, again.logits)[np.arange(rows.size), [c.chosen for c in same.choices]]
    shares = update_shares(found.batch, learned.credit, "step", clip=0.2, new_logprob=new)
    assert np.abs(shares.pull - learned.report.pull).max() < 1e-9


def test_wrong_length_of_credit_is_named() -> None:
    _, found = two_groups()
    with pytest.raises(UsageError, match=f"expected {found.n_steps} numbers"):
        update_shares(found.batch, np.zeros(3))
