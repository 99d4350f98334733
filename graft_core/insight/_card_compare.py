"""Comparing a card with what its data give: every field, and texts to the letter unless the card says it is redacted."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

import orjson

from graft_core.insight._card_content import Look, content
from graft_core.insight._card_shape import shown
from graft_core.insight._card_text import CUT, MARK, Redaction, matches
from graft_core.insight.findings import Findings
from graft_core.insight.labels import plain

TOLERANCE: Final = 1e-9
PARTS: Final = ("numbers", "finding", "evidence", "moment", "claim")

_HIDES = re.compile(r"claim\.(sentence|because\[\d+\])|evidence\.\w+|moment\.(text|actions\[\d+\]\.(action|to\.text))")
"""Where text of the data stands that may be redacted; the names of tasks, rollouts and files are looked at one by one."""
_WORDING = re.compile(
    r"claim\.(title|sentence|because|formulas|value_word)\b|certainty\.(word|meaning|sentence)$|chance\.sentence$"
)
"""What is said in a version's own words; all else is numbers, names and texts of the data."""


@dataclass
class Compared:
    """What came of comparing: sentences about what differs, those about mere wording apart, and the paths of the texts that
    are not fully readable on the card."""

    numbers: list[str] = field(default_factory=list)
    wording: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)

    def add(self, path: str, sentence: str) -> None:
        (self.wording if _WORDING.match(path) else self.numbers).append(sentence)


def compare_content(card: Mapping[str, Any], found: Findings, position: int, names: Redaction, into: Compared) -> None:
    """Everything that follows from the data and the settings alone, with the tasks and rollouts called as on the card."""
    exact = plain_data(content(found, position, Look(names)))
    whole = bare = exact
    if card.get("redacted") is True:
        whole = plain_data(content(found, position, Look(names, cut=False)))
        bare = plain_data(content(found, position, Look(Redaction((), True, names.names))))
    for part in PARTS:
        for path, said, here in differing(card[part], exact[part], part):
            if said is not None and may_hide(path, said, _at(whole, path), _at(bare, path)):
                into.hidden.append(path)
            else:
                into.add(path, sentence(path, said, here))


def compare(card: Any, here: Any, where: str, into: Compared) -> None:
    """A part in which nothing is ever redacted."""
    for path, said, other in differing(card, here, where):
        into.add(path, sentence(path, said, other))


def may_hide(path: str, said: Any, whole: Any, bare: Any) -> bool:
    """Whether a text that differs can be the one of the data with something redacted.

    Its visible pieces stand in the whole text in order, and it shows at least what a card does on which every text of the
    data is redacted: the words of the claim are the tool's own, and nothing hides them.
    """
    if not (_HIDES.fullmatch(path) and all(isinstance(text, str) for text in (said, whole, bare))):
        return False
    return (MARK in said or CUT in said) and matches(said, whole) and matches(bare, said)


def call_as_on_card(card: Mapping[str, Any], group: str, rollouts: list[str], here: list[str], into: Compared) -> Redaction:
    """How the card calls the task and its rollouts, where it may: as in the data, redacted, or after a file since renamed.

    here: names of the files at hand. A name that the card must not use stays as in the data, and is named as a difference.
    """
    redacted = card.get("redacted") is True
    said, names, hidden = str(card["finding"]["group_id"]), {group: group}, set()
    if redacted and _redacts(said, group):
        into.hidden.append("finding.group_id")
        names[group] = said
    elif card["data"]["group_by"] == "file" and _called_after(said, card["data"]["files"], here):
        names[group] = said
    for number, (row, name) in enumerate(zip(card["fingerprint"], rollouts)):
        names.setdefault(name, name)
        if redacted and _redacts(row["id"], name):
            into.hidden.append(f"fingerprint[{number}].id")
            names[name] = row["id"]
            hidden.add(row["id"])
        elif row["id"] != name:
            into.numbers.append(sentence(f"fingerprint[{number}].id", row["id"], name))
        if row["texts"] is None and not redacted:
            into.numbers.append(f"fingerprint[{number}].texts is undefined, and the card says that nothing is redacted")
    if card["finding"]["rollout_id"] in hidden:
        into.hidden.append("finding.rollout_id")
    return Redaction(names=tuple(names.items()))


def _redacts(said: str, whole: str) -> bool:
    return said != whole and MARK in said and (matches(said, plain(whole)) or matches(said, whole))


def _called_after(group: str, files: list[Mapping[str, str]], here: list[str]) -> bool:
    """Whether the files have other names now, and a task has the name of one of them without its ending."""
    last = group.rsplit("/", 1)[-1]
    names = [PurePosixPath(file["file"]).name for file in files]
    return [file["file"] for file in files] != here and any(f"{name}.".startswith(f"{last}.") for name in names)


def differing(card: Any, here: Any, where: str) -> Iterator[tuple[str, Any, Any]]:
    """(path, on the card, here) of each number or text that did not come out; texts must agree to the letter."""
    if isinstance(card, Mapping) and isinstance(here, Mapping):
        for name in dict.fromkeys([*card, *here]):
            if name in card and name in here:
                yield from differing(card[name], here[name], f"{where}.{name}")
            else:
                yield f"{where}.{name}", card.get(name), here.get(name)
    elif isinstance(card, list) and isinstance(here, list) and len(card) == len(here):
        for number, (one, other) in enumerate(zip(card, here, strict=True)):
            yield from differing(one, other, f"{where}[{number}]")
    elif not _equal(card, here):
        yield where, card, here


def sentence(path: str, said: Any, here: Any) -> str:
    """What differs, in words."""
    if isinstance(said, list) and isinstance(here, list):
        return f"{path} has {len(here)} entries, the card has {len(said)}"
    return f"{path} is {shown(here)}, the card says {shown(said)}"


def plain_data(data: Any) -> Any:
    """Data as they come back from a JSON file."""
    return orjson.loads(orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY))


def _equal(card: Any, here: Any) -> bool:
    if isinstance(card, bool) or isinstance(here, bool):
        return card is here
    if _is_number(card) and _is_number(here):
        return bool(abs(card - here) <= TOLERANCE * max(1.0, abs(here)))
    return bool(card == here)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _at(data: Any, path: str) -> Any:
    """What stands at a path such as "moment.actions[0].to.text", or None."""
    for name, number in re.findall(r"(\w+)|\[(\d+)\]", path):
        try:
            data = data[int(number)] if number else data[name]
        except (KeyError, IndexError, TypeError):
            return None
    return data
