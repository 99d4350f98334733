"""Which moments count as the same: `exact`, `history:k`, and the actions `parsed` and `raw` (method.md sec. 6)."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk

import graft_core as gc
from graft_core.errors import UsageError
from graft_core.states import action_codes, state_keys
from graft_core.states.base import Keys, StateRule, factorise, pair_codes


def same_partition(left: list[Any], right: list[Any]) -> bool:
    """Whether two labellings put the same items together."""
    return len(set(zip(left, right, strict=True))) == len(set(left)) == len(set(right))


def brute_history(rows: list[dict[str, Any]], depth: int) -> list[Any]:
    """The present and the last `depth` observations of each step in row order, then of each rollout's final state."""
    paths: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        paths.setdefault((row["group_id"], row["rollout_id"]), [])
        if row["step"] is not None:
            paths[row["group_id"], row["rollout_id"]].append(row)
    seen, finals = {}, []
    for path in paths.values():
        path.sort(key=lambda row: row["step"])
        texts = [row["observation"] for row in path]
        for t, row in enumerate(path):
            seen[id(row)] = tuple(texts[max(0, t - depth) : t + 1])
        final = path[-1].get("next_observation") if path else None
        finals.append(None if final is None else (*texts[max(0, len(path) - depth) :], final))
    return [seen[id(row)] for row in rows if row["step"] is not None] + finals


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 20])
@pytest.mark.parametrize("seed", range(5))
def test_history_against_dictionaries(depth: int, seed: int) -> None:
    rows = random_rows(seed, groups=3, no_final=0.3, empty=0.2, states=3)
    random.Random(seed).shuffle(rows)
    batch = batch_of(rows)
    step_key, final_key = state_keys(batch, [f"history:{depth}"])
    found = [*batch.to_rows(step_key).tolist(), *(None if k < 0 else k for k in final_key.tolist())]
    assert same_partition(found, brute_history(rows, depth))


def test_exact_is_the_text() -> None:
    rows = random_rows(2, no_final=0.3)
    batch = batch_of(rows)
    texts = [row["observation"] for row in rows if row["step"] is not None]
    assert same_partition(batch.to_rows(state_keys(batch)[0]).tolist(), texts)
    assert np.array_equal(state_keys(batch, [])[0], state_keys(batch, ["exact"])[0])


def test_rules_compose_left_to_right() -> None:
    rows = random_rows(3, states=2)
    batch = batch_of(rows)
    found = state_keys(batch, ["exact", "history:1", "history:2"])[0]
    assert same_partition(batch.to_rows(found).tolist(), brute_history(rows, 3)[: batch.n_steps])
    # the second rule sees keys, not texts: history of histories
    assert len(set(found.tolist())) > len(set(state_keys(batch, ["history:1"])[0].tolist()))


def test_history_has_a_default_depth() -> None:
    batch = batch_of(random_rows(3))
    assert np.array_equal(state_keys(batch, ["history"])[0], state_keys(batch, ["history:1"])[0])


def test_history_never_looks_into_another_rollout() -> None:
    rows = walk("a", "S:x T:y", 1.0, "E") + walk("b", "T:y", 0.0, "F")
    graph = gc.build_graph(batch_of(rows), ["history:1"])
    assert graph.src.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("specs", "sentence"),
    [
        (["exactt"], r"unknown state rule 'exactt' \(did you mean 'exact'\?\); known: exact, "),
        (["history:-1"], "rule history:-1: expected a whole number of at least 0 behind the colon"),
        (["history:two"], "rule history:two: expected a whole number"),
        (["history:"], "rule history:: expected a whole number"),
        (["exact:3"], "rule 'exact:3': exact takes nothing behind the colon"),
        (["history:1", "exact"], "rule 'exact' works on texts and has to stand before 'history', which works on keys"),
    ],
)
def test_wrong_rules(specs: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        state_keys(batch_of(random_rows(1)), specs)


def test_wrong_action_rules() -> None:
    batch = batch_of(random_rows(1))
    with pytest.raises(UsageError, match="unknown action rule 'verbs'"):
        action_codes(batch, "verbs")
    with pytest.raises(UsageError, match="raw takes nothing behind the colon"):
        action_codes(batch, "raw:1")


def test_raw_falls_back_to_the_action() -> None:
    rows = walk("a", "S:go S:go S:stay", 1.0, action_text=["I go", None, None])
    batch = batch_of(rows)
    assert same_partition(action_codes(batch, "raw").tolist(), ["I go", "go", "stay"])
    assert same_partition(action_codes(batch).tolist(), ["go", "go", "stay"])


def test_registries_say_what_they_hold() -> None:
    for name, rule in gc.rules().items():
        assert rule.name == name
        assert rule.meaning
        assert rule.stage in ("text", "key")
        assert isinstance(rule, StateRule)
    assert next(iter(gc.rules())) == "exact"


def test_codes_are_dense() -> None:
    codes, distinct = factorise(np.array([7, 3, 7, -1, 3]))
    assert codes.tolist() == [0, 1, 0, 2, 1]
    assert distinct.tolist() == [7, 3, -1]
    left, right = np.array([0, 0, 1, -1, -1]), np.array([0, -1, 0, 0, 0])
    assert pair_codes(left, right).tolist() == [0, 1, 2, 3, 3]
    assert Keys(np.array([0, 2, 1]), np.zeros(1, dtype=bool)).n_codes == 3
    assert Keys(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)).n_codes == 0
