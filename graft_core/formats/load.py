"""load(): files and directories of rollouts, in any known format, as one batch."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal, overload

from graft_core.errors import InputError, UsageError
from graft_core.formats.builder import build
from graft_core.formats.grouping import regroup
from graft_core.formats.registry import Format, detect
from graft_core.formats.rows import Rows
from graft_core.formats.source import Source
from graft_core.formats.success import decide, parse_rule
from graft_core.rollouts import LoadReport, RolloutBatch

AnyPath = str | os.PathLike[str]
Progress = Callable[[int, int], None]


@overload
def load(
    path: AnyPath | Iterable[AnyPath],
    group_by: str | None = None,
    report: Literal[False] = False,
    success_when: str | None = None,
    progress: Progress | None = None,
) -> RolloutBatch: ...
@overload
def load(
    path: AnyPath | Iterable[AnyPath],
    group_by: str | None = None,
    *,
    report: Literal[True],
    success_when: str | None = None,
    progress: Progress | None = None,
) -> tuple[RolloutBatch, LoadReport]: ...
def load(
    path: AnyPath | Iterable[AnyPath],
    group_by: str | None = None,
    report: bool = False,
    success_when: str | None = None,
    progress: Progress | None = None,
) -> RolloutBatch | tuple[RolloutBatch, LoadReport]:
    """Load rollouts from a file, a directory (searched recursively), or several of them, as one batch.

    The format of each file is detected by its content. `group_by` names what makes a group (the rollouts of one task):
    "file", "task", "column:NAME" ("column:A+B": equal in both), "regex:PATTERN" (the first capture group in the path or else
    in the first observation) or "actions"; None keeps the file's own groups. `success_when` says which
    rollouts succeeded: NAME OP NUMBER, such as "reward >= 1", NAME being the outcome, a column or a metadata key; None
    keeps the file's own flags, else outcome >= 1. `progress` is called as progress(bytes read, bytes in all) while files are
    read (one JSON document counts when it is done). With `report=True` also returns the `LoadReport`. Raises `InputError`
    where nothing can be used, `UsageError` for an empty path and for a bad `group_by` or `success_when`.
    """
    if success_when is not None:
        parse_rule(success_when)
    given = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    if "" in given:  # a Path made of it would be the working directory
        raise UsageError("a path is the empty text; expected a file or a directory of rollouts")
    paths = [Path(p) for p in given]
    if not paths:
        raise InputError("no path was given; expected a file or a directory of rollouts")
    rows, left_out = Rows(), list[str]()
    sources = find_sources(paths)
    name = paths[0].name or str(paths[0]) if len(paths) == 1 else f"{paths[0].name} and {len(paths) - 1} more"
    if progress is not None:
        _follow(sources, progress)
    batch, made = build(with_readers(sources, rows, left_out, paths), rows, name, left_out)
    batch, made = regroup(batch, made, group_by)
    batch, made = decide(batch, made, success_when)
    return (batch, made) if report else batch


def find_sources(paths: list[Path]) -> list[Source]:
    """The files of these paths, each with a short name, not yet looked at."""
    files = _distinct([found for path in paths for found in _walk(path)])
    if not files:
        raise InputError(f"{', '.join(map(str, paths))}: no file of rollouts found")
    labels = file_labels([file for file, _ in files])
    return [Source(file, label, named) for (file, named), label in zip(files, labels, strict=True)]


def with_readers(sources: list[Source], rows: Rows, left_out: list[str], paths: list[Path]) -> Iterator[tuple[Source, Format]]:
    """Each file with its reader, found when its turn comes; those of a directory that have none are told in `left_out`.

    A file that was named itself must be readable; inside a directory others may lie beside the rollouts.
    """
    none = True
    for source in sources:
        try:
            reader = detect(source)
        except InputError as error:
            if source.named:
                raise
            left_out.append(str(error).partition("; expected one of")[0])
            rows.warn("file_skipped", "no reader knows a file of the directory, or it could not be used", source.name)
            continue
        none = False
        yield source, reader
    if none:
        raise InputError(f"{', '.join(map(str, paths))}: no file of rollouts found; {left_out[0]}")


def _follow(sources: list[Source], progress: Progress) -> None:
    """Let every source tell how far it was read, as bytes of all sources together."""
    sizes = [source.path.stat().st_size for source in sources]
    before, total = 0, sum(sizes)
    for source, size in zip(sources, sizes, strict=True):
        source.memo["tell"] = lambda read, before=before, size=size: progress(before + min(read, size), total)
        before += size


def _distinct(files: list[tuple[Path, bool]]) -> list[tuple[Path, bool]]:
    """Each file once, also where it was named twice or together with its directory."""
    kept: dict[Path, tuple[Path, bool]] = {}
    for file, named in files:
        earlier = kept.setdefault(file.resolve(), (file, named))
        kept[file.resolve()] = (earlier[0], earlier[1] or named)
    return list(kept.values())


def _walk(path: Path) -> list[tuple[Path, bool]]:
    """The files under a path in sorted order, and whether each was named itself; hidden ones are passed over."""
    if not path.exists():
        raise InputError(f"{path}: no such file or directory")
    if path.is_file():
        return [(path, True)]
    if not path.is_dir():
        raise InputError(f"{path}: a stream or a device, which is not read; save what it gives to a file and name that")
    found = sorted(p for p in path.rglob("*") if p.is_file())
    own = (".graft-notes.json", ".graft-views.json", ".meta.json")  # what this project itself writes beside data
    return [
        (p, False)
        for p in found
        if not p.name.endswith(own) and not any(part.startswith(".") for part in p.relative_to(path).parts)
    ]


def file_labels(files: list[Path]) -> list[str]:
    """A short, unique name for each file: its stem, with as many parents in front as it takes.

    Files of one directory that differ only in what follows the stem keep their whole names.
    """
    stems = Counter((file.parent, _stem(file)) for file in files)
    bases = [_stem(file) if stems[file.parent, _stem(file)] == 1 else file.name for file in files]
    labels = list(bases)
    for depth in range(2, 1 + max((len(f.parts) for f in files), default=0)):
        counts: dict[str, int] = {}
        for label in labels:
            counts[label] = counts.get(label, 0) + 1
        if all(n == 1 for n in counts.values()):
            break
        labels = [
            "/".join([*file.parts[-depth:-1], base]) if counts[label] > 1 else label
            for file, base, label in zip(files, bases, labels, strict=True)
        ]
    return labels


def _stem(file: Path) -> str:
    """The name without .gz or .zst and without its own extension."""
    bare = file.with_suffix("") if file.suffix in (".gz", ".zst") else file
    return bare.stem
