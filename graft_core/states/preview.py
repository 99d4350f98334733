"""What a text rule would merge: raw texts side by side, before it is trusted."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from graft_core.rollouts import BoolArray, IntArray, RolloutBatch
from graft_core.states.base import factorise, pair_codes, step_positions
from graft_core.states.compose import compose, parse
from graft_core.states.masked import MASKS

WORDS = 600  # longer texts are compared by their first words
_PIECES = re.compile(r"\s+|\w+|[^\w\s]")


def preview(batch: RolloutBatch, specs: Sequence[str], last: int = 1, limit: int = 20, texts: int = 4) -> dict[str, Any]:
    """What the last rules of `specs` merge beyond those before them.

    Returns `merged_keys` (how many keys of several become one), `steps` (steps concerned), and `merges`, the largest first:
    `steps`, `rollouts`, `distinct` (how many different texts), `texts` (see `side_by_side`), at most `limit`. Keys do
    not cross tasks; a merge is counted in each task.
    """
    before = compose(batch, specs[: len(specs) - last])
    after = compose(batch, specs)
    at = step_positions(batch)
    group = batch.group[batch.step_rollout]
    old = pair_codes(group, before.codes[at])
    new = pair_codes(group, after.codes[at])
    pairs = factorise(new * (int(old.max(initial=0)) + 1) + old)[1] // (int(old.max(initial=0)) + 1)
    several = np.bincount(pairs, minlength=int(new.max(initial=-1)) + 1) > 1
    return {
        "merged_keys": int(several.sum()),
        "steps": int(several[new].sum()),
        "merges": text_merges(batch, new, several, limit, texts),
    }


def mask_previews(batch: RolloutBatch, specs: Sequence[str], texts: int = 4) -> dict[str, dict[str, Any]]:
    """What each ready mask would merge (see `preview`) behind the text rules of `specs`, by its rule's word, most first."""
    parsed = parse(specs)
    kept = [spec for spec, (rule, parameter) in zip(specs, parsed) if rule.stage_with(parameter) == "text"]
    words = [word for word in (f"masked:{name}" for name in MASKS) if word not in kept]
    made = {word: preview(batch, [*kept, word], texts=texts) for word in words}
    return dict(sorted(made.items(), key=lambda item: -item[1]["steps"]))


def with_mask(specs: Sequence[str], word: str) -> tuple[str, ...]:
    """`specs` with a mask behind their text rules, before their key rules."""
    parsed = parse(specs)
    at = sum(rule.stage_with(parameter) == "text" for rule, parameter in parsed)
    return tuple(spec for spec in (*specs[:at], word, *specs[at:]) if spec != "exact")


def text_merges(batch: RolloutBatch, node: IntArray, chosen: BoolArray, limit: int, texts: int = 4) -> list[dict[str, Any]]:
    """The largest of the chosen nodes with the raw texts that they merge. node: code per step; chosen: bool per code."""
    n = len(chosen)
    steps = np.bincount(node, minlength=n)
    order = np.argsort(-np.where(chosen, steps, -1), kind="stable")[: min(limit, int(np.sum(chosen)))]
    by_node = np.argsort(node, kind="stable")
    starts = np.concatenate([[0], np.cumsum(steps)])
    made = []
    for u in order.tolist():
        members = by_node[starts[u] : starts[u + 1]]
        ids, counts = np.unique(batch.observation[members], return_counts=True)
        most = np.argsort(-counts, kind="stable")
        row = int(batch.step_rollout[members[0]])
        made.append(
            {
                "node": u,
                "group_id": batch.group_ids[int(batch.group[row])],
                "steps": int(members.size),
                "rollouts": int(np.unique(batch.step_rollout[members]).size),
                "distinct": int(ids.size),
                "texts": side_by_side([(batch.text(int(ids[i])), int(counts[i])) for i in most[:texts]]),
            }
        )
    return made


def side_by_side(texts: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    """Each (text, steps) as {text, steps, segments}; segments: {text, equal} in order, equal = also in the first text.

    The first text's segments say what the second shares with it.
    """
    made = []
    for i, (text, steps) in enumerate(texts):
        other = texts[0][0] if i else (texts[1][0] if len(texts) > 1 else text)
        made.append({"text": text, "steps": steps, "segments": segments(text, other)})
    return made


def segments(text: str, other: str) -> list[dict[str, Any]]:
    """`text` cut into pieces that the other text has too (equal) or not; the pieces joined are the text."""
    if text == other:
        return [{"text": text, "equal": True}] if text else []
    mine, theirs = _PIECES.findall(text), _PIECES.findall(other)
    matcher = difflib.SequenceMatcher(None, mine[:WORDS], theirs[:WORDS], autojunk=False)
    made, at = [], 0
    for block in matcher.get_matching_blocks():
        if block.a > at:
            made.append({"text": "".join(mine[at : block.a]), "equal": False})
        if block.size:
            made.append({"text": "".join(mine[block.a : block.a + block.size]), "equal": True})
        at = block.a + block.size
    if at < len(mine):
        made.append({"text": "".join(mine[at:]), "equal": False})
    return made
