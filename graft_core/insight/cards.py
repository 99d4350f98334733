"""Finding cards: one finding to take away, as JSON, Markdown and picture, that anybody with the data can check."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from graft_core import __version__
from graft_core.errors import InputError, UsageError
from graft_core.exports import replace_with
from graft_core.insight._card_check import Verification, check_card
from graft_core.insight._card_content import Look, content, luck, settings_words, sureness
from graft_core.insight._card_data import combined, fingerprint, hashed
from graft_core.insight._card_markdown import markdown
from graft_core.insight._card_shape import LEFT_OUT, TOOL
from graft_core.insight._card_svg import svg
from graft_core.insight._card_text import redaction
from graft_core.insight.chance import Chance
from graft_core.insight.findings import Findings
from graft_core.rollouts import RolloutBatch

__all__ = ["Card", "Verification", "data_sha256", "find_step", "make_card", "read_card", "verify_card"]

FORMAT: Final = 1
PARTS: Final = ("finding", "claim", "evidence", "numbers", "moment", "settings", "data", "fingerprint")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Card:
    """A finding with its evidence, as plain data; Markdown and picture are made from that data and nothing else."""

    data: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What its files are called, without the ending: safe for any file system, the same for the same content."""
        step = self.data["finding"]
        words = [_NOT_IN_NAMES.sub("-", str(step[key]).lower()).strip("-")[:40] for key in ("group_id", "rollout_id", "step")]
        content = {key: value for key, value in self.data.items() if key not in ("made", "version")}
        digest = hashlib.sha256(orjson.dumps(content)).hexdigest()[:6]
        return "-".join(word for word in ["card", *words, digest] if word)

    def json(self) -> str:
        """The card that `graft verify` reads; undefined numbers are null."""
        return orjson.dumps(self.data, option=orjson.OPT_INDENT_2).decode() + "\n"

    def markdown(self) -> str:
        """The card for people; it shows the picture that lies beside it."""
        return markdown(self.data, f"{self.name}.svg")

    def svg(self) -> str:
        """The picture: self-contained, no script, nothing from elsewhere."""
        return svg(self.data)

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write NAME.json, NAME.md and NAME.svg into a folder (made if it is not there); returns the three paths."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        paths = []
        for ending, text in (("json", self.json()), ("md", self.markdown()), ("svg", self.svg())):
            path = place / f"{self.name}.{ending}"
            replace_with(path, lambda stream, text=text: stream.write(text.encode()))
            paths.append(path)
        return paths


def make_card(
    findings: Findings,
    position: int,
    files: Sequence[str | os.PathLike[str]],
    *,
    path: str | os.PathLike[str] | None = None,
    group_by: str | None = None,
    redact: str | Sequence[str] = (),
    redact_all: bool = False,
    chance: Chance | None = None,
    made: str | None = None,
) -> Card:
    """A card for the step at a path position (`Findings.good[i]`, `find_step`, ...).

    files: what the batch was read from (`LoadReport.files`); path: the directory, where one was loaded; group_by: how it
    was loaded (a success rule is known to the batch itself). redact: texts to hide wherever they stand, or "all" (the same
    as redact_all): every text of the data, names of tasks and rollouts too; file names only lose texts that are named.
    chance: what `insight.chance` found under the same settings, where the findings do not hold it; a card without it says
    that it is left out. made: the date, today if not given. Raises IndexError for a position outside the batch, `UsageError`
    for an empty text to redact or no files, OSError where a file cannot be read.
    """
    batch = findings.batch
    if not 0 <= position < batch.n_steps:
        raise IndexError(f"there is no step at position {position}; positions are 0 to {batch.n_steps - 1}")
    if not files:
        raise UsageError("a card needs the files that the batch was read from; none were given")
    hide = redaction(redact, redact_all)
    group = int(batch.group[batch.step_rollout[position]])
    folder = Path(path) if path is not None and Path(path).is_dir() else None
    dealt = chance or findings.chance
    named = hashed([os.fspath(file) for file in files], folder)
    names_only = redaction(() if redact == "all" else redact)
    data = {
        "graft_card": FORMAT,
        "tool": TOOL,
        "version": __version__,
        "made": made or date.today().isoformat(),
        "redacted": bool(hide.texts or hide.everything),
        **content(findings, position, Look(hide)),
        "certainty": sureness(findings, position),
        "chance": LEFT_OUT if dealt is None else luck(dealt, position, group),
        "settings": settings_words(findings),
        "data": {
            "name": names_only.word(folder.resolve().name if folder else named[0][0]),
            "directory": folder is not None,
            "sha256": combined(named),
            "files": [{"file": names_only.word(name), "sha256": sha} for name, sha in named],
            "group_by": group_by,
            "success_when": batch.memo.get("success_when"),
        },
        "fingerprint": fingerprint(batch, group, hide),
    }
    return Card(orjson.loads(orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY)))


