"""Readers of rollout files: detection by content, one reader per format, and writing of the canonical step file."""

from __future__ import annotations

from graft_core.formats.codes import WARNINGS
from graft_core.formats.load import load
from graft_core.formats.registry import Format, formats
from graft_core.formats.write import write_jsonl, write_parquet

__all__ = ["WARNINGS", "Format", "formats", "load", "write_jsonl", "write_parquet"]
