"""Splits and merges of nodes made by hand: what they are, and the small JSON file that keeps them.

    {"graft_edits": 1, "rules": ["exact"], "edits": [
      {"merge": ["#77a0...", "#1b3c..."], "group": "g0", "note": "the same room"},
      {"split": "#9d01...", "by": "actions:1"},
      {"split": "#9d01...", "steps": [["g0", "r1", 3], ["g0", "r2", null]]}]}

A node is named by its content hash under `rules`, the rules that stand before `edits:FILE`. The hash depends on nothing but the
texts and actions that these rules look at, so a file made on one batch says the same on any other; nodes that a batch does not
have are passed over. `group` (optional) keeps an edit to one task. `by` is a key rule that applies to that node alone; `steps`
moves the named steps (null: the rollout's final state) to a node of their own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from graft_core.errors import UsageError
from graft_core.rollouts import IntArray, RolloutBatch
from graft_core.states._nodes import hash_word, read_hash
from graft_core.states.base import final_positions, step_positions
from graft_core.states.compose import compose, parse

VERSION = 1
ELSEWHERE = ("edits", "custom")
"""Rules that go beyond the batch; an edits file, which may come from anybody, cannot name them."""


@dataclass(frozen=True)
class Edit:
    """One edit: `merge` names two or more nodes, or `split` names one with `by` or `steps`. group None: every task."""

    merge: tuple[str, ...] = ()
    split: str = ""
    by: str = ""
    steps: tuple[tuple[str, str, int | None], ...] = ()
    group: str | None = None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        words: dict[str, Any] = {"merge": list(self.merge)} if self.merge else {"split": self.split}
        words |= {"by": self.by} if self.by else {}
        words |= {"steps": [list(step) for step in self.steps]} if self.steps else {}
        words |= {} if self.group is None else {"group": self.group}
        return words | ({"note": self.note} if self.note else {})


@dataclass(frozen=True)
class Edits:
    """The edits of one file, and the rules under which its nodes are named."""

    rules: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()

    def added(self, edit: Edit) -> Edits:
        """With one more edit, checked."""
        made = replace(self, edits=(*self.edits, edit))
        _check(made, "edits")
        return made

    def removed(self, number: int) -> Edits:
        """Without edit `number`, counted from 0."""
        if not 0 <= number < len(self.edits):
            raise UsageError(f"edits: there is no edit {number}, expected 0 to {len(self.edits) - 1}")
        return replace(self, edits=self.edits[:number] + self.edits[number + 1 :])

    def as_bytes(self) -> bytes:
        """The file's content; the same edits give the same bytes."""
        words = {"graft_edits": VERSION, "rules": list(self.rules), "edits": [e.as_dict() for e in self.edits]}
        return orjson.dumps(words, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    @property
    def file_name(self) -> str:
        """A name that changes with the content: graphs are remembered by the rules' words, the file's name among them."""
        from xxhash import xxh3_64_hexdigest

        return f"edits-{xxh3_64_hexdigest(self.as_bytes())[:10]}.json"


def plain_rules(specs: Sequence[str]) -> tuple[str, ...]:
    """Rules without those that change nothing, for comparing."""
    return tuple(spec for spec in specs if spec != "exact")


def node_name(batch: RolloutBatch, specs: Sequence[str], row: int, step: int | None) -> str:
    """The hash word of a node under the rules: that of a rollout row's step of rank `step`, or of its final state (None)."""
    keys = compose(batch, specs)
    at = final_positions(batch)[row] if step is None else step_positions(batch)[int(batch.offsets[row]) + step]
    return hash_word(int(keys.hashes[keys.codes[at]]))


def names_at(batch: RolloutBatch, specs: Sequence[str], positions: Sequence[int] | IntArray) -> list[str]:
    """The hash words of the nodes that steps stand at, the steps given by their positions in path order."""
    keys = compose(batch, specs)
    at = step_positions(batch)[np.asarray(positions, dtype=np.int64)]
    return [hash_word(h) for h in keys.hashes[keys.codes[at]].tolist()]


def write_edits(folder: str | os.PathLike[str], edits: Edits) -> Path:
    """Write the edits into the folder under their own `file_name`, and return the path."""
    path = Path(folder) / edits.file_name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(edits.as_bytes())
    return path


def read_edits(path: str | os.PathLike[str]) -> Edits:
    """The edits of a file; whatever is wrong with it is a `UsageError` of one sentence."""
    where = f"edits file {os.fspath(path)}"
    try:
        data = orjson.loads(Path(path).read_bytes())
    except OSError as error:
        raise UsageError(f"{where}: cannot be read ({error.strerror or error})") from None
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{where}: not JSON, line {error.lineno}") from None
    if not isinstance(data, dict) or data.get("graft_edits") != VERSION:
        raise UsageError(f'{where}: expected a JSON object that begins with "graft_edits": {VERSION}')
    if not _texts(data.get("rules", [])) or not isinstance(data.get("edits"), list):
        raise UsageError(f"{where}: expected the keys rules (a list of texts) and edits (a list)")
    edits = Edits(tuple(data.get("rules", [])), tuple(_edit(e, f"{where}, edit {i}") for i, e in enumerate(data["edits"])))
    _check(edits, where)
    return edits


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _edit(data: Any, where: str) -> Edit:
    known = {"merge", "split", "by", "steps", "group", "note"}
    if not isinstance(data, dict) or not set(data) <= known:
        raise UsageError(f"{where}: expected an object with the keys merge, or split with by or steps (and group, note)")
    steps = data.get("steps", [])
    for step in steps if isinstance(steps, list) else [steps]:
        named = isinstance(step, list) and len(step) == 3 and _texts(step[:2])
        if not named or not (step[2] is None or type(step[2]) is int):
            raise UsageError(f"{where}: steps: expected lists of group, rollout and step (null: the final state)")
    merge, words = data.get("merge", []), [data.get(key, "") for key in ("split", "by", "note")]
    group = data.get("group")
    if not _texts(merge) or not _texts(words) or not (group is None or isinstance(group, str)):
        raise UsageError(f"{where}: expected texts for split, by, group and note, and a list of texts for merge")
    split, by, note = words
    return Edit(tuple(merge), split, by, tuple((g, r, s) for g, r, s in steps), group, note)


def _check(edits: Edits, where: str) -> None:
    """Every edit says one thing, names hashes, and no node is both split and merged in the same task."""
    seen: list[tuple[str, str | None]] = []
    for number, edit in enumerate(edits.edits):
        here = f"{where}, edit {number}"
        if bool(edit.merge) == bool(edit.split) or len(edit.merge) == 1 or (edit.merge and (edit.by or edit.steps)):
            raise UsageError(f"{here}: expected either merge with two or more nodes, or split with one node")
        if edit.split and bool(edit.by) == bool(edit.steps):
            raise UsageError(f"{here}: expected either by (a key rule) or steps")
        # by name, before it is looked at: such a rule would read another file, or this one again, or import code
        if edit.by and (edit.by.partition(":")[0].strip() in ELSEWHERE or not _is_key_rule(edit.by)):
            raise UsageError(f"{here}: {edit.by!r} cannot split a node, expected a key rule such as actions:1")
        for node in edit.merge or (edit.split,):
            read_hash(node, here)
            if any(node == n and (edit.group == g or None in (edit.group, g)) for n, g in seen):
                raise UsageError(f"{here}: node {node} is named by an earlier edit already; put both into one")
            seen.append((node, edit.group))


def _is_key_rule(spec: str) -> bool:
    rule, parameter = parse([spec])[0]
    return rule.stage_with(parameter) == "key"


def hash_of(word: str) -> np.uint64:
    """The content hash a checked edit names."""
    return read_hash(word, "edits")
