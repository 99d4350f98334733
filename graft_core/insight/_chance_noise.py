"""Standard error of a graph-TD credit under every deal of the outcomes: the delta method with pooled variances.

A credit is linear in one-step errors at the nodes: g = gamma M[v, :] - M[u, :], M = (I - gamma W)^-1, its variance is
sum_w g_w^2 var(w). Dealing outcomes anew asks whether they matter at all, not how well a node's *actions* were sampled. Where
one late choice decides, every early step that happened to lead to it more often than its rivals would look far beyond
luck (measured: nine in ten marked steps were worthless). Dividing by this error is what prevents that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from graft_core.graph import TrajectoryGraph
from graft_core.insight import _chance_kernels as kernels
from graft_core.rollouts import FloatArray, IntArray

if TYPE_CHECKING:
    from graft_core.insight._chance_td import Part

PSEUDO_VISITS = 4.0  # weight of the group's variance in every node's own
LEAST = 1e-6  # least pooled variance of a backup, in squared ranges of the group's outcomes
EXACT_NODES = 1500  # groups of more nodes get the variance of their credits from random signs
SIGNS = 32


@dataclass(frozen=True, eq=False)
class Classes:
    """Where the steps of each class stand and go (numbers of a part's nodes, -1 = an end), and how many they are."""

    src: IntArray
    dst: IntArray
    size: IntArray


def in_errors(credit: FloatArray, noise: FloatArray) -> FloatArray:
    """Credit in standard errors; 0 where the error is 0 (then nothing was to be learnt)."""
    return np.divide(credit, noise, out=np.zeros_like(credit), where=noise > 0)


def squared_range(graph: TrajectoryGraph, part: Part) -> FloatArray:
    """(max - min)^2 of the known outcomes of each group of the part."""
    batch = graph.batch
    low, high = np.full(batch.n_groups, np.inf), np.full(batch.n_groups, -np.inf)
    np.minimum.at(low, batch.group[batch.known], batch.outcome[batch.known])
    np.maximum.at(high, batch.group[batch.known], batch.outcome[batch.known])
    groups = graph.node_group[part.node[part.bounds[:-1]]]
    span: FloatArray = high[groups] - low[groups]
    return span**2


def _pooled(deviation: FloatArray, size: IntArray, at: IntArray, group_of: IntArray, least: FloatArray) -> FloatArray:
    """Variance of the mean over each place's steps: (SS + 4 s0) / (n + 3) / n, s0 pooled over the group. float64[places, S].

    deviation: float64[C, S] of each class from its place's mean; at: place of each class; group_of: group of each place.
    """
    n_places, n_groups = group_of.size, least.size
    squares = sparse.csr_array((size.astype(np.float64), (at, np.arange(size.size))), shape=(n_places, size.size))
    total = squares @ (deviation * deviation)
    n = np.bincount(at, weights=size, minlength=n_places)
    pool = sparse.csr_array((np.ones(n_places), (group_of, np.arange(n_places))), shape=(n_groups, n_places))
    free = np.maximum(pool @ (n - 1.0), 1.0)
    within = np.maximum((pool @ total) / free[:, None], least[:, None])
    variance: FloatArray = (total + PSEUDO_VISITS * within[group_of]) / ((n + PSEUDO_VISITS - 1.0) * n)[:, None]
    return variance


def _group_of_node(part: Part) -> IntArray:
    return np.repeat(np.arange(part.bounds.size - 1), np.diff(part.bounds))


def transition_noise(part: Part, classes: Classes, credit: FloatArray, least: FloatArray) -> FloatArray:
    """Standard error of the credit of each class. float64[C, S]."""
    alone = np.arange(classes.src.size)
    return np.sqrt(_variance(part, classes, credit, alone, least)[0])


def action_noise(
    part: Part, classes: Classes, credit: FloatArray, pair: IntArray, mean: FloatArray, least: FloatArray
) -> FloatArray:
    """The same for credits averaged over the classes of each (state, action); `mean` is that average. float64[P, S].

    The luck of the action's own results enters twice: in Q(u, a) itself, and in V(u) with the action's share. Where g at the
    source is not known (large groups) the second, which lowers the error, is left out.
    """
    variance, own = _variance(part, classes, credit, pair, least)
    source = np.empty(mean.shape[0], dtype=np.int64)
    source[pair] = classes.src
    n = np.bincount(pair, weights=classes.size)
    share = n / np.bincount(classes.src, weights=classes.size, minlength=part.node.size)[source]
    luck = _pooled(credit - mean[pair], classes.size, pair, _group_of_node(part)[source], np.zeros(least.size))
    return np.sqrt(np.maximum(variance + (1.0 + 2.0 * own * share)[:, None] * luck, 0.0))


def _variance(
    part: Part, classes: Classes, credit: FloatArray, target_of: IntArray, least: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(sum_w g_w^2 var(w) of each credit, g at its own source); target_of: which credit each class belongs to."""
    backup = _pooled(credit, classes.size, classes.src, _group_of_node(part), least)
    n = int(target_of.max(initial=-1)) + 1
    source = np.empty(n, dtype=np.int64)
    source[target_of] = classes.src
    rank = np.argsort(source, kind="stable")  # nodes are sorted by group, so the credits now are
    place = np.empty(n, dtype=np.int64)
    place[rank] = np.arange(n)
    inner = np.flatnonzero(classes.dst >= 0)
    inner = inner[np.argsort(place[target_of[inner]], kind="stable")]
    entries = np.searchsorted(place[target_of[inner]], np.arange(n + 1))
    weight = classes.size / np.bincount(target_of, weights=classes.size, minlength=n)[target_of]
    rows = np.searchsorted(source[rank], part.bounds)
    large = bool((np.diff(part.bounds) > EXACT_NODES).any())
    signs = np.random.default_rng(0).choice((-1.0, 1.0), (SIGNS, part.node.size)) if large else np.zeros((1, 0))
    out, own = np.zeros((n, credit.shape[1])), np.zeros(n)
    kernels.noise(
        part.bounds, part.parts, part.nodes, part.starts, part.indptr, part.edge_dst, part.weight, part.gamma, rows,
        source[rank], entries, classes.dst[inner], weight[inner], backup, EXACT_NODES, signs, out, own,
    )
    return out[place], own[place]
