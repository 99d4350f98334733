"""Observations that say little about where the agent is: empty, "nothing happened", an error message."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graft_core.states._text import in_pieces

KINDS: Final = ("", "empty", "no-op", "error")
"""What the codes of `low_information` stand for; 0 = an ordinary observation."""

# Nothing but white space, brackets and quotes; or only tags, each with at most a small number (an exit status) behind it;
# or a word for nothing.
EMPTY: Final = (
    r"(?i)^[\s\[\]{}()'\"]*$"
    r"|^\s*(?:</?[a-z_][^>]*>\s*(?:-?\d{1,3}\s*)?)+$"
    r"|^\W{0,2}(?:none|null|nil|undefined|no output|empty output|no result)\W{0,2}$"
)
NO_OP: Final = (
    r"(?i)^\W{0,4}(?:nothing (?:happens|happened|changes|changed)"
    r"|i (?:don'?t|do not|didn'?t) understand|i only understood you as far as|that'?s not a verb|that is not a verb"
    r"|(?:you )?can(?:'t|not) (?:do that|go that way|see any such thing)|there is no(?:thing| way) to"
    r"|(?:invalid|unknown|unrecogni[sz]ed|illegal|inadmissible) (?:action|command|move|tool|input)|no known action matches"
    r"|(?:this|that|your) (?:action|command|move) (?:is|was) (?:not |in)(?:valid|allowed|possible|admissible))"
)
ERROR: Final = (
    r"(?i)^\W{0,4}(?:[a-z_.]{0,40}(?:error|exception)\b|traceback \(most recent|fatal:|failed to |failure:|usage:"
    r"|(?:/bin/)?(?:ba|z|da)?sh: )"
    r"|: (?:command not found|no such file or directory|permission denied)\s*$"
)


def low_information(texts: pa.Array) -> npt.NDArray[np.int8]:
    """Kind of each text as a position in `KINDS`; shortness alone is no reason. int8[len(texts)]."""

    def kinds(piece: pa.Array) -> pa.Array:
        short = pc.less(pc.binary_length(piece), 4000)
        found = [pc.and_(short, pc.match_substring_regex(piece, pattern=p)) for p in (EMPTY, NO_OP, ERROR)]
        return pc.case_when(pc.make_struct(*found), *(pa.scalar(k, pa.int8()) for k in (1, 2, 3)), pa.scalar(0, pa.int8()))

    made: npt.NDArray[np.int8] = np.asarray(in_pieces(texts, kinds)).astype(np.int8)
    return made
