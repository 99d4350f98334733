"""How strict is the key? What the last 0..k observations or actions do to merging, findings and chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from graft_core.credit.estimate import graph_of
from graft_core.insight.measures import good_and_chance, graph_measures
from graft_core.rollouts import RolloutBatch
from graft_core.settings import LOOK, Settings
from graft_core.states import join_rules

RULE_OF = {"observations": "history", "actions": "actions"}


def stricter(rules: Sequence[str], of: Literal["observations", "actions"], k: int) -> tuple[str, ...]:
    """The rules with the last k observations or actions added; one that adds them already is replaced, k = 0 takes it away."""
    kept = [spec for spec in rules if spec.partition(":")[0] not in (*RULE_OF.values(), "exact")]
    made = kept + ([f"{RULE_OF[of]}:{k}"] if k else [])
    return tuple(made) or ("exact",)


def strictness(
    batch: RolloutBatch,
    settings: Settings = LOOK,
    of: Literal["observations", "actions"] = "observations",
    up_to: int = 4,
    with_chance: bool = False,
) -> list[dict[str, Any]]:
    """One row for each k from 0 to `up_to`: k, rules (their word), the measures of `graph_measures`, good_steps.

    with_chance adds `chance` (mean, low, high, beyond_luck), one run of 200 shuffles per row. Raises `GroupMissingError` where
    groups were only assumed.
    """
    rows = []
    for k in range(up_to + 1):
        here = settings.with_options(rules=stricter(settings.rules, of, k))
        row = {"k": k, "rules": join_rules(here.rules)}
        row |= graph_measures(graph_of(batch, **here.graph_words))
        rows.append(row | good_and_chance(batch, here, with_chance))
    return rows
