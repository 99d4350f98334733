"""The form of a card: which fields it must have and of what kind, so that a broken one is named by its field."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from typing import Any, Final

TOOL: Final = "graft-lab"
FIELDS: Final = (
    "graft_card", "tool", "version", "made", "redacted", "finding", "claim", "evidence", "numbers", "moment", "certainty",
    "chance", "settings", "data", "fingerprint",
)  # fmt: skip
LEFT_OUT: Final = {"left_out": True}
"""What stands under "chance" on a card that was made without it."""

MOST_WHOLE: Final = 2**53
_VERSION = re.compile(r"\d+(\.\d+)+[A-Za-z0-9.+-]{0,40}")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST_WHOLE


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _or_null(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or test(value)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


KINDS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "object": (lambda value: isinstance(value, Mapping), "an object"),
    "list": (lambda value: isinstance(value, list), "a list"),
    "text": (_text, "a text"),
    "text?": (_or_null(_text), "a text or null"),
    "flag": (_flag, "true or false"),
    "whole": (_whole, "a whole number"),
    "number": (_number, "a number"),
    "number?": (_or_null(_number), "a number or null"),
}

SHAPE: Final[dict[str, Any]] = {
    "finding": {"row": "whole", "group_id": "text", "rollout_id": "text", "step": "whole"},
    "claim": {"because": ["text"], "formulas": ["object"]},
    "evidence": "object",
    "numbers": "object",
    "moment": {"actions": [{"to": "object"}]},
    "settings": {
        "words": "object", "estimator": "text", "baseline": "text", "rules": ["text"], "actions": "text", "sinks": "text",
        "weighting": "text", "rewards": "text", "solver": "text", "prior": "number", "success_threshold": "number",
        "options": "object",
    },
    "data": {
        "name": "text", "directory": "flag", "sha256": "text", "files": [{"file": "text", "sha256": "text"}],
        "group_by": "text?",
    },
    "fingerprint": [
        {
            "id": "text", "outcome": "number?", "success": "number?", "terminated": "flag", "truncated": "flag",
            "steps": "whole", "texts": "text?", "numbers": "text",
        }
    ],
}  # fmt: skip
"""What a check reads before it compares anything; fields that are only compared may be anything, and are named then."""

CHANCE: Final = {"shuffles": "whole", "seed": "whole", "level": "number"}


def problems(card: Mapping[str, Any]) -> Iterator[str]:
    """One sentence for each field that is missing or of the wrong kind, in the order of the card."""
    yield from _problems(card, SHAPE, "")
    for part, name in (("data", "files"), ("settings", "rules")):
        if isinstance(card.get(part), Mapping) and card[part].get(name) == []:
            yield f"{part}.{name} is an empty list, expected at least one entry"
    if isinstance(card.get("chance"), Mapping) and "left_out" not in card["chance"]:
        yield from _problems(card["chance"], CHANCE, "chance")


def _problems(value: Any, shape: Any, where: str) -> Iterator[str]:
    kind = shape if isinstance(shape, str) else "list" if isinstance(shape, list) else "object"
    fits, expected = KINDS[kind]
    if not fits(value):
        yield f"{where} is {shown(value)}, expected {expected}"
    elif isinstance(shape, list):
        for number, entry in enumerate(value):
            yield from _problems(entry, shape[0], f"{where}[{number}]")
    elif isinstance(shape, dict):
        for name, inner in shape.items():
            path = f"{where}.{name}" if where else name
            if name in value:
                yield from _problems(value[name], inner, path)
            else:
                yield f"{path} is missing"


def labels_wrong(card: Mapping[str, Any]) -> list[str]:
    """What is wrong with the fields that say who made the card and when, and which fields no card of this format has."""
    latest = date.today() + timedelta(days=1)  # the date of a place further east
    said = []
    if card.get("tool") != TOOL:
        said.append(_wrong(card, "tool", f"'{TOOL}'"))
    if not (_text(card.get("version")) and _VERSION.fullmatch(card["version"])):
        said.append(_wrong(card, "version", "a version such as '0.1.0'"))
    made = _date(card.get("made"))
    if made is None:
        said.append(_wrong(card, "made", "a date such as '2026-01-31'"))
    elif made > latest:
        said.append(f"made is {card['made']}, which is still to come")
    if not _flag(card.get("redacted")):
        said.append(_wrong(card, "redacted", "true or false"))
    if not isinstance(card.get("certainty"), Mapping):
        said.append(_wrong(card, "certainty", "an object"))
    chance = card.get("chance")
    if not isinstance(chance, Mapping) or ("left_out" in chance and chance != LEFT_OUT):
        said.append(_wrong(card, "chance", 'an object, or {"left_out": true}'))
    return [*said, *_strangers(card)]


def _strangers(card: Mapping[str, Any]) -> Iterator[str]:
    """Fields that are compared with nothing, because no card has them."""
    data, row = SHAPE["data"], SHAPE["fingerprint"][0]
    known = [("", card, FIELDS), ("data.", card["data"], (*data, "success_when"))]
    known += [(f"data.files[{n}].", file, tuple(data["files"][0])) for n, file in enumerate(card["data"]["files"])]
    known += [(f"fingerprint[{n}].", rollout, tuple(row)) for n, rollout in enumerate(card["fingerprint"])]
    for where, fields, names in known:
        yield from (f"{where}{shown(name)[1:-1]} is no field of a card" for name in fields if name not in names)


def shown(value: Any, most: int = 160) -> str:
    """A value from a card or from the data, short enough for a sentence."""
    if value is None:
        return "undefined"
    if isinstance(value, Mapping):
        return "an object" if value else "an empty object"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    text = repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def _wrong(card: Mapping[str, Any], name: str, expected: str) -> str:
    found = f"is {shown(card[name])}" if card.get(name) is not None else "is missing"
    return f"{name} {found}, expected {expected}"


def _date(value: Any) -> date | None:
    try:
        return date.fromisoformat(value) if _text(value) and len(value) == 10 else None
    except ValueError:
        return None
