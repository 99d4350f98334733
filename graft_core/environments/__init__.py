"""Environments: text games to sample from, with exact dynamics where they can be had. Needs numpy only."""

from __future__ import annotations

import sys
from typing import Any

from graft_core.environments.base import Environment, EnvironmentInfo, Outcome, World, WorldEnvironment
from graft_core.registry import members, pick

__all__ = [
    "Environment",
    "EnvironmentInfo",
    "Outcome",
    "World",
    "WorldEnvironment",
    "environments",
    "make_world",
]


def environments() -> dict[str, EnvironmentInfo]:
    """Every environment by name: one per module of this package that defines `ENVIRONMENT`."""
    return members(sys.modules[__name__], "ENVIRONMENT")


def make_world(name: str, **options: Any) -> World[Any]:
    """The exact dynamics of a named environment; raises UsageError for an unknown name or option."""
    info: EnvironmentInfo = pick(environments(), name, "environment")
    for option in options:
        pick(info.options, option, f"option of {name}")
    return info.make(**options)
