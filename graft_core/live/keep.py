"""What a live run keeps beside its steps: settings, checkpoints, curves, its status, and what it is asked to do.

    RUN/live.json                       settings of the whole run
    RUN/status.json                     state, where it is, seconds left
    RUN/control                         one word: pause, resume or stop (`ask`)
    RUN/result.json                     the table, when something is finished
    RUN/<estimator>/seed-<n>/           a run directory (run.json, steps/NNNNNN.jsonl: one file per update), and
        curve.jsonl                     one line per update
        state.npz                       the policy after the last finished update

Every file but the step files and the curve appears whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import orjson

from graft_core.errors import InputError, UsageError
from graft_core.formats.write import replacing
from graft_core.live.policy import Arrays

STATE: Final = "state.npz"
CURVE: Final = "curve.jsonl"
LIVE: Final = "live.json"
STATUS: Final = "status.json"
RESULT: Final = "result.json"
CONTROL: Final = "control"
REQUESTS: Final = ("pause", "resume", "stop")
WORDS: Final = "words"


class Checkpoint(NamedTuple):
    """A policy's state after `update` updates."""

    update: int
    arrays: Arrays
    words: dict[str, Any]


def write_json(path: Path, content: Any) -> None:
    """Write one JSON document; it appears only when it is complete. NaN becomes null."""
    flags = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    with replacing(path) as stream:
        stream.write(orjson.dumps(content, option=flags) + b"\n")


def read_json(path: Path) -> Any:
    """What a JSON file holds, None where there is none. Raises InputError where it is damaged."""
    try:
        return orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, orjson.JSONDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); expected one JSON document") from error


def save_checkpoint(folder: Path, update: int, arrays: Mapping[str, Any], words: Mapping[str, Any]) -> None:
    """Keep the policy after `update` updates, in place of the one before."""
    content = np.frombuffer(orjson.dumps({"update": update, **words}), np.uint8)
    with replacing(folder / STATE) as stream:
        np.savez(stream, **{WORDS: content, **arrays})
        stream.flush()
        os.fsync(stream.fileno())


def load_checkpoint(folder: Path) -> Checkpoint | None:
    """The policy kept last, None where there is none. Raises InputError where the file is damaged."""
    path = folder / STATE
    if not path.is_file():
        return None
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as kept:
            words = orjson.loads(kept[WORDS].tobytes())
            arrays = {name: kept[name] for name in kept.files if name != WORDS}
        return Checkpoint(int(words["update"]), arrays, words)
    except Exception as error:  # numpy raises many kinds for a damaged archive
        raise InputError(f"{path}: is damaged ({error}); expected a state that a live run wrote") from error


def add_to_curve(folder: Path, row: Mapping[str, Any]) -> None:
    """Append one update's line."""
    try:
        with (folder / CURVE).open("ab") as stream:
            stream.write(orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE))
    except OSError as error:
        raise InputError(f"{folder / CURVE}: cannot be written ({error.strerror or error})") from error


def read_curve(folder: Path) -> list[dict[str, Any]]:
    """The lines of all updates in order; a last line that is not complete does not count."""
    try:
        lines = (folder / CURVE).read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    rows = []
    for line in lines:
        try:
            rows.append(orjson.loads(line))
        except orjson.JSONDecodeError:
            continue
    return rows


def cut_back(folder: Path, update: int) -> None:
    """Forget what belongs to later updates: their curve lines and step files. What remains is what `update` left."""
    from graft_core.runs.store import step_files

    rows = [row for row in read_curve(folder) if row["update"] <= update]
    if (folder / CURVE).exists():
        with replacing(folder / CURVE) as stream:
            stream.write(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows))
    for file in step_files(folder):
        if int(file.stem) > update:
            file.unlink()


def ask(run: Path, word: str) -> None:
    """Ask a running process to pause, resume or stop; it looks between two updates."""
    if word not in REQUESTS:
        raise UsageError(f"request {word!r}: expected one of {', '.join(REQUESTS)}")
    with replacing(run / CONTROL) as stream:
        stream.write(word.encode())


def asked(run: Path) -> str:
    """What the run was asked last, empty where nothing."""
    try:
        return (run / CONTROL).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
