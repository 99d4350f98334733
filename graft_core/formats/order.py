"""Did the steps of a rollout happen in the order in which the file lists them? Tests for dumps that are known to shuffle.

They use the rollouts of one file, all of one task set, and two habits of such sets:
- **start**: all rollouts begin on the same page. Where one observation is the first of at least a third of the rollouts
  and more often first than any other, it is the usual start; a rollout with another first observation is doubtful.
- **end**: an action that earns the outcome ends the rollout. Where all rewarded steps of the file execute the same
  action (up to case), that action ends rollouts; a rollout in which it stands before the last step is doubtful.
Neither proves that the other rollouts are in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

USUAL_SHARE: Final = 1 / 3
FEWEST_ROLLOUTS: Final = 8


@dataclass(frozen=True)
class Doubts:
    """Indices of doubtful rollouts by test, and what the usual start and the ending action are (None = not testable)."""

    start: tuple[int, ...]
    end: tuple[int, ...]
    usual_start: str | None
    ending_action: str | None

    @property
    def rollouts(self) -> frozenset[int]:
        return frozenset(self.start) | frozenset(self.end)


def order_doubts(
    observations: Sequence[Sequence[str]], actions: Sequence[Sequence[str]], rewards: Sequence[Sequence[float | None]]
) -> Doubts:
    """Test the rollouts of one file; each argument holds one list per rollout, one entry per step."""
    usual, ending = usual_start(observations), ending_action(actions, rewards)
    plain = [[action.casefold() for action in done] for done in actions]
    start = [i for i, seen in enumerate(observations) if usual is not None and seen and seen[0] != usual]
    end = [i for i, done in enumerate(plain) if ending is not None and ending in done[:-1]]
    return Doubts(tuple(start), tuple(end), usual, ending)


def usual_start(observations: Sequence[Sequence[str]]) -> str | None:
    """The observation that most rollouts begin with, if it is common enough."""
    firsts = Counter(seen[0] for seen in observations if seen)
    if sum(firsts.values()) < FEWEST_ROLLOUTS:
        return None
    (observation, count), *others = firsts.most_common(2)
    common = count >= USUAL_SHARE * sum(firsts.values()) and (not others or others[0][1] < count)
    return observation if common else None


def ending_action(actions: Sequence[Sequence[str]], rewards: Sequence[Sequence[float | None]]) -> str | None:
    """The one action (case folded) that all rewarded steps execute, if there are rewarded steps and it is one action."""
    rewarded = Counter(
        action.casefold()
        for done, earned in zip(actions, rewards, strict=True)
        for action, reward in zip(done, earned, strict=True)
        if reward
    )
    return next(iter(rewarded)) if len(rewarded) == 1 else None
