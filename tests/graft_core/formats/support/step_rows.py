"""Canonical rows as plain dictionaries, for tests of the readers."""

from __future__ import annotations

from typing import Any

from graft_core.rollouts import LoadReport

Row = dict[str, Any]


def row(step: int | None, group: Any = "g", rollout: Any = "r", **more: Any) -> Row:
    """One canonical row: observation o<step> and action a<step>, or the declaration of a rollout for step None."""
    made: Row = {"group_id": group, "rollout_id": rollout, "step": step}
    if step is not None:
        made |= {"observation": f"o{step}", "action": f"a{step}"}
    return made | more


def codes(report: LoadReport) -> dict[str, int]:
    """How often each warning was given."""
    return {w.code: w.count for w in report.warnings}
