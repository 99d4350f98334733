"""What can be read off a batch: measures, findings, explanations (method.md sec. 7)."""

from graft_core.insight.findings import Findings
from graft_core.insight.measures import describe
from graft_core.insight.report import findings

__all__ = ["Findings", "describe", "findings"]
