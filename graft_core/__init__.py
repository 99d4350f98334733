"""graft_core: trajectory graphs, node values and step credit for group-based RL of LLM agents.

Everything here is loaded on first use, so that `import graft_core` stays quick.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "load": "graft_core.formats",
    "formats": "graft_core.formats",
    "build_graph": "graft_core.graph",
    "solve_values": "graft_core.values",
    "estimate": "graft_core.credit",
    "estimators": "graft_core.credit",
    "estimator": "graft_core.credit",
    "rules": "graft_core.states",
    "environments": "graft_core.environments",
    "step_advantages": "graft_core.trainers",
    "describe": "graft_core.insight",
    "findings": "graft_core.insight",
    "record": "graft_core.runs",
    "show": "graft_core.takeaway.html",
    "Settings": "graft_core.settings",
    "RolloutBatch": "graft_core.rollouts",
    "LoadReport": "graft_core.rollouts",
    "TrajectoryGraph": "graft_core.graph",
    "Values": "graft_core.values",
    "GraftError": "graft_core.errors",
    "InputError": "graft_core.errors",
    "UsageError": "graft_core.errors",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'graft_core' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
