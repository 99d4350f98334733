"""When two actions are the same: `normalised` and `verb` beside `raw` and `parsed`."""

from __future__ import annotations

from pathlib import Path

import pytest
from row_batches import batch_of, walk

import graft_core as gc
from graft_core.rollouts import RolloutBatch
from graft_core.states import action_codes


def actions_batch(*actions: str) -> RolloutBatch:
    rows = walk("a", " ".join("S:x" for _ in actions), 1.0)
    for row, action in zip(rows, actions, strict=True):
        row["action"] = action
    return batch_of(rows)


def partition(batch: RolloutBatch, spec: str) -> list[int]:
    seen: dict[int, int] = {}
    return [seen.setdefault(k, len(seen)) for k in action_codes(batch, spec).tolist()]


def test_normalised() -> None:
    batch = actions_batch("Go  to desk", "go to desk ", "go to desk 1")
    assert partition(batch, "normalised") == [0, 0, 1]
    assert partition(batch, "parsed") == [0, 1, 2]


def test_verb() -> None:
    batch = actions_batch("go to desk 1", "Go north", "search[shoes]", 'search {"q": 1}', "search(q=1)", " look", "", "[x]")
    assert partition(batch, "verb") == [0, 0, 1, 1, 1, 2, 3, 3]


def test_web_shop_actions(test_data: Path) -> None:
    """Raw model texts share no (state, action) at all between rollouts of a file; what was executed does."""
    batch = gc.load(test_data / "verl_agent_webshop", group_by="file")
    assert gc.describe(batch, actions="raw")["graph"]["shared_actions"] == 0.0
    assert 100 * gc.describe(batch, actions="parsed")["graph"]["shared_actions"] == pytest.approx(54.5, abs=0.5)
    codes = {c["code"] for c in gc.describe(batch, actions="raw")["graph"]["warnings"]}
    assert "actions_unshared" in codes
    assert "actions_unshared" not in {c["code"] for c in gc.describe(batch)["graph"]["warnings"]}
