"""The language model policy: scores, gradients, tokens, free text, devices."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

torch = pytest.importorskip("torch", reason="the extra `live` is not installed")
pytest.importorskip("transformers", reason="the extra `live` is not installed")

from graft_core.errors import InputError, UsageError  # noqa: E402
from graft_core.live.games import make_game  # noqa: E402
from graft_core.live.generate import parse_action  # noqa: E402
from graft_core.live.lm import LMOptions, LMPolicy  # noqa: E402
from graft_core.live.lm_update import clipped_loss  # noqa: E402
from graft_core.live.models import (  # noqa: E402
    plain_words,
    tiny_model,
    word_tokenizer,
)
from graft_core.live.policy import Choice, Lesson, Situation, UpdateOptions, surrogate_pull  # noqa: E402
from graft_core.live.sampler import Plan, sample  # noqa: E402
from graft_core.live.weights import loss_weights, token_counts, update_shares  # noqa: E402

torch.set_num_threads(1)  # tiny models: more threads only get in each other's way
WORDS = ["you see a red door", "open door", "walk", "open", "look around here"]
DOOR = Situation("you see a door", "s1", ("open door", "walk", "look around here"))
RED = Situation("you see a red door", "s2", ("walk", "open"))


def small(acting: str = "score", **options: Any) -> LMPolicy:
    tokenizer = word_tokenizer(WORDS)
    model = tiny_model(tokenizer, 7, hidden=16).eval()
    return LMPolicy(model, tokenizer, "cpu", LMOptions(acting, **options), plain_words, "small")


@pytest.fixture(scope="module")
def shipped(root: Path) -> Path:
    return root / "sample_data" / "policies" / "frozen-lake-8x8"


def by_hand(policy: LMPolicy, situation: Situation) -> np.ndarray:
    """Each action by itself, without padding or batches: sum of its tokens' log-probabilities, then normalised."""
    sums = []
    for action in situation.admissible:
        prompt, ids = policy.prompt_ids(situation), policy.action_ids(action)
        with torch.no_grad():
            logp = torch.log_softmax(policy.model(torch.tensor([[*prompt, *ids]])).logits[0], -1)
        sums.append(sum(float(logp[len(prompt) - 1 + k, token]) for k, token in enumerate(ids)))
    row = np.array(sums)
    return row - np.log(np.exp(row).sum())


@pytest.mark.parametrize("batch", [256, 2])
def test_scores_are_sums_over_tokens_normalised_over_the_actions(batch: int) -> None:
    policy = small(batch=batch)
    found = policy._scores([DOOR, RED, DOOR])
    assert found[0] == pytest.approx(by_hand(policy, DOOR), abs=1e-5)
    assert found[1] == pytest.approx(by_hand(policy, RED), abs=1e-5)
    assert found[0].tolist() == found[2].tolist()


def test_actions_of_one_token_take_the_short_way_to_the_same_scores() -> None:
    policy = small()
    assert policy._scores([RED])[0] == pytest.approx(by_hand(policy, RED), abs=1e-5)


def test_one_forward_pass_serves_all_that_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, calls = small(), []
    monkeypatch.setattr(policy, "_sums", lambda *given, real=policy._sums: calls.append(1) or real(*given))
    luck = np.random.default_rng(0).random((6, 2))
    policy.choose([RED] * 6, luck)
    policy.choose([RED] * 6, luck)
    assert len(calls) == 1


def test_the_losss_derivative_is_the_pull_that_is_reported() -> None:
    policy = small()
    rng = np.random.default_rng(0)
    situations = [DOOR, RED, DOOR, RED] * 5
    choices = policy.choose(situations, rng.random((20, 2)))
    advantage, weight = rng.normal(size=20), np.full(20, 0.05)
    logp = torch.tensor([c.logprob for c in choices], dtype=torch.float64) + torch.tensor(rng.normal(size=20) * 0.3)
    logp.requires_grad_(True)
    old = torch.tensor([c.logprob for c in choices], dtype=torch.float64)
    ratio = torch.exp(logp - old)
    clipped_loss(ratio, torch.tensor(advantage), torch.tensor(weight), 0.2).backward()
    pull, silenced = surrogate_pull(advantage, weight, ratio.detach().numpy(), 0.2)
    assert silenced.any()
    assert np.abs(pull + logp.grad.numpy()).max() < 1e-12


OPENS = Situation("you see a door", "s3", ("open", "open door", "walk"))


