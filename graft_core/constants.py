"""Numbers that every part of the library has to agree on (method.md sec. 1 and 4)."""

from __future__ import annotations

from typing import Final

SIGN_TOLERANCE: Final = 1e-9
"""A credit counts as positive or negative only beyond this; the same for every count, list and colour."""

SUCCESS_TOLERANCE: Final = 1e-6
"""Where a file has no success flag, a rollout succeeded when outcome >= 1 - SUCCESS_TOLERANCE."""

RANGE_ABSOLUTE: Final = 1e-9
RANGE_RELATIVE: Final = 1e-6
"""A group whose range is <= RANGE_ABSOLUTE + RANGE_RELATIVE * max|x| has no spread: float residue, not signal."""

NO_TEXT: Final = -1
"""Text id that stands for 'there is no text' in numpy views of nullable id columns."""
