"""The first screen on a task with a known good step: the key that failed rollouts took too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, expect

import graft_core as gc
import graft_sample_data
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


def many_shuffles(folder: Path) -> Path:
    """A batch on which 200 shuffles of path credit take some seconds."""
    rows = (
        {
            "group_id": f"g{g}", "rollout_id": f"r{r}", "step": t, "observation": f"room {(r * t) % 5} {t}",
            "action": f"go {(r + t) % 3}", "outcome": float((g + r) % 3 == 0),
        }
        for g in range(96) for r in range(8) for t in range(30)
    )  # fmt: skip
    path = folder / "many.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_shuffles_can_be_stopped(
    start_app: Callable[..., Any], visit: Callable[..., Page], settle: Callable[[Page], None], tmp_path_factory: Any
) -> None:
    page = visit(start_app([many_shuffles(tmp_path_factory.mktemp("many"))]), "?a=path_gae&lam=0.1")
    ask = page.get_by_role("button", name="Is this more than luck?")
    expect(page.get_by_test_id("stDataFrame").first.locator("canvas").first).to_be_visible()  # the page stands still
    ask.click()
    expect(page.get_by_text("Shuffle").first).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    settle(page)
    expect(ask).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    assert page.get_by_text("beyond luck").count() == 0 and page.get_by_text("dealt at random").count() == 0


def choose_row(page: Page, row: int) -> None:
    box = page.get_by_test_id("stDataFrame").first.locator("canvas").first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 18, box["y"] + ROW * (row + 1) + 17)


def test_a_chosen_row_is_explained_where_it_stands(
    visit: Callable[..., Page], app: Any, settle: Callable[[Page], None]
) -> None:
    page = visit(app)
    page.set_viewport_size({"width": 1093, "height": 800})
    settle(page)
    reason = page.get_by_text("Why good:")
    expect(reason).to_be_visible()
    found = findings(gc.load(graft_sample_data.paths()[0]))
    rows = found.merged_rows(found.good)
    expect(page.get_by_text(f"{rows[0]['group_id']} · {rows[0]['rollout_id']}")).to_be_visible()
    box = page.get_by_role("button", name="Transcript").bounding_box()
    assert box is not None and box["y"] + box["height"] <= 800, "the first screen holds the reason and the ways on"
    choose_row(page, 2)
    page.wait_for_url(f"**at={rows[2]['row']}**")
    expect(page.get_by_text(f"{rows[2]['group_id']} · {rows[2]['rollout_id']}")).to_be_visible()
    page.reload()
    expect(page.get_by_text(f"{rows[2]['group_id']} · {rows[2]['rollout_id']}")).to_be_visible()
    page.get_by_role("button", name="Copy finding").click()
    copied = page.get_by_test_id("stCode").filter(has_text="SHA-256")
    expect(copied).to_contain_text(f"{rows[2]['group_id']} · {rows[2]['rollout_id']}/{rows[2]['step']}: {rows[2]['action']}")
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    page.wait_for_url(f"**/rollouts?**at={rows[2]['row']}**")
    page.go_back()
    expect(reason).to_be_visible()
    page.keyboard.press("g")
    page.wait_for_url(f"**/graph?**sel=e{rows[2]['edge']}**")