def test_a_tokens_probability_is_its_share_of_the_actions_that_begin_so() -> None:
    policy = small()
    p = np.exp(by_hand(policy, OPENS))
    choices = policy.choose([OPENS] * 30, np.linspace(0.01, 0.99, 60).reshape(30, 2))
    assert {c.action for c in choices} == {"open", "open door", "walk"}
    expected = {"open": (), "walk": (), "open door": (np.log(p[0] + p[1]), np.log(p[1] / (p[0] + p[1])))}
    for choice in choices:
        assert choice.token_logprobs == pytest.approx(expected[choice.action], abs=1e-5)
        assert sum(choice.token_logprobs or (choice.logprob,)) == pytest.approx(choice.logprob, abs=1e-6)


@pytest.mark.parametrize("ratio", ["token", "sequence"])
@pytest.mark.parametrize("clip", [0.2, 0.0])
def test_loss_gradient_and_pull_by_hand_for_both_ratios(ratio: str, clip: float) -> None:
    policy = small()
    # what the sampling policy is said to have given: (situation, action, log-probability of each token)
    said = [(OPENS, 1, (-0.9, -0.2)), (OPENS, 1, (-0.3, -1.1)), (OPENS, 0, (-1.5,)), (DOOR, 2, (-1.3, -0.1, -0.2))]
    advantage, weight = np.array([1.5, -0.5, 2.0, -1.0]), np.array([0.4, 0.3, 0.2, 0.1])
    choices = [
        Choice(s.admissible[c], s.admissible[c], c, sum(t), policy.action_ids(s.admissible[c]), True, t) for s, c, t in said
    ]
    p, q = torch.softmax(policy.action_logits([OPENS]), 1)[0].double(), torch.softmax(policy.action_logits([DOOR]), 1)[0]
    one = torch.ones((), dtype=torch.float64)
    new = [[p[0] + p[1], p[1] / (p[0] + p[1])]] * 2 + [[p[0]], [q[2].double(), one, one]]
    objective, pull = torch.zeros((), dtype=torch.float64), []
    for tokens, (_, _, before), a, w in zip(new, said, advantage, weight, strict=True):
        ratios = [t / np.exp(o) for t, o in zip(tokens, before, strict=True)]
        if ratio == "sequence":
            ratios = [torch.stack(ratios).prod() ** (1 / len(ratios))]
        gains = [torch.minimum(r * a, r.clamp(1 - clip, 1 + clip) * a) if clip else r * a for r in ratios]
        objective = objective + w / len(gains) * torch.stack(gains).sum()
        kept = [not clip or not ((a > 0 and r > 1 + clip) or (a < 0 and r < 1 - clip)) for r in ratios]
        pull.append(sum(w / len(gains) * r.item() * a * k for r, k in zip(ratios, kept, strict=True)))
    gradient = torch.autograd.grad(objective, list(policy.model.parameters()))
    norm = float(torch.cat([g.flatten() for g in gradient]).norm())
    options = UpdateOptions(1e-3, 1, clip, ratio=ratio)
    report = policy.improve(Lesson([s for s, _, _ in said], choices, advantage, weight), options)
    assert report.loss == pytest.approx(-objective.item(), abs=1e-6)
    assert report.pull == pytest.approx(np.array(pull), abs=1e-6)
    assert report.grad_norm == pytest.approx(norm, rel=1e-4)
    assert (report.clipped > 0) == (clip > 0)


@pytest.mark.parametrize("ratio", ["token", "sequence"])
def test_shares_follow_the_clip_of_either_ratio(ratio: str) -> None:
    words = word_tokenizer(["go to take look put in on from kitchen study mug apple fridge table drawer shelf open"])
    policy = LMPolicy(tiny_model(words, 0, hidden=16).eval(), words, "cpu", LMOptions(), plain_words, "w")
    found = sample(make_game("household:task=swap"), policy, Plan(groups=1, group_size=6, turns=6))
    credit = np.random.default_rng(0).normal(size=found.n_steps)
    weight = loss_weights(token_counts(found.batch), found.batch.step_rollout_rows, "step")
    lesson = Lesson(found.situations, found.choices, credit, weight)
    copied = copy.deepcopy(policy)
    report = policy.improve(lesson, UpdateOptions(0.05, 2, 0.05, ratio=ratio))
    assert 0 < report.clipped < 1
    copied.improve(lesson, UpdateOptions(0.05, 1, 0.05, ratio=ratio))  # the second pass saw what the first one left
    new = [copied._scored(s, c.chosen, copied._scores([s])[0]) for s, c in zip(found.situations, found.choices, strict=True)]
    if ratio == "token":
        after = Lesson(found.situations, new, credit, weight).old_token_logprobs
        given: dict[str, Any] = {"new_logprob": after, "old_logprob": lesson.old_token_logprobs}
    else:
        given = {"new_logprob": np.array([c.logprob for c in new])}
    shares = update_shares(found.batch, credit, "step", "none", 0.05, ratio=ratio, **given)
    assert np.abs(shares.pull - report.pull).max() < 1e-6
    plain = update_shares(found.batch, credit, "step", "none")
    assert np.abs(plain.pull - report.pull).max() > 1e-3
    with pytest.raises(UsageError, match="ratio: 'word' is not allowed"):
        update_shares(found.batch, credit, ratio="word")


