"""Findings: the steps of failed rollouts that deserve positive credit, and where failed rollouts were lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from graft_core.constants import SIGN_TOLERANCE
from graft_core.credit.estimate import graph_of
from graft_core.graph import TrajectoryGraph
from graft_core.insight.measures import counts
from graft_core.options import GAMMA
from graft_core.rollouts import BoolArray, FloatArray, IntArray, RolloutBatch
from graft_core.settings import LOOK, Settings
from graft_core.values import Values, solve_values
from graft_core.values.system import reward_sums_that_differ

if TYPE_CHECKING:
    import pandas as pd

    from graft_core.insight.certainty import Certainty
    from graft_core.insight.chance import Chance

COLUMNS = [
    "row", "group_id", "rollout_id", "step", "action", "observation", "value_before", "value_after", "credit",
    "credit_shown", "baseline", "seen_by", "of", "node", "edge", "one_witness",
]
"""Columns of a table without rows."""

LAMBDAS = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True, eq=False)
class Findings:
    """What was found under some settings. Step arrays are in path order.

    credit (A, un-normalised) and baseline (B) per step; good: positions of the good steps in failures, best first;
    lost: position of each failed rollout's largest drop, worst first.
    """

    batch: RolloutBatch
    settings: Settings
    graph: TrajectoryGraph
    values: Values
    credit: FloatArray
    baseline: FloatArray
    shown: FloatArray
    good: IntArray
    lost: IntArray
    summary: dict[str, Any] = field(default_factory=dict)
    chance: Chance | None = None
    certainty: Certainty | None = None

    def rows(self, positions: IntArray) -> list[dict[str, Any]]:
        """One plain dictionary per step position: who, what, chance before and after, credits, support."""
        batch, graph, v = self.batch, self.graph, self.values.v
        known_in_group = np.bincount(batch.group[batch.known], minlength=batch.n_groups)
        support = graph.node_rollouts_known
        rows = []
        for p in positions.tolist():
            row = int(batch.step_rollout[p])
            group = int(batch.group[row])
            rows.append(
                {
                    "row": int(batch.order[p]),
                    "group_id": batch.group_ids[group],
                    "rollout_id": batch.rollout_ids[row],
                    "step": int(batch.step_index[p]),
                    "action": batch.text(int(batch.action[p])),
                    "observation": batch.text(int(batch.observation[p])),
                    "value_before": float(v[graph.src[p]]),
                    "value_after": float(v[graph.dst[p]]),
                    "credit": float(self.credit[p]),
                    "credit_shown": float(self.shown[p]),
                    "baseline": float(self.baseline[p]),
                    "seen_by": int(support[graph.src[p]]),
                    "of": int(known_in_group[group]),
                    "node": int(graph.src[p]),
                    "edge": int(graph.edge[p]),
                    **self._trust(p, int(support[graph.src[p]]), group),
                }
            )
        return rows

    def _trust(self, p: int, support: int, group: int) -> dict[str, Any]:
        """What chance and certainty say about one step, as far as they were computed."""
        said: dict[str, Any] = {"one_witness": support <= 1}
        if self.chance is not None:
            said |= {"p": float(self.chance.p[p]), "q": float(self.chance.q[p]), "beyond_luck": bool(self.chance.beyond[p])}
            too_small = bool(self.chance.too_small[group])
            word = "yes" if said["beyond_luck"] else "task too small" if too_small else "no"
            said["trust"] = "one witness" if support <= 1 and not said["beyond_luck"] else word
        if self.certainty is not None:
            edge = int(self.graph.edge[p])
            said |= {
                "low": float(self.certainty.low[edge]), "high": float(self.certainty.high[edge]),
                "certainty": self.certainty.word(edge),
            }
        return said

    def merged_rows(self, positions: IntArray, limit: int | None = None) -> list[dict[str, Any]]:
        """The same, with equal moment and action as one row: `count` and `steps` say which steps it stands for.

        At most `limit` rows, in the order of their first step.
        """
        edges = self.graph.edge[positions]
        by_edge = np.argsort(edges, kind="stable")
        blocks = np.split(by_edge, np.flatnonzero(np.diff(edges[by_edge])) + 1) if edges.size else []
        blocks = sorted(blocks, key=lambda block: int(block[0]))[:limit]
        rows = self.rows(positions[[int(block[0]) for block in blocks]])
        rollout, step = self.batch.step_rollout, self.batch.step_index
        for row, block in zip(rows, blocks, strict=True):
            row["count"] = int(block.size)
            row["steps"] = [(self.batch.rollout_ids[int(rollout[p])], int(step[p])) for p in positions[block].tolist()]
        return rows

    def table(self) -> pd.DataFrame:
        """The good steps as a data frame, best first."""
        import pandas as pd

        return pd.DataFrame(self.rows(self.good), columns=None if self.good.size else COLUMNS)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON: `good_steps` (a count), `findings`, `lost`, and the summary."""
        return {
            **self.summary,
            **({"chance": self.chance.as_dict()} if self.chance is not None else {}),
            "settings": self.settings.to_words(),
            "estimator": self.settings.estimator,
            "baseline": self.settings.baseline,
            "findings": self.rows(self.good),
            "lost": self.rows(self.lost),
        }


