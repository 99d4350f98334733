"""Checking a card: find its data, compute the finding again, and say what differs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from graft_core import __version__
from graft_core.errors import GraftError, InputError, UsageError
from graft_core.insight._card_content import Look, content, luck, settings_words, sureness
from graft_core.insight._card_data import combined, differences, fingerprint, hashed
from graft_core.insight._card_find import Found, find_data
from graft_core.insight._card_text import MARK, Redaction, matches
from graft_core.insight.chance import chance
from graft_core.insight.findings import Findings, findings
from graft_core.insight.labels import plain
from graft_core.rollouts import RolloutBatch
from graft_core.settings import Settings

TOLERANCE: Final = 1e-9
MOST_SHUFFLES: Final = 100_000
REPRODUCED, OTHER_DATA, DIFFERS = "reproduced", "different data", "not reproduced"
NUMBERS: Final = ("numbers", "moment", "certainty", "chance", "finding")
WORDING: Final = ("because", "formulas", "title", "sentence", "word", "meaning", "symbols", "text", "note", "value_word")
"""Fields whose wording is the version's own; they are compared only where the card was made by this very version."""


@dataclass(frozen=True)
class Verification:
    """What came of a check. status: reproduced, "different data" or "not reproduced"; details: one sentence for each thing
    that differs (plain text, partly from the data); data: the file or folder that was looked at."""

    status: str
    details: tuple[str, ...] = ()
    data: str = ""
    card_version: str = ""
    version: str = __version__

    @property
    def ok(self) -> bool:
        return self.status == REPRODUCED

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "details": list(self.details)}


def check_card(card: Mapping[str, Any], near: Sequence[Path], paths: Sequence[Path]) -> Verification:
    """See `cards.verify_card`."""
    try:
        found = _check(card, near, paths)
    except InputError:
        raise
    except UsageError as error:
        raise InputError(f"the card asks for what cannot be done here: {error}") from None
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError) as error:
        raise InputError(f"a broken finding card: {type(error).__name__} {error}") from None
    return replace(found, details=tuple(plain(sentence) for sentence in found.details))


def _check(card: Mapping[str, Any], near: Sequence[Path], paths: Sequence[Path]) -> Verification:
    settings = settings_of(card["settings"])
    place = find_data(card["data"], near, paths)
    said, here = str(card["version"]), str(place.shown)
    changed = _changed_files(card["data"], place)
    batch = place.batch
    if batch is None:
        return Verification(OTHER_DATA, (*changed, f"and they cannot be loaded: {place.problem}"), here, said)
    batch = _as_on_card(batch, float(card["settings"]["success_threshold"]))
    position = position_of(card, batch, same_data=not changed)
    if changed:
        return Verification(OTHER_DATA, (*changed, *_other_data(card, batch, settings, position)), here, said)
    if position is None:
        return Verification(DIFFERS, ("the data hold no such step",), here, said)
    details = _compare(card, findings(batch, settings), position)
    return Verification(DIFFERS if details else REPRODUCED, tuple(details), here, said)


def settings_of(words: Mapping[str, Any]) -> Settings:
    """The settings on a card. Raises `InputError` where this version does not know one of them."""
    try:
        settings = Settings.from_words({str(k): str(v) for k, v in words["words"].items() if k != "rules"})
        return settings.with_options(
            rules=tuple(words["rules"]), estimator=words["estimator"], baseline=words["baseline"],
            **{name: words[name] for name in ("actions", "sinks", "weighting", "rewards", "solver", "prior")},
        )  # fmt: skip
    except GraftError as error:
        raise InputError(f"the card's settings cannot be used here: {error}") from None


def position_of(card: Mapping[str, Any], batch: RolloutBatch, same_data: bool) -> int | None:
    """Path position of the card's step: by its row in the same data or if the names fit, else by its names, else none."""
    step = card["finding"]
    row = int(step["row"])
    at = np.flatnonzero(batch.order == row)
    if at.size and (same_data or _named(batch, int(at[0]), step)):
        return int(at[0])
    if MARK in step["group_id"] or MARK in step["rollout_id"]:
        return int(at[0]) if at.size else None
    for position in np.flatnonzero(batch.step_index == step["step"]).tolist():
        if _named(batch, position, step):
            return int(position)
    return None


def _named(batch: RolloutBatch, position: int, step: Mapping[str, Any]) -> bool:
    row = int(batch.step_rollout[position])
    names = (step["group_id"], batch.group_ids[int(batch.group[row])]), (step["rollout_id"], batch.rollout_ids[row])
    return batch.step_index[position] == step["step"] and all(matches(shown, whole) for shown, whole in names)


def _as_on_card(batch: RolloutBatch, threshold: float) -> RolloutBatch:
    return batch if batch.success_threshold == threshold else replace(batch, success_threshold=threshold, memo={})


