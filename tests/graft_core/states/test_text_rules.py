"""Rules on texts: `normalised`, `masked`, `carry_noop`, `field`, `custom` (method.md sec. 6)."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk

import graft_core as gc
from graft_core.errors import UsageError
from graft_core.rollouts import RolloutBatch
from graft_core.states import custom_rule, state_keys
from graft_core.states.base import Keys
from graft_core.states.compose import parse


def same_partition(left: list[Any], right: list[Any]) -> bool:
    """Whether two labellings put the same items together."""
    return len(set(zip(left, right, strict=True))) == len(set(left)) == len(set(right))


def texts_batch(*texts: str, final: str | None = None) -> RolloutBatch:
    """One rollout that observes the texts in turn."""
    rows = walk("a", " ".join("x:go" for _ in texts), 1.0, final)
    for row, text in zip(rows, texts, strict=True):
        row["observation"] = text
    return batch_of(rows)


def partition(batch: RolloutBatch, *specs: str) -> list[int]:
    """Step keys numbered by first appearance."""
    seen: dict[int, int] = {}
    return [seen.setdefault(k, len(seen)) for k in state_keys(batch, specs)[0].tolist()]


def load(path: Path, rows: list[dict[str, Any]]) -> RolloutBatch:
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return gc.load(path)


def test_normalised_is_nfkc_case_and_white_space() -> None:
    texts = [
        "You  see\ta LAMP.\n", "you see a lamp.", "You see a lamp", "\ufb01ne caf\u00e9", "FINE cafe\u0301",
        "a\u00a0b\u2028c\u0085d\u1680e\u3000f", "a b c d e f", "", " \n ", "日本  語", "日本 語", "日本語",
    ]  # fmt: skip
    expected = [" ".join(unicodedata.normalize("NFKC", t).lower().split()) for t in texts]
    assert same_partition(partition(texts_batch(*texts), "normalised"), expected)
    assert len(set(expected)) == 7


@pytest.mark.parametrize(
    ("mask", "same", "different"),
    [
        ("step-counter", ("Step 3 of 10: a room", "Step 4 of 10: a room"), ("Step 3: drawer 1", "Step 3: drawer 2")),
        ("step-counter", ('{"step": 3}', '{"step": 4}'), ('{"score": 3}', '{"score": 4}')),
        ("timestamp", ("at 2026-01-02T03:04:05Z ok", "at 2025-11-30 23:59 ok"), ("at noon ok", "at night ok")),
        ("timestamp", ("12:30 PM", "1:05 am"), ("12", "13")),
        ("number", ("score -5, 1,200.50 left", "score 17, 3 left"), ("score", "score 5")),
        ("hex", ("commit 0xDEADBEEF", "commit 1a2b3c4d5e"), ("commit bead", "commit deaf")),
        ("uuid", ("123e4567-e89b-12d3-a456-426614174000.", "00000000-0000-0000-0000-00000000000a."), ("id 1-2", "id 1-3")),
        ("path", ("in /usr/lib/x.py: error", "in ./a/b/c: error"), ("this and/or that", "this and/or those")),
        ("path", (r'"C:\Users\me"', '"~/a/b"'), ("a/b", "a/c")),
        ("status-bar", ("You are home.\n\n> -= Home =-6/64", "You are home.\n> -= Home =-0/12\n"), ("6/64", "7/64")),
        ("/[0-9]+ apples/", ("3 apples, 2 pears", "5 apples, 2 pears"), ("7 apples, 2 figs", "7 apples, 1 figs")),
    ],
)  # fmt: skip
def test_masks(mask: str, same: tuple[str, str], different: tuple[str, str]) -> None:
    batch = texts_batch(*same, *different)
    first, second, third, fourth = partition(batch, f"masked:{mask}")
    assert first == second
    assert third != fourth
    assert len(set(partition(batch))) == 4  # off unless asked for


def test_masks_compose() -> None:
    batch = texts_batch("/a/b/c at 12:30", "/d/e at 12:31", "/d/e at noon")
    assert partition(batch, "masked:path", "masked:timestamp") == [0, 0, 1]
    assert partition(batch, "masked:path") == [0, 1, 2]


def test_a_mask_cannot_be_made_to_take_for_ever() -> None:
    assert partition(texts_batch("a" * 5000 + "b", "c"), "masked:/(a*)*(a*)*d/") == [0, 1]


def brute_carry(texts: list[str], noop: str) -> list[str]:
    carried: list[str] = []
    for text in texts:
        carried.append(carried[-1] if carried and re.fullmatch(noop, text.strip(), re.IGNORECASE) else text)
    return carried


def test_carry_noop_keeps_the_state_before() -> None:
    again = "Nothing happens."
    texts = [again, "A", "nothing happens.", " Nothing happens.\n", "B", "Nothing happens. Yet.", again]
    batch = texts_batch(*texts, final=again)
    step, final = state_keys(batch, ["carry_noop"])
    assert same_partition(step.tolist(), brute_carry(texts, r"nothing happens\."))
    assert final[0] == step[-1]


def test_carry_noop_never_reaches_into_another_rollout() -> None:
    rows = walk("a", "S:x T:y", 1.0) + walk("b", "N:y N:x", 0.0)
    step, _ = state_keys(batch_of(rows), ["carry_noop:N"])
    assert step[2] == step[3] != step[1]


def test_carry_noop_by_expression() -> None:
    assert partition(texts_batch("A", "err 1", "err 2", "B"), "carry_noop:/^err [0-9]$/") == [0, 0, 0, 1]


def rows_with(fields: list[dict[str, Any]], **last: Any) -> list[dict[str, Any]]:
    rows = walk("r", " ".join(f"o{i}:go" for i in range(len(fields))), 1.0, "end")
    for row, more in zip(rows, fields, strict=True):
        row |= more
    rows[-1] |= last
    return rows


def test_field_state(tmp_path: Path) -> None:
    batch = load(tmp_path / "a.jsonl", rows_with([{"state": "h1"}, {"state": "h2"}, {"state": "h1"}], next_state="h2"))
    step, final = state_keys(batch, ["field:state"])
    assert step[0] == step[2] != step[1] == final[0]


@pytest.mark.parametrize("path", ["board.cells", "metadata.board.cells"])
def test_field_in_metadata(tmp_path: Path, path: str) -> None:
    fields = [{"board": {"cells": c, "turn": i}} for i, c in enumerate([[1, 2], [2, 1], [1, 2], "[1,2]"])]
    batch = load(tmp_path / "a.jsonl", rows_with(fields, next_board={"cells": [2, 1]}))
    step, final = state_keys(batch, [f"field:{path}"])
    assert step[0] == step[2] == step[3] != step[1] == final[0]
    with pytest.raises(UsageError, match=r"field:board\.cells\.1: 1 of 4 steps have no such field, the first is step 3"):
        state_keys(batch, ["field:board.cells.1"])


def test_field_inside_a_json_observation(tmp_path: Path) -> None:
    rows = rows_with([{"observation": json.dumps({"room": {"id": r}, "n": i})} for i, r in enumerate("aba")])
    batch = load(tmp_path / "a.jsonl", rows)
    step, final = state_keys(batch, ["field:observation.room.id"])
    assert step[0] == step[2] != step[1]
    assert final[0] == -1  # the final observation "end" is no JSON: no final state


def test_a_missing_field_is_one_sentence(tmp_path: Path) -> None:
    batch = load(tmp_path / "a.jsonl", rows_with([{"hash": 1}, {}, {}]))
    with pytest.raises(
        UsageError, match=r"hash: 2 of 3 steps have no such field, the first is step 1 of rollout r \(group g\)"
    ):
        state_keys(batch, ["field:hash"])
    with pytest.raises(UsageError, match="field:state: 3 of 3 steps"):
        state_keys(batch, ["field:state"])


def test_custom_on_texts_and_on_keys() -> None:
    batch = texts_batch("a1", "a2", "b1", final="a3")
    word = custom_rule("first letter", lambda text: text[0])
    step, final = state_keys(batch, [word])
    assert step[0] == step[1] == final[0] != step[2]

    def parity(batch: RolloutBatch, keys: Keys) -> list[int]:
        return [i % 2 for i in range(keys.codes.size)]

    assert partition(batch, custom_rule("parity", parity, on="keys")) == [0, 1, 0]
    with pytest.raises(UsageError, match="'exact' works on texts and has to stand before 'custom'"):
        parse(["custom:parity", "exact"])
    parse(["custom:first letter", "exact"])
    custom_rule("bad", lambda batch, keys: [1, 2], on="keys")
    with pytest.raises(UsageError, match="expected one whole number for each of 4 positions"):
        state_keys(batch, ["custom:bad"])


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("masked:numbr", r"unknown mask \(did you mean 'number'\?\); expected one of step-counter, "),
        ("masked:/(/", r"rule masked:/\(/: not a regular expression \(RE2 syntax\): missing \)"),
        ("masked://", "expected a regular expression between slashes"),
        ("masked:", "unknown mask"),
        ("carry_noop:/[/", "not a regular expression"),
        ("field:", "expected a column or a path"),
        ("field:a..b", "expected a column or a path"),
        ("custom:nowhere", "no such rule"),
        ("normalised:2", "takes nothing behind the colon"),
    ],
)
def test_wrong_parameters_are_refused_before_there_is_data(spec: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        gc.Settings(rules=(spec,))


def test_text_rules_leave_final_states_and_missing_ones_alone() -> None:
    batch = batch_of(random_rows(5, no_final=0.4))
    for spec in ("normalised", "masked:hex", "carry_noop"):
        plain, found = state_keys(batch), state_keys(batch, [spec])
        assert same_partition([*plain[0].tolist(), *plain[1].tolist()], [*found[0].tolist(), *found[1].tolist()])
        assert np.array_equal(plain[1] < 0, found[1] < 0)