def test_shares_are_the_trainers_own_weights_with_tokens() -> None:
    words = word_tokenizer(["placeholder"])
    policy = LMPolicy(tiny_model(words, 0, hidden=16).eval(), words, "cpu", LMOptions(), plain_words, "w")
    found = sample(make_game("household:task=swap"), policy, Plan(groups=1, group_size=6, turns=6))
    assert len({len(c.tokens) for c in found.choices}) > 1  # "look" and "go to kitchen"
    credit = np.random.default_rng(0).normal(size=found.n_steps)
    for loss in ("token", "sequence", "step"):
        weight = loss_weights(token_counts(found.batch), found.batch.step_rollout_rows, loss)
        report = policy.improve(Lesson(found.situations, found.choices, credit, weight), UpdateOptions(0.0, 1))
        shares = update_shares(found.batch, credit, loss, "none")
        assert np.abs(shares.pull - report.pull).max() < 1e-6
        assert shares.pull == pytest.approx(weight * credit)
        long = np.array([len(c.tokens) for c in found.choices])
        assert (loss == "step") == (weight[long == 1][0] == weight[long == 3][0])


def test_an_update_makes_good_actions_likelier_and_kl_holds_it_back() -> None:
    def after(kl: float) -> tuple[float, float]:
        policy = small()
        before = policy._scores([RED])[0][0]
        choices = policy.choose([RED] * 8, np.linspace(0.01, 0.99, 16).reshape(8, 2))
        good = np.array([1.0 if c.chosen == 0 else -1.0 for c in choices])
        for _ in range(5):
            report = policy.improve(Lesson([RED] * 8, choices, good, np.full(8, 1 / 8)), UpdateOptions(5e-3, 2, 0.0, kl))
        return policy._scores([RED])[0][0] - before, report.kl

    free, held = after(0.0), after(5.0)
    assert free[0] > 0.05
    assert 0 <= held[1] and held[0] < free[0]


def test_what_is_kept_comes_back_the_same_and_goes_on_the_same() -> None:
    def trained(steps: int, policy: LMPolicy) -> LMPolicy:
        for _ in range(steps):
            choices = policy.choose([RED, DOOR] * 4, np.linspace(0.01, 0.99, 16).reshape(8, 2))
            lesson = Lesson([RED, DOOR] * 4, choices, np.linspace(-1, 1, 8), np.full(8, 1 / 8))
            policy.improve(lesson, UpdateOptions(1e-3, 2, kl=0.1))
        return policy

    straight = trained(4, small())
    half = trained(2, small())
    resumed = small()
    arrays, words = half.state()
    resumed.restore(arrays, orjson.loads(orjson.dumps(words)))
    again, _ = trained(2, resumed).state()
    for name, array in straight.state()[0].items():
        assert again[name].tobytes() == array.tobytes(), name


def test_free_text_is_parsed_and_what_is_no_action_counts() -> None:
    assert parse_action("I think so.\nAction: Open  Door.", ("walk", "open door")) == "open door"
    assert parse_action("<action>walk</action> then rest", ("walk", "open door")) == "walk"
    assert parse_action('\n "walk"\nbecause', ("walk",)) == "walk"
    assert parse_action("walk home", ("walk",)) is None
    assert parse_action("", ("walk",)) is None
    policy = small("generate", max_new_tokens=3)
    choices = policy.choose([RED, DOOR] * 20, np.random.default_rng(0).random((40, 2)))
    valid = [c for c in choices if c.valid]
    assert 0 < len(choices) - len(valid) and all(c.chosen == -1 for c in choices)
    # the recorded log-probability is that of the tokens written, read off the model in one go
    for situation, made in zip([RED, DOOR] * 3, choices[:6], strict=True):
        prompt = policy.prompt_ids(situation)
        with torch.no_grad():
            logp = torch.log_softmax(policy.model(torch.tensor([[*prompt, *made.tokens]])).logits[0].double(), -1)
        said = sum(float(logp[len(prompt) - 1 + k, token]) for k, token in enumerate(made.tokens))
        assert made.logprob == pytest.approx(said, abs=1e-4)
    report = policy.improve(Lesson([RED, DOOR] * 20, choices, np.ones(40), np.full(40, 1 / 40)), UpdateOptions(1e-3, 1))
    assert report.grad_norm > 0


