"""What a live policy is: it scores the admissible actions of a situation, and can be improved by weighted steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from graft_core.errors import UsageError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

RATIOS: Final = {
    "sequence": "one ratio per step, the geometric mean over its tokens, clipped as one (GRAFT's GRPO-C)",
    "token": "one ratio per token, each clipped by itself (PPO, GRPO)",
}
"""What the update compares with the policy that sampled. For actions of one token, as all tabular ones, both are the same."""


class Situation(NamedTuple):
    """What a policy decides on: the text it reads, the full state (tabular policies), the admissible actions."""

    prompt: str
    state: str
    admissible: tuple[str, ...]


class Choice(NamedTuple):
    """One decision. `action` goes to the environment, `text` is what was said, `chosen` its place among the admissible
    actions (-1 where it was written freely), `logprob` that of the whole decision, `tokens` its token ids, `token_logprobs`
    theirs, which add up to `logprob` (none where there is one token at most)."""

    action: str
    text: str
    chosen: int
    logprob: float
    tokens: tuple[int, ...]
    valid: bool
    token_logprobs: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Lesson:
    """Steps to learn from, N of them: `advantage` (scaled credit, 0 = none) and `weight` (the loss weights)."""

    situations: Sequence[Situation]
    choices: Sequence[Choice]
    advantage: Floats
    weight: Floats

    @cached_property
    def old_logprob(self) -> Floats:
        """[N], log-probability of each choice when it was made."""
        return np.array([choice.logprob for choice in self.choices], np.float64)

    @cached_property
    def tokens(self) -> Ints:
        """[N], tokens of each choice, at least 1."""
        return np.array([max(1, len(choice.tokens)) for choice in self.choices], np.int64)

    @cached_property
    def old_token_logprobs(self) -> Floats:
        """[N, most tokens], log-probability of each token when it was chosen, NaN beyond a choice's last."""
        found = np.full((len(self.choices), int(self.tokens.max(initial=1))), np.nan)
        for row, choice in zip(found, self.choices, strict=True):
            each = choice.token_logprobs or (choice.logprob,)
            row[: len(each)] = each
        return found


@dataclass(frozen=True)
class UpdateOptions:
    """How a policy is improved.

    step_size: of plain gradient ascent (tabular) or AdamW (language models). epochs: passes over one batch. clip: of the
    ratio; 0 = no clipping. kl: weight of KL(policy || policy at the start). max_grad_norm: 0 = no clipping (language
    models). weight_decay: AdamW's. ratio: per step or per token, see `RATIOS`.
    """

    step_size: float = 1e-3
    epochs: int = 2
    clip: float = 0.2
    kl: float = 0.0
    max_grad_norm: float = 1.0
    weight_decay: float = 0.0
    ratio: str = "sequence"

    def __post_init__(self) -> None:
        for name in ("step_size", "clip", "kl", "max_grad_norm", "weight_decay"):
            if not 0.0 <= getattr(self, name) < float("inf"):
                raise UsageError(f"{name.replace('_', '-')}: {getattr(self, name)} is not allowed, expected 0 or more")
        if self.epochs < 1:
            raise UsageError(f"epochs: {self.epochs} is not allowed, expected at least 1")
        if self.ratio not in RATIOS:
            raise UsageError(f"ratio: {self.ratio!r} is not allowed, expected one of {', '.join(RATIOS)}")


@dataclass(frozen=True, eq=False)
class UpdateReport:
    """What one update did: loss and KL before it, share the clip silenced in the last epoch, gradient norm.

    clipped: share of the steps, or of the tokens where the ratio is theirs. `pull` [N]: see `step_pull`, in the last epoch.
    """

    loss: float
    kl: float
    clipped: float
    grad_norm: float
    pull: Floats = field(repr=False)


class Policy(Protocol):
    """A policy that plays and learns."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> str: ...

    def choose(self, situations: Sequence[Situation], luck: Floats) -> list[Choice]:
        """One decision per situation; `luck` [n, 2] in 0..1 decides what is drawn."""
        ...

    def improve(self, lesson: Lesson, options: UpdateOptions) -> UpdateReport:
        """One update."""
        ...

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """Everything that training changes: arrays, and words that JSON can hold."""
        ...

    def restore(self, arrays: Mapping[str, NDArray[Any]], words: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""
        ...


def surrogate_pull(
    advantage: Floats, weight: Floats, ratio: Floats, clip: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """Derivative of the clipped objective by each ratio's logarithm, and which ones the clip silences. Equal shapes.

    The objective is sum_t w_t min(r_t A_t, clip(r_t, 1 - c, 1 + c) A_t) (Schulman et al. 2017, Eq. 7); the derivative is
    w_t r_t A_t where the first term is the smaller one.
    """
    silenced = np.zeros(ratio.shape, bool)
    if clip > 0:
        silenced = ((advantage > 0) & (ratio > 1 + clip)) | ((advantage < 0) & (ratio < 1 - clip))
    return np.where(silenced, 0.0, weight * ratio * advantage), silenced


def step_pull(advantage: Floats, weight: Floats, ratio: Floats, clip: float) -> tuple[Floats, float]:
    """(weight of each step in the gradient [N], share the clip silences).

    A step's weight is the derivative of the objective by its tokens' log-probabilities, summed over them. ratio: [N] one per
    step (the geometric mean over its tokens, so that each token has 1/n of the derivative), or [N, most tokens] one per
    token, NaN beyond a step's last; its tokens then share the step's weight alike.
    """
    if ratio.ndim == 1:
        pull, silenced = surrogate_pull(advantage, weight, ratio, clip)
        return pull, float(silenced.mean()) if silenced.size else 0.0
    real = np.isfinite(ratio)
    each = (weight / real.sum(axis=1))[:, None]
    pull, silenced = surrogate_pull(advantage[:, None], each, np.where(real, ratio, 1.0), clip)
    return (pull * real).sum(axis=1), float(silenced[real].mean()) if real.any() else 0.0


def prefix_members(rows: Sequence[tuple[int, ...]], chosen: int) -> NDArray[np.bool_]:
    """bool[n + 1, actions]: which actions begin with the chosen one's first 0, 1, .. n tokens; in the last row it alone.

    So the chosen action's probability is a product over its tokens: each factor is the share of a row's probability that
    the next row has. The last token's factor holds that the action ends there.
    """
    ids = rows[chosen]
    found = np.array([[row[:k] == ids[:k] for row in rows] for k in range(len(ids) + 1)], bool)
    found[-1] = np.arange(len(rows)) == chosen
    return found


def draw_actions(scores: Sequence[Floats], luck: Floats) -> list[int]:
    """One index per row of log-probabilities."""
    found = []
    for row, u in zip(scores, luck.tolist(), strict=True):
        edges = np.cumsum(np.exp(row))
        found.append(min(int(np.searchsorted(edges, u * edges[-1], side="right")), row.size - 1))
    return found
