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

    The recorded log-probability is the sum over the tokens written.
    """
    import torch

    from graft_core.live.lm import cache_word

    model, device, options = policy.model, policy.device, policy.options
    prompts = [policy.prompt_ids(s) for s in situations]
    longest = max(map(len, prompts))
    ids = torch.full((len(prompts), longest), policy.pad, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, prompt in enumerate(prompts):
        ids[i, longest - len(prompt) :] = torch.tensor(prompt)
        mask[i, longest - len(prompt) :] = 1
    ids, mask = ids.to(device), mask.to(device)
    draws = np.stack([np.random.default_rng(_seed(row)).random(options.max_new_tokens) for row in luck])
    ends = policy.tokenizer.eos_token_id
    written: list[list[int]] = [[] for _ in prompts]
    total, done = np.zeros(len(prompts)), np.zeros(len(prompts), bool)
    cache: Any = None
    word = cache_word(model)
    fed = ids
    with torch.inference_mode():
        for turn in range(options.max_new_tokens):
            position = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -fed.shape[1] :]
            made = model(
                input_ids=fed, attention_mask=mask, position_ids=position, use_cache=True, logits_to_keep=1, **{word: cache}
            )
            cache = made[word]
            logp = torch.log_softmax(made.logits[:, -1].float() / options.temperature, dim=-1).double()
            edges = logp.exp().cumsum(dim=-1)
            point = torch.from_numpy(draws[:, turn]).to(device)[:, None] * edges[:, -1:]
            token = torch.searchsorted(edges, point, right=True).clamp(max=logp.shape[1] - 1)
            said = logp.gather(1, token)[:, 0].cpu().numpy()
            for i, number in enumerate(token[:, 0].tolist()):
                if not done[i]:
                    written[i].append(number)
                    total[i] += said[i]
                    done[i] = number == ends
            if done.all():
                break
            fed = token
            mask = torch.cat([mask, torch.ones_like(token)], dim=1)
    texts = [policy.tokenizer.decode([t for t in ids if t != ends], skip_special_tokens=True) for ids in written]
    return [
        _choice(text, situation, float(logprob), tokens)
        for text, situation, logprob, tokens in zip(texts, situations, total, written, strict=True)
    ]


def _seed(row: Any) -> list[int]:
    """A seed from two numbers in 0..1."""
    return [int(x * 2**53) for x in row]


def _choice(text: str, situation: Situation, logprob: float, tokens: list[int]) -> Choice:
    meant = parse_action(text, situation.admissible)
    return Choice(meant if meant is not None else text.strip(), text, -1, logprob, tuple(tokens), meant is not None)
