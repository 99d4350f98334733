"""Damage to files: wrong types, missing keys, odd numbers, deep nesting, repeated keys, lone surrogates, torn and flipped
bytes, files that unpack to far too much; seeded by name and number."""

from __future__ import annotations

import gzip
import json
import random
import zipfile
from typing import Any

from bombs import KINDS, bomb
from more_files import COMPLETIONS, MORE_DOCUMENTS, MORE_LINES
from sample_files import DOCUMENTS, EVAL, LINES, ROWS, inspect_eval, lines, pretty
from tables import table_bytes

ODD: list[Any] = [
    None,
    True,
    -1,
    1.5,
    2**63,
    -(2**63) - 1,
    10**40,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\ud800",
    [],
    [1],
    {},
    {"a": [{}]},
    "9" * 5000,
]
DEEP = (300, 990, 3000, 100_000)
HUGE = b"9" * 6000
ALL_DOCUMENTS = {**DOCUMENTS, **MORE_DOCUMENTS}
ALL_LINES = {**LINES, **MORE_LINES}
TABLES = {"canonical-parquet": ("rows.parquet", ROWS), "trl": ("completions.parquet", COMPLETIONS)}
NAMES = (*ALL_DOCUMENTS, *ALL_LINES, *TABLES, "inspect-ai-eval")
BOMBS = 500
"""One file in so many unpacks to far more than its size."""


def damaged(value: Any, chance: random.Random) -> Any:
    """The value with one part, somewhere inside, replaced or left out."""
    if isinstance(value, dict) and value and chance.random() > 0.1:
        key = chance.choice(list(value))
        rest = {k: v for k, v in value.items() if k != key}
        return rest if chance.random() < 0.2 else {**value, key: damaged(value[key], chance)}
    if isinstance(value, list) and value and chance.random() > 0.1:
        at = chance.randrange(len(value))
        return [*value[:at], damaged(value[at], chance), *value[at + 1 :]]
    return chance.choice(ODD)


def scratched(data: bytes, chance: random.Random) -> bytes:
    """Bytes cut off, flipped, doubled, or replaced by something deep, huge, repeated or not text."""
    if not data:
        return data
    at = chance.randrange(len(data))
    way = chance.randrange(8)
    if way == 0:
        return data[:at]
    if way == 1:
        return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
    if way == 2:
        return data[:at] + data[at + chance.randrange(200) :]
    if way == 3:
        return data[:at] + data[max(0, at - chance.randrange(200)) :]
    if way == 4:
        deep = nested(chance.choice(DEEP), chance.random() < 0.5)
        places = [place for place in (b"null", b'""', b"1.0") if place in data]
        return data.replace(chance.choice(places), deep, 1) if places else data[:at] + deep + data[at:]
    if way == 5:
        return data.replace(b": 0", b": " + HUGE, 1) if b": 0" in data else data[:at] + HUGE + data[at:]
    if way == 6:
        pairs = [b'"reward": 1, ', b'"id": 7, ', b'"history": [], ', b'"\\udc00": "\\ud800", ']
        return data.replace(b"{", b"{" + chance.choice(pairs), chance.randrange(1, 4))
    return data[:at] + bytes(chance.randrange(256) for _ in range(4)) + data[at:]


def nested(depth: int, objects: bool) -> bytes:
    """A JSON text of so many lists or objects inside each other."""
    return b'{"a":' * depth + b"1" + b"}" * depth if objects else b"[" * depth + b"]" * depth


def intact(name: str, chance: random.Random, damage: int = 0) -> tuple[str, bytes]:
    """The name and the bytes of the file for a reader, with so many parts of its values damaged."""
    if name == "inspect-ai-eval":
        return "log.eval", _archive(chance, damage, 0)
    file, value = ALL_DOCUMENTS.get(name) or ALL_LINES.get(name) or TABLES[name]
    for _ in range(damage):
        value = damaged(value, chance)
    if name in TABLES:
        return file, table_bytes(value, chance, odd=0.15 if damage else 0.0)
    if name in ALL_LINES and isinstance(value, list):
        return file, lines(value)
    return file, pretty(value) if chance.random() < 0.7 else json.dumps(value).encode()


def mutated(name: str, number: int) -> tuple[str, bytes]:
    """The name and the bytes of the `number`-th damaged file for a reader."""
    chance = random.Random(f"{name} {number}")
    inside, outside = chance.choice([(1, 0), (2, 0), (3, 0), (0, 1), (0, 2), (1, 1)])
    if name == "inspect-ai-eval":
        file, data = "log.eval", _archive(chance, inside, outside)
    else:
        file, data = intact(name, chance, inside)
        for _ in range(outside):
            data = scratched(data, chance)
    if number % BOMBS == BOMBS - 1:
        return file, bomb(data, chance.choice(KINDS), chance)
    return file, gzip.compress(data) if chance.random() < 0.05 else data


def _archive(chance: random.Random, inside: int, outside: int) -> bytes:
    """A damaged archive: of members, of the text of a member, or of the archive itself."""
    members: dict[str, Any] = dict(EVAL)
    for _ in range(inside):
        name = chance.choice(list(members))
        if chance.random() < 0.2:
            del members[name]
        else:
            members[name] = damaged(members[name], chance)
    if outside:
        name = chance.choice(list(members))
        members[name] = scratched(json.dumps(members[name]).encode(), chance)
    whole = inspect_eval(members, chance.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED]))
    return scratched(whole, chance) if outside and chance.random() < 0.6 else whole
