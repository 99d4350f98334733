"""Which data a card is about: names and SHA-256 of the files, and a fingerprint of the task's rollouts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graft_core.insight._card_text import Redaction
from graft_core.provenance import sha256_of
from graft_core.rollouts import RolloutBatch

TEXT_COLUMNS = ("observation", "state", "action", "action_text")
NUMBER_COLUMNS = ("reward", "logprob", "value", "advantage")
DIGEST_BYTES = 8


def name_of(file: str | Path, folder: Path | None) -> str:
    """How a card calls a file: its path inside the loaded directory, else its bare name, never where it is kept."""
    path = Path(file)
    if folder is not None and path.is_relative_to(folder):
        return path.relative_to(folder).as_posix()
    return path.name


def hashed(files: Iterable[str | Path], folder: Path | None = None) -> list[tuple[str, str]]:
    """(name, SHA-256) of every file."""
    return [(name_of(file, folder), sha256_of(file)) for file in files]


def combined(files: Sequence[tuple[str, str]]) -> str:
    """One SHA-256 for all files: that of the only file, else that of the lines "SHA-256  name", sorted."""
    if len(files) == 1:
        return files[0][1]
    lines = sorted(f"{sha}  {name}\n" for name, sha in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def fingerprint(batch: RolloutBatch, group: int, hide: Redaction) -> list[dict[str, Any]]:
    """One row per rollout of a task: id, outcome, success, how it ended, number of steps, hashes of texts and numbers.

    Where a rollout has something to hide there is no hash of its texts, because short texts could be guessed from it.
    """
    rows = np.flatnonzero(batch.group == group).tolist()
    return [_rollout(batch, row, hide) for row in rows]


def _rollout(batch: RolloutBatch, row: int, hide: Redaction) -> dict[str, Any]:
    texts = _texts(batch, row)
    hidden = any(hide.hides(text) for text in texts)
    return {
        "id": hide.word(batch.rollout_ids[row]),
        "outcome": _number(float(batch.outcome[row])),
        "success": _number(float(batch.success[row])),
        "terminated": bool(batch.terminated[row]),
        "truncated": bool(batch.truncated[row]),
        "steps": int(batch.lengths[row]),
        "texts": None if hidden else _digest(text.encode("utf-8", "surrogatepass") for text in texts),
        "numbers": _digest(_numbers(batch, row)),
    }


def _texts(batch: RolloutBatch, row: int) -> list[str]:
    span = slice(int(batch.offsets[row]), int(batch.offsets[row + 1]))
    ids = np.stack([batch.step_ids(name)[span] for name in TEXT_COLUMNS], axis=1).ravel().tolist()
    admissible = batch.steps.column("admissible").take(batch.order[span])
    listed = [i for some in admissible.to_pylist() for i in (some or ())]
    ends = [int(batch.final_observation[row]), int(batch.final_state[row])]
    return [batch.text(i) for i in [*ids, *ends, *listed]]


def _numbers(batch: RolloutBatch, row: int) -> Iterable[bytes]:
    span = slice(int(batch.offsets[row]), int(batch.offsets[row + 1]))
    yield batch.step_index[span].astype("<i8").tobytes()
    for name in NUMBER_COLUMNS:
        column = np.where(np.isnan(batch.step_column(name)[span]), np.nan, batch.step_column(name)[span])
        yield column.astype("<f8").tobytes()
    yield str(batch.steps.column("valid").take(batch.order[span]).to_pylist()).encode()
    yield str(batch.rollouts.column("final_value")[row].as_py()).encode()


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


FIELDS = {
    "outcome": "outcome", "success": "success", "steps": "number of steps",
    "terminated": "terminated flag", "truncated": "truncated flag",
}  # fmt: skip


def differences(card: Sequence[Mapping[str, Any]], here: Sequence[Mapping[str, Any]]) -> list[str]:
    """What sets the rollouts that were found apart from those the card knows, one sentence for each difference.

    Rollouts are matched by id, or by their order in the task where ids are redacted.
    """
    redacted = len({row["id"] for row in card}) < len(card) or any("[redacted]" in str(row["id"]) for row in card)
    keys = [str(number) for number in range(1, len(card) + 1)] if redacted else [str(row["id"]) for row in card]
    found = {str(n): row for n, row in enumerate(here, 1)} if redacted else {str(row["id"]): row for row in here}
    said: list[str] = []
    for key, row in zip(keys, card, strict=True):
        name = f"rollout {key} of the task" if redacted else f"rollout {key}"
        said += [f"{name} is missing here"] if key not in found else _changes(name, row, found[key])
    said += [f"rollout {key} is not on the card" for key in found if key not in set(keys)]
    if not said and [str(row["id"]) for row in here] != keys and not redacted:
        said.append("the rollouts of the task stand in another order")
    return said


def _changes(name: str, card: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    said = [
        f"{word} of {name} is {_word(here[field])}, the card says {_word(card[field])}"
        for field, word in FIELDS.items()
        if here[field] != card[field]
    ]
    if card["outcome"] != here["outcome"]:  # the flag follows from the outcome where the file has none: one sentence is enough
        said = [sentence for sentence in said if not sentence.startswith("success of")]
    same_length = card["steps"] == here["steps"]
    if same_length and card["texts"] is not None and card["texts"] != here["texts"]:
        said.append(f"a text of {name} differs (observation, action, state or admissible actions)")
    if same_length and card["numbers"] != here["numbers"]:
        said.append(f"a number of {name} differs (step numbers, rewards, valid, log-probabilities, values or advantages)")
    return said


def _word(value: Any) -> str:
    if value is None:
        return "unknown"
    return f"{value:g}" if isinstance(value, float) else str(value)
