"""What can be read off a batch: measures, findings, explanations (method.md sec. 7)."""

from graft_core.insight.findings import Findings
from graft_core.insight.measures import describe, rule_table
from graft_core.insight.merges import largest_merges, low_information_merges
from graft_core.insight.report import findings
from graft_core.insight.strictness import strictness

__all__ = ["Findings", "describe", "findings", "largest_merges", "low_information_merges", "rule_table", "strictness"]
