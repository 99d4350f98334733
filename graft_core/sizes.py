"""Sizes of files in words."""

from __future__ import annotations


def size_words(size: int, tenths: bool = True) -> str:
    """Bytes for people, in thousands; `tenths` shows one decimal below 100 of a unit."""
    amount = float(size)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.1f} {unit}" if tenths and unit != "bytes" and amount < 100 else f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
