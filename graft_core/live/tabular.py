"""A tabular softmax policy: one logit per (state, action), plain gradient ascent. Needs numpy only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graft_core.errors import InputError, UsageError
from graft_core.live.policy import Arrays, Choice, Floats, Ints, Lesson, Situation, UpdateOptions, UpdateReport, step_pull

NO_ACTION = -np.inf


class TabularPolicy:
    """Logits start at 0, or at normal noise of size `spread` drawn from the seed, `lean` moves them (state, action).

    States and actions are met while playing; a state is what `Situation.state` says, so the policy sees everything.
    """

    device = "cpu"

    def __init__(self, seed: int = 0, spread: float = 0.0) -> None:
        if not 0.0 <= spread < float("inf"):
            raise UsageError(f"spread: {spread} is not allowed, expected 0 or more")
        self.seed, self.spread = seed, spread
        self.actions: list[tuple[str, ...]] = []
        self.rows: dict[str, int] = {}
        self.logits = np.full((64, 4), NO_ACTION)
        self.start = self.logits.copy()

    @property
    def name(self) -> str:
        return "tabular"

    # -- acting ----------------------------------------------------------------------------------------------

    def row(self, situation: Situation) -> int:
        """Number of the situation's state, a new one if it was never met; its actions must stay the same."""
        found = self.rows.get(situation.state)
        if found is None:
            return self._add(situation.state, situation.admissible)
        if self.actions[found] != situation.admissible:
            raise InputError(
                f"state {situation.state!r}: admissible actions were {self.actions[found]}, are now "
                f"{situation.admissible}; a tabular policy needs a state key that decides them"
            )
        return found

    def _add(self, state: str, actions: tuple[str, ...]) -> int:
        number = len(self.rows)
        rows, width = self.logits.shape
        if number >= rows or len(actions) > width:
            wider = (max(rows, 2 * number), max(width, len(actions)))
            grown, start = np.full(wider, NO_ACTION), np.full(wider, NO_ACTION)
            grown[:rows, :width], start[:rows, :width] = self.logits, self.start
            self.logits, self.start = grown, start
        self.rows[state] = number
        self.actions.append(actions)
        first = np.zeros(len(actions))
        if self.spread:
            seed = int.from_bytes(state.encode()[-8:], "little")
            first = self.spread * np.random.default_rng([self.seed, seed]).standard_normal(len(actions))
        self.logits[number, : len(actions)] = first
        self.start[number, : len(actions)] = first
        return number

    def _logprobs(self, rows: Ints, logits: Floats) -> Floats:
        """[n, widest], log-probabilities of the actions of each row; -inf where there is no action."""
        picked = logits[rows]
        picked = picked - picked.max(axis=1, keepdims=True)
        return np.asarray(picked - np.log(np.exp(picked).sum(axis=1, keepdims=True)))

    def choose(self, situations: Sequence[Situation], luck: Floats) -> list[Choice]:
        rows = np.array([self.row(s) for s in situations], np.int64)
        logp = self._logprobs(rows, self.logits)
        edges = np.cumsum(np.exp(logp), axis=1)
        widths = np.array([len(s.admissible) for s in situations])
        chosen = np.minimum((edges <= (luck[:, 0] * edges[:, -1])[:, None]).sum(axis=1), widths - 1)
        said = logp[np.arange(len(situations)), chosen].tolist()
        return [
            Choice(s.admissible[c], s.admissible[c], c, p, (), True)
            for s, c, p in zip(situations, chosen.tolist(), said, strict=True)
        ]

    # -- learning --------------------------------------------------------------------------------------------

    def improve(self, lesson: Lesson, options: UpdateOptions) -> UpdateReport:
        """Gradient ascent on the clipped objective minus `kl` times KL(policy || start); plain, no momentum.

        An action counts as one token, so a ratio per step and one per token are the same.
        """
        rows = np.array([self.row(s) for s in lesson.situations], np.int64)
        chosen = np.array([c.chosen for c in lesson.choices], np.int64)
        at, old = np.arange(rows.size), lesson.old_logprob
        report: UpdateReport | None = None
        for _ in range(options.epochs):
            logp = self._logprobs(rows, self.logits)
            ratio = np.exp(logp[at, chosen] - old)
            pull, clipped = step_pull(lesson.advantage, lesson.weight, ratio, options.clip)
            share = np.exp(logp)
            per_step = -pull[:, None] * share
            per_step[at, chosen] += pull
            kl = 0.0
            if options.kl:
                gap = np.where(share > 0, logp - np.where(share > 0, self._logprobs(rows, self.start), 0.0), 0.0)
                each = (share * gap).sum(axis=1)
                kl = float(lesson.weight @ each)
                per_step -= options.kl * lesson.weight[:, None] * share * (gap - each[:, None])
            gradient = np.zeros_like(self.logits)
            np.add.at(gradient, rows, per_step)
            loss = options.kl * kl - float(lesson.weight @ _objective(lesson.advantage, ratio, options.clip))
            norm = float(np.sqrt((gradient**2).sum()))
            self.logits = self.logits + options.step_size * gradient
            first = report or UpdateReport(loss, kl, 0.0, norm, pull)
            report = UpdateReport(first.loss, first.kl, clipped, norm, pull)
        assert report is not None
        return report

    # -- keeping ---------------------------------------------------------------------------------------------

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        n = len(self.rows)
        words: dict[str, Any] = {"kind": "tabular", "seed": self.seed, "spread": self.spread}
        words |= {"states": list(self.rows), "actions": self.actions}
        return {"logits": self.logits[:n], "start": self.start[:n]}, words

    def restore(self, arrays: Mapping[str, NDArray[Any]], words: Mapping[str, Any]) -> None:
        self.seed, self.spread = int(words["seed"]), float(words["spread"])
        self.rows = {state: i for i, state in enumerate(words["states"])}
        self.actions = [tuple(actions) for actions in words["actions"]]
        self.logits, self.start = np.array(arrays["logits"], np.float64), np.array(arrays["start"], np.float64)
        if self.logits.shape[0] != len(self.rows):
            raise InputError(f"tabular policy: {len(self.rows)} states but {self.logits.shape[0]} rows of logits")


def _objective(advantage: Floats, ratio: Floats, clip: float) -> Floats:
    """[N], min(r A, clip(r) A)."""
    if clip <= 0:
        return ratio * advantage
    return np.minimum(ratio * advantage, np.clip(ratio, 1 - clip, 1 + clip) * advantage)
