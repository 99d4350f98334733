"""`findings`: good steps and largest drops together with chance and certainty, as far as these can be had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from graft_core.errors import NotComputableError
from graft_core.insight.certainty import certainty, no_interval
from graft_core.insight.chance import chance
from graft_core.insight.findings import Findings, unnormalised
from graft_core.insight.findings import findings as look
from graft_core.rollouts import RolloutBatch
from graft_core.settings import LOOK, Settings


def findings(
    batch: RolloutBatch,
    settings: Settings = LOOK,
    shuffles: int = 200,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Findings:
    """Good steps of failed rollouts and where failures were lost, with chance and certainty.

    options: fields of `Settings` or estimator options by name. shuffles: how often outcomes are dealt at random (0: no
    chance). Where chance or certainty cannot be had under these settings, `summary` says why. Raises
    `GroupMissingError` where groups were only assumed.
    """
    found = with_certainty(look(batch, settings, **options))
    return with_chance(found, shuffles, seed, progress) if shuffles else found


def with_certainty(found: Findings) -> Findings:
    """The findings with intervals of credit A, where a checked interval exists."""
    plain = unnormalised(found.settings)
    reason = no_interval(plain)
    if reason:
        return replace(found, summary={**found.summary, "certainty_missing": reason})
    try:
        sure = certainty(found.graph, found.values, per=plain.resolved(plain.estimator).get("per", "transition"))
    except NotComputableError as error:
        return replace(found, summary={**found.summary, "certainty_missing": str(error)})
    return replace(found, certainty=sure)


def with_chance(
    found: Findings, shuffles: int = 200, seed: int = 0, progress: Callable[[int, int], None] | None = None
) -> Findings:
    """The findings with what would be found if outcomes were dealt at random."""
    try:
        luck = chance(found.batch, found.settings, shuffles=shuffles, seed=seed, progress=progress)
    except NotComputableError as error:
        return replace(found, summary={**found.summary, "chance_missing": str(error)})
    return replace(found, chance=luck)
