"""How sure a graph-TD credit is: an interval whose coverage was checked against true advantages (method.md sec. 7).

A credit is +gamma V(next) - V(here), and both values are means over what few rollouts did. The interval is the delta
method's: every action drawn at a node and every result drawn at a (state, action) is a source of noise, its variance
shrunk towards the group's own, and what reaches the credit is added up on the graph. No resampling: a plain
bootstrap calls what was seen once certain.

What it does not know: states that a careless state rule merges. It measures sampling noise, not aliasing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from graft_core.constants import SIGN_TOLERANCE
from graft_core.errors import NotComputableError, UsageError
from graft_core.graph import TrajectoryGraph
from graft_core.insight import _certainty_spread as spread
from graft_core.options import PER
from graft_core.rollouts import BoolArray, FloatArray, IntArray
from graft_core.settings import Settings
from graft_core.values import Values

Per = Literal["transition", "action"]

LEVEL: Final = 0.90
"""The level whose coverage was measured; others use the same formula and were not checked."""

DEGREES: Final = 3
"""Degrees of freedom of the t quantile beyond the number of rollouts seen at the node."""

SUPPORT_BINS: Final = ((1, 1), (2, 3), (4, 7), (8, None))
"""Ranges of support in which coverage was measured: distinct rollouts that left the node."""

ROUGH: Final[tuple[tuple[int, int | None], ...]] = ((1, 1),)
"""Ranges of support in which some 90 % intervals did not cover 80 to 98 % (benchmarks/interval_coverage.py).

One witness: 77 % on frozen lake 4x4 with 64 rollouts, 99 % per transition on the slippery one; never a sign there anyway.
"""

GOOD, BAD, UNSURE, ONCE, ONE_WITNESS, ROUGH_WORD, UNKNOWN_SPREAD, ALL_ALIKE, NO_OUTCOME = range(9)
WORDS: Final = (
    "likely good",
    "likely bad",
    "not sure",
    "action seen once",
    "one witness",
    "rough",
    "spread unknown",
    "all ended alike",
    "outcome unknown",
)
"""What is said of a credit, in plain words, by its code."""

MEANINGS: Final = (
    "the whole interval lies above zero",
    "the whole interval lies below zero",
    "the interval holds zero: the rollouts at hand do not tell",
    "the interval holds zero, and this action was tried once in this state",
    "a single rollout passed through this state, so nothing it did there can be compared; the interval is rough: the spread "
    "between actions elsewhere in the group",
    "with this many rollouts the interval missed its target when it was checked against known truth: read it as a hint",
    "no state of this group was left by two rollouts, so how much actions differ was never seen",
    "all rollouts of this group ended alike: there is no difference to explain",
    "only rollouts of unknown outcome took this step",
)
"""One sentence per word, for a tooltip."""


@dataclass(frozen=True, eq=False)
class Certainty:
    """Intervals of graph-TD credit, one entry per distinct edge (u, a, v) of the graph (E of them).

    credit, low, high: float64[E], in units of the outcome, NaN where undefined; low <= credit <= high. support:
    int64[E], distinct rollouts of known outcome that left u. tries: int64[E], known instances of (u, a). one_witness:
    support is 1. sign: int8[E], +1 or -1 where the interval excludes 0 by more than 1e-9, else 0; never set for one
    witness. unknown_spread: bool[E], no node of the group was left by two rollouts, so there is no number. rough:
    bool[E]. code: int8[E], index into `WORDS`.
    """

    graph: TrajectoryGraph
    per: str
    level: float
    credit: FloatArray
    low: FloatArray
    high: FloatArray
    support: IntArray
    tries: IntArray
    one_witness: BoolArray
    sign: npt.NDArray[np.int8]
    unknown_spread: BoolArray
    rough: BoolArray
    code: npt.NDArray[np.int8]

    def word(self, edge: int) -> str:
        """What to say of one edge, from `WORDS`."""
        return WORDS[int(self.code[edge])]

    @property
    def words(self) -> list[str]:
        """One word per edge."""
        return [WORDS[code] for code in self.code.tolist()]

    def at_steps(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """One value per edge put on the steps, path order; floats are NaN where the step's outcome is unknown."""
        steps = values[self.graph.edge]
        if steps.dtype.kind == "f":
            steps[~self.graph.known] = np.nan
        elif values is self.sign:
            steps[~self.graph.known] = 0
        elif values is self.code:
            steps[~self.graph.known] = NO_OUTCOME
        return steps

    def row(self, edge: int) -> dict[str, Any]:
        """One edge as plain data: credit, low, high, support, tries, sign, word, meaning. Undefined numbers are None."""
        low, high = float(self.low[edge]), float(self.high[edge])
        known = not np.isnan(low)
        return {
            "credit": float(self.credit[edge]) if not np.isnan(self.credit[edge]) else None,
            "low": low if known else None,
            "high": high if known else None,
            "level": self.level,
            "per": self.per,
            "seen_by": int(self.support[edge]),
            "tries": int(self.tries[edge]),
            "sign": int(self.sign[edge]),
            "word": self.word(edge),
            "meaning": MEANINGS[int(self.code[edge])],
        }

    def summary(self) -> dict[str, int]:
        """How many edges get each word."""
        counts = np.bincount(self.code, minlength=len(WORDS))
        return {word: int(n) for word, n in zip(WORDS, counts, strict=True)}


