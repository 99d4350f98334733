"""Small batches of rollouts that the project generated itself, with the scripts that made them."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def paths() -> list[Path]:
    """The sample files in the order the app lists them.

    Returns:
        Every `*.jsonl` beside this module, sorted by name; what `graft app` opens when no path is given.
    """
    return sorted(FOLDER.glob("*.jsonl"))
