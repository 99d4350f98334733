"""What a rule is, and the key sequences it works on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graft_core.rollouts import BoolArray, IntArray, RolloutBatch


@dataclass(frozen=True, eq=False)
class Keys:
    """The key sequences of all rollouts, final states included.

    codes: int64[n_steps + n_rollouts]; rollout i stands at offsets[i] + i onwards, its final state last. Equal codes
    mean the same key; codes are dense, from 0. `texts` gives the text behind each code while only text rules were
    applied (None after a key rule). `final_missing`: bool[n_rollouts], no final observation.
    """

    codes: IntArray
    final_missing: BoolArray
    texts: pa.Array | None = None

    @cached_property
    def n_codes(self) -> int:
        return int(self.codes.max()) + 1 if self.codes.size else 0


@dataclass(frozen=True)
class StateRule:
    """A state rule: maps key sequences to key sequences.

    apply(batch, keys, parameter) -> Keys. `stage` "text" rules stand before "key" rules. `parameter` says what may
    stand behind the colon ("" = nothing); `default` is used when nothing stands there.
    """

    name: str
    meaning: str
    stage: Literal["text", "key"]
    apply: Callable[[RolloutBatch, Keys, str], Keys]
    parameter: str = ""
    default: str = ""
    rank: int = 100


@dataclass(frozen=True)
class ActionRule:
    """An action rule: apply(batch, parameter) -> int64[n_steps], equal codes mean the same action.

    `text_of(batch, parameter)` gives one text id per step that stands for the action on screen.
    """

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
    from graft_core.errors import UsageError

    try:
        number = int(parameter)
    except ValueError:
        number = low - 1
    if number < low:
        raise UsageError(f"rule {rule}:{parameter}: expected a whole number of at least {low} behind the colon")
    return number


AnyRule = Any
