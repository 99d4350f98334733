"""Task ids that stand in file names."""

from __future__ import annotations

import re
from typing import Final

from graft_core.formats.rows import Rows
from graft_core.formats.source import Source

BENCHMARK_ID: Final = re.compile(r"(?:^|__)((?:(?!__).)+__(?:(?!__)[\w.-])+-\d+)$")
ENDINGS: Final = (".gz", ".zst", ".json", ".traj", ".trajectory")


def task_of_name(source: Source, rows: Rows) -> str:
    """The task that the name of a file names: owner__repository-number at its end, else the whole name; told."""
    stem = source.path.name
    while stem.endswith(ENDINGS):
        stem = stem.rpartition(".")[0]
    found = BENCHMARK_ID.search(stem)
    task = found[1] if found else stem
    rows.warn("group_from_name", "the task was taken from the file's name", source.name)
    return task or source.label