def unnormalised(settings: Settings) -> Settings:
    """The same settings with credit A not normalised: what decides a sign (method.md sec. 4)."""
    from graft_core.credit import estimators

    if estimators()[settings.estimator].option("normalise") is None:
        return settings
    return settings.with_options(normalise="none")


def failed_steps(batch: RolloutBatch) -> BoolArray:
    """Whether each step belongs to a failed rollout. bool[n_steps], path order."""
    failed: BoolArray = (batch.success == 0) & batch.known
    return failed[batch.step_rollout]


def good_positions(batch: RolloutBatch, credit: FloatArray) -> IntArray:
    """Positions of failed rollouts' steps with credit > 1e-9, best first (ties in path order)."""
    with np.errstate(invalid="ignore"):
        good = np.flatnonzero(failed_steps(batch) & (credit > SIGN_TOLERANCE))
    return good[np.argsort(-credit[good], kind="stable")]


def lost_positions(batch: RolloutBatch, credit: FloatArray) -> IntArray:
    """For each failed rollout the step with its most negative credit, if any is below -1e-9; worst first."""
    some = np.flatnonzero(failed_steps(batch) & (credit < -SIGN_TOLERANCE))
    if not some.size:
        return some
    by_drop = some[np.lexsort((some, credit[some], batch.step_rollout[some]))]
    first = np.concatenate([[True], np.diff(batch.step_rollout[by_drop]) > 0])
    worst = by_drop[first]
    return worst[np.argsort(credit[worst], kind="stable")]


def lambda_counts(batch: RolloutBatch, settings: Settings = LOOK) -> list[dict[str, Any]]:
    """How many good steps `path` credit would list at each lambda, and how many steps change sign against lambda 0."""
    from graft_core.credit import estimate

    base = {"gamma": dict(settings.given).get("gamma"), **settings.graph_words, **settings.value_words}
    first: FloatArray | None = None
    counted = []
    for lam in LAMBDAS:
        credit = estimate(batch, "path_gae", lam=lam, **base)[batch.order]
        sign = np.sign(np.where(np.abs(credit) <= SIGN_TOLERANCE, 0.0, credit))
        first = sign if first is None else first
        with np.errstate(invalid="ignore"):
            changed = int(((sign != first) & ~np.isnan(sign)).sum())
        counted.append({"lam": lam, "good_steps": int(good_positions(batch, credit).size), "sign_changes": changed})
    return counted


def findings(batch: RolloutBatch, settings: Settings = LOOK, **options: Any) -> Findings:
    """Good steps in failures and largest drops under the given settings (default: the *Look* preset).

    options: fields of `Settings` or estimator options to change, by name. A step of a failed rollout is good when its
    un-normalised credit is > 1e-9. Raises `GroupMissingError` where groups were only assumed.
    """
    settings = settings.with_options(**options) if options else settings
    graph = graph_of(batch, **settings.graph_words)
    plain = unnormalised(settings)
    resolved = plain.resolved(plain.estimator)
    values = solve_values(graph, gamma=resolved.get("gamma") or GAMMA.default, **settings.value_words)
    credit = plain.credit(batch, plain.estimator)[batch.order]
    shown = settings.credit(batch, settings.estimator)[batch.order] if plain is not settings else credit
    baseline = settings.credit(batch, settings.baseline)[batch.order]
    good = good_positions(batch, credit)
    failed = failed_steps(batch)
    summary = {
        **counts(batch),
        "good_steps": int(good.size),
        "failed_steps": int(failed.sum()),
        "good_steps_3_rollouts": int((graph.node_rollouts_known[graph.src[good]] >= 3).sum()),
    }
    if settings.rewards == "dense":
        summary["reward_sums_differ"] = reward_sums_that_differ(batch)
    return Findings(
        batch, settings, graph, values, credit, baseline, shown, good, lost_positions(batch, credit), summary
    )
