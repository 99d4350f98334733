"""Making, loading and keeping language models: the tiny one, a folder, or a Hugging Face id. Foreign code never runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from graft_core.errors import InputError, UsageError
from graft_core.formats.write import replacing
from graft_core.live.lm import LMOptions, LMPolicy
from graft_core.live.policy import Situation

CARD: Final = "graft_policy.json"
TOKENIZER: Final = "tokenizer.json"
BOS, EOS, PAD, UNK, ACT = "<bos>", "<eos>", "<pad>", "<unk>", "<act>"
DEVICES: Final = ("auto", "cuda", "mps", "cpu")
SMALL: Final = 5_000_000
INSTRUCTION: Final = (
    "You play a text game. Read what you see and answer with one of the possible actions, word for word, and nothing else."
)


def torch_needed() -> Any:
    """The module torch; raises InputError with the way to get it where it is missing."""
    try:
        import torch
        import transformers  # noqa: F401
    except ImportError as error:
        raise InputError("language models need torch and transformers: pip install 'graft-lab[live]'") from error
    return torch


def choose_device(wanted: str = "auto") -> str:
    """`auto`: cuda, else mps, else cpu. A device that is asked for but not there is an InputError."""
    if wanted.split(":")[0] not in DEVICES:
        raise UsageError(f"device: {wanted!r} is not allowed, expected one of {', '.join(DEVICES)} (or cuda:N)")
    torch = torch_needed()
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        return next(name for name in ("cuda", "mps", "cpu") if there[name])
    if not there[wanted.split(":")[0]]:
        raise InputError(f"device {wanted}: not available here; there is {', '.join(n for n, yes in there.items() if yes)}")
    return wanted


def plain_words(situation: Situation) -> str:
    """The tiny model's prompt: what is seen, then the mark after which the action stands."""
    return f"{situation.prompt} {ACT}"


def word_tokenizer(texts: Iterable[str]) -> Any:
    """A word-level tokenizer over the words of `texts`; words and punctuation are tokens."""
    torch_needed()
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    split = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    words = sorted({word for text in texts for word, _ in split.pre_tokenize_str(text)})
    vocabulary = {word: i for i, word in enumerate([PAD, BOS, EOS, UNK, ACT, *words])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token=UNK))
    made.pre_tokenizer = split
    made.add_special_tokens([PAD, BOS, EOS, UNK, ACT])
    made.post_processor = processors.TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, vocabulary[BOS])])
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token=BOS, eos_token=EOS, pad_token=PAD, unk_token=UNK)


def tiny_model(tokenizer: Any, seed: int = 0, hidden: int = 64, layers: int = 2) -> Any:
    """A Llama of a few hundred kB with random weights."""
    torch = torch_needed()
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=hidden, intermediate_size=2 * hidden, num_hidden_layers=layers,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512, tie_word_embeddings=True,
            bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
        )
    )  # fmt: skip


def save_policy(policy: LMPolicy, folder: Path, probe: str, about: dict[str, Any]) -> None:
    """Write model, tokenizer and `graft_policy.json`, which keeps the token ids of a probe text to check on loading."""
    folder.mkdir(parents=True, exist_ok=True)
    from transformers.utils import logging

    logging.disable_progress_bar()
    policy.model.save_pretrained(folder)
    for file in folder.glob("*.safetensors"):
        file.chmod(0o644)
    policy.tokenizer.backend_tokenizer.save(str(folder / TOKENIZER))
    special = {"bos_token": BOS, "eos_token": EOS, "pad_token": PAD, "unk_token": UNK}
    card = {**about, "special": special, "probe": probe, "probe_ids": policy.tokenizer(probe)["input_ids"]}
    with replacing(folder / CARD) as stream:
        stream.write(orjson.dumps(card, option=orjson.OPT_INDENT_2) + b"\n")


