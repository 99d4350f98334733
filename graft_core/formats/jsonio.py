"""JSON in and out: orjson where it can, the standard library where orjson refuses (NaN, lone surrogates, deep text) or
rounds (whole numbers beyond 64 bits)."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import numpy as np
import orjson

from graft_core.formats.limits import ALWAYS_PARSED, BLOCK_BYTES, CHECKED_FOR_REPEATS, MOST_DIGITS, MOST_PARSED, SMALL_TEXT

SHAPE: Final = bytes.maketrans(b"123456789" + b",[ \t\r\n", b"0" * 9 + b":" * 6)
LONG_NUMBERS: Final = (b":" + b"0" * 20, b"-" + b"0" * 19)
"""How whole numbers beyond 64 bits look through `SHAPE`; the digits of fractions follow a point and do not count."""

SIZES: Final = dict(zip(b'[{,:"', (72, 184, 32, 40, 25), strict=True))
"""Bytes that a list, an object, a further value, an entry and half a text take in memory beside their characters, at most."""

BROKEN: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""A surrogate written as an escape, which may be alone."""

TOO_DEEP: Final = '{"left_out":"nested too deeply"}'


class BadJson(ValueError):
    """A text that is no JSON; the message says what and where."""


class TooMuchJson(BadJson):
    """A text that would take too much memory once parsed."""


def loads(data: bytes, allowed: float | None = None) -> tuple[Any, bool]:
    """The value of one JSON text, and whether broken characters in it had to be replaced.

    A text of brackets and commas takes thirty times its length once it is parsed: where that would be more bytes than
    `allowed` (default `allowed_bytes`), it is a `TooMuchJson`; what is no JSON is a `BadJson`.
    """
    check_parsed(data, allowed)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return _loads_leniently(data, str(error), allowed)
    if not has_long_numbers(data):
        return value, False
    del value  # both would not fit
    return _loads_leniently(data, "", allowed)


def allowed_bytes(length: int) -> float:
    """How much memory a JSON text of this length may take once parsed."""
    return max(ALWAYS_PARSED, MOST_PARSED * length)


def check_parsed(data: bytes, allowed: float | None = None, copies: int = 1) -> None:
    """Raise `TooMuchJson` where a JSON text (or so many copies of it) takes more than `allowed` bytes once parsed."""
    most = allowed_bytes(len(data)) if allowed is None else allowed
    if len(data) <= SMALL_TEXT or copies * parsed_bytes(data) <= most:
        return
    size = copies * parsed_bytes(data, exact=True)
    if size > most:
        raise TooMuchJson(
            f"its {len(data):,} bytes of JSON are mostly brackets and commas, which would take {size / 1e6:,.0f} MB of memory "
            f"(at most {most / 1e6:,.0f} MB are used); leave out what is no rollout, or write one rollout per line"
        )


def parsed_bytes(data: bytes, exact: bool = False) -> int:
    """About how many bytes of memory a JSON text takes once it is parsed, rather too many than too few.

    Counted are brackets, commas, colons and quotes; with `exact` only those outside of texts, which takes longer.
    """
    counts = _outside_texts(data) if exact else {sign: data.count(sign) for sign in SIZES}
    return len(data) + sum(size * counts[sign] for sign, size in SIZES.items())


def _outside_texts(data: bytes) -> dict[int, int]:
    """How many brackets, commas, colons and quotes of a JSON text stand outside of its texts."""
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data
    counts, inside = dict.fromkeys(SIZES, 0), 0
    for at in range(0, len(plain), BLOCK_BYTES):
        part = np.frombuffer(plain, dtype=np.uint8, count=min(BLOCK_BYTES, len(plain) - at), offset=at)
        quotes = part == ord('"')
        within = (np.cumsum(quotes, dtype=np.uint8) + np.uint8(inside)) & 1  # numbers wrap round at 256, which is even
        inside = int(within[-1])
        outside = within == 0
        for sign in SIZES:
            found = quotes if sign == ord('"') else (part == sign) & outside
            counts[sign] += int(np.count_nonzero(found))
    return counts


def has_long_numbers(data: bytes) -> bool:
    """Whether a JSON text may hold whole numbers beyond 64 bits, which orjson rounds: 20 digits, or 19 after a minus."""
    every = np.frombuffer(data, dtype=np.uint8)[::6]  # 19 digits in a row cover three of these: a quick look first
    digit = (every - np.uint8(ord("0"))) < 10  # what stands before "0" wraps round to large numbers
    if not (digit[2:] & digit[1:-1] & digit[:-2]).any():
        return False
    shape = data.translate(SHAPE)
    return any(long in shape for long in LONG_NUMBERS)


def _loads_leniently(data: bytes, first_error: str, allowed: float | None) -> tuple[Any, bool]:
    try:
        text = data.decode("utf-8", "surrogateescape")
        broken = BROKEN.search(data) is not None or not _encodes(text)
        check_parsed(data, allowed, copies=1 + broken)
        value = json.loads(text, parse_int=_integer)
        cleaned = clean(value) if broken else value
    except TooMuchJson:
        raise
    except RecursionError:
        raise BadJson("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise BadJson(first_error or str(error)) from None
    except ValueError as error:
        raise BadJson(str(error)) from None
    return cleaned, broken and cleaned != value


def _encodes(text: str) -> bool:
    """Whether a text holds no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def repeated_keys(data: bytes) -> int:
    """How many keys stand twice in one object of a JSON text (readers take the last); 0 where it is too long to look."""
    found = 0

    def pairs(items: list[tuple[str, Any]]) -> int:
        nonlocal found
        found += len(items) - len({key for key, _ in items})
        return 0

    if len(data) > CHECKED_FOR_REPEATS or parsed_bytes(data) > ALWAYS_PARSED // 2:
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


def word(value: Any) -> str:
    """A value as a plain word: a text as it is, a number as Python writes it, a list or object as JSON.

    `str` of a list that is nested as deep as a file can make it ends in a RecursionError.
    """
    return dumps(value) if isinstance(value, (list, dict)) else str(value)


def is_json(text: str) -> bool:
    """Whether the text is one JSON value."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
