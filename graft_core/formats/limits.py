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

CHECKED_FOR_REPEATS: Final = 1 << 24
"""Bytes of a JSON document up to which keys that an object has twice are looked for."""

MOST_DIGITS: Final = 300
"""Digits up to which a whole number is read as one (a float holds 308); longer ones stay text."""

LARGEST_EXTRA: Final = 4_000
"""Characters of one extra value that is kept in the metadata of a rollout or step."""

LONGEST_RULE: Final = 200
"""Characters of a success rule."""
