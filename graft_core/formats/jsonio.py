"""JSON in and out: orjson where it can, the standard library where orjson refuses (NaN, lone surrogates, deep text) or
rounds (whole numbers beyond 64 bits)."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import orjson

from graft_core.formats.limits import CHECKED_FOR_REPEATS, MOST_DIGITS

SHAPE: Final = bytes.maketrans(b"123456789" + b",[ \t\r\n", b"0" * 9 + b":" * 6)
LONG_NUMBERS: Final = (b":" + b"0" * 20, b"-" + b"0" * 19)
"""How whole numbers beyond 64 bits look through `SHAPE`; the digits of fractions follow a point and do not count."""

TOO_DEEP: Final = '{"left_out":"nested too deeply"}'


class BadJson(ValueError):
    """A text that is no JSON; the message says what and where."""


def loads(data: bytes) -> tuple[Any, bool]:
    """The value of one JSON text, and whether broken characters in it had to be replaced."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return _loads_leniently(data, str(error))
    return _loads_leniently(data, "") if has_long_numbers(data) else (value, False)


def has_long_numbers(data: bytes) -> bool:
    """Whether a JSON text may hold whole numbers beyond 64 bits, which orjson rounds: 20 digits, or 19 after a minus."""
    every = np.frombuffer(data, dtype=np.uint8)[::6]  # 19 digits in a row cover three of these: a quick look first
    digit = (every - np.uint8(ord("0"))) < 10  # what stands before "0" wraps round to large numbers
    if not (digit[2:] & digit[1:-1] & digit[:-2]).any():
        return False
    shape = data.translate(SHAPE)
    return any(long in shape for long in LONG_NUMBERS)


def _loads_leniently(data: bytes, first_error: str) -> tuple[Any, bool]:
    try:
        text = data.decode("utf-8", "surrogateescape")
        value = json.loads(text, parse_int=_integer)
        cleaned = clean(value)
    except RecursionError:
        raise BadJson("nested too deeply") from None
    except json.JSONDecodeError:
        raise BadJson(first_error) from None
    except ValueError as error:
        raise BadJson(str(error)) from None
    return cleaned, cleaned != value


def repeated_keys(data: bytes) -> int:
    """How many keys stand twice in one object of a JSON text (readers take the last); 0 where it is too long to look."""
    found = 0

    def pairs(items: list[tuple[str, Any]]) -> int:
        nonlocal found
        found += len(items) - len({key for key, _ in items})
        return 0

    if len(data) > CHECKED_FOR_REPEATS:
        return 0
    try:
        json.loads(data.decode("utf-8", "replace"), object_pairs_hook=pairs, parse_int=len, parse_float=len)
    except (ValueError, RecursionError):
        return 0
    return found


def _integer(digits: str) -> int | str:
    """Whole numbers exactly, so that different ones stay different; those that no float can hold stay text."""
    return int(digits) if len(digits) <= MOST_DIGITS else digits


def clean_text(text: str) -> str:
    """The text with lone surrogates written as visible escapes: distinct texts stay distinct, all can be stored."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def clean(value: Any) -> Any:
    """`clean_text` for every string in a JSON value."""
    if isinstance(value, str):
        return value if value.isascii() else clean_text(value)
    if isinstance(value, dict):
        return {clean(k): clean(v) for k, v in value.items()}
    if isinstance(value, list):
        return [clean(v) for v in value]
    return value


def dumps(value: Any, sort: bool = False) -> str:
    """Compact JSON; with `sort` the canonical form, keys sorted, that equal values share."""
    try:
        option = orjson.OPT_NON_STR_KEYS | (orjson.OPT_SORT_KEYS if sort else 0)
        return orjson.dumps(value, default=str, option=option).decode()
    except orjson.JSONEncodeError:
        pass
    try:
        return clean_text(json.dumps(clean(value), default=str, ensure_ascii=False, separators=(",", ":"), sort_keys=sort))
    except RecursionError:
        return TOO_DEEP


def is_json(text: str) -> bool:
    """Whether the text is one JSON value."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
