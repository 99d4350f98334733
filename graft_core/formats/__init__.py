"""Readers of rollout files: detection by content, one reader per format, and writing of the canonical step file."""

from __future__ import annotations

import sys
from types import ModuleType

from graft_core.formats.codes import WARNINGS
from graft_core.formats.load import load
from graft_core.formats.registry import Format, formats
from graft_core.formats.write import write_jsonl, write_parquet


class _Package(ModuleType):
    """`graft_core.formats` is this package and also the public function `formats()`: calling the package calls it."""

    def __call__(self) -> dict[str, Format]:
        return formats()


sys.modules[__name__].__class__ = _Package

__all__ = ["WARNINGS", "Format", "formats", "load", "write_jsonl", "write_parquet"]
