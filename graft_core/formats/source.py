"""One input file: opened through .gz and .zst, looked at by content, refused with one sentence where it is no use."""

from __future__ import annotations

import gzip
import io
import math
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Final

from graft_core.errors import InputError
from graft_core.formats.jsonio import BadJson, TooMuchJson, allowed_bytes, loads, repeated_keys
from graft_core.formats.limits import (
    ALWAYS_UNPACKED,
    BLOCK_BYTES,
    FEWEST_EXPANDED,
    HEAD_BYTES,
    LONGEST_FIRST_LINE,
    LONGEST_LINE,
    MOST_EXPANSION,
    MOST_UNPACKED,
)

BOMB: Final = "decompresses to far more than text does, so it was not read to its end"
BOM: Final = b"\xef\xbb\xbf"
EXPECTED: Final = "expected agent rollouts, such as a canonical step file (JSONL or Parquet)"
DECOMPRESS_ERRORS: Final = (OSError, EOFError, zlib.error)
GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
ZIP_STARTS: Final = (b"PK\x03\x04", b"PK\x05\x06")
SEVERAL_ROWS: Final = frozenset({"item", "record", "file"})
"""Units of records that hold a whole rollout and so give several rows; the others ("line", "row") give one each."""


@dataclass(frozen=True)
class Head:
    """What the beginning of a file shows, for detection: `kind` is parquet, zip, jsonl, json or other.

    `records` are the first few JSON objects of a JSONL file, `document` is the whole value of a JSON file, `columns` are
    the column names of a Parquet file, `members` the names in a zip archive. `repeated` counts keys that a JSON document
    has twice in one object (the later value stands).
    """

    kind: str
    records: tuple[dict[str, Any], ...] = ()
    document: Any = None
    columns: tuple[str, ...] = ()
    problem: str = ""
    cleaned: bool = False
    members: tuple[str, ...] = ()
    repeated: int = 0


