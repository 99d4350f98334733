"""Statistics of many small groups, with the range rule (method.md sec. 4)."""

from __future__ import annotations

import numpy as np
import pytest

from graft_core.credit import _segments as seg

X = np.array([1.0, 2.0, 4.0, 7.0, 7.0, 3.0])
GROUP = np.array([0, 0, 0, 2, 2, 3])  # group 1 is empty, group 2 flat, group 3 a single


def test_means_deviations_and_counts() -> None:
    np.testing.assert_allclose(seg.deviations(X, GROUP, 4, 1), [np.std([1, 2, 4], ddof=1), np.nan, 0.0, np.nan])
    np.testing.assert_allclose(seg.deviations(X, GROUP, 4, 0), [np.std([1, 2, 4]), np.nan, 0.0, 0.0])
    np.testing.assert_allclose(seg.means(X, GROUP, 4), [7 / 3, np.nan, 7.0, 3.0])
    assert seg.counts(GROUP, 4).tolist() == [3, 0, 2, 1]


def test_flat_groups() -> None:
    assert seg.flat(X, GROUP, 4)[[0, 2, 3]].tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("low", "high", "flat"),
    [
        (0.0, 0.9e-9, True),
        (0.0, 1.1e-9, False),
        (1.0, 1.0 + 0.9e-6, True),
        (1.0, 1.0 + 1.1e-6, False),
        (-1.0, -1.0 - 0.9e-6, True),
        (0.34999999, 0.35000001, True),
        (-5e5, -5e5 - 0.49, True),
        (-5e5, -5e5 - 0.51, False),
    ],
)
def test_the_range_rule_at_its_edges(low: float, high: float, flat: bool) -> None:
    x, group = np.array([low, high]), np.zeros(2, dtype=np.int64)
    assert seg.flat(x, group, 1).tolist() == [flat]
    assert (seg.standardise(x, group, 1, 1e-6, 1) == 0).all() == flat
    assert (seg.centre(x, group, 1) == 0).all() == flat


def test_standardise() -> None:
    scaled = seg.standardise(X, GROUP, 4, 0.5, 1)
    first = (np.array([1, 2, 4]) - 7 / 3) / (np.std([1, 2, 4], ddof=1) + 0.5)
    np.testing.assert_allclose(scaled, [*first, 0, 0, 0])
    population = seg.standardise(X, GROUP, 4, 0.0, 0)
    np.testing.assert_allclose(population[:3], (np.array([1, 2, 4]) - 7 / 3) / np.std([1, 2, 4]))


def test_centre() -> None:
    np.testing.assert_allclose(seg.centre(X, GROUP, 4), [1 - 7 / 3, 2 - 7 / 3, 4 - 7 / 3, 0, 0, 0])


def test_node_normalisation_of_singles() -> None:
    x = np.array([0.25, -0.5, 9e-10, -2e-9, 3.0, 5.0])
    node = np.array([0, 1, 2, 3, 4, 4])
    assert seg.normalise_nodes(x, node, 5, "none", 1e-6, 1) is x
    np.testing.assert_allclose(seg.normalise_nodes(x, node, 5, "mean", 1e-6, 1), [0.25, -0.5, 9e-10, -2e-9, -1, 1])
    scaled = seg.normalise_nodes(x, node, 5, "mean_std", 1e-6, 1)
    half = 1 / (np.sqrt(2) + 1e-6)
    np.testing.assert_allclose(scaled, [0.25 / (0.25 + 1e-6), -0.5 / (0.5 + 1e-6), 0, -2e-9 / (2e-9 + 1e-6), -half, half])
    np.testing.assert_allclose(
        seg.normalise_nodes(x, node, 5, "mean_std", 0.0, 1), [1, -1, 0, -1, -1 / np.sqrt(2), 1 / np.sqrt(2)]
    )


def test_two_passes_keep_a_small_spread_on_a_large_mean() -> None:
    x = 1e6 + np.array([0.0, 1.5, 3.0])
    found = seg.standardise(x, np.zeros(3, dtype=np.int64), 1, 0.0, 1)
    assert found == pytest.approx([-1, 0, 1], abs=1e-9)


def test_no_members_at_all() -> None:
    nothing, nowhere = np.zeros(0), np.zeros(0, dtype=np.int64)
    assert seg.standardise(nothing, nowhere, 3, 1e-6, 1).size == 0
    assert seg.centre(nothing, nowhere, 0).size == 0
