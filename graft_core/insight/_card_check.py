"""Checking a card: find its data, compute the finding again, and say what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from graft_core import __version__
from graft_core.errors import GraftError, InputError, UsageError
from graft_core.insight._card_compare import (
    Compared,
    call_as_on_card,
    compare,
    compare_content,
    differing,
    plain_data,
    sentence,
)
from graft_core.insight._card_content import Look, content, luck, settings_words, sureness
from graft_core.insight._card_data import combined, differences, fingerprint, hashed
from graft_core.insight._card_find import Found, find_data
from graft_core.insight._card_shape import labels_wrong, problems, shown
from graft_core.insight._card_text import MARK, Redaction, matches
from graft_core.insight.chance import Chance, chance
from graft_core.insight.findings import Findings, findings
from graft_core.insight.labels import plain
from graft_core.rollouts import RolloutBatch
from graft_core.settings import Settings

MOST_SHUFFLES: Final = 100_000
REPRODUCED, OTHER_DATA, DIFFERS = "reproduced", "different data", "not reproduced"


@dataclass(frozen=True)
class Verification:
    """What came of a check. status: "reproduced" (everything that can be read on the card was compared and agrees),
    "different data" or "not reproduced"; details: one sentence for each thing that differs (plain text, partly from the
    data); notes: what could not be checked, because it is redacted; data: the file or folder that was looked at."""

    status: str
    details: tuple[str, ...] = ()
    data: str = ""
    card_version: str = ""
    version: str = __version__
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status == REPRODUCED

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "details": list(self.details), "notes": list(self.notes)}


def check_card(card: Mapping[str, Any], near: Sequence[Path], paths: Sequence[Path]) -> Verification:
    """See `cards.verify_card`."""
    for problem in problems(card):
        raise InputError(f"a broken finding card: {plain(problem)}")
    try:
        found = _check(card, near, paths)
    except InputError:
        raise
    except UsageError as error:
        raise InputError(f"the card asks for what cannot be done here: {error}") from None
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError):
        raise InputError("a broken finding card: its fields do not fit together as on a card that graft makes") from None
    return replace(found, details=tuple(plain(sentence) for sentence in found.details))


def _check(card: Mapping[str, Any], near: Sequence[Path], paths: Sequence[Path]) -> Verification:
    settings = settings_of(card["settings"])
    place = find_data(card["data"], near, paths)
    said, here = str(card.get("version")), str(place.shown)
    changed = _changed_files(card, place)
    batch = place.batch
    if batch is None:
        return Verification(OTHER_DATA, (*changed, f"and they cannot be loaded: {place.problem}"), here, said)
    batch = _as_on_card(batch, float(card["settings"]["success_threshold"]))
    position = position_of(card, batch, same_data=not changed)
    if changed:
        return Verification(OTHER_DATA, (*changed, *_other_data(card, batch, settings, position)), here, said)
    if position is None:
        return Verification(DIFFERS, ("the data hold no such step",), here, said)
    compared = _compare(card, findings(batch, settings), position, [name for name, _ in hashed(place.files, place.folder)])
    details = tuple(_told(card, settings, compared))
    return Verification(DIFFERS if details else REPRODUCED, details, here, said, notes=tuple(_unread(compared.hidden)))


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


def _changed_files(whole: Mapping[str, Any], place: Found) -> list[str]:
    """One sentence for each file that is not the card's."""
    data, hidden = whole["data"], whole.get("redacted") is True
    card = [(str(file["file"]), str(file["sha256"])) for file in data["files"]]
    here = hashed(place.files, place.folder)
    if [sha for _, sha in card] == [sha for _, sha in here]:
        renamed = hidden and any(MARK in name for name, _ in card)
        return [] if combined(card) == data["sha256"] or renamed else [
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
        here = plain_data(content(found, position, Look())["numbers"])
        numbers = [sentence(*each) for each in differing(card["numbers"], here, "numbers")]
    except GraftError as error:
        return [*said, f"the finding cannot be computed from them: {error}"]
    return [*said, *(numbers or ["the finding's own numbers are the card's all the same"])]


def _compare(card: Mapping[str, Any], found: Findings, position: int, files: list[str]) -> Compared:
    """Everything on the card against what its data give, part by part."""
    batch = found.batch
    group = int(batch.group[batch.step_rollout[position]])
    fresh = fingerprint(batch, group, Redaction())
    into = Compared(numbers=labels_wrong(card))
    names = call_as_on_card(card, batch.group_ids[group], [str(row["id"]) for row in fresh], files, into)
    compare_content(card, found, position, names, into)
    if isinstance(card.get("certainty"), Mapping):
        compare(card["certainty"], plain_data(sureness(found, position)), "certainty", into)
    asked = card.get("chance")
    if isinstance(asked, Mapping) and "left_out" not in asked:
        compare(asked, plain_data(luck(_dealt(asked, found), position, group)), "chance", into)
    into.numbers += differences(card["fingerprint"], fresh)
    compare(card["settings"], plain_data(settings_words(found)), "settings", into)
    _compare_names(card, files, into)
    return into


def _dealt(asked: Mapping[str, Any], found: Findings) -> Chance:
    if not 1 <= asked["shuffles"] <= MOST_SHUFFLES:
        raise InputError(f"the card asks for {asked['shuffles']} shuffles; expected 1 to {MOST_SHUFFLES:,}")
    return chance(found.batch, found.settings, asked["shuffles"], asked["seed"], level=float(asked["level"]))


def _compare_names(card: Mapping[str, Any], files: list[str], into: Compared) -> None:
    """The names of the data: a file may have another name now, but what is redacted has to be so by the card's own word."""
    data = card["data"]
    told = [("data.name", data["name"]), *((f"data.files[{n}].file", file["file"]) for n, file in enumerate(data["files"]))]
    first = data["files"][0]["file"]
    if not data["directory"] and data["name"] != first:
        into.numbers.append(f"data.name is {shown(data['name'])}, the file of the card is {shown(first)}")
    for path, name in told:
        if MARK in name and name not in files:
            if card.get("redacted") is True:
                into.hidden.append(path)
            else:
                into.numbers.append(f"{path} is {shown(name)}, and the card says that nothing is redacted")


def _told(card: Mapping[str, Any], settings: Settings, compared: Compared) -> Iterator[str]:
    """What differs, in sentences; the wording of another version is told apart from the numbers."""
    same, said = card.get("version") == __version__, card.get("version")
    yield from compared.numbers
    if compared.wording and not same:
        numbers = "numbers not reproduced" if compared.numbers else "numbers reproduced"
        yield f"the wording differs; the card was made by version {said}, this is {__version__}: {numbers}"
    yield from compared.wording
    if compared.numbers or (compared.wording and same):
        words = ", ".join(f"{name}={word}" for name, word in settings.to_words().items()) or "as preset"
        yield (
            f"computed by version {__version__}, the card by {said}, with credit {settings.estimator} and "
            f"{settings.baseline}, settings {words}"
        )


def _unread(hidden: Sequence[str], most: int = 6) -> Iterator[str]:
    """How many texts nobody could check, and which."""
    if hidden:
        one = len(hidden) == 1
        more = f" and {len(hidden) - most} more" if len(hidden) > most else ""
        yield (
            f"{len(hidden)} {'text is' if one else 'texts are'} redacted on this card, and what is hidden in "
            f"{'it' if one else 'them'} was not checked: {', '.join(hidden[:most])}{more}"
        )