def no_interval(settings: Settings) -> str:
    """Why credit A of these settings has no checked interval, in one sentence; empty where it has one.

    It has one for `graft_td` (and `path_gae` or `graft` with lambda 0, which are the same) without normalisation or
    clipping, with weighting `visits`, rewards `outcome`, no shrinkage, sinks `split` or `merge`.
    """
    options = settings.resolved(settings.estimator)
    if settings.estimator not in ("graft_td", "path_gae", "graft") or options.get("normalise", "none") != "none":
        what = settings.estimator + (", normalised," if options.get("normalise", "none") != "none" else "")
        return f"no checked interval exists for {what}: only graph TD's own credit was checked against known truth"
    if options.get("lam", 0.0) > 0.0:
        return (
            f"no checked interval exists for {settings.estimator} with lambda {options['lam']:g}: it adds what this one "
            "rollout earned, whose noise was not studied; lambda 0 has one"
        )
    if options.get("clip") is not None:
        return "no checked interval exists for clipped credit"
    return _no_interval(settings.weighting, settings.rewards, settings.prior, settings.sinks)


def _no_interval(weighting: str, rewards: str, prior: float, sinks: str) -> str:
    asked = (
        (weighting != "visits", f"weighting {weighting!r}", "'visits'"),
        (rewards != "outcome", f"rewards {rewards!r}", "'outcome'"),
        (prior != 0.0, f"shrinkage {prior:g}", "0"),
        (sinks not in ("split", "merge"), f"sinks {sinks!r}", "'split' or 'merge'"),
    )
    for wrong, what, instead in asked:
        if wrong:
            return f"no checked interval exists for {what}: it was checked against known truth for {instead} only"
    return ""


def certainty(graph: TrajectoryGraph, values: Values, per: Per = "transition", level: float = LEVEL) -> Certainty:
    """An interval around the graph-TD credit of every distinct edge, at `level` (0.5 to 0.999; checked at 0.90).

    per `transition`: gamma V(v) - V(u), whose honest target is the true TD residual; per `action`: Q(u, a) - V(u), whose
    target is the true advantage, the number to ask "was this a good action" where results are random. With W the
    counted transitions, var(w) the variance of what is drawn at w (_certainty_spread.py) and
    d = (gamma e_v - e_u) (I - gamma W)^-1:

        half = t((1 + level) / 2, support + 3) * sqrt( sum_w d_w^2 var(w) )

    Intervals never leave what is possible, +-(largest - smallest value). Raises `NotComputableError` for values whose
    interval was never checked (weighting other than visits, dense rewards, shrinkage, sinks `bootstrap`), `UsageError`
    for options out of range. Coverage by support: docs/log.md; measured by benchmarks/interval_coverage.py.
    """
    PER.check(per)
    if not 0.5 <= level <= 0.999:
        raise UsageError(f"level: {level!r} is not allowed, expected a number from 0.5 to 0.999")
    reason = _no_interval(values.weighting, values.rewards, values.prior, graph.sinks)
    if reason:
        raise NotComputableError(reason)
    key = ("certainty", values.gamma, per, level)
    if key not in graph.memo:
        graph.memo[key] = _certainty(graph, values, per, level)
    found: Certainty = graph.memo[key]
    return found


