"""Failed household rollouts of which the truth is known: is the good step listed, is the blunder the largest drop?"""

from __future__ import annotations

import numpy as np
import pytest
from row_batches import batch_of

import graft_core as gc
from graft_core.environments.planted import Planted, planted_batch
from graft_core.insight.findings import Findings

LEAST_GOOD_LISTED, LEAST_BLUNDERS_FOUND = 0.8, 0.9


@pytest.fixture(scope="module")
def planted() -> tuple[Findings, list[Planted]]:
    rows, truth = planted_batch(50, seed=0)
    return gc.findings(batch_of(rows)), truth


def positions(found: Findings, truth: list[Planted], name: str) -> list[int]:
    """Path position of the step `name` of every planted rollout."""
    batch = found.batch
    at = {
        (batch.group_ids[batch.group[row]], batch.rollout_ids[row], int(batch.step_index[p])): p
        for p, row in enumerate(batch.step_rollout.tolist())
    }
    return [at[one.group_id, one.rollout_id, getattr(one, name)] for one in truth]


def test_at_least_eighty_percent_of_the_planted_good_steps_are_listed(planted: tuple[Findings, list[Planted]]) -> None:
    found, truth = planted
    assert len(truth) == 50
    listed = np.isin(positions(found, truth, "good_step"), found.good)
    assert listed.mean() >= LEAST_GOOD_LISTED, f"{listed.mean():.0%} of the planted good steps are listed"


def test_the_blunder_is_the_largest_drop_in_at_least_ninety_percent(planted: tuple[Findings, list[Planted]]) -> None:
    found, truth = planted
    largest = np.isin(positions(found, truth, "blunder_step"), found.lost)
    assert largest.mean() >= LEAST_BLUNDERS_FOUND, f"{largest.mean():.0%} of the blunders are the largest drop"


def test_the_lists_do_not_simply_hold_every_step(planted: tuple[Findings, list[Planted]]) -> None:
    """One drop per failed rollout, and only a part of the planted rollouts' other steps are called good."""
    found, truth = planted
    rows = found.batch.step_rollout
    own = np.isin(rows, rows[positions(found, truth, "good_step")])
    assert np.unique(rows[found.lost]).size == found.lost.size
    assert np.isin(np.flatnonzero(own), found.good).mean() < 0.5
