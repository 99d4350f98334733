"""Free generation: the model writes, and what it wrote is parsed into an action; what is no action counts as invalid."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graft_core.live.policy import Choice, Floats, Situation

if TYPE_CHECKING:
    from graft_core.live.lm import LMPolicy


def parse_action(text: str, admissible: Sequence[str]) -> str | None:
    """The admissible action that was meant, None if none was.

    Looked for in the part after the last `action:` or inside <action></action>, else in the first line that is not empty:
    equal apart from case, spaces, quotes and a final full stop.
    """
    tagged = re.findall(r"<action>(.*?)</action>", text, re.DOTALL | re.IGNORECASE)
    after = re.split(r"(?i)\baction\s*:", text)
    part = tagged[-1] if tagged else after[-1]
    lines = [line for line in part.splitlines() if line.strip()]
    wanted = _plain(lines[0]) if lines else ""
    return next((action for action in admissible if _plain(action) == wanted), None)


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).strip(" .\"'`>*")


def write_freely(policy: LMPolicy, situations: Sequence[Situation], luck: Floats) -> list[Choice]:
    """One text per situation, up to `max_new_tokens` tokens or the end token, drawn with each rollout's own luck.

    The recorded log-probability is the sum over the tokens written. At most `batch` texts at once, fewer where memory runs
    out.
    """
    import torch

    prompts = [policy.prompt_ids(s) for s in situations]
    draws = np.stack([np.random.default_rng(_seed(row)).random(policy.options.max_new_tokens) for row in luck])
    written: list[tuple[list[int], list[float]]] = []
    with torch.inference_mode(), policy.reader.turn(prompts):
        while len(written) < len(prompts):
            part = slice(len(written), len(written) + policy.batch)
            try:
                written += _write(policy, prompts[part], draws[part])
            except torch.OutOfMemoryError as error:
                policy.halve(error)
    return [_choice(policy, situation, *made) for situation, made in zip(situations, written, strict=True)]


def _write(policy: LMPolicy, prompts: Sequence[tuple[int, ...]], draws: Floats) -> list[tuple[list[int], list[float]]]:
    """(token ids, their log-probabilities) of one text after each prompt."""
    import torch

    from graft_core.live.reading import cache_word

    ends, word = policy.tokenizer.eos_token_id, cache_word(policy.model)
    written: list[tuple[list[int], list[float]]] = [([], []) for _ in prompts]
    done = np.zeros(len(prompts), bool)
    read = policy.reader.read(policy.model, prompts)
    logits, cache, mask = read.logits, read.cache, read.mask
    for turn in range(draws.shape[1]):
        logp = torch.log_softmax(logits / policy.options.temperature, dim=-1).double()
        edges = logp.exp().cumsum(dim=-1)
        point = torch.from_numpy(draws[:, turn]).to(policy.device)[:, None] * edges[:, -1:]
        token = torch.searchsorted(edges, point, right=True).clamp(max=logp.shape[1] - 1)
        said = logp.gather(1, token)[:, 0].tolist()
        for i, number in enumerate(token[:, 0].tolist()):
            if not done[i]:
                written[i][0].append(number)
                written[i][1].append(said[i])
                done[i] = number == ends
        if done.all() or turn + 1 == draws.shape[1]:
            break
        mask = torch.cat([mask, torch.ones_like(token)], dim=1)
        made = policy.model(
            input_ids=token, attention_mask=mask, position_ids=mask.sum(dim=1, keepdim=True) - 1, use_cache=True,
            logits_to_keep=1, **{word: cache},
        )  # fmt: skip
        logits, cache = made.logits[:, -1].float(), made[word]
    return written


def _seed(row: Any) -> list[int]:
    """A seed from two numbers in 0..1."""
    return [int(x * 2**53) for x in row]


def _choice(policy: LMPolicy, situation: Situation, tokens: list[int], logprobs: list[float]) -> Choice:
    ends = policy.tokenizer.eos_token_id
    text = policy.tokenizer.decode([t for t in tokens if t != ends], skip_special_tokens=True)
    meant = parse_action(text, situation.admissible)
    action = meant if meant is not None else text.strip()
    return Choice(action, text, -1, sum(logprobs), tuple(tokens), meant is not None, tuple(logprobs))
