"""For trainers: credit from arrays, without files."""

from graft_core.trainers.step_advantages import step_advantages

__all__ = ["step_advantages"]
