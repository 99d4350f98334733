"""Writing a batch as a canonical step file: JSONL or Parquet, without loss, so that reading gives an equal batch."""

from __future__ import annotations

import os
from typing import Any


def write_jsonl(batch: Any, path: str | os.PathLike[str]) -> None: ...
def write_parquet(batch: Any, path: str | os.PathLike[str]) -> None: ...
