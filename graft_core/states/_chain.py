"""Keys that carry the key and action before them."""

from __future__ import annotations

from graft_core.rollouts import BoolArray, RolloutBatch
from graft_core.states.base import HashArray, Keys, action_before, hashes_of_ids


def chained(batch: RolloutBatch, keys: Keys, deep: BoolArray) -> Keys:
    """Keys told apart, where `deep`, also by the (new) key and the action before. deep: bool per position, no first ones."""
    from graft_core.states import _kernels as kernels

    before = action_before(batch)
    codes, first = kernels.chain(keys.codes, before, deep)

    def hasher() -> HashArray:
        made: HashArray = kernels.chain_hashes(keys.hashes[keys.codes], hashes_of_ids(batch, before), deep)
        return made[first]

    return Keys(codes, keys.final_missing, None, hasher, keys.rules)
