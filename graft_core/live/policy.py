"""What a live policy is: it scores the admissible actions of a situation, and can be improved by weighted steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]


class Situation(NamedTuple):
    """What a policy decides on: the text it reads, the full state (tabular policies), the admissible actions."""

    prompt: str
    state: str
    admissible: tuple[str, ...]


class Choice(NamedTuple):
    """One decision. `action` goes to the environment, `text` is what was said, `chosen` its place among the admissible
    actions (-1 where it was written freely), `logprob` that of the whole decision, `tokens` its token ids."""

    action: str
    text: str
    chosen: int
    logprob: float
    tokens: tuple[int, ...]
    valid: bool


@dataclass(frozen=True, eq=False)
class Lesson:
    """Steps to learn from, N of them: `advantage` (scaled credit, 0 = none) and `weight` (the loss weights)."""

    situations: Sequence[Situation]
    choices: Sequence[Choice]
    advantage: Floats
    weight: Floats

    @property
    def old_logprob(self) -> Floats:
        """[N], log-probability of each choice when it was made."""
        return np.array([choice.logprob for choice in self.choices], np.float64)


@dataclass(frozen=True)
class UpdateOptions:
    """How a policy is improved.

    step_size: of plain gradient ascent (tabular) or AdamW (language models). epochs: passes over one batch. clip: of the
    ratio per step; 0 = no clipping. kl: weight of KL(policy || policy at the start). max_grad_norm: 0 = no clipping
    (language models). weight_decay: AdamW's.
    """

    step_size: float = 1e-3
    epochs: int = 2
    clip: float = 0.2
    kl: float = 0.0
    max_grad_norm: float = 1.0
    weight_decay: float = 0.0


@dataclass(frozen=True, eq=False)
class UpdateReport:
    """What one update did: loss and KL before it, share of steps the clip silenced in the last epoch, gradient norm.

    `pull` [N]: derivative of the objective by each step's log-probability in the last epoch: its weight in the gradient.
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
    """Derivative of the clipped objective by each step's log-probability, and which steps the clip silences. [N] each.

    The objective is sum_t w_t min(r_t A_t, clip(r_t, 1 - c, 1 + c) A_t) with r_t = pi_new/pi_old of the whole step
    (sequence-level ratio; Schulman et al. 2017, Eq. 7); d/dlogp = w_t r_t A_t where the first term is the smaller one.
    """
    silenced = np.zeros(ratio.size, bool)
    if clip > 0:
        silenced = ((advantage > 0) & (ratio > 1 + clip)) | ((advantage < 0) & (ratio < 1 - clip))
    return np.where(silenced, 0.0, weight * ratio * advantage), silenced


def draw_actions(scores: Sequence[Floats], luck: Floats) -> list[int]:
    """One index per row of log-probabilities."""
    found = []
    for row, u in zip(scores, luck.tolist(), strict=True):
        edges = np.cumsum(np.exp(row))
        found.append(min(int(np.searchsorted(edges, u * edges[-1], side="right")), row.size - 1))
    return found
