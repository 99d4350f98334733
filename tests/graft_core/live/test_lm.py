"""The language model policy: scores, gradients, tokens, free text, devices."""

from __future__ import annotations

import shutil
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
from graft_core.live.lm import LMOptions, LMPolicy, clipped_loss  # noqa: E402
from graft_core.live.models import (  # noqa: E402
    CARD,
    chat_words,
    choose_device,
    load_policy,
    plain_words,
    tiny_model,
    word_tokenizer,
)
from graft_core.live.policy import Lesson, Situation, UpdateOptions  # noqa: E402
from graft_core.live.sampler import Plan, sample  # noqa: E402
from graft_core.live.weights import loss_weights, token_counts, update_shares  # noqa: E402

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
    loss, ratio = clipped_loss(logp, old, torch.tensor(advantage), torch.tensor(weight), 0.2)
    loss.backward()
    from graft_core.live.policy import surrogate_pull

    pull, silenced = surrogate_pull(advantage, weight, ratio.detach().numpy(), 0.2)
    assert silenced.any()
    assert np.abs(pull + logp.grad.numpy()).max() < 1e-12


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


def test_the_shipped_model_is_small_and_loads_with_its_own_tokenizer(shipped: Path) -> None:
    assert sum(f.stat().st_size for f in shipped.iterdir()) < 1_000_000
    policy = load_policy(str(shipped), "cpu")
    here = Situation("You stand on the ice at row 3, column 5.", "", ("left", "down", "right", "up"))
    card = orjson.loads((shipped / CARD).read_bytes())
    assert [*policy.prompt_ids(here), *policy.action_ids("left")] == card["probe_ids"]
    assert len({policy.action_ids(a) for a in here.admissible}) == 4
    assert np.exp(policy._scores([here])[0]).sum() == pytest.approx(1.0)


def test_a_swapped_tokenizer_is_noticed(shipped: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(shipped, folder)
    word_tokenizer(["other words stand here"]).backend_tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(InputError, match="the tokenizer makes"):
        load_policy(str(folder), "cpu")
    (folder / CARD).write_text("{}")
    with pytest.raises(InputError, match="is damaged"):
        load_policy(str(folder), "cpu")


def test_models_that_cannot_be_had_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no such folder"):
        load_policy("./nowhere/model", "cpu")
    with pytest.raises(InputError, match="cannot be loaded as a causal language model"):
        load_policy(str(tmp_path), "cpu")
    with pytest.raises(UsageError, match="dtype: 'float99'"):
        load_policy(str(tmp_path), "cpu", dtype="float99")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=r"device cuda: not available here; there is .*cpu"):
        choose_device("cuda")
    with pytest.raises(UsageError, match="device: 'gpu' is not allowed"):
        choose_device("gpu")


def test_a_general_model_reads_its_chat_template_or_plain_text(shipped: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(shipped, folder)
    (folder / CARD).unlink()
    plain = load_policy(str(folder), "cpu")
    assert any("has no chat template" in note for note in plain.notes)
    assert plain.words(RED).endswith("Possible actions:\nwalk\nopen\n\nAction:")
    plain.tokenizer.chat_template = "{% for m in messages %}[{{ m.role }}] {{ m.content }} {% endfor %}[assistant]"
    assert chat_words(plain.tokenizer)(RED).startswith("[system] You play a text game.")
    plain.tokenizer.chat_template = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}[{{ m.role }}] {{ m.content }}"
        "{% endfor %}"
    )
    assert chat_words(plain.tokenizer)(RED).startswith("[user] You play a text game.")


def test_code_that_comes_with_a_model_is_not_run(shipped: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(shipped, folder)
    config = orjson.loads((folder / "config.json").read_bytes())
    config |= {"auto_map": {"AutoModelForCausalLM": "evil.Evil", "AutoConfig": "evil.Config"}, "model_type": "evil"}
    (folder / "config.json").write_bytes(orjson.dumps(config))
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\nclass Config: pass\n")
    with pytest.raises(InputError, match="cannot be loaded"):
        load_policy(str(folder), "cpu")
    assert not (tmp_path / "ran").exists()


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


def test_auto_takes_the_best_device_there_is_and_half_precision_on_it(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device("auto") == "cpu"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device("auto") == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto") == "cuda" and choose_device("cuda:1") == "cuda:1" and choose_device("cpu") == "cpu"
    moved: list[str] = []
    monkeypatch.setattr(torch.nn.Module, "to", lambda self, where: moved.append(where) or self)
    policy = load_policy(str(shipped))
    assert moved == ["cuda"] and policy.device == "cuda"
    assert {p.dtype for p in policy.model.parameters()} == {torch.bfloat16}


def test_half_precision_plays_learns_and_comes_back_the_same(shipped: Path) -> None:
    here = Situation("You stand on the ice at row 3, column 5.", "", ("left", "down", "right", "up"))
    full, half = load_policy(str(shipped), "cpu"), load_policy(str(shipped), "cpu", dtype="bfloat16")
    assert half._scores([here])[0] == pytest.approx(full._scores([here])[0], abs=0.05)
    choices = half.choose([here] * 4, np.linspace(0.1, 0.9, 8).reshape(4, 2))
    half.improve(Lesson([here] * 4, choices, np.array([1.0, -1, 1, -1]), np.full(4, 0.25)), UpdateOptions(1e-2, 1))
    other = load_policy(str(shipped), "cpu", dtype="bfloat16")
    other.restore(*half.state())
    assert other._scores([here])[0].tolist() == half._scores([here])[0].tolist()
