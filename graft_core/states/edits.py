"""`edits:FILE`: splits and merges of nodes made by hand (the file's form: `graft_core.states.edit_file`)."""

from __future__ import annotations

import numpy as np

from graft_core.errors import UsageError
from graft_core.rollouts import BoolArray, IntArray, RolloutBatch
from graft_core.states.base import (
    HashArray,
    Keys,
    StateRule,
    extended_rollout,
    factorise,
    final_positions,
    mixed,
    step_positions,
    without_texts,
)


def _check(parameter: str) -> None:
    from graft_core.states.edit_file import read_edits

    if not parameter:
        raise UsageError("rule edits: expected a file behind the colon")
    read_edits(parameter)


def _steps(batch: RolloutBatch, steps: tuple[tuple[str, str, int | None], ...]) -> BoolArray:
    """Which positions of the extended layout the steps (group, rollout, step; None: final state) are; unknown ones are none."""
    rows = {(batch.group_ids[g], name): row for row, (g, name) in enumerate(zip(batch.group.tolist(), batch.rollout_ids))}
    chosen = np.zeros(batch.n_steps + batch.n_rollouts, dtype=bool)
    at_step, at_final = step_positions(batch), final_positions(batch)
    for group, rollout, step in steps:
        row = rows.get((group, rollout))
        if row is None:
            continue
        inside = np.arange(batch.offsets[row], batch.offsets[row + 1])
        chosen[at_final[row] if step is None else at_step[inside[batch.step_index[inside] == step]]] = True
    return chosen


def _edited(batch: RolloutBatch, keys: Keys, parameter: str) -> Keys:
    from graft_core.states.compose import parse
    from graft_core.states.edit_file import hash_of, plain_rules, read_edits

    edits = read_edits(parameter)
    if plain_rules(edits.rules) != plain_rules(keys.rules):
        raise UsageError(
            f"rule edits:{parameter}: its nodes are named under the rules {_words(edits.rules)}, here {_words(keys.rules)} "
            "stand before"
        )
    before = without_texts(keys)
    codes = keys.codes.copy()
    hashes = [keys.hashes]
    free = keys.n_codes

    def add(positions: BoolArray, new: IntArray, their: HashArray) -> None:
        nonlocal free
        codes[positions] = free + new
        hashes.append(their)
        free += their.size

    for edit in edits.edits:
        names = np.array([hash_of(word) for word in edit.merge or (edit.split,)], dtype=np.uint64)
        at = np.isin(keys.hashes, names)[keys.codes]
        if edit.group is not None:
            inside = edit.group in batch.group_ids
            code = batch.group_ids.index(edit.group) if inside else -1
            at &= batch.group[extended_rollout(batch)] == code
        if edit.merge:
            add(at, np.zeros(int(at.sum()), dtype=np.int64), names[:1])
        elif edit.by:
            rule, words = parse([edit.by])[0]
            parted = rule.apply(batch, before, words)
            inner, distinct = factorise(parted.codes[at])
            add(at, inner, parted.hashes[distinct])
        else:
            moved = at & _steps(batch, edit.steps)
            add(moved, np.zeros(int(moved.sum()), dtype=np.int64), mixed(names[:1], len(hashes)))
    dense, distinct = factorise(codes)
    return Keys(dense, keys.final_missing, None, lambda: np.concatenate(hashes)[distinct], keys.rules)


def _words(rules: tuple[str, ...]) -> str:
    return " + ".join(rules) or "exact"


RULE = StateRule(
    name="edits",
    meaning="as edited by hand",
    stage="key",
    apply=_edited,
    parameter="FILE",
    rank=30,
    check=_check,
)
