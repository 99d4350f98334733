"""`task_norm` and `gae_critic`: credit on another scale, and credit from recorded values (method.md sec. 5)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk
from slow_reference import standardised

import graft_core as gc
from graft_core.errors import NotComputableError, UsageError
from graft_core.values.system import DataWarning

NAN = float("nan")


def close(found: Any, wanted: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance, equal_nan=True)


def rows_of(seed: int) -> list[dict[str, Any]]:
    return random_rows(seed, groups=3, unknown=0.2, no_final=0.2, scores=0.3, empty=0.1)


def test_task_norm_by_family() -> None:
    rows = []
    for r, (family, outcome, length) in enumerate([("cook", 1.0, 2), ("cook", 0.0, 1), ("heat", 1.0, 3), ("heat", 0.0, 2)]):
        rows += walk(f"r{r}", "S:x " * length, outcome, group=family, task_family=family)
    rows += walk("u", "S:x", None, group="cook", task_family="cook")
    batch = batch_of(rows)
    base = gc.estimate(batch, "dr_grpo")
    wanted = [*standardised(list(base[:3])), *standardised(list(base[3:8])), NAN]
    close(gc.estimate(batch, "task_norm", base="dr_grpo"), wanted)
    close(gc.estimate(batch, "task_norm"), [*standardised(list(gc.estimate(batch, "grpo")[:3])), *wanted[3:]], 1e-5)


def test_task_norm_without_families_is_one_family() -> None:
    rows = rows_of(3)
    batch = batch_of(rows)
    for base, options in (("grpo", {}), ("graft_td", {"gamma": 0.9}), ("path_gae", {"lam": 0.5}), ("hgpo", {})):
        credit = gc.estimate(batch, base, **options)
        known = ~np.isnan(credit)
        wanted = np.full(credit.size, NAN)
        wanted[known] = standardised(list(credit[known]))
        close(gc.estimate(batch, "task_norm", base=base, **options), wanted)
    some = walk("a", "S:x", 1.0, group="h", task_family="cook") + walk("b", "S:x", 0.0, group="h")
    assert (gc.estimate(batch_of(some), "task_norm") == 0).all()  # two families of one step each


def test_task_norm_follows_given_values() -> None:
    batch = batch_of(rows_of(3))
    graph = gc.build_graph(batch)
    values = gc.solve_values(graph, gamma=0.7)
    close(
        gc.estimate(batch, "task_norm", base="graft_td", graph=graph, values=values),
        gc.estimate(batch, "task_norm", base="graft_td", gamma=0.7),
    )


def test_task_norm_names_a_wrong_base() -> None:
    batch = batch_of(rows_of(1))
    with pytest.raises(UsageError, match=r"unknown base 'gropo' \(did you mean 'grpo'\?\)"):
        gc.estimate(batch, "task_norm", base="gropo")
    with pytest.raises(UsageError, match="base: 'task_norm' cannot stand on itself"):
        gc.estimate(batch, "task_norm", base="task_norm")
    with pytest.raises(NotComputableError, match="sas needs the step column 'logprob'"):
        gc.estimate(batch, "task_norm", base="sas")


def test_gae_critic_by_pencil() -> None:
    rows = walk("a", "S:x T:y", 1.0, value=[0.5, 0.8], terminated=True)
    rows += walk("b", "S:x T:y", 0.25, value=[0.5, 0.8], truncated=True, final_value=2.0)
    rows += walk("c", "S:x", None, value=[0.5], terminated=True)
    found = gc.estimate(batch_of(rows), "gae_critic", gamma=0.5, lam=0.5)
    a = [0.0 + 0.4 - 0.5, 1.0 - 0.8]
    b = [0.0 + 0.4 - 0.5, 0.25 + 1.0 - 0.8]
    close(found, [a[0] + 0.25 * a[1], a[1], b[0] + 0.25 * b[1], b[1], NAN], 1e-12)


def test_gae_critic_under_dense() -> None:
    rows = walk("a", "S:x T:y", 5.0, value=[0.5, 0.8], terminated=True, reward=[1.0, 2.0])
    close(gc.estimate(batch_of(rows), "gae_critic", gamma=0.5, lam=0.0, rewards="dense"), [1 + 0.4 - 0.5, 2 - 0.8], 1e-12)
    close(gc.estimate(batch_of(rows), "gae_critic", gamma=0.5, lam=0.0), [0.4 - 0.5, 5 - 0.8], 1e-12)
    bare = walk("a", "S:x", 5.0, value=[0.5], terminated=True)
    with pytest.raises(NotComputableError, match="needs a reward on every step"):
        gc.estimate(batch_of(bare), "gae_critic", rewards="dense")


def test_gae_critic_warns_where_the_end_is_not_said() -> None:
    for fields in ({}, {"truncated": True}, {"final_value": 3.0}):
        rows = walk("a", "S:x", 1.0, value=[0.25], **fields)
        with pytest.warns(DataWarning, match="1 of 1 rollouts say neither that they terminated nor"):
            found = gc.estimate(batch_of(rows), "gae_critic")
        assert found.tolist() == [0.75]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.estimate(batch_of(walk("a", "S:x", 1.0, value=[0.25], terminated=True)), "gae_critic")
        both = walk("a", "S:x", 1.0, value=[0.25], terminated=True, truncated=True, final_value=3.0)
        assert gc.estimate(batch_of(both), "gae_critic").tolist() == [0.75]
        gc.estimate(batch_of(walk("a", "S:x", 1.0, value=[0.5], truncated=True, final_value=3.0)), "gae_critic")


def test_gae_critic_leaves_rollouts_with_a_missing_value_out() -> None:
    rows = walk("a", "S:x T:y", 1.0, value=[None, 0.5], terminated=True)
    rows += walk("b", "S:x T:y", 1.0, value=[0.5, None], terminated=True) + walk("c", "S:x", 1.0, value=[0.5], terminated=True)
    close(gc.estimate(batch_of(rows), "gae_critic"), [NAN, NAN, NAN, NAN, 0.5])
    with pytest.raises(NotComputableError, match="gae_critic needs the step column 'value'"):
        gc.estimate(batch_of(walk("a", "S:x", 1.0)), "gae_critic")
