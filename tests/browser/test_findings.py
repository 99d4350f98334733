"""The first screen on a task with a known good step: the key that failed rollouts took too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, expect

import graft_core as gc
from graft_core.environments import make_world
from graft_core.environments.policies import policy_with_success
from graft_core.environments.sampler import rows_of, sample_paths
from graft_core.environments.tables import compile_world
from graft_core.insight.findings import findings
from graft_core.rollouts import RolloutBatch

ROW = 35  # pixels of a row of Streamlit's tables, the head included


def key_door(folder: Path) -> Path:
    """One key-door task, 16 rollouts, seed 0."""
    table = compile_world(make_world("key-door", size=4))
    rows = rows_of(sample_paths(table, policy_with_success(table, 0), 1, 16, 200, 0))
    path = folder / "key-door.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def key_taking_steps(batch: RolloutBatch) -> list[int]:
    """Path positions of the steps of failed rollouts that took the key."""
    texts = [batch.text(int(o)) for o in batch.observation]
    steps = []
    for row in np.flatnonzero(batch.success == 0):
        start, end = batch.offsets[row : row + 2].tolist()
        steps += [p for p in range(start, end - 1) if "no key" in texts[p] and "no key" not in texts[p + 1]]
    return steps


def test_the_good_step_is_on_the_first_screen(
    start_app: Callable[..., Any], visit: Callable[..., Page], page: Page, tmp_path_factory: Any
) -> None:
    path = key_door(tmp_path_factory.mktemp("key"))
    page.set_viewport_size({"width": 1093, "height": 800})
    visit(start_app([path]))
    table = page.get_by_test_id("stDataFrame").first
    expect(table.locator("canvas").first).to_be_visible()
    box = table.bounding_box()
    assert box is not None
    visible = int((min(800, box["y"] + box["height"]) - box["y"] - ROW) // ROW)
    found = findings(gc.load(path))
    rank = {row["edge"]: at for at, row in enumerate(found.merged_rows(found.good))}
    steps = key_taking_steps(found.batch)
    covered = [rank.get(int(found.graph.edge[p]), 10**6) < visible for p in steps]
    print(f"\n{visible} rows visible at 1,093 x 800; they cover {sum(covered)} of {len(steps)} key-taking steps")
    assert len(steps) >= 5
    assert visible >= 8
    assert np.mean(covered) >= 0.8
