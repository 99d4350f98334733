"""Splits and merges by hand: the file, and what the rule `edits:FILE` makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from row_batches import batch_of, walk

import graft_core as gc
from graft_core.errors import UsageError
from graft_core.states import state_keys
from graft_core.states.edit_file import Edit, Edits, names_at, node_name, read_edits, write_edits

ROWS = (
    walk("a", "S:x T:y U:z", 1.0, "E", group="g")
    + walk("b", "S:w T:y U:z", 0.0, "E", group="g")
    + walk("c", "S:x T:y", 0.0, "U", group="h")
)
BATCH = batch_of(ROWS)
S, T, U = (node_name(BATCH, ["exact"], 0, t) for t in range(3))


def keys(tmp_path: Path, *edits: Edit, rules: tuple[str, ...] = ()) -> list[int]:
    """Keys of the steps and then of the final states, numbered by first appearance."""
    made = Edits(rules)
    for edit in edits:
        made = made.added(edit)
    path = write_edits(tmp_path, made)
    assert read_edits(path) == made
    step, final = state_keys(BATCH, [*rules, f"edits:{path}"])
    seen: dict[int, int] = {}
    return [seen.setdefault(k, len(seen)) for k in [*step.tolist(), *final.tolist()]]


def test_no_edits_change_nothing(tmp_path: Path) -> None:
    #                          a        b        c     finals
    assert keys(tmp_path) == [0, 1, 2, 0, 1, 2, 0, 1, 3, 3, 2]


def test_merge(tmp_path: Path) -> None:
    assert keys(tmp_path, Edit(merge=(T, U))) == [0, 1, 1, 0, 1, 1, 0, 1, 2, 2, 1]
    assert keys(tmp_path, Edit(merge=(T, U), group="h")) == [0, 1, 2, 0, 1, 2, 0, 3, 4, 4, 3]
    assert keys(tmp_path, Edit(merge=(T, U), group="nowhere")) == keys(tmp_path)
    assert keys(tmp_path, Edit(merge=(T, "#0000000000000001"))) == keys(tmp_path)


def test_split_by_a_rule(tmp_path: Path) -> None:
    assert keys(tmp_path, Edit(split=T, by="actions:1")) == [0, 1, 2, 0, 3, 2, 0, 1, 4, 4, 2]
    assert keys(tmp_path, Edit(split=U, by="visited:S")) == keys(tmp_path)
    assert keys(tmp_path, Edit(split=U, by="prefix"), Edit(split=T, by="actions:1")) == [0, 1, 2, 0, 3, 4, 0, 1, 5, 5, 2]


def test_split_off_steps(tmp_path: Path) -> None:
    assert keys(tmp_path, Edit(split=T, steps=(("g", "b", 1), ("h", "c", 1)))) == [0, 1, 2, 0, 3, 2, 0, 3, 4, 4, 2]
    assert keys(tmp_path, Edit(split=U, steps=(("h", "c", None), ("h", "nobody", 0)))) == [0, 1, 2, 0, 1, 2, 0, 1, 3, 3, 4]
    assert keys(tmp_path, Edit(split=T, steps=(("g", "b", 0),))) == keys(tmp_path)  # that step is at S


def test_a_file_says_the_same_about_another_batch(tmp_path: Path) -> None:
    path = write_edits(tmp_path, Edits().added(Edit(merge=(S, U), note="the same room")))
    other = batch_of(walk("z", "Q:x U:x S:x T:x", 1.0, "Q"))
    step, _ = state_keys(other, [f"edits:{path}"])
    assert step[1] == step[2] and len(set(step.tolist())) == 3


def test_edits_hold_under_the_rules_they_were_made_under(tmp_path: Path) -> None:
    name = node_name(BATCH, ["actions:1"], 0, 1)
    assert name != T
    found = keys(tmp_path, Edit(merge=(name, node_name(BATCH, ["actions:1"], 1, 1))), rules=("actions:1",))
    assert found == [0, 1, 2, 0, 1, 2, 0, 1, 3, 3, 2]
    path = write_edits(tmp_path, Edits(("actions:1",), ()))
    with pytest.raises(UsageError, match="its nodes are named under the rules actions:1, here normalised stand before"):
        state_keys(BATCH, ["normalised", f"edits:{path}"])
    assert node_name(BATCH, ["exact", "actions:1"], 0, 1) == name
    assert names_at(BATCH, ["exact"], [2, 0, 7]) == [U, S, T]


def test_further_rules_stand_on_edited_keys(tmp_path: Path) -> None:
    path = write_edits(tmp_path, Edits().added(Edit(merge=(T, U))))
    step, _ = state_keys(BATCH, [f"edits:{path}", "history:1"])
    assert step[1] != step[2] == step[5]
    assert gc.Settings(rules=(f"edits:{path}", "history:1")).to_words()["rules"] == f"edits:{path}+history:1".replace("++", "+")


def test_removing_and_naming(tmp_path: Path) -> None:
    one = Edits().added(Edit(merge=(T, U)))
    two = one.added(Edit(split=S, by="actions:1"))
    assert two.removed(1) == one
    assert one.file_name != two.file_name == two.removed(1).added(two.edits[1]).file_name
    with pytest.raises(UsageError, match="there is no edit 2, expected 0 to 1"):
        two.removed(2)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{", "not JSON, line 1"),
        ([], 'expected a JSON object that begins with "graft_edits": 1'),
        ({"graft_edits": 2, "edits": []}, 'begins with "graft_edits": 1'),
        ({"graft_edits": 1}, "expected the keys rules"),
        ({"graft_edits": 1, "edits": [{"merge": [S]}]}, "edit 0: expected either merge with two"),
        ({"graft_edits": 1, "edits": [{"merge": [S, "T"]}]}, "edit 0: 'T' is no node hash"),
        ({"graft_edits": 1, "edits": [{"split": S}]}, r"edit 0: expected either by \(a key rule\) or steps"),
        ({"graft_edits": 1, "edits": [{"split": S, "by": "exact"}]}, "'exact' cannot split a node, expected a key rule"),
        ({"graft_edits": 1, "edits": [{"split": S, "by": "nope"}]}, "unknown state rule 'nope'"),
        ({"graft_edits": 1, "edits": [{"split": S, "by": "edits:e.json"}]}, "'edits:e.json' cannot split a node"),
        ({"graft_edits": 1, "edits": [{"split": S, "by": " custom:antigravity:f"}]}, "cannot split a node"),
        ({"graft_edits": 1, "edits": [{"split": S, "steps": [["g", 1, 0]]}]}, "steps: expected lists of group, rollout"),
        ({"graft_edits": 1, "edits": [{"join": [S, T]}]}, "edit 0: expected an object with the keys merge"),
        ({"graft_edits": 1, "edits": [{"merge": [S, T]}, {"split": T, "by": "prefix"}]}, "edit 1: node #[0-9a-f]+ is"),
    ],
)  # fmt: skip
def test_wrong_files(tmp_path: Path, content: Any, sentence: str) -> None:
    path = tmp_path / "e.json"
    path.write_bytes(content if isinstance(content, bytes) else orjson.dumps(content))
    with pytest.raises(UsageError, match=sentence):
        gc.Settings(rules=(f"edits:{path}",))


def test_absent_file() -> None:
    with pytest.raises(UsageError, match=r"edits file nowhere\.json: cannot be read"):
        gc.Settings(rules=("edits:nowhere.json",))
    with pytest.raises(UsageError, match="rule edits: expected a file"):
        gc.Settings(rules=("edits",))
