"""`masked:NAME` or `masked:/EXPRESSION/`: a pattern in the text does not count; off unless asked for.

A mask removes a difference that does not matter (a clock, a step counter). It is wrong where the number is the state: a
counter, a card, a price, "drawer 1" and "drawer 2". Look at `preview` before trusting one. Expressions are RE2 (linear
time, no look-around). Several masks are several rules.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from graft_core.errors import UsageError
from graft_core.registry import nearest
from graft_core.rollouts import RolloutBatch
from graft_core.states._text import expression, map_texts
from graft_core.states.base import Keys, StateRule

_CLOCK: Final = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"

MASKS: Final = {
    "step-counter": (
        r"(?i)\b((?:time ?)?step|turn|move|moves|iteration|attempt|round)(s? ?(?:left)?[\"']?\s?[:#=]?\s?)"
        r"\d+(?:\s?(?:/|of)\s?\d+)?\b",
        r"\1\2<n>",
    ),
    "timestamp": (
        rf"\b\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]{_CLOCK}(?:Z|[+-]\d{{2}}:?\d{{2}})?)?|\b{_CLOCK}(?:\s?[AaPp][Mm])?\b",
        "<time>",
    ),
    "number": (r"[-+]?\d+(?:[.,]\d+)*", "<number>"),
    "hex": (r"\b(?:0[xX][0-9a-fA-F]+|[0-9a-fA-F]{8,64})\b", "<hex>"),
    "uuid": (r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b", "<uuid>"),
    "path": (r"(^|[\s\"'`=(:,<>\[])(?:(?:~|\.{1,2})?(?:/[\w.@~+-]+){2,}/?|[A-Za-z]:(?:\\[\w.@~+-]+)+)", r"\1<path>"),
    "status-bar": (r"\n*>\s*-=[^\n]*=-\s*-?\d+/\d+\s*$", ""),
}
"""Ready masks: expression and what stands in its place."""


def mask(parameter: str) -> tuple[str, str]:
    """(expression, replacement) of a ready mask or of an own expression between slashes."""
    if parameter in MASKS:
        return MASKS[parameter]
    if parameter.startswith("/"):
        return expression("masked", parameter), "<masked>"
    raise UsageError(
        f"rule masked:{parameter}: unknown mask{nearest(parameter, MASKS)}; expected one of {', '.join(MASKS)} or an "
        "expression between slashes"
    )


def _masked(batch: RolloutBatch, keys: Keys, parameter: str) -> Keys:
    pattern, replacement = mask(parameter)

    def replaced(texts: pa.Array) -> pa.Array:
        return pc.replace_substring_regex(texts, pattern=pattern, replacement=replacement)

    return map_texts(keys, replaced)


RULE = StateRule(
    name="masked",
    meaning="the text is identical apart from a pattern",
    stage="text",
    apply=_masked,
    parameter="NAME or /EXPRESSION/",
    rank=10,
    check=mask,
)
