"""Statistics of many small groups at once, with the range rule of method.md sec. 4: no spread means no signal."""

from __future__ import annotations

import numpy as np

from graft_core.constants import RANGE_ABSOLUTE, RANGE_RELATIVE, SIGN_TOLERANCE
from graft_core.rollouts import BoolArray, FloatArray, IntArray


def counts(group: IntArray, n_groups: int) -> IntArray:
    return np.bincount(group, minlength=n_groups)


def means(x: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
    """Mean of x in each group; NaN for empty groups."""
    n = counts(group, n_groups)
    total = np.bincount(group, weights=x, minlength=n_groups)
    return np.divide(total, n, out=np.full(n_groups, np.nan), where=n > 0)


def flat(x: FloatArray, group: IntArray, n_groups: int) -> BoolArray:
    """Whether each group's range is <= 1e-9 + 1e-6 max|x|: equal up to float residue (or empty). bool[n_groups]."""
    from graft_core.credit._kernels import no_spread

    still: BoolArray = no_spread(x, group, n_groups, RANGE_ABSOLUTE, RANGE_RELATIVE)
    return still


def deviations(x: FloatArray, group: IntArray, n_groups: int, ddof: int) -> FloatArray:
    """Standard deviation of each group; NaN where there are not more than ddof members. Two passes, for accuracy."""
    free = counts(group, n_groups) - ddof
    centred = x - means(x, group, n_groups)[group]
    squares = np.bincount(group, weights=centred * centred, minlength=n_groups)
    variance: FloatArray = np.divide(squares, free, out=np.full(n_groups, np.nan), where=free > 0)
    return np.sqrt(variance)


def centre(x: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
    """x minus its group's mean; 0 in groups without spread."""
    centred = x - means(x, group, n_groups)[group]
    return np.where(flat(x, group, n_groups)[group], 0.0, centred)


def standardise(x: FloatArray, group: IntArray, n_groups: int, eps: float, ddof: int) -> FloatArray:
    """(x - mean) / (std + eps) in each group; 0 in groups without spread (a group of one included)."""
    from graft_core.credit._kernels import standard

    still = flat(x, group, n_groups)
    scaled: FloatArray = standard(x, group, n_groups, eps, ddof, still)
    return scaled


def normalise_nodes(x: FloatArray, node: IntArray, n_nodes: int, mode: str, eps: float, ddof: int) -> FloatArray:
    """GRAFT Eq. 11: per node over the step instances that leave it (method.md sec. 4, "Normalisation").

    A single instance keeps A under `none` and `mean`; under `mean_std` it is A/(|A| + eps), 0 where |A| <= 1e-9.
    """
    if mode == "none":
        return x
    single = np.flatnonzero((counts(node, n_nodes) == 1)[node])
    alone = x[single]
    if mode == "mean":
        scaled = centre(x, node, n_nodes)
    else:
        scaled = standardise(x, node, n_nodes, eps, ddof)
        size = np.abs(alone)
        alone = np.where(size <= SIGN_TOLERANCE, 0.0, np.divide(alone, size + eps, where=size > 0, out=np.zeros_like(alone)))
    scaled[single] = alone
    return scaled
