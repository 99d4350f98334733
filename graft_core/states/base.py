"""What a rule is, and the key sequences it works on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graft_core.constants import NO_TEXT
from graft_core.errors import UsageError
from graft_core.rollouts import BoolArray, IntArray, RolloutBatch

HashArray = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Keys:
    """The key sequences of all rollouts, final states included.

    codes: int64[n_steps + n_rollouts]; rollout i stands at offsets[i] + i onwards, its final state last. Equal codes
    mean the same key; codes are dense, from 0. `texts` gives the text behind each code while only text rules were
    applied (None after a key rule); a code behind all texts stands for a missing observation. `final_missing`:
    bool[n_rollouts], no final observation. `hasher` gives the content hash of each code where a key rule made them.
    `rules`: the rules applied so far.
    """

    codes: IntArray
    final_missing: BoolArray
    texts: pa.Array | None = None
    hasher: Callable[[], HashArray] | None = None
    rules: tuple[str, ...] = ()

    @cached_property
    def n_codes(self) -> int:
        return int(self.codes.max()) + 1 if self.codes.size else 0

    @cached_property
    def hashes(self) -> HashArray:
        """Content hash of each code, uint64[n_codes]: the same key has the same hash in every batch.

        A text's is the xxh3 of its UTF-8 bytes; key rules combine those of the keys and actions they look at (`mixed`).
        """
        if self.hasher is not None:
            return self.hasher()
        if self.texts is None:
            raise UsageError(f"after the rule {' + '.join(self.rules)!r} nodes have no content hash, and no node can be named")
        made = np.zeros(self.n_codes, dtype=np.uint64)
        used = np.flatnonzero(np.bincount(self.codes, minlength=self.n_codes))
        made[used] = text_hashes(self.texts, used)
        return made


@dataclass(frozen=True)
class StateRule:
    """A state rule: maps key sequences to key sequences.

    apply(batch, keys, parameter) -> Keys. `stage` "text" rules stand before "key" rules. `parameter` says what may
    stand behind the colon ("" = nothing); `default` is used when nothing stands there. `check(parameter)` refuses a wrong
    parameter before there is any data. `stage_of(parameter)` overrides `stage`, for a rule that can be either.
    """

    name: str
    meaning: str
    stage: Literal["text", "key"]
    apply: Callable[[RolloutBatch, Keys, str], Keys]
    parameter: str = ""
    default: str = ""
    rank: int = 100
    check: Callable[[str], object] | None = None
    stage_of: Callable[[str], Literal["text", "key"]] | None = None

    def stage_with(self, parameter: str) -> Literal["text", "key"]:
        """Whether the rule works on texts or on keys with this parameter."""
        return self.stage_of(parameter) if self.stage_of else self.stage


@dataclass(frozen=True)
class ActionRule:
    """An action rule: apply(batch, parameter) -> int64[n_steps], equal codes mean the same action."""

    name: str
    meaning: str
    apply: Callable[[RolloutBatch, str], IntArray]
    parameter: str = ""
    default: str = ""
    rank: int = 100


def extended_rollout(batch: RolloutBatch) -> IntArray:
    """Rollout row of each position of the extended layout (steps and then one final state per rollout)."""
    return np.repeat(np.arange(batch.n_rollouts), batch.lengths + 1)


def extended_rank(batch: RolloutBatch) -> IntArray:
    """t of each position of the extended layout; the final state has t = T."""
    starts = batch.offsets[:-1] + np.arange(batch.n_rollouts)
    return np.arange(batch.n_steps + batch.n_rollouts) - np.repeat(starts, batch.lengths + 1)


def step_positions(batch: RolloutBatch) -> IntArray:
    """Position of each step in the extended layout."""
    return np.arange(batch.n_steps, dtype=np.int64) + batch.step_rollout


def final_positions(batch: RolloutBatch) -> IntArray:
    """Position of each rollout's final state in the extended layout."""
    return batch.offsets[1:] + np.arange(batch.n_rollouts)


