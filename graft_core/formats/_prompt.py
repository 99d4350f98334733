"""Groups from prompts, for files that name no task: rollouts with the same prompt are rollouts of one task.

Only where prompts do repeat: at least half of the rollouts must share theirs with another, else nothing is known about
groups, one group per file is assumed and flagged, and the sizes that prompts would give are told.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from graft_core.formats.rows import Rows
from graft_core.formats.source import Source

SHOWN: Final = 48
FEWEST_EQUAL: Final = 4
ROLE_LINE: Final = re.compile(r"(?:^|\n)(?:user|assistant|tool)\n|<\|(?:im_start|start_header_id)\|>(?:user|assistant|tool)")
SPACE: Final = re.compile(r"\s+")


def prompt_id(prompt: str) -> str:
    """A short, readable group id for a prompt: its last words and a hash of the whole text."""
    words = SPACE.sub(" ", prompt).strip()
    shown = words if len(words) <= SHOWN else "..." + words[-SHOWN:]
    return f"{shown} #{prompt_key(prompt)[:8]}"


def prompt_key(prompt: str) -> str:
    """A hash that equal prompts share."""
    return hashlib.sha1(prompt.encode("utf-8", "backslashreplace")).hexdigest()


@dataclass(frozen=True)
class PromptGroups:
    """How prompts would group the rollouts of a file, and whether that may be used."""

    use: bool
    sizes: Counter[int]

    def words(self) -> str:
        """How many groups of each size, as in '3 of 8, 1 of 7'."""
        return ", ".join(f"{count} of {size}" for size, count in sorted(self.sizes.items(), reverse=True)[:6])


def group_by_prompt(keys: Iterable[str]) -> PromptGroups:
    """Decide from the prompt keys of all rollouts of a file (those that name no task)."""
    counts = Counter(keys)
    shared = sum(n for n in counts.values() if n > 1)
    return PromptGroups(0 < sum(counts.values()) <= 2 * shared, Counter(counts.values()))


def tell_groups(found: PromptGroups, source: Source, rows: Rows) -> None:
    """Say that groups come from prompts, or what prompts would give."""
    if not found.sizes:
        return
    if found.use:
        sentence = f"no task is named; rollouts with the same prompt are one group (groups by size: {found.words()})"
        rows.warn("group_from_prompt", sentence, source.name, sum(size * n for size, n in found.sizes.items()))
    else:
        rows.note(
            f"{source.name}: grouping by prompt (--group-by column:observation) would give groups by size: {found.words()}"
        )


def tell_flattened(rows: Rows, record: int, text: str) -> None:
    """Say that a conversation of several turns was written as one text, which cannot be split without guessing."""
    if ROLE_LINE.search(text):
        sentence = "a conversation was written as one text; it is one step, so only rollout-level estimators say anything"
        rows.warn("turns_flattened", sentence, rows.where(record))


def tell_equal_rewards(rewards: list[float], groups: int, source: Source, rows: Rows) -> None:
    """Say that all rewards of several tasks are one number: perhaps a reward function returned one value for all."""
    if groups > 1 and len(rewards) >= FEWEST_EQUAL and len(set(rewards)) == 1:
        sentence = f"all {len(rewards)} rollouts of {groups} tasks have the reward {rewards[0]:g}"
        rows.warn("rewards_all_equal", sentence, source.name)
