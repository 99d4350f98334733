"""What can be taken away: pictures, pages, tables, a report, commands and training weights, all self-contained."""

from __future__ import annotations

from graft_core.takeaway.html import show

__all__ = ["show"]
