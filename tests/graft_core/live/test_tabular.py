"""The tabular policy against pencil numbers and numerical derivatives."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graft_core.errors import InputError
from graft_core.live.policy import Choice, Lesson, Situation, UpdateOptions, surrogate_pull
from graft_core.live.tabular import TabularPolicy

AB = Situation("text", "s", ("a", "b"))
XYZ = Situation("other", "t", ("x", "y", "z"))


def choice(situation: Situation, k: int, logprob: float) -> Choice:
    return Choice(situation.admissible[k], situation.admissible[k], k, logprob, (), True)


def test_one_step_of_plain_ascent_is_what_the_pencil_says() -> None:
    policy = TabularPolicy()
    made = [choice(AB, 0, math.log(0.5)), choice(AB, 1, math.log(0.5))]
    lesson = Lesson([AB, AB], made, np.array([1.0, -1.0]), np.array([0.5, 0.5]))
    report = policy.improve(lesson, UpdateOptions(step_size=2.0, epochs=1, clip=0.0))
    # d/dlogit_a = .5 * 1 * (1 - .5) + .5 * -1 * (0 - .5) = .5, and -.5 for b
    assert policy.logits[0, :2].tolist() == [1.0, -1.0]
    assert report.pull.tolist() == [0.5, -0.5]
    assert report.loss == 0.0


def test_choices_follow_the_probabilities_and_the_luck() -> None:
    policy = TabularPolicy()
    policy.row(XYZ)
    policy.logits[0, :3] = np.log([0.2, 0.5, 0.3])
    luck = np.column_stack([[0.1, 0.3, 0.69, 0.71, 0.999], np.zeros(5)])
    found = policy.choose([XYZ] * 5, luck)
    assert [c.action for c in found] == ["x", "y", "y", "z", "z"]
    assert [c.logprob for c in found] == pytest.approx(np.log([0.2, 0.5, 0.5, 0.3, 0.3]).tolist())


@pytest.mark.parametrize("kl", [0.0, 0.3])
def test_the_gradient_is_the_derivative_of_the_objective(kl: float) -> None:
    rng = np.random.default_rng(1)
    situations = [AB, XYZ, XYZ, AB, XYZ]
    first = TabularPolicy(seed=3, spread=1.0)
    first.row(AB), first.row(XYZ)
    chosen = [0, 2, 1, 1, 0]
    old = -rng.uniform(0.3, 2.0, 5)
    advantage, weight = rng.normal(size=5), rng.dirichlet(np.ones(5))
    lesson = Lesson(situations, [choice(s, k, p) for s, k, p in zip(situations, chosen, old, strict=True)], advantage, weight)
    start = first.logits.copy()
    first.logits[:2] += rng.normal(size=first.logits[:2].shape) * 0.3  # away from the start, so that KL counts
    here = first.logits.copy()

    def objective(logits: np.ndarray) -> float:
        total = 0.0
        for k, (s, c) in enumerate(zip(situations, chosen, strict=True)):
            row = first.rows[s.state]
            n = len(s.admissible)
            logp = logits[row, :n] - np.log(np.exp(logits[row, :n]).sum())
            base = start[row, :n] - np.log(np.exp(start[row, :n]).sum())
            ratio = math.exp(logp[c] - old[k])
            gain = min(ratio * advantage[k], min(max(ratio, 0.8), 1.2) * advantage[k])
            total += weight[k] * (gain - kl * float((np.exp(logp) * (logp - base)).sum()))
        return total

    report = first.improve(lesson, UpdateOptions(step_size=1.0, epochs=1, clip=0.2, kl=kl))
    assert report.loss == pytest.approx(-objective(here))
    for row, width in ((0, 2), (1, 3)):
        for column in range(width):
            more, less = here.copy(), here.copy()
            more[row, column] += 1e-6
            less[row, column] -= 1e-6
            slope = (objective(more) - objective(less)) / 2e-6
            assert first.logits[row, column] - here[row, column] == pytest.approx(slope, abs=1e-6)


def test_the_clip_silences_only_steps_that_went_too_far_the_right_way() -> None:
    advantage = np.array([1.0, 1.0, -1.0, -1.0, 0.0])
    ratio = np.array([1.3, 0.5, 1.3, 0.5, 9.0])
    pull, silenced = surrogate_pull(advantage, np.full(5, 0.2), ratio, 0.2)
    assert silenced.tolist() == [True, False, False, True, False]
    assert pull == pytest.approx([0.0, 0.1, -0.26, 0.0, 0.0])


def test_what_is_kept_comes_back_the_same() -> None:
    policy = TabularPolicy(seed=5, spread=0.7)
    luck = np.random.default_rng(0).random((40, 2))
    policy.choose([AB, XYZ] * 20, luck)
    other = TabularPolicy()
    other.restore(*policy.state())
    new = Situation("n", "new", ("a", "b", "c", "d", "e"))
    assert other.choose([AB, XYZ, new, AB], luck[:4]) == policy.choose([AB, XYZ, new, AB], luck[:4])


def test_actions_of_a_state_must_not_change() -> None:
    policy = TabularPolicy()
    policy.row(AB)
    with pytest.raises(InputError, match=r"state 's': admissible actions were \('a', 'b'\)"):
        policy.row(AB._replace(admissible=("a",)))
