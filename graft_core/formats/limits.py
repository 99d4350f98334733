"""How much a file may ask for: sizes, numbers and depths past which it is not read further, so that no file hangs a load.

All are far above what rollouts need. A file that goes past one is refused, or its record rejected, with the reason.
"""

from __future__ import annotations

from typing import Final

HEAD_BYTES: Final = 1 << 16
"""Bytes looked at to tell the format."""

LONGEST_FIRST_LINE: Final = 1 << 26
"""Bytes of a first line that has no end within `HEAD_BYTES`."""

BLOCK_BYTES: Final = 1 << 20
"""Bytes read at once."""

LONGEST_LINE: Final = 1 << 28
"""Bytes of one line of JSONL; a longer one is rejected."""

FEWEST_EXPANDED: Final = 1 << 26
"""A compressed file or archive may always grow to this many bytes ..."""

MOST_EXPANSION: Final = 200
"""... and beyond that to this many times its own size; texts grow 5 to 20 times."""

MOST_MEMBERS: Final = 200_000
"""Members of a zip archive."""

LARGEST_MEMBER: Final = 1 << 28
"""Bytes of one member of a zip archive, decompressed."""

SMALL_TEXT: Final = 1 << 23
"""Bytes of a JSON text up to which its brackets are not counted before it is parsed."""

ALWAYS_PARSED: Final = 400_000_000
"""Bytes of memory that a JSON text may always take once parsed (a list of empty lists takes twenty times its length) ..."""

MOST_PARSED: Final = 8.5
"""... and beyond that this many times its length, counted as `jsonio.parsed_bytes` does; rollouts take 1.4 to 7.6 times."""

ALWAYS_UNPACKED: Final = 200_000_000
"""The JSON text of a compressed file may always take this much memory once parsed ..."""

MOST_UNPACKED: Final = 250
"""... and beyond that this many times the size of the file; texts grow 5 to 20 times, and then 1.4 to 7.6 times."""

FEWEST_ROLLOUTS: Final = 50_000
"""A compressed file may always hold so many lines of one rollout each, beyond that ..."""

ROLLOUTS_PER_BYTE: Final = 1 / 8
"""... so many for each byte of its size."""

FEWEST_STEPS: Final = 500_000
"""A compressed file or a Parquet file may always hold so many rows of one step each, beyond that ..."""

STEPS_PER_BYTE: Final = 1
"""... so many for each byte of its size."""

HOPELESS: Final = 100_000
"""Records of a file that cannot be used, nearly all there were, after which the rest is not looked at."""

CHECKED_FOR_REPEATS: Final = 1 << 24
"""Bytes of a JSON document up to which keys that an object has twice are looked for."""

MOST_DIGITS: Final = 300
"""Digits up to which a whole number is read as one (a float holds 308); longer ones stay text."""

LARGEST_EXTRA: Final = 4_000
"""Characters of one extra value that is kept in the metadata of a rollout or step."""

LONGEST_RULE: Final = 200
"""Characters of a success rule."""
