"""Reading growing prompts: the same numbers as reading each whole, fewer tokens, and nothing kept that is stale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `live` is not installed")
pytest.importorskip("transformers", reason="the extra `live` is not installed")

from graft_core.environments.household import household  # noqa: E402
from graft_core.environments.tables import compile_world  # noqa: E402
from graft_core.live.games import make_game  # noqa: E402
from graft_core.live.lm import LMOptions, LMPolicy  # noqa: E402
from graft_core.live.models import plain_words, tiny_model, word_tokenizer  # noqa: E402
from graft_core.live.policy import Lesson, UpdateOptions  # noqa: E402
from graft_core.live.reading import Reader, _longest, _padded  # noqa: E402
from graft_core.live.sampler import Plan, Sampled, sample  # noqa: E402

torch.set_num_threads(1)  # tiny models: more threads only get in each other's way
GAME = make_game("household:task=swap")
TABLE = compile_world(household("swap"))
WORDS = [*TABLE.observations, *set(TABLE.pair_action), *GAME.goals.values(), ">"]
PLAN = Plan(groups=2, group_size=5, turns=8, history=100)


def small(seed: int = 0, **options: Any) -> LMPolicy:
    words = word_tokenizer(WORDS)
    made = LMOptions(length_normalised=True, **options)
    return LMPolicy(tiny_model(words, seed, hidden=16).eval(), words, "cpu", made, plain_words, "w")


def played(plan: Plan = PLAN, **options: Any) -> tuple[Sampled, int]:
    policy = small(**options)
    return sample(GAME, policy, plan), policy.reader.tokens


def assert_same(one: Sampled, other: Sampled) -> None:
    assert [c.action for c in one.choices] == [c.action for c in other.choices]
    assert [c.tokens for c in one.choices] == [c.tokens for c in other.choices]
    logprobs = (np.array([c.logprob for c in found.choices]) for found in (one, other))
    assert np.abs(np.subtract(*logprobs)).max() < 1e-4


@pytest.mark.parametrize("batch", [256, 16])
@pytest.mark.parametrize("acting", ["score", "generate"])
def test_remembered_prompts_give_the_same_actions_and_read_less(acting: str, batch: int) -> None:
    options = {"acting": acting, "batch": batch, "max_new_tokens": 3}
    (whole, many), (kept, few) = (played(remembers=yes, **options) for yes in (False, True))
    assert_same(whole, kept)
    assert len({c.tokens for c in whole.choices}) > 5 and len({c.tokens[0] for c in whole.choices}) > 2
    assert few < 0.8 * many


def test_a_window_that_slides_is_read_anew_and_gives_the_same() -> None:
    plan = replace(PLAN, history=3)
    assert_same(played(plan, remembers=False)[0], played(plan)[0])


def test_short_prompts_are_not_kept() -> None:
    policy = small()
    sample(GAME, policy, replace(PLAN, history=0))
    assert not policy.reader.holds
    sample(GAME, policy, PLAN)
    assert policy.reader.holds


def test_an_update_forgets_what_was_read_with_other_weights() -> None:
    first, second = small(), small(remembers=False)
    for policy in (first, second):
        found = sample(GAME, policy, PLAN)
        count = found.n_steps
        lesson = Lesson(found.situations, found.choices, np.ones(count), np.full(count, 1 / count))
        policy.improve(lesson, UpdateOptions(1e-2, 1))
        assert not policy.reader.holds
    assert_same(*(sample(GAME, policy, replace(PLAN, seed=(1,))) for policy in (first, second)))


def test_the_longest_beginning_leaves_a_token_to_read() -> None:
    table = _padded([(1, 2, 3), (1, 2, 4, 5, 6), (9,)])
    assert _longest((1, 2, 4, 5, 7), table) == (1, 4)
    assert _longest((1, 2, 3), table) == (0, 2)
    assert _longest((7, 7), table)[1] == 0
    assert _longest((9,), table)[1] == 0
    assert _longest((1, 2), _padded([])) == (0, 0)


def test_keys_and_values_are_those_of_a_fresh_read() -> None:
    """Scored actions, padding and other rollouts leave nothing behind in what is kept."""
    policy = small()
    sample(GAME, policy, PLAN)
    fresh = Reader("cpu", policy.pad)
    assert len(policy.reader._kept) > 3
    for prompt, kept in policy.reader._kept.items():
        with torch.inference_mode():
            cache = fresh.read(policy.model, [prompt]).cache
        each = torch.stack([x[0] for layer in cache.layers for x in (layer.keys, layer.values)])
        assert kept.shape == each.shape and float((kept - each).abs().max()) < 1e-4


def test_where_memory_runs_out_nothing_is_kept_and_then_less_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, calls = small(), []
    real = policy.reader._keep

    def tight(*given: Any) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise torch.OutOfMemoryError("tried to allocate")
        real(*given)

    monkeypatch.setattr(policy.reader, "_keep", tight)
    found = sample(GAME, policy, PLAN)
    assert_same(found, played(remembers=False)[0])
    assert policy.notes == ["cpu ran out of memory: every prompt is read whole from now on"]
    assert policy.batch == 256 and not policy.reader.holds and len(calls) == 2
