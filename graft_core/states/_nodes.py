"""Naming a node in words: by its text, the beginning of its text, or its content hash."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graft_core.errors import UsageError
from graft_core.rollouts import BoolArray, IntArray, RolloutBatch
from graft_core.states.base import Keys, final_positions, step_positions

HASH_DIGITS = 16


def hash_word(value: int) -> str:
    """A content hash as people and files write it: '#' and 16 hexadecimal digits."""
    return f"#{int(value):0{HASH_DIGITS}x}"


def read_hash(word: str, where: str) -> np.uint64:
    """The content hash behind '#...', or a `UsageError` that begins with `where`."""
    digits = word.removeprefix("#")
    if not word.startswith("#") or len(digits) != HASH_DIGITS or set(digits.lower()) - set("0123456789abcdef"):
        raise UsageError(f"{where}: {word!r} is no node hash, expected # and {HASH_DIGITS} hexadecimal digits")
    return np.uint64(int(digits, 16))


def raw_text_ids(batch: RolloutBatch) -> IntArray:
    """Text id of the raw observation at each position of the extended layout, -1 = none."""
    ids = np.empty(batch.n_steps + batch.n_rollouts, dtype=np.int64)
    ids[step_positions(batch)] = batch.observation
    ids[final_positions(batch)] = batch.final_observation
    return ids


def named_codes(batch: RolloutBatch, keys: Keys, word: str, rule: str) -> BoolArray:
    """Which codes the word names. bool[n_codes].

    '#' and 16 hexadecimal digits: the node with that content hash. TEXT*: nodes one of whose raw observations begins with
    TEXT. Else: nodes one of whose raw observations is the word. A word that names no node is a `UsageError`.
    """
    if word.startswith("#"):
        named: BoolArray = keys.hashes == read_hash(word, f"rule {rule}")
        present = np.bincount(keys.codes, minlength=keys.n_codes) > 0
        named &= present
    else:
        texts = batch.text_array
        if word.endswith("*"):
            hit = pc.starts_with(texts, pattern=word[:-1])
        else:
            hit = pc.equal(texts, pa.scalar(word, texts.type))
        ids = raw_text_ids(batch)
        at = np.append(np.asarray(hit), False)[ids]
        named = np.zeros(keys.n_codes, dtype=bool)
        named[keys.codes[at]] = True
    if not named.any():
        what = "has that hash" if word.startswith("#") else "begins like that" if word.endswith("*") else "is that text"
        raise UsageError(f"rule {rule}:{_short(word)}: no observation of these rollouts {what}")
    return named


def _short(word: str) -> str:
    return word if len(word) <= 60 else word[:59] + "…"
