"""Loading models: the shipped one, tokenizers that were swapped, folders that hold none, devices and half precision."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import orjson
import pytest

torch = pytest.importorskip("torch", reason="the extra `live` is not installed")
pytest.importorskip("transformers", reason="the extra `live` is not installed")

from graft_core.errors import InputError, UsageError  # noqa: E402
from graft_core.live.models import CARD, chat_words, choose_device, load_policy, word_tokenizer  # noqa: E402
from graft_core.live.policy import Lesson, Situation, UpdateOptions  # noqa: E402

torch.set_num_threads(1)  # tiny models: more threads only get in each other's way
RED = Situation("you see a red door", "s2", ("walk", "open"))


@pytest.fixture(scope="module")
def shipped(root: Path) -> Path:
    return root / "sample_data" / "policies" / "frozen-lake-8x8"


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
    with pytest.raises(InputError, match=r"holds no model; expected a folder with config\.json"):
        load_policy(str(tmp_path), "cpu")
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
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


def test_a_tokenizer_that_the_kind_of_model_swaps_is_noticed(shipped: Path, tmp_path: Path) -> None:
    """A folder typed qwen2 makes AutoTokenizer rebuild a byte-pair tokenizer over the word-level one that lies there."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    folder = tmp_path / "model"
    words = word_tokenizer(["You play a text game and read what you see"])
    words.backend_tokenizer.save(str(tmp_path / "tokenizer.json"))
    small = Qwen2Config(
        vocab_size=len(words), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2,
    )  # fmt: skip
    Qwen2ForCausalLM(small).save_pretrained(folder)
    shutil.copy(tmp_path / "tokenizer.json", folder / "tokenizer.json")
    with pytest.raises(InputError, match="swapped for the usual tokenizer of this kind of model"):
        load_policy(str(folder), "cpu")