def factorise(keys: npt.NDArray[np.int64]) -> tuple[IntArray, IntArray]:
    """Dense codes in order of first appearance, and the distinct keys behind them."""
    import pandas as pd

    codes, distinct = pd.factorize(keys)
    return codes.astype(np.int64, copy=False), np.asarray(distinct)


def pair_codes(left: IntArray, right: IntArray) -> IntArray:
    """Dense codes of the pairs (left, right); both from -1 upwards."""
    width = int(right.max()) + 2 if right.size else 1
    return factorise((left + 1) * width + (right + 1))[0]


def sorted_pairs(left: IntArray, right: IntArray, n_left: int, n_right: int) -> tuple[IntArray, IntArray, IntArray]:
    """Dense codes of the pairs (left, right) by ascending pair, and the left and right behind each code.

    left in 0..n_left - 1, right in 0..n_right - 1. Linear in the number of pairs and codes.
    """
    from graft_core.states._kernels import sort_pairs

    codes, lefts, rights = sort_pairs(left, right, n_left, n_right)
    return codes, lefts, rights


def whole_parameter(rule: str, parameter: str, low: int = 0) -> int:
    """The number behind a rule's colon, or a `UsageError`."""
    try:
        number = int(parameter)
    except ValueError:
        number = low - 1
    if number < low:
        raise UsageError(f"rule {rule}:{parameter}: expected a whole number of at least {low} behind the colon")
    return number


def mixed(left: HashArray, right: HashArray | int) -> HashArray:
    """One hash from two, order kept: the finaliser of splitmix64 over left * golden ratio + right, modulo 2^64."""
    with np.errstate(over="ignore"):
        x = left * np.uint64(0x9E3779B97F4A7C15) + np.asarray(right, dtype=np.uint64) + np.uint64(1)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)), dtype=np.uint64)


def text_hashes(texts: pa.Array, ids: IntArray) -> HashArray:
    """xxh3_64 of the texts with the given ids (an id that is no text: 0). uint64[len(ids)]."""
    from xxhash import xxh3_64_intdigest

    made = np.zeros(ids.size, dtype=np.uint64)
    real = np.flatnonzero((ids >= 0) & (ids < len(texts)))
    words = texts.take(pa.array(ids[real])).cast(pa.large_binary()).to_pylist()
    made[real] = np.fromiter(map(xxh3_64_intdigest, words), dtype=np.uint64, count=real.size)
    return made


def hashes_of_ids(batch: RolloutBatch, ids: IntArray) -> HashArray:
    """Content hash per item of an array of text ids (-1: 0); every distinct text is hashed once."""
    codes, distinct = factorise(ids)
    return text_hashes(batch.text_array, distinct)[codes]


def without_texts(keys: Keys) -> Keys:
    """The same keys for a key rule to go on from: texts no longer stand for them, their hashes do."""
    return Keys(keys.codes, keys.final_missing, None, lambda: keys.hashes, keys.rules)


def paired(keys: Keys, other: IntArray, hashes: Callable[[], HashArray]) -> Keys:
    """Keys of the pairs (key, other), a key rule's work. other: a code per position, -1 = nothing.

    hashes() gives the content hash behind each code of `other`.
    """
    width = int(other.max(initial=-1)) + 2
    codes, distinct = factorise(keys.codes * width + (other + 1))

    def hasher() -> HashArray:
        behind = np.concatenate([np.zeros(1, np.uint64), hashes()])  # position 0: nothing
        return mixed(keys.hashes[distinct // width], behind[distinct % width])

    return Keys(codes, keys.final_missing, None, hasher, keys.rules)


def action_before(batch: RolloutBatch, back: int = 1) -> IntArray:
    """Id of the action `back` steps before each position of the extended layout, -1 before the first."""
    action = np.full(batch.n_steps + batch.n_rollouts, NO_TEXT, dtype=np.int64)
    action[step_positions(batch)] = batch.action
    before = np.full_like(action, NO_TEXT)
    before[back:] = action[:-back] if back else action
    return np.where(extended_rank(batch) >= back, before, NO_TEXT)
