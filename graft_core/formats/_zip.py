"""Zip archives of JSON members, read one member at a time, also where the list at the end of the archive is missing."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from graft_core.errors import InputError
from graft_core.formats import limits
from graft_core.formats.source import Source, seekable

LOCAL: Final = b"PK\x03\x04"
LOCAL_BYTES: Final = 30
STORED, DEFLATED, ZSTD = 0, 8, 93
READ_ERRORS: Final = (
    OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, struct.error, ValueError, OverflowError,
)  # fmt: skip


class BadMember(ValueError):
    """A member that cannot be read; the message says why."""


@dataclass
class Archive:
    """The names in an archive, in its order, and how to read one; `problem` says what is wrong with the archive itself."""

    names: list[str]
    unpack: Callable[[str, int], bytes]
    left: int
    problem: str = ""

    def read(self, name: str) -> bytes:
        """One member, decompressed; `BadMember` where it is damaged or too large."""
        most = min(limits.LARGEST_MEMBER, self.left)
        try:
            data = self.unpack(name, most + 1)
        except READ_ERRORS as error:
            raise BadMember(f"the member cannot be read ({error})") from error
        if len(data) > most:
            raise BadMember("the member decompresses to far more than text does, so it was not read to its end")
        self.left -= len(data)
        return data


@contextmanager
def opened(source: Source) -> Iterator[Archive]:
    """The archive in a file. Where its list of members is broken, members are looked for one after the other."""
    with ExitStack() as stack:
        yield _open(source, stack)


def _open(source: Source, stack: ExitStack) -> Archive:
    size = source.path.stat().st_size
    most = max(limits.FEWEST_EXPANDED, size * limits.MOST_EXPANSION)
    stream = stack.enter_context(seekable(source))
    try:
        archive = stack.enter_context(zipfile.ZipFile(stream))
        infos = {info.filename: info for info in archive.infolist()[: limits.MOST_MEMBERS + 1]}
    except READ_ERRORS as error:
        return _recovered(source, most, str(error))
    if len(infos) > limits.MOST_MEMBERS:
        raise InputError(f"{source.name}: a zip archive with more than {limits.MOST_MEMBERS:,} members is not read")

    def unpack(name: str, n: int) -> bytes:
        info = infos[name]
        if info.compress_type == ZSTD:
            return _unpack_zstd(archive, info, n)
        with archive.open(info) as member:
            return member.read(n)

    return Archive(list(infos), unpack, most)


def _unpack_zstd(archive: zipfile.ZipFile, info: zipfile.ZipInfo, n: int) -> bytes:
    """A member compressed with zstd, which the standard library of most Python versions does not know."""
    import pyarrow as pa

    stream = archive.fp
    if stream is None:
        raise BadMember("the archive is closed")
    stream.seek(info.header_offset)
    header = stream.read(LOCAL_BYTES)
    name, extra = struct.unpack("<HH", header[26:30])
    stream.seek(info.header_offset + LOCAL_BYTES + name + extra)
    packed = stream.read(min(info.compress_size, limits.LARGEST_MEMBER))
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as plain:
        return bytes(plain.read(n))


def _recovered(source: Source, most: int, problem: str) -> Archive:
    """Members found by their own headers: what is left of an archive that was cut off."""
    data = source.read_all()
    places: dict[str, tuple[int, int, int]] = {}
    at = data.find(LOCAL)
    while at >= 0 and len(places) < limits.MOST_MEMBERS:
        header = data[at : at + LOCAL_BYTES]
        if len(header) == LOCAL_BYTES:
            (method,) = struct.unpack("<H", header[8:10])
            size, _, name, extra = struct.unpack("<IIHH", header[18:30])
            body = at + LOCAL_BYTES + name + extra
            text = data[at + LOCAL_BYTES : at + LOCAL_BYTES + name].decode("utf-8", "replace")
            if method in (STORED, DEFLATED) and text:
                places[text] = (method, body, size)
        at = data.find(LOCAL, at + 4)

    def unpack(name: str, n: int) -> bytes:
        method, body, size = places[name]
        if method == STORED:
            return data[body : body + min(size, n)]
        machine = zlib.decompressobj(-15)
        out = machine.decompress(data[body:], n)
        if not machine.eof and len(out) < n:
            raise BadMember("it is cut off")
        return out

    return Archive(list(places), unpack, most, problem)