def read_card(path: str | os.PathLike[str]) -> Card:
    """The card in a JSON file. Raises `InputError` with one sentence for anything else, OSError if it cannot be read."""
    name = Path(path).name
    try:
        data = orjson.loads(Path(path).read_bytes())
    except orjson.JSONDecodeError as error:
        raise InputError(f"{name}: no finding card, because it is not JSON ({error})") from None
    if not isinstance(data, dict) or "graft_card" not in data:
        raise InputError(f'{name}: no finding card; expected a JSON object with "graft_card": {FORMAT}')
    if data["graft_card"] != FORMAT:
        raise InputError(f"{name}: a finding card of format {data['graft_card']!r}; this version reads format {FORMAT}")
    missing = [part for part in PARTS if not isinstance(data.get(part), (dict, list))]
    if missing:
        raise InputError(f"{name}: a broken finding card, without {', '.join(missing)}")
    return Card(data)


def verify_card(
    card: Card, near: Sequence[str | os.PathLike[str]] = (), paths: Sequence[str | os.PathLike[str]] = ()
) -> Verification:
    """Compute a card's finding again from the data, and say whether it comes out the same.

    paths: where the data are; else they are looked up by the name on the card in the folders `near`, in that order.
    Raises `InputError` where the data cannot be found or read, or the card is broken.
    """
    return check_card(card.data, [Path(folder) for folder in near], [Path(path) for path in paths])


def data_sha256(files: Sequence[str | os.PathLike[str]], path: str | os.PathLike[str] | None = None) -> str:
    """One SHA-256 for the files a batch was read from (`LoadReport.files`), as on cards and for notes.

    path: the directory, where one was loaded. It is the SHA-256 of a single file itself, else that of the files'
    SHA-256 and names.
    """
    folder = Path(path) if path is not None and Path(path).is_dir() else None
    return combined(hashed([os.fspath(file) for file in files], folder))


def find_step(batch: RolloutBatch, group_id: str, rollout_id: str, step: int) -> int:
    """Path position of a step by its names. Raises `InputError` where there is no such task, rollout or step."""
    if group_id not in batch.group_ids:
        raise InputError(f"{batch.name}: no task {group_id!r}; tasks are {_some(batch.group_ids)}")
    of_group = np.flatnonzero(batch.group == batch.group_ids.index(group_id)).tolist()
    named = [row for row in of_group if batch.rollout_ids[row] == rollout_id]
    if not named:
        known = [batch.rollout_ids[row] for row in of_group]
        raise InputError(f"{batch.name}: task {group_id!r} has no rollout {rollout_id!r}; it has {_some(known)}")
    row = named[0]
    found = np.flatnonzero((batch.step_rollout == row) & (batch.step_index == step))
    if not found.size:
        steps = batch.step_index[batch.step_rollout == row]
        have = f"its steps are {steps.min()} to {steps.max()}" if steps.size else "it has no steps"
        raise InputError(f"{batch.name}: rollout {rollout_id!r} of task {group_id!r} has no step {step}; {have}")
    return int(found[0])


def _some(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more
