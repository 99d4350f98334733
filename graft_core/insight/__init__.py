"""What can be read off a batch: measures, findings, explanations (method.md sec. 7)."""

from graft_core.insight.findings import Findings, findings
from graft_core.insight.measures import describe

__all__ = ["Findings", "describe", "findings"]