def load_policy(
    path: str, device: str = "auto", options: LMOptions | None = None, dtype: str = "auto", trainable: bool = True
) -> LMPolicy:
    """A policy from a folder or a Hugging Face id. Code that comes with a model is never run.

    dtype: `auto` is bfloat16 on cuda, else float32. Raises InputError for a model that is unknown or unreadable, or whose
    tokenizer gives other ids than those kept with it.
    """
    torch = torch_needed()
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    where = choose_device(device)
    local = Path(path).is_dir()
    looks_local = path.startswith((".", "/", "~")) or os.sep in path.strip("/").replace("/", "", 1)
    if not local and looks_local:
        raise InputError(f"{path}: no such folder; expected a folder with a model, or a Hugging Face id")
    if local and not (Path(path) / "config.json").is_file():
        raise InputError(f"{path}: holds no model; expected a folder with config.json, weights and a tokenizer")
    kind = {"auto": torch.bfloat16 if where.startswith("cuda") else torch.float32}.get(dtype) or getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype):
        raise UsageError(f"dtype: {dtype!r} is not allowed, expected auto, float32, bfloat16 or float16")
    try:
        tokenizer = _tokenizer(path, local)
        model = AutoModelForCausalLM.from_pretrained(path, dtype=kind, trust_remote_code=False, local_files_only=local)
    except InputError:
        raise
    except Exception as error:  # transformers raises OSError, ValueError, KeyError and those of its helpers
        raise InputError(f"{path}: cannot be loaded as a causal language model: {_first_line(error)}") from error
    try:
        model = model.to(where)
    except torch.OutOfMemoryError as error:
        raise InputError(f"{path}: does not fit into the memory of {where}: {_first_line(error)}") from error
    size = sum(p.numel() for p in model.parameters())
    if where == "cpu" and size < SMALL:
        torch.set_num_threads(1)  # more threads only get in each other's way
    model.eval().requires_grad_(trainable)
    ours = (Path(path) / CARD).is_file()
    policy = LMPolicy(model, tokenizer, where, options or LMOptions(), plain_words if ours else chat_words(tokenizer), path)
    policy.notes.append(f"{path}: {size / 1e6:.1f} million weights on {where} in {str(kind).removeprefix('torch.')}")
    if not ours and not getattr(tokenizer, "chat_template", None):
        policy.notes.append(f"{path}: has no chat template; it reads plain text that ends in 'Action:'")
    return policy


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _tokenizer(path: str, local: bool) -> Any:
    """The tokenizer of a folder of ours as it was saved (AutoTokenizer would pick a class by the model's kind), checked."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    file = Path(path) / CARD
    if not file.is_file():
        found = AutoTokenizer.from_pretrained(path, trust_remote_code=False, local_files_only=local)
        _same_as_its_file(found, Path(path) / TOKENIZER)
        return found
    try:
        card = orjson.loads(file.read_bytes())
        special, probe, expected = card["special"], card["probe"], card["probe_ids"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{file}: is damaged ({error}); expected special, probe and probe_ids") from error
    made = PreTrainedTokenizerFast(tokenizer_file=str(Path(path) / TOKENIZER), **special)
    got = made(probe)["input_ids"]
    if got != expected:
        raise InputError(f"{file}: the tokenizer makes {got} of {probe!r}, expected {expected}; it is not this model's own")
    return made


def _same_as_its_file(tokenizer: Any, file: Path) -> None:
    """InputError where AutoTokenizer rebuilt another tokenizer than the one beside the model, as it does for some kinds."""
    if not file.is_file():
        return
    from tokenizers import Tokenizer

    expected = Tokenizer.from_file(str(file)).encode(INSTRUCTION, add_special_tokens=False).ids
    got = tokenizer(INSTRUCTION, add_special_tokens=False)["input_ids"]
    if got != expected:
        raise InputError(
            f"{file}: AutoTokenizer makes {len(got)} tokens of a sentence, the file itself {len(expected)}: it was swapped for "
            "the usual tokenizer of this kind of model; expected a tokenizer_config.json that names the file's own class"
        )


def chat_words(tokenizer: Any) -> Any:
    """Prompt of a general model: its chat template where it has one, else plain text."""
    has_template = bool(getattr(tokenizer, "chat_template", None))

    def words(situation: Situation) -> str:
        asked = f"{situation.prompt}\n\nPossible actions:\n" + "\n".join(situation.admissible)
        if not has_template:
            return f"{INSTRUCTION}\n\n{asked}\n\nAction:"
        messages = [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": asked}]
        try:
            made: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except Exception:  # some templates refuse a system message
            merged = [{"role": "user", "content": f"{INSTRUCTION}\n\n{asked}"}]
            made = tokenizer.apply_chat_template(merged, tokenize=False, add_generation_prompt=True)
        return made

    return words


def imitate(
    policy: LMPolicy, situations: Sequence[Situation], actions: Sequence[str], steps: int, batch: int, step_size: float,
    seed: int,
) -> list[float]:  # fmt: skip
    """Behaviour cloning: maximise the probability of `actions` among the admissible ones; returns the loss per step."""
    torch = torch_needed()
    rng = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=step_size, weight_decay=0.01)
    losses = []
    for _ in range(steps):
        picked = torch.randint(len(situations), (batch,), generator=rng).tolist()
        seen: dict[Situation, int] = {}
        rows = [seen.setdefault(situations[i], len(seen)) for i in picked]
        chosen = [situations[i].admissible.index(actions[i]) for i in picked]
        loss = -policy.action_logits(list(seen))[rows, chosen].mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses
