"""Finding the data of a card by name. A card comes from anywhere: only bare names are looked up, in folders we were given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from graft_core.errors import InputError
from graft_core.insight._card_text import MARK
from graft_core.provenance import sha256_of
from graft_core.rollouts import RolloutBatch


@dataclass(frozen=True, eq=False)
class Found:
    """The data at hand: the files in the order of loading, the directory they were loaded as (if so), and the batch, or why
    there is none."""

    files: tuple[str, ...]
    folder: Path | None
    batch: RolloutBatch | None
    shown: Path
    problem: str = ""


def find_data(data: Mapping[str, Any], near: Sequence[Path], paths: Sequence[Path]) -> Found:
    """Load the data of a card. Raises `InputError` where they are not found, or are the card's and cannot be loaded."""
    from graft_core.formats import load

    chosen = list(paths) or _look_up(data, near)
    folder = chosen[0] if len(chosen) == 1 and chosen[0].is_dir() else None
    if folder is not None and not data["directory"]:
        inside = folder / _bare(data["name"])
        chosen, folder = ([inside], None) if inside.is_file() else (chosen, folder)
    for path in chosen:
        if not path.exists():
            raise InputError(f"{path}: no such file or directory")
    try:
        batch, report = load(chosen, group_by=data["group_by"], report=True, success_when=data.get("success_when"))
    except InputError as error:
        if folder is None and [sha256_of(path) for path in chosen] != [file["sha256"] for file in data["files"]]:
            return Found(tuple(map(str, chosen)), None, None, chosen[0], str(error))
        raise
    return Found(report.files, folder, batch, chosen[0])


def _look_up(data: Mapping[str, Any], near: Sequence[Path]) -> list[Path]:
    """The data by name in the first folder that has them as the card knows them, else in the first that has them at all."""
    names = [_bare(data["name"])] if data["directory"] else [_bare(file["file"]) for file in data["files"]]
    if any(MARK in name for name in names):
        raise InputError("the name of the data is redacted on this card; expected the path as a second argument")
    candidates = [[folder / name for name in names] for folder in near]
    there = [paths for paths in candidates if all(path.exists() for path in paths)]
    if not there:
        raise InputError(
            f"the data of this card, {', '.join(names)}, are not beside it nor in the working directory; expected their path "
            "as a second argument"
        )
    if not data["directory"]:
        wanted = [file["sha256"] for file in data["files"]]
        there.sort(key=lambda paths: [sha256_of(path) for path in paths if path.is_file()] != wanted)
    return there[0]


def _bare(name: Any) -> str:
    """The last part of a name, whatever system it was written on: a card cannot lead out of the folders that are searched."""
    bare = PureWindowsPath(PurePosixPath(str(name)).name).name
    if bare in ("", ".", ".."):
        raise InputError(f"the card names its data {str(name)!r}; expected a file name")
    return bare