def test_free_generation_plays_and_counts_invalid_actions() -> None:
    game = make_game("worlds:Restorable")
    tokenizer = word_tokenizer(["cell 0 1 2 3 4 left right"])
    options = LMOptions("generate", max_new_tokens=2)
    policy = LMPolicy(tiny_model(tokenizer, 0, 16).eval(), tokenizer, "cpu", options, plain_words, "g")
    found = sample(game, policy, Plan(groups=1, group_size=4, turns=5))
    assert found.invalid == sum(not c.valid for c in found.choices) > 0
    assert found.batch.steps.column("valid").to_pylist().count(False) == found.invalid


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"acting": "sing"}, "acting: 'sing' is not allowed, expected one of score, generate"),
        ({"temperature": 0.0}, "temperature: 0.0 is not allowed, expected a number above 0"),
        ({"batch": 0}, "batch: 0 is not allowed, expected at least 1"),
        ({"max_new_tokens": 0}, "max-new-tokens: 0 is not allowed"),
    ],
)
def test_ways_of_acting_that_make_no_sense_are_refused(words: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        LMOptions(**words)


def test_memory_runs_out_in_an_update_and_while_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    from graft_core.live import generate, lm_update

    policy, same = small(batch=8), small(batch=8)
    choices = policy.choose([RED, DOOR] * 4, np.linspace(0.01, 0.99, 16).reshape(8, 2))
    lesson = Lesson([RED, DOOR] * 4, choices, np.linspace(-1, 1, 8), np.full(8, 1 / 8))
    expected = same.improve(lesson, UpdateOptions(1e-2, 1))
    real = lm_update._loss

    def tight(policy: LMPolicy, lesson: Lesson, steps: Any, options: UpdateOptions) -> Any:
        if len({lesson.situations[n] for n in steps}) > 1:
            raise torch.OutOfMemoryError("tried to allocate")
        return real(policy, lesson, steps, options)

    monkeypatch.setattr(lm_update, "_loss", tight)
    report = policy.improve(lesson, UpdateOptions(1e-2, 1))
    assert policy.notes == ["cpu ran out of memory: at most 4 sequences per pass from now on"]
    assert report.loss == pytest.approx(expected.loss) and report.pull == pytest.approx(expected.pull)
    for mine, theirs in zip(policy.model.parameters(), same.model.parameters(), strict=True):
        assert float((mine - theirs).abs().max()) < 1e-4
    free, luck = small("generate", max_new_tokens=3), np.random.default_rng(0).random((5, 2))
    whole = free.choose([RED] * 5, luck)
    write = generate._write

    def few(policy: LMPolicy, prompts: Any, draws: Any) -> Any:
        if len(prompts) > 2:
            raise torch.OutOfMemoryError("tried to allocate")
        return write(policy, prompts, draws)

    monkeypatch.setattr(generate, "_write", few)
    free.batch = 5
    assert [c.text for c in free.choose([RED] * 5, luck)] == [c.text for c in whole]
    assert free.batch == 2


def test_out_of_memory_halves_the_batch_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = small(batch=8)
    real = policy._sums

    def tight(situations: Any, widest: int, model: Any) -> Any:
        if len(situations) > 1:
            raise torch.OutOfMemoryError("tried to allocate")
        return real(situations, widest, model)

    monkeypatch.setattr(policy, "_sums", tight)
    found = policy._scores([DOOR, RED])
    assert found[0] == pytest.approx(by_hand(policy, DOOR), abs=1e-5)
    assert found[1] == pytest.approx(by_hand(policy, RED), abs=1e-5)
    assert policy.batch == 4
    assert policy.notes == ["cpu ran out of memory: at most 4 sequences per pass from now on"]
    monkeypatch.setattr(policy, "_sums", lambda *_: (_ for _ in ()).throw(torch.OutOfMemoryError("no")))
    with pytest.raises(InputError, match="too little memory for one sequence"):
        policy._scores([RED._replace(prompt="you walk")])