@dataclass(frozen=True)
class Source:
    """A file to read; `label` is a short name, unique among the files of one load, without the extension.

    `named` says whether the user named the file itself (then it must be usable) or a directory that holds it.
    """

    path: Path
    label: str = ""
    named: bool = True
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def is_yaml(self) -> bool:
        """Whether the name says YAML, which looks like any text."""
        return any(suffix in (".yaml", ".yml") for suffix in self.path.suffixes[-2:])

    def where(self, record: int, unit: str = "line") -> str:
        """The place of one record as people read it: file:line, or file[item] for an item of a list or an archive.

        Items have names where the reader put some into `memo["names"]`, else they are numbered from 0.
        """
        if unit == "row":
            return f"{self.name}, row {record}"
        if unit == "file":
            return self.name
        if unit in ("line", "record"):
            return f"{self.name}:{record}"
        names = self.memo.get("names", ())
        return f"{self.name}[{names[record] if record < len(names) else record}]"

    @cached_property
    def _magic(self) -> bytes:
        with self.path.open("rb") as stream:
            return stream.read(4)

    def open(self) -> BinaryIO:
        """The file's bytes, decompressed."""
        if self._magic[:2] == GZIP:
            return gzip.open(self.path, "rb")  # type: ignore[return-value]
        if self._magic == ZSTD:
            import pyarrow as pa

            return pa.CompressedInputStream(pa.OSFile(str(self.path)), "zstd")
        return self.path.open("rb")

    @cached_property
    def start(self) -> bytes:
        """The first bytes of the file, decompressed."""
        try:
            with self.open() as stream:
                start = stream.read(HEAD_BYTES)
                if b"\n" not in start and start[:1] == b"{":
                    start += stream.readline(LONGEST_FIRST_LINE)
                self.memo["whole"] = not stream.read(1)
                return start
        except DECOMPRESS_ERRORS as error:
            raise InputError(f"{self.name}: cannot be read ({error})") from error

    def read_all(self) -> bytes:
        """All bytes, decompressed."""
        most = self._most_bytes()
        try:
            with self.open() as stream:
                data = stream.read() if most > sys.maxsize // 2 else stream.read(most + 1)
                if len(data) <= most:
                    return data
                raise InputError(f"{self.name}: {BOMB}")
        except DECOMPRESS_ERRORS as error:
            raise InputError(f"{self.name}: cannot be read to its end ({error})") from error

    @cached_property
    def head(self) -> Head:
        """What kind of file this is, by content."""
        refuse_useless(self)
        if self.start[:4] == b"PAR1":
            return Head("parquet", columns=parquet_columns(self))
        if self.start[:4] in ZIP_STARTS:
            from graft_core.formats._zip import opened

            with opened(self) as archive:
                return Head("zip", members=tuple(archive.names))
        if self.start.lstrip(BOM + b" \t\r\n")[:1] not in (b"{", b"["):
            records = self._first_records()
            return Head("jsonl", records) if records else self._bare_value()
        first = self._first_records(limit=1)
        if first:
            lines = [line for line in self.start.split(b"\n", 2)[:2] if line.strip()]
            if len(lines) > 1 or not self.memo["whole"]:
                return Head("jsonl", self._first_records())
            return Head("jsonl", first, document=first[0], repeated=repeated_keys(self.start.removeprefix(BOM)))
        try:
            data = self.read_all().removeprefix(BOM)
            repeated = repeated_keys(data)
            value, cleaned = loads(data, self._allowed(len(data)))
            return Head("json", document=value, cleaned=cleaned, repeated=repeated)
        except TooMuchJson as error:
            raise InputError(f"{self.name}: {error}") from None
        except BadJson as error:
            records = self._first_records(limit=20, skip_bad=True)
            return Head("jsonl", records) if records else Head("other", problem=str(error))

    def settle(self) -> None:
        """Once the reader is known: let go of the beginning that told it, but for a whole document, which is read."""
        self.__dict__.pop("start", None)
        if self.head.document is None:
            self.__dict__["head"] = replace(self.head, records=())

    def forget(self) -> None:
        """Once the file is read: let go of what was parsed; the source still names the places of its records."""
        self.__dict__.pop("start", None)
        self.__dict__.pop("head", None)

    def _bare_value(self) -> Head:
        """A file that is one JSON text, number or null, told from one that is no JSON."""
        try:
            return Head("json", document=loads(self.start.removeprefix(BOM))[0]) if self.memo["whole"] else Head("other")
        except BadJson:
            return Head("other")

    def _first_records(self, limit: int = 20, skip_bad: bool = False) -> tuple[dict[str, Any], ...]:
        """JSON objects among the first lines; stops at the first bad line unless told to skip."""
        records: list[dict[str, Any]] = []
        for line in self.start.removeprefix(BOM).split(b"\n")[: 4 * limit]:
            if not line.strip():
                continue
            try:
                value, _ = loads(line)
            except BadJson:
                if skip_bad or records:
                    continue
                break
            if isinstance(value, dict):
                records.append(value)
            elif not skip_bad:
                break
            if len(records) >= limit:
                break
        return tuple(records)

    def _most_bytes(self) -> int:
        """How many bytes to expect at most: texts shrink to a twentieth, not to a thousandth."""
        return sys.maxsize - 1 if self._is_plain() else self.most_expanded()

    def _allowed(self, length: int) -> float:
        """How much memory a JSON text of this file may take once parsed: less where the file is small and compressed."""
        packed = math.inf if self._is_plain() else max(ALWAYS_UNPACKED, MOST_UNPACKED * self.path.stat().st_size)
        return min(allowed_bytes(length), packed)

    def most_records(self, fewest: int, per_byte: float) -> float:
        """How many records to expect at most: a compressed file does not hold more than so many per byte of its own."""
        return math.inf if self._is_plain() else max(fewest, per_byte * self.path.stat().st_size)

    def most_expanded(self) -> int:
        """To how many bytes what the file holds may grow."""
        return max(FEWEST_EXPANDED, self.path.stat().st_size * MOST_EXPANSION)

    def _is_plain(self) -> bool:
        return self._magic[:2] != GZIP and self._magic != ZSTD

    def _block(self, stream: BinaryIO) -> bytes:
        """The next bytes of a stream, also the last ones before a compressed stream breaks off."""
        parts: list[bytes] = []
        missing = BLOCK_BYTES
        while missing > 0 and "torn" not in self.memo:
            try:
                part = stream.read1(missing)  # type: ignore[attr-defined]
            except DECOMPRESS_ERRORS as error:
                self.memo["torn"] = str(error)
                break
            if not part:
                break
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def tell(self, read: int) -> None:
        """Say that so many bytes were read, to whoever follows the load."""
        follower = self.memo.get("tell")
        if follower is not None:
            follower(read)

    def lines(self) -> Iterator[tuple[int, list[bytes]]]:
        """Blocks of whole lines with the number of the first; ends quietly where a compressed stream is cut off.

        A line too long to be a step is cut, so that it is rejected as broken. A cut-off stream is told through
        `memo["torn"]`, so that what was read before stays usable.
        """
        number, parts, total, most = 1, [b""], 0, self._most_bytes()
        with self.open() as stream:
            while block := self._block(stream):
                total += len(block)
                self.tell(total)
                if total > most:
                    self.memo["torn"] = BOMB
                    break
                cut = block.rfind(b"\n")
                if cut < 0:
                    parts = [*parts, block] if len(parts) < LONGEST_LINE // BLOCK_BYTES else [parts[0][:HEAD_BYTES] + b"\0"]
                    continue
                lines = b"".join([*parts, block[:cut]]).split(b"\n")
                yield number, lines
                number += len(lines)
                parts = [block[cut + 1 :]]
        rest = b"".join(parts)
        if rest:
            yield number, [rest]


def refuse_useless(source: Source) -> None:
    """Raise `InputError` for files that can hold no rollouts or must not be opened (design.md, "Files")."""
    start = source.start
    if not start.strip():
        raise InputError(f"{source.name}: the file is empty; {EXPECTED}")
    if start.startswith(b"version https://git-lfs"):
        raise InputError(
            f"{source.name}: this is a Git LFS pointer, not the data itself; run `git lfs pull` in that repository"
        )
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(
            f"{source.name}: this is UTF-16 text (as PowerShell's > writes it), expected UTF-8; save it as UTF-8 and read that"
        )
    if start[:2] == b"PK" and b"data.pkl" in start:
        raise InputError(f"{source.name}: this is a torch file (.pt), {UNSAFE.format(opening='torch.load(file)')}")
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise InputError(f"{source.name}: this is a Python pickle, {UNSAFE.format(opening='pickle.load(file)')}")


UNSAFE: Final = (
    "which runs code when it is opened, so it is not read. Where you trust it, open it yourself and write canonical steps: "
    "(1) rollouts = {opening}; (2) with graft_core.record('runs/mine') as rec: for each step rec.step(group_id, rollout_id, "
    "step, observation, action, reward), for each rollout rec.end(group_id, rollout_id, outcome); (3) open runs/mine"
)


def seekable(source: Source) -> BinaryIO:
    """The file for readers that jump around in it: itself, or its decompressed bytes in memory."""
    stream = source.open()
    if isinstance(stream, io.BufferedReader):
        return stream
    stream.close()
    return io.BytesIO(source.read_all())


def parquet_columns(source: Source) -> tuple[str, ...]:
    """The column names of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with seekable(source) as stream:
            return tuple(pq.read_schema(stream).names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{source.name}: a broken Parquet file ({_first_line(error)})") from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
