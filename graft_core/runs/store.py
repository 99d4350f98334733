"""Where a run lies: `run.json` (name, settings, version) and `steps/NNNNNN.jsonl`, one file per training step.

The step files are canonical step files whose first line also names the run; they only ever grow.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from graft_core.errors import InputError
from graft_core.formats.jsonio import BadJson, dumps, loads, word
from graft_core.formats.run_directory import RUN_FILE, RUN_KEY, RUN_VERSION
from graft_core.formats.write import replacing

AnyPath = str | os.PathLike[str]
STEPS: Final = "steps"
BEFORE_TRAINING: Final = 0
"""The file number of rollouts that were recorded before any training step was named."""


@dataclass(frozen=True)
class RunInfo:
    """What `run.json` says; `path` is the run directory."""

    path: Path
    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    version: str = ""
    started: str = ""


def step_file(run: Path, number: int) -> Path:
    """The file of one training step, whether it exists or not."""
    return run / STEPS / f"{number:06d}.jsonl"


def step_files(run: AnyPath) -> list[Path]:
    """The step files of a run that exist, in the order of the training steps."""
    return sorted((Path(run) / STEPS).glob("*.jsonl"), key=lambda path: (len(path.stem), path.stem))


def write_run(info: RunInfo) -> None:
    """Write `run.json`; it appears only when it is complete. Raises `InputError` where that is impossible."""
    content = {
        RUN_KEY: RUN_VERSION,
        "name": info.name,
        "version": info.version,
        "started": info.started,
        "settings": info.settings,
    }
    with replacing(info.path / RUN_FILE) as stream:
        stream.write(dumps(content).encode("utf-8", "backslashreplace") + b"\n")


def read_run(run: AnyPath) -> RunInfo:
    """What a run directory says about itself. Raises `InputError` where it has no usable `run.json`."""
    path = Path(run)
    file = path / RUN_FILE
    try:
        value, _ = loads(file.read_bytes())
    except (OSError, BadJson) as error:
        raise InputError(f"{file}: cannot be read ({error}); expected the {RUN_FILE} of a run directory") from error
    if not isinstance(value, dict) or value.get(RUN_KEY) != RUN_VERSION:
        raise InputError(f"{file}: expected a JSON object with {RUN_KEY} {RUN_VERSION}")
    settings = value.get("settings")
    return RunInfo(
        path,
        word(value.get("name") or path.name),
        settings if isinstance(settings, dict) else {},
        word(value.get("version") or ""),
        word(value.get("started") or ""),
    )


def runs_in(folder: AnyPath) -> list[RunInfo]:
    """The runs that lie directly in a folder, sorted by path; folders without a usable `run.json` are passed over."""
    found = []
    for file in sorted(Path(folder).glob(f"*/{RUN_FILE}")):
        try:
            found.append(read_run(file.parent))
        except InputError:
            continue
    return found