def _changed_files(data: Mapping[str, Any], place: Found) -> list[str]:
    """One sentence for each file that is not the card's."""
    card = [(str(file["file"]), str(file["sha256"])) for file in data["files"]]
    here = hashed(place.files, place.folder)
    if [sha for _, sha in card] == [sha for _, sha in here]:
        return [] if combined(card) == data["sha256"] or any(MARK in name for name, _ in card) else [
            "the SHA-256 of all files together is not the card's"
        ]  # fmt: skip
    if len(card) == len(here) == 1:
        return [f"{here[0][0]} has SHA-256 {here[0][1]}, the card says {card[0][1]}"]
    of_card, found = dict(card), dict(here)
    said = [f"{name} has SHA-256 {found[name]}, the card says {sha}" for name, sha in card if found.get(name, sha) != sha]
    said += [f"{name} is missing here" for name in of_card if name not in found]
    said += [f"{name} is not on the card" for name in found if name not in of_card]
    return said or ["the files are the card's, but in another order"]


def _other_data(card: Mapping[str, Any], batch: RolloutBatch, settings: Settings, position: int | None) -> list[str]:
    """What the change of data means for the finding: which rollouts of its task changed, and which of its numbers."""
    step = card["finding"]
    if position is None:
        missing = f"there is no step {step['step']} of rollout {step['rollout_id']} of task {step['group_id']} here"
        if step["group_id"] not in batch.group_ids:
            return [missing]
        rollouts = fingerprint(batch, batch.group_ids.index(step["group_id"]), Redaction())
        return [*differences(card["fingerprint"], rollouts), missing]
    group = int(batch.group[batch.step_rollout[position]])
    said = differences(card["fingerprint"], fingerprint(batch, group, Redaction()))
    said = said or ["the rollouts of this task are the card's; the change is elsewhere"]
    try:
        found = findings(batch, settings)
        numbers = list(_leaves(card["numbers"], content(found, position, Look(cut=False))["numbers"], "numbers", True))
    except GraftError as error:
        return [*said, f"the finding cannot be computed from them: {error}"]
    return [*said, *(numbers or ["the finding's own numbers are the card's all the same"])]


def _compare(card: Mapping[str, Any], found: Findings, position: int) -> list[str]:
    same_version = card["version"] == __version__
    group = int(found.batch.group[found.batch.step_rollout[position]])
    fresh = content(found, position, Look(cut=False))
    fresh["certainty"] = sureness(found, position)
    asked = card.get("chance")
    if asked:
        if int(asked["shuffles"]) > MOST_SHUFFLES:
            raise InputError(f"the card asks for {asked['shuffles']} shuffles; expected at most {MOST_SHUFFLES:,}")
        dealt = chance(found.batch, found.settings, int(asked["shuffles"]), int(asked["seed"]), level=float(asked["level"]))
        fresh["chance"] = luck(dealt, position, group)
    fresh = orjson.loads(orjson.dumps(fresh, option=orjson.OPT_SERIALIZE_NUMPY))
    renamed = fresh["finding"]["group_id"] != card["finding"]["group_id"]
    if renamed and card["data"]["group_by"] == "file":  # the task is called after the file
        fresh["finding"]["group_id"] = card["finding"]["group_id"]
        fresh["claim"]["sentence"] = card["claim"]["sentence"]
    said = [
        sentence
        for part in ("numbers", "finding", "evidence", "moment", "certainty", "chance", "claim")
        if card.get(part) is not None
        for sentence in _leaves(card[part], fresh.get(part), part, same_version)
    ]
    said += differences(card["fingerprint"], fingerprint(found.batch, group, Redaction()))
    said += _leaves(card["settings"], _plain(settings_words(found)), "settings", same_version)
    if said:
        words = found.settings.to_words()
        said.append(
            f"computed by version {__version__}, the card by {card['version']}, with credit {found.settings.estimator} and "
            f"{found.settings.baseline}, settings " + (", ".join(f"{k}={v}" for k, v in words.items()) or "as preset")
        )
    return said


def _plain(data: Any) -> Any:
    return orjson.loads(orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY))


def _leaves(card: Any, here: Any, where: str, wording: bool) -> Iterator[str]:
    """One sentence for each number or text of the card that did not come out."""
    if isinstance(card, Mapping) and isinstance(here, Mapping):
        for name in dict.fromkeys([*card, *here]):
            if wording or name not in WORDING or where.startswith(("evidence", "moment")):
                yield from _leaves(card.get(name), here.get(name), f"{where}.{name}", wording)
    elif isinstance(card, list) and isinstance(here, list):
        if len(card) != len(here):
            yield f"{where} has {len(here)} entries, the card has {len(card)}"
        for number, (one, other) in enumerate(zip(card, here)):
            yield from _leaves(one, other, f"{where}[{number}]", wording)
    elif not _equal(card, here):
        yield f"{where} is {_word(here)}, the card says {_word(card)}"


def _equal(card: Any, here: Any) -> bool:
    if isinstance(card, str) and isinstance(here, str):
        return matches(card, here)
    if _is_number(card) and _is_number(here):
        return abs(card - here) <= TOLERANCE * max(1.0, abs(here))
    return bool(card == here) or (card in (None, "") and here in (None, ""))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _word(value: Any, most: int = 160) -> str:
    if value is None:
        return "undefined"
    text = repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"
