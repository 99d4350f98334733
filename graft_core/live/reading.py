"""Reading prompts with a language model, and remembering what was read where prompts grow from turn to turn.

Keys and values of a prompt's tokens are kept until the next turn; of a new prompt only what does not begin like a kept one is
read. So a prompt that repeats the whole past costs its last turn only, and a prompt that was cut in front is read anew.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np

from graft_core.live.policy import Ints

Ids = tuple[int, ...]

WORTH: Final = 0.5
"""Keys and values are kept where at least this share of a turn's tokens was read the turn before."""
LONG: Final = 64
"""Nor are they where prompts have fewer tokens than this on average."""


class Read(NamedTuple):
    """The model's logits after each prompt [n, vocabulary], its keys and values, and which of them count [n, length]."""

    logits: Any
    cache: Any
    mask: Any


class Reader:
    """Reads prompts for a model on a device; `tokens` counts what was read, padding left out."""

    def __init__(self, device: str, pad: int, remembers: bool = True) -> None:
        self.device, self.pad, self.remembers = device, pad, remembers
        self.tokens = 0
        self._before: list[Ids] = []
        self._kept: dict[Ids, Any] = {}  # [2 x layers, heads, tokens, width] of one prompt
        self._next: dict[Ids, Any] | None = None
        self._plan: dict[Ids, tuple[Ids, int]] = {}

    @property
    def holds(self) -> bool:
        """Whether keys and values are kept, or being collected."""
        return bool(self._kept or self._next)

    def forget(self) -> None:
        """Drop what was remembered: the weights have changed, or memory ran out."""
        self._before, self._kept, self._plan = [], {}, {}
        self._next = None

    @contextmanager
    def turn(self, prompts: Sequence[Ids]) -> Iterator[None]:
        """Around the reading of one turn's prompts: use what the turn before left, and leave this one's for the next."""
        worth = False
        if self.remembers and prompts and sum(map(len, prompts)) >= LONG * len(prompts):
            sources = list(self._kept) or self._before
            found = {prompt: _longest(prompt, table) for table in [_padded(sources)] for prompt in prompts}
            worth = sum(n for _, n in found.values()) >= WORTH * sum(map(len, found))
            if worth and self._kept:
                self._plan = {prompt: (sources[k], n) for prompt, (k, n) in found.items() if n}
            self._before = list(prompts)
        self._next = {} if worth else None
        try:
            yield
        finally:
            self._kept, self._next, self._plan = self._next or {}, None, {}

    def read(self, model: Any, prompts: Sequence[Ids], uses_cache: bool = True) -> Read:
        """One forward pass over all prompts."""
        starts = [self._plan.get(prompt) for prompt in prompts]
        known = [start[1] if start else 0 for start in starts]
        rest, fed, position = self._left_padded([p[n:] for p, n in zip(prompts, known, strict=True)], known)
        word, given = cache_word(model), {}
        mask = fed
        if any(known):
            given[word], before = self._gathered([(self._kept[s[0]], s[1]) if s else None for s in starts])
            mask = _joined(before, fed)
        made = model(
            input_ids=rest, attention_mask=mask, position_ids=position, use_cache=uses_cache or self._next is not None,
            logits_to_keep=1, **given,
        )  # fmt: skip
        cache = made[word] if uses_cache or self._next is not None else None
        if self._next is not None:
            self._keep(prompts, known, cache, rest.shape[1])
        return Read(made.logits[:, -1].float(), cache, mask)

    def _left_padded(self, rows: Sequence[Ids], before: Sequence[int]) -> tuple[Any, Any, Any]:
        """Token ids, attention mask and positions of rows that end together, [n, longest] each."""
        import torch

        longest = max(map(len, rows))
        ids = np.full((len(rows), longest), self.pad, np.int64)
        mask, position = np.zeros((2, len(rows), longest), np.int64)
        for i, (row, n) in enumerate(zip(rows, before, strict=True)):
            ids[i, longest - len(row) :] = row
            mask[i, longest - len(row) :] = 1
            position[i, longest - len(row) :] = np.arange(n, n + len(row))
        self.tokens += int(mask.sum())
        put = [torch.from_numpy(x).to(self.device) for x in (ids, mask, position)]
        return put[0], put[1], put[2]

    def _gathered(self, parts: Sequence[tuple[Any, int] | None]) -> tuple[Any, Any]:
        """A cache with the first n tokens of each kept prompt, and its mask; rows end together."""
        import torch
        from transformers import DynamicCache

        longest = max(n for _, n in filter(None, parts))
        layers, heads, _, width = next(filter(None, parts))[0].shape
        like = next(filter(None, parts))[0]
        past = like.new_zeros((layers, len(parts), heads, longest, width))
        mask = torch.zeros((len(parts), longest), dtype=torch.long, device=like.device)
        for i, part in enumerate(parts):
            if part is not None:
                past[:, i, :, longest - part[1] :] = part[0][:, :, : part[1]]
                mask[i, longest - part[1] :] = 1
        cache = DynamicCache()
        for layer in range(layers // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        return cache, mask

    def _keep(self, prompts: Sequence[Ids], known: Sequence[int], cache: Any, fed: int) -> None:
        """Copy each prompt's keys and values; models whose layers keep them otherwise are not remembered from now on."""
        import torch
        from transformers.cache_utils import DynamicLayer

        assert self._next is not None
        found = list(getattr(cache, "layers", []))
        each = [x for layer in found if type(layer) is DynamicLayer for x in (layer.keys, layer.values)]
        if len(each) != 2 * len(found) or not each or any(x.shape != each[0].shape for x in each):
            self.remembers, self._next = False, None
            return
        stacked = torch.stack(each)
        old, end = stacked.shape[3] - fed, stacked.shape[3]
        for i, (prompt, n) in enumerate(zip(prompts, known, strict=True)):
            new = stacked[:, i, :, end - (len(prompt) - n) :]
            self._next[prompt] = torch.cat([stacked[:, i, :, old - n : old], new], dim=2) if n else new.clone()


def cache_word(model: Any) -> str:
    """What the model's forward pass calls the keys and values of what was read (renamed in transformers 5.24)."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def _joined(before: Any, after: Any) -> Any:
    import torch

    return torch.cat([before, after], dim=1)


def _padded(rows: Sequence[Ids]) -> Ints:
    """[n, longest], -1 beyond the end of a row."""
    found = np.full((len(rows), max(map(len, rows), default=0)), -1, np.int64)
    for i, row in enumerate(rows):
        found[i, : len(row)] = row
    return found


def _longest(prompt: Ids, table: Ints) -> tuple[int, int]:
    """(row, how many tokens) of the row that begins like the prompt for longest; at least one token is left to read."""
    wide = min(len(prompt) - 1, table.shape[1])
    if wide < 1 or not len(table):
        return 0, 0
    same = np.cumprod(table[:, :wide] == np.array(prompt[:wide]), axis=1).sum(axis=1)
    best = int(same.argmax())
    return best, int(same[best])
