"""Rollouts that name the same thing in their actions (a product, a user, an order) probably had the same task."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from graft_core.rollouts import RolloutBatch

ID: Final = re.compile(r"(?<![\w-])(?=[\w-]*\d[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{6,64}(?![\w-])")
LONGEST_ACTION: Final = 2_000


def ids_of(batch: RolloutBatch) -> list[frozenset[str]]:
    """The ids in the actions of each rollout: words of six characters or more that hold letters
    and two digits or more."""
    texts = batch.text_array
    known: dict[int, frozenset[str]] = {}
    found: list[set[str]] = [set() for _ in range(batch.n_rollouts)]
    for rollout, action in zip(batch.step_rollout.tolist(), batch.action.tolist(), strict=True):
        if action >= 0:
            if action not in known:
                words = ID.findall(texts[action].as_py()[:LONGEST_ACTION])
                known[action] = frozenset(word.lower() for word in words)
            found[rollout] |= known[action]
    return [frozenset(ids) for ids in found]


def shared_ids(batch: RolloutBatch, files: Sequence[str]) -> list[str | None]:
    """One group per set of rollouts of a file that are linked by shared ids; a rollout without any is None.

    Linked also means through others (a and b share one id, b and c another). The group is called after its file and
    the id that most of its rollouts have.
    """
    ids = ids_of(batch)
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(key: tuple[str, str]) -> tuple[str, str]:
        parent.setdefault(key, key)
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for file, words in zip(files, ids, strict=True):
        first: tuple[str, str] | None = None
        for word in sorted(words):
            if first is None:
                first = root((file, word))
            else:
                parent[root((file, word))] = root(first)
    counts: dict[tuple[str, str], int] = {}
    for file, words in zip(files, ids, strict=True):
        for word in words:
            counts[file, word] = counts.get((file, word), 0) + 1
    names: dict[tuple[str, str], tuple[int, str]] = {}
    for key, count in sorted(counts.items()):
        top = root(key)
        names[top] = max(names.get(top, (0, "")), (count, key[1]), key=lambda item: item[0])
    several = len(set(files)) > 1
    groups: list[str | None] = []
    for file, words in zip(files, ids, strict=True):
        name = names[root((file, next(iter(words))))][1] if words else None
        groups.append(f"{file}/{name}" if name and several else name)
    return groups
