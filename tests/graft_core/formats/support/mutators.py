"""Damage to files: wrong types, missing keys, odd numbers, deep nesting, torn and flipped bytes; seeded by name and number."""

from __future__ import annotations

import gzip
import json
import random
import zipfile
from typing import Any

from more_files import MORE_DOCUMENTS, MORE_LINES
from sample_files import DOCUMENTS, EVAL, LINES, inspect_eval, lines, pretty

ODD: list[Any] = [
    None,
    True,
    -1,
    1.5,
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
DEEP = b"[" * 3000 + b"]" * 3000
HUGE = b"9" * 6000
ALL_DOCUMENTS = {**DOCUMENTS, **MORE_DOCUMENTS}
ALL_LINES = {**LINES, **MORE_LINES}
NAMES = (*ALL_DOCUMENTS, *ALL_LINES, "inspect-ai-eval")


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
        return data.replace(b"null", DEEP, 1) if b"null" in data else data[:at] + DEEP + data[at:]
    if way == 5:
        return data.replace(b": 0", b": " + HUGE, 1) if b": 0" in data else data[:at] + HUGE + data[at:]
    if way == 6:
        pairs = [b'"reward": 1, ', b'"id": 7, ', b'"history": [], ', b'"\\udc00": "\\ud800", ']
        return data.replace(b"{", b"{" + chance.choice(pairs), chance.randrange(1, 4))
    return data[:at] + bytes(chance.randrange(256) for _ in range(4)) + data[at:]


def mutated(name: str, number: int) -> tuple[str, bytes]:
    """The name and the bytes of the `number`-th damaged file for a reader."""
    chance = random.Random(f"{name} {number}")
    inside, outside = chance.choice([(1, 0), (2, 0), (3, 0), (0, 1), (0, 2), (1, 1)])
    if name == "inspect-ai-eval":
        return "log.eval", _archive(chance, inside, outside)
    file, value = ALL_DOCUMENTS.get(name) or ALL_LINES[name]
    for _ in range(inside):
        value = damaged(value, chance)
    as_lines = name in ALL_LINES and isinstance(value, list)
    data = lines(value) if as_lines else pretty(value) if chance.random() < 0.7 else json.dumps(value).encode()
    for _ in range(outside):
        data = scratched(data, chance)
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