def _certainty(graph: TrajectoryGraph, values: Values, per: str, level: float) -> Certainty:
    noise = spread.noise_of(graph, values)
    group = graph.node_group[graph.edge_src]
    used = graph.count_known > 0
    numbered = used & ~noise.equal[group] & ~noise.unshared[group]
    support = graph.node_rollouts_known[graph.edge_src]
    measured = _per_action if per == "action" else _per_edge
    credit, variance = measured(graph, values, noise, numbered)
    half = quantiles(support, level) * np.sqrt(variance)
    bound = noise.range[group]
    low = np.minimum(np.maximum(credit - half, -bound), credit)
    high = np.maximum(np.minimum(credit + half, bound), credit)
    one = used & (support == 1)
    rough = numbered & _in_ranges(support, ROUGH)
    with np.errstate(invalid="ignore"):
        sign = (low > SIGN_TOLERANCE).astype(np.int8) - (high < -SIGN_TOLERANCE).astype(np.int8)
    sign = np.where(one | rough, 0, sign).astype(np.int8)
    tries = graph.pair_count_known[graph.edge_pair]
    unknown = used & ~noise.equal[group] & noise.unshared[group]
    code = np.select(
        [~used, noise.equal[group], unknown, one, rough, sign > 0, sign < 0, tries == 1],
        [NO_OUTCOME, ALL_ALIKE, UNKNOWN_SPREAD, ONE_WITNESS, ROUGH_WORD, GOOD, BAD, ONCE],
        UNSURE,
    ).astype(np.int8)
    return Certainty(graph, per, level, credit, low, high, support, tries, one, sign, unknown, rough, code)


def quantiles(support: IntArray, level: float = LEVEL) -> FloatArray:
    """Student's t quantile of a two-sided interval, with `DEGREES` more degrees of freedom than rollouts seen."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(support + float(DEGREES), (1.0 + level) / 2.0), dtype=np.float64)


def _per_edge(
    graph: TrajectoryGraph, values: Values, noise: spread.Noise, numbered: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """(credit, variance) of each edge, float64[E]; credit NaN where no known rollout took it, variance also elsewhere."""
    used = graph.count_known > 0
    credit = np.where(used, values.gamma * values.v[graph.edge_dst] - values.v[graph.edge_src], np.nan)
    edges = np.flatnonzero(numbered)
    variance = np.full(graph.n_edges, np.nan)
    variance[edges] = spread.gathered(
        graph, values.gamma, noise.node, spread.edge_queries(graph, values.gamma, edges)
    )[0]
    return credit, variance


def _per_action(
    graph: TrajectoryGraph, values: Values, noise: spread.Noise, numbered: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """The same per (u, a), put on its edges; results drawn at (u, a) count on both sides of Q(u, a) - V(u)."""
    credit = spread.pair_values(graph, values) - values.v[graph.pair_node]
    wanted = np.zeros(graph.n_pairs, dtype=bool)
    wanted[graph.edge_pair[numbered]] = True
    pairs = np.flatnonzero(wanted)
    total, own = spread.gathered(
        graph, values.gamma, noise.node, spread.pair_queries(graph, values.gamma, pairs)
    )
    part = graph.pair_count_known[pairs] / graph.visits_known[graph.pair_node[pairs]]
    variance = np.full(graph.n_pairs, np.nan)
    variance[pairs] = np.maximum(total + noise.pair[pairs] * (1.0 + 2.0 * own * part), 0.0)
    used = graph.count_known > 0
    return np.where(used, credit[graph.edge_pair], np.nan), np.where(numbered, variance[graph.edge_pair], np.nan)


def _in_ranges(support: IntArray, ranges: tuple[tuple[int, int | None], ...]) -> BoolArray:
    inside = np.zeros(support.size, dtype=bool)
    for low, high in ranges:
        inside |= (support >= low) & (support <= (high if high is not None else support.max(initial=low)))
    return inside
