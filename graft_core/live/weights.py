"""What the update sees: how credit, tokens, the loss's mean and the clip share out the gradient among the steps.

The trainer takes its loss weights from here, so what is shown is what is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson

from graft_core.errors import UsageError
from graft_core.live.policy import RATIOS, Floats, Ints, step_pull
from graft_core.rollouts import RolloutBatch

LOSSES: Final = {
    "token": "every token of the batch weighs the same (DAPO): long steps and long rollouts weigh more",
    "sequence": "every rollout weighs the same, its tokens share that (GRPO)",
    "step": "every step weighs the same",
    "sum": "the steps of a rollout add up, rollouts are averaged (REINFORCE): the weights sum to the mean length",
}
SCALES: Final = ("none", "rms")


def loss_weights(tokens: Ints, rollout: Ints, loss: str = "step") -> Floats:
    """[N], weight of each step in the loss, see `LOSSES`; but for `sum` they sum to 1.

    tokens: [N] of each step. rollout: [N], which one it belongs to.
    """
    if loss not in LOSSES:
        raise UsageError(f"loss: {loss!r} is not allowed, expected one of {', '.join(LOSSES)}")
    if tokens.size == 0:
        return np.zeros(0)
    if loss == "step":
        return np.full(tokens.size, 1.0 / tokens.size)
    counts = tokens.astype(np.float64)
    if loss == "token":
        return np.asarray(counts / counts.sum())
    _, row = np.unique(rollout, return_inverse=True)
    if loss == "sum":
        return np.full(tokens.size, 1.0 / (int(row.max()) + 1))
    of_rollout = np.bincount(row, counts)
    return np.asarray(counts / of_rollout[row] / of_rollout.size)


def scaled_credit(credit: Floats, scale: str = "rms") -> Floats:
    """Credit as the trainer uses it: undefined becomes 0; `rms` divides by the root mean square over the defined steps."""
    if scale not in SCALES:
        raise UsageError(f"scale: {scale!r} is not allowed, expected one of {', '.join(SCALES)}")
    known = np.isfinite(credit)
    clean = np.where(known, credit, 0.0)
    if scale == "none" or not known.any():
        return clean
    rms = float(np.sqrt(np.mean(clean[known] ** 2)))
    return clean / rms if rms > 1e-12 else np.zeros_like(clean)


def token_counts(batch: RolloutBatch) -> Ints:
    """[N] in batch order: length of the step's `tokens` (a list or a number), 1 where there is none."""
    distinct: dict[str | None, int] = {None: 1}
    found = []
    for word in batch.steps.column("tokens").to_pylist():
        if word not in distinct:
            value = orjson.loads(word)
            number = len(value) if isinstance(value, (list, dict)) else value
            distinct[word] = max(1, int(number)) if isinstance(number, (int, float)) else 1
        found.append(distinct[word])
    return np.array(found, np.int64)


@dataclass(frozen=True, eq=False)
class Shares:
    """Gradient weight per step in batch order: `pull` (signed), `share` (of the sum of absolute values, sums to 1)."""

    pull: Floats
    share: Floats
    rollout: Ints
    verbs: tuple[str, ...]
    batch: RolloutBatch

    def by_verb(self) -> list[dict[str, Any]]:
        """Per first word of the action: steps, share, share that pushes up; largest first."""
        return _sums(self.verbs, self)

    def by_rollout(self) -> list[dict[str, Any]]:
        """The same per rollout, named by group and rollout id."""
        ids = self.batch.rollout_ids
        groups = [self.batch.group_ids[g] for g in self.batch.group.tolist()]
        return _sums([f"{groups[r]} / {ids[r]}" for r in self.rollout.tolist()], self)


def _sums(names: Sequence[str], shares: Shares) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, share, pull in zip(names, shares.share.tolist(), shares.pull.tolist(), strict=True):
        row = found.setdefault(name, {"name": name, "steps": 0, "share": 0.0, "up": 0.0, "pull": 0.0})
        row["steps"] += 1
        row["share"] += share
        row["up"] += share if pull > 0 else 0.0
        row["pull"] += pull
    return sorted(found.values(), key=lambda row: (-row["share"], row["name"]))


def update_shares(
    batch: RolloutBatch,
    credit: Floats,
    loss: str = "step",
    scale: str = "rms",
    clip: float = 0.0,
    new_logprob: Floats | None = None,
    ratio: str = "sequence",
    old_logprob: Floats | None = None,
) -> Shares:
    """How a policy-gradient update would share itself out among the batch's steps.

    credit: float64[n_steps] in batch order. loss: see `LOSSES`. Steps of undefined credit weigh nothing, but count in the
    loss's mean, as in the trainer. The clip acts where the log-probabilities after some updates are given:
        ratio `sequence`: new_logprob [n_steps], of whole steps; old_logprob by default the batch's column `logprob`
        ratio `token`: new_logprob and old_logprob [n_steps, most tokens], NaN beyond a step's last token
    Unknown old log-probabilities leave the ratio 1. Without new_logprob all ratios are 1, and both kinds are the same.
    """
    if credit.shape != (batch.n_steps,):
        raise UsageError(f"credit: expected {batch.n_steps} numbers, one per step; got shape {credit.shape}")
    if ratio not in RATIOS:
        raise UsageError(f"ratio: {ratio!r} is not allowed, expected one of {', '.join(RATIOS)}")
    tokens = token_counts(batch)
    weight = loss_weights(tokens, batch.step_rollout_rows, loss)
    found = np.ones(batch.n_steps)
    if new_logprob is not None:
        found = _ratios(batch, new_logprob, old_logprob, ratio, tokens)
    pull, _ = step_pull(scaled_credit(credit, scale), weight, found, clip)
    total = np.abs(pull).sum()
    texts = [batch.text(i) for i in batch.to_rows(batch.action).tolist()]
    return Shares(
        pull, np.abs(pull) / total if total > 0 else np.zeros_like(pull), batch.step_rollout_rows,
        tuple(text.split(" ", 1)[0] or "(nothing)" for text in texts), batch,
    )  # fmt: skip


def _ratios(batch: RolloutBatch, new: Floats, old: Floats | None, ratio: str, tokens: Ints) -> Floats:
    """New over old probability, per step or per token."""
    if ratio == "token":
        if old is None or new.ndim != 2 or new.shape != old.shape or len(new) != batch.n_steps:
            raise UsageError("ratio 'token': expected new_logprob and old_logprob of shape [n_steps, most tokens]")
        return np.where(np.isfinite(new), np.exp(np.where(np.isfinite(old), new - old, 0.0)), np.nan)
    before = batch.to_rows(batch.step_column("logprob")) if old is None else old
    return np.where(np.isfinite(before), np.exp((new - before) / tokens), 1.0)
