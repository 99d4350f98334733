"""Columns of canonical rows from Python values: a fast path per kind of field, and a careful one for odd values.

Every function takes the values of one field in a block of rows and gives one array: `key` and `text` fields become
numbers in a pool (-1 = none), `number` float64 (NaN = none), `flag` int8 (-1 = none), `count` int64 (`NO_COUNT` = none),
`json` and `texts` Arrow arrays. What was odd is noted in `Issues` by position in the block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graft_core.formats.fields import Field
from graft_core.formats.jsonio import dumps, is_json

NO_COUNT: Final = np.iinfo(np.int64).min
NONE: Final = type(None)
TRUE_WORDS: Final = frozenset({"true", "yes", "1"})
FALSE_WORDS: Final = frozenset({"false", "no", "0"})
LARGEST_COUNT: Final = 2**31 - 2
EXACT: Final = 2**53


class Unusable(ValueError):
    """A value that cannot stand in its field; the message says why."""


@dataclass
class Pools:
    """Texts and keys seen so far, each stored once."""

    texts: dict[str, int] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)


@dataclass
class Issues:
    """What was odd in a block of rows, by position."""

    bad: dict[int, str] = field(default_factory=dict)
    repaired: set[int] = field(default_factory=set)
    warnings: dict[tuple[str, str], tuple[str, int, int]] = field(default_factory=dict)
    """(code, field) -> (sentence and position of the first, how many)."""

    def unusable(self, spec: Field, position: int, reason: str) -> None:
        if spec.strict:
            self.bad.setdefault(position, f"{spec.name} {reason}")
        else:
            self.warn("fields_unusable", spec.name, f"{spec.name} {reason}", position)

    def converted(self, spec: Field, position: int) -> None:
        self.repaired.add(position)
        self.warn("numbers_from_text", spec.name, f"{spec.name} was converted from text or another kind", position)

    def warn(self, code: str, name: str, sentence: str, position: int) -> None:
        first = self.warnings.get((code, name), (sentence, position, 0))
        self.warnings[code, name] = (first[0], first[1], first[2] + 1)


def intern(pool: dict[str, int], values: Sequence[str | None]) -> npt.NDArray[np.int32]:
    """Numbers of the values in the pool, new ones added; None is -1."""
    for value in dict.fromkeys(values):
        if value is not None and value not in pool:
            pool[value] = len(pool)
    number_of: Callable[[Any, int], int] = pool.get
    return np.fromiter(map(number_of, values, repeat(-1)), np.int32, len(values))


def from_values(spec: Field, values: Sequence[Any], pools: Pools, issues: Issues) -> Any:
    """The column of one field; None when no row has a value."""
    kinds = set(map(type, values))
    if kinds == {NONE}:
        return None
    return CONVERTERS[spec.kind](spec, values, kinds, pools, issues)


def _each(spec: Field, values: Sequence[Any], one: Callable[[Any], tuple[Any, bool]], issues: Issues) -> list[Any]:
    """Convert one by one; `one` gives (value, whether it was a repair) or raises `Unusable`."""
    out: list[Any] = []
    for position, value in enumerate(values):
        if value is None:
            out.append(None)
            continue
        try:
            converted, repaired = one(value)
        except Unusable as error:
            issues.unusable(spec, position, str(error))
            out.append(None)
            continue
        if repaired:
            issues.converted(spec, position)
        out.append(converted)
    return out


def _texts(spec: Field, values: Sequence[Any], kinds: set[type], pools: Pools, issues: Issues) -> Any:
    if not kinds <= {str, NONE}:
        values = [v if v is None or isinstance(v, str) else dumps(v, sort=True) for v in values]
    return intern(pools.texts, values)


def _key(value: Any) -> tuple[str, bool]:
    if isinstance(value, str):
        return value, False
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return dumps(value, sort=True), False
    if isinstance(value, int):
        return str(value), False
    if not math.isfinite(value) or abs(value) >= EXACT:
        raise Unusable(f"is the number {value!r}, too large to be exact; write ids as text")
    return (str(int(value)) if value.is_integer() else repr(value)), False


def _keys(spec: Field, values: Sequence[Any], kinds: set[type], pools: Pools, issues: Issues) -> Any:
    if not kinds <= {str, NONE}:
        values = _each(spec, values, _key, issues)
    return intern(pools.keys, values)


def _number(value: Any) -> tuple[float, bool]:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("true", "false"):
            return float(word == "true"), True
        try:
            number = float(word)
        except ValueError:
            raise Unusable(f"is {value[:40]!r}, expected a number") from None
    elif isinstance(value, (bool, int, float, np.generic)):
        try:
            number = float(value)
        except (OverflowError, ValueError, TypeError):
            raise Unusable("is too large for a number, expected a finite one") from None
    else:
        raise Unusable(f"is {dumps(value)[:40]}, expected a number")
    if not math.isfinite(number):
        raise Unusable(f"is {number}, expected a finite number")
    return number, isinstance(value, (str, bool, np.bool_))


def _numbers(spec: Field, values: Sequence[Any], kinds: set[type], pools: Pools, issues: Issues) -> Any:
    if kinds <= {float, int, NONE}:
        try:
            array = np.array(values, dtype=np.float64)
        except OverflowError:
            array = None
        if array is not None:
            finite = np.isfinite(array)
            if finite.all() or (NONE in kinds and int((~finite).sum()) == values.count(None)):
                return array
    return np.array(_each(spec, values, _number, issues), dtype=np.float64)


def _flag(value: Any) -> tuple[int, bool]:
    if isinstance(value, (bool, np.bool_)):
        return int(value), False
    if isinstance(value, (int, float)) and value in (0, 1):
        return int(value), True
    if isinstance(value, str):
        word = value.strip().lower()
        if word in TRUE_WORDS or word in FALSE_WORDS:
            return int(word in TRUE_WORDS), True
    raise Unusable(f"is {dumps(value)[:40]}, expected true or false")


def _flags(spec: Field, values: Sequence[Any], kinds: set[type], pools: Pools, issues: Issues) -> Any:
    if kinds == {bool}:
        return np.array(values, dtype=np.int8)
    if not kinds <= {bool, NONE}:
        values = _each(spec, values, _flag, issues)
    return np.fromiter((-1 if v is None else v for v in values), np.int8, len(values))


def _count(value: Any) -> tuple[int, bool]:
    repaired = isinstance(value, (str, float))
    if isinstance(value, str):
        try:
            value = int(value.strip())
        except ValueError:
            raise Unusable(f"is {value[:40]!r}, expected a whole number") from None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise Unusable(f"is {dumps(value)[:40]}, expected a whole number")
    number = int(value)
    if abs(number) > LARGEST_COUNT:
        raise Unusable(f"is beyond {LARGEST_COUNT}, expected a smaller whole number")
    return number, repaired


def _counts(spec: Field, values: Sequence[Any], kinds: set[type], pools: Pools, issues: Issues) -> Any:
    if kinds == {int}:
        try:
            array = np.array(values, dtype=np.int64)
        except OverflowError:
            array = None
        if array is not None and np.abs(array).max() <= LARGEST_COUNT:
            return array
    values = _each(spec, values, _count, issues)
    return np.fromiter((NO_COUNT if v is None else v for v in values), np.int64, len(values))


def json_text(name: str, value: Any) -> str | None:
    """The stored JSON of a value; metadata is always an object, and may come as its JSON text."""
    if value is None:
        return None
    if name == "metadata" and not isinstance(value, dict):
        if isinstance(value, str) and value[:1] == "{" and is_json(value):
            return value
        return dumps({name: value})
    return dumps(value)


def _json(spec: Field, values: Sequence[Any], kinds: set[type], pools: Pools, issues: Issues) -> Any:
    return pa.array(list(map(json_text, repeat(spec.name), values)), pa.string())


def _lists(spec: Field, values: Sequence[Any], kinds: set[type], pools: Pools, issues: Issues) -> Any:
    add, pool = pools.texts.setdefault, pools.texts
    out: list[list[int] | None] = []
    for position, value in enumerate(values):
        if value is not None and not isinstance(value, (list, tuple)):
            issues.unusable(spec, position, f"is {dumps(value)[:40]}, expected a list of texts")
            value = None
        if value is None:
            out.append(None)
        else:
            texts = (v if isinstance(v, str) else dumps(v, sort=True) for v in value)
            out.append([add(text, len(pool)) for text in texts])
    return pa.array(out, pa.list_(pa.int32()))


CONVERTERS: Final[dict[str, Callable[[Field, Sequence[Any], set[type], Pools, Issues], Any]]] = {
    "key": _keys,
    "text": _texts,
    "texts": _lists,
    "number": _numbers,
    "flag": _flags,
    "count": _counts,
    "json": _json,
}
