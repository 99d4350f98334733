"""Options that several estimators share, and what holds for every estimator (method.md sec. 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk
from slow_catalogue import slow_hgpo, worth_of
from slow_reference import build, by_row, grouped_standard

import graft_core as gc
from graft_core.errors import NotComputableError, UsageError


def close(found: Any, wanted: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance, equal_nan=True)


def rows_of(seed: int, **odds: float) -> list[dict[str, Any]]:
    return random_rows(seed, groups=3, **({"unknown": 0.2, "no_final": 0.2, "scores": 0.3, "empty": 0.1} | odds))


def invalid_rows() -> list[dict[str, Any]]:
    rows = rows_of(6, empty=0.0, unknown=0.1)
    for i, row in enumerate(rows):
        row["valid"] = None if i % 5 == 0 else i % 3 != 0
    return rows


@pytest.mark.parametrize("statistics", ["rollouts", "steps"])
def test_invalid_penalty_against_loops(statistics: str) -> None:
    rows = invalid_rows()
    slow, batch = build(rows), batch_of(rows)
    fine = 0.1 * np.array([row["valid"] is False for row in rows])
    episode = gc.estimate(batch, "grpo")
    if statistics == "steps":
        copies = list(np.array(by_row(slow, lambda s: s.outcome)) - fine)
        episode = np.array(grouped_standard(slow, copies, lambda s: s.group))
    returns = list(np.array(by_row(slow, lambda s: 0.95**s.remaining * s.outcome)) - fine)
    step_part = np.array(grouped_standard(slow, returns, lambda s: s.node))
    options = {"invalid_penalty": 0.1, "statistics": statistics}
    close(gc.estimate(batch, "gigpo", **options), episode + step_part)
    worth = list(np.array(worth_of(rows, slow, 0.8)) - fine)
    close(gc.estimate(batch, "graphgpo", **options), episode + np.array(grouped_standard(slow, worth, lambda s: s.node)))
    close(gc.estimate(batch, "hgpo", invalid_penalty=0.1), slow_hgpo(slow, returns, 2, 1.0))


def test_invalid_penalty_needs_its_column() -> None:
    batch = batch_of(rows_of(1))
    for name in ("gigpo", "hgpo", "graphgpo"):
        with pytest.raises(NotComputableError, match="invalid_penalty needs the step column 'valid'"):
            gc.estimate(batch, name, invalid_penalty=0.1)
        close(gc.estimate(batch, name, invalid_penalty=0.0), gc.estimate(batch, name), 0)


def test_clip_bounds_the_finished_credit() -> None:
    batch = batch_of(rows_of(4))
    for name, entry in gc.estimators().items():
        if entry.needs:
            continue
        plain = gc.estimate(batch, name)
        close(gc.estimate(batch, name, clip=0.2), np.clip(plain, -0.2, 0.2), 0)
        assert entry.option("clip") is not None
    for wrong in (0, -1.0, "x"):
        with pytest.raises(UsageError, match=r"clip: .* is not allowed, expected a number above 0"):
            gc.estimate(batch, "grpo", clip=wrong)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("hgpo", {"k": -1}, "k: -1 is not allowed, expected a whole number from 0 to 50"),
        ("hgpo", {"k": 1.5}, "k: 1.5 is not allowed"),
        ("hgpo", {"alpha": -0.5}, "alpha: -0.5 is not allowed"),
        ("graphgpo", {"omega": 1.5}, "omega: 1.5 is not allowed, expected a number from 0 to 1"),
        ("gigpo", {"omega": -1}, "omega: -1 is not allowed"),
        ("gigpo", {"invalid_penalty": -0.1}, "invalid_penalty: -0.1 is not allowed"),
        ("graft_td", {"solver": "newton"}, "solver: 'newton' is not allowed, expected one of direct, gauss_seidel, jacobi"),
        ("graft_td", {"gamma": 1.0, "solver": "jacobi"}, "expected gamma below 1"),
        ("opo", {"eps": 0.1}, "opo has no option 'eps'; it has: clip"),
    ],
)
def test_wrong_options(name: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        gc.estimate(batch_of(rows_of(1)), name, **options)


def test_every_estimator_of_the_catalogue_is_there() -> None:
    assert set(gc.estimators()) == {
        "grpo", "dr_grpo", "rloo", "reinforce_pp_baseline", "opo", "maxrl", "grpo_step_index", "gigpo", "rtmc", "salt", "hgpo",
        "graphgpo", "rewardflow", "graft_td", "graft", "graft_eq10", "path_gae", "bepo_gated", "sas", "task_norm", "gae_critic",
    }  # fmt: skip
    defaults = {name: {o.name: o.default for o in e.options} for name, e in gc.estimators().items()}
    assert {"gamma": 0.95, "k": 2, "alpha": 1.0, "ddof": 0, "eps": 1e-6}.items() <= defaults["hgpo"].items()
    assert {"omega": 0.8, "statistics": "rollouts", "invalid_penalty": 0.0}.items() <= defaults["graphgpo"].items()
    assert defaults["rtmc"]["gamma"] == defaults["rewardflow"]["gamma"] == 0.99
    assert {"gamma": 0.99, "lam": 0.95}.items() <= defaults["gae_critic"].items()
    assert {"gamma": 0.99, "lam": 0.95}.items() <= defaults["bepo_gated"].items()
    assert defaults["task_norm"]["base"] == "grpo"


@pytest.mark.parametrize("outcome", [0.0, 1.0, -2.0, 0.35])
def test_one_rollout_and_equal_outcomes(outcome: float) -> None:
    """What each estimator says where there is nothing to compare."""
    one = batch_of(walk("a", "S:x T:y", outcome, "E"))
    residue = 1e-8 if outcome == 0.35 else 0.0
    same = batch_of([r for i in range(3) for r in walk(f"a{i}", "S:x T:y", outcome + (-1) ** i * residue, "E")])
    for name, entry in gc.estimators().items():
        if entry.needs:
            continue
        close(gc.estimate(one, name), [0.0, 0.0], 1e-9)
        if not (outcome == 0.35 and name.startswith(("graft", "path", "bepo", "task"))):
            close(gc.estimate(same, name), [0.0] * 6, 1e-9)


def test_unknown_outcomes_change_nothing_for_anyone() -> None:
    rows = rows_of(8, unknown=0.0, empty=0.0)
    for i, row in enumerate(rows):
        row |= {"logprob": -(i % 7) / 7, "value": (i % 5) / 5, "terminated": True}
    columns = {"reward": [0.0] * 3, "logprob": [-1.0] * 3, "value": [0.1] * 3}
    ghost = walk("ghost", "s0:a s1:b s2:a", None, "s3", group="g0", terminated=True, **columns)
    for name in gc.estimators():
        found = gc.estimate(batch_of(rows + ghost), name)
        assert np.isnan(found[-3:]).all(), name
        close(found[:-3], gc.estimate(batch_of(rows), name), 1e-12)
