"""One training step: credit of the sampled steps, loss weights, one update of the policy. Small, to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graft_core.credit import estimate
from graft_core.live.policy import Floats, Lesson, Policy, UpdateOptions, UpdateReport
from graft_core.live.sampler import Sampled
from graft_core.live.weights import loss_weights, scaled_credit, token_counts
from graft_core.rollouts import RolloutBatch


@dataclass(frozen=True)
class TrainOptions:
    """How credit is made and used: the estimator and its options, the graph's rules, scale and loss (see `weights`)."""

    estimator: str = "path_gae"
    rules: tuple[str, ...] = ("exact",)
    options: Mapping[str, Any] = field(default_factory=dict)
    scale: str = "rms"
    loss: str = "step"
    update: UpdateOptions = field(default_factory=UpdateOptions)


@dataclass(frozen=True, eq=False)
class Learned:
    """One update: credit and gradient weight per step in batch order, and what the policy reported."""

    credit: Floats
    report: UpdateReport


def step_credit(batch: RolloutBatch, options: TrainOptions) -> Floats:
    """Credit of every step under the training options, float64[n_steps] in batch order, NaN where undefined."""
    return estimate(batch, options.estimator, rules=options.rules, **options.options)


def learn(policy: Policy, sampled: Sampled, options: TrainOptions) -> Learned:
    """Credit the sampled steps and update the policy once.

    Loss = -sum_t w_t min(r_t A_t, clip(r_t) A_t) [+ kl KL(policy || start)]: w_t from `loss_weights`, A_t the scaled credit,
    r_t the step's probability over that at sampling, the geometric mean over its tokens (GRAFT's GRPO-C objective, arXiv
    2609.28963); with the ratio per token the inner sum also runs over a step's n tokens, each with weight w_t / n.
    """
    batch = sampled.batch
    credit = step_credit(batch, options)
    weight = loss_weights(token_counts(batch), batch.step_rollout_rows, options.loss)
    advantage = scaled_credit(credit, options.scale)
    return Learned(credit, policy.improve(Lesson(sampled.situations, sampled.choices, advantage, weight), options.update))


def histogram(credit: Floats, bins: int = 21) -> dict[str, list[float]]:
    """Counts of the credits in equal bins symmetric about 0, for a picture: `edges` [bins + 1], `counts` [bins]."""
    known = credit[np.isfinite(credit)]
    most = float(np.abs(known).max(initial=0.0)) or 1.0
    counts, edges = np.histogram(known, bins=bins, range=(-most, most))
    return {"edges": edges.tolist(), "counts": counts.astype(float).tolist()}
