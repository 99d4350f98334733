"""Inspect AI logs: `.eval` (a zip archive with one member per sample) and `.json` (one object with a list of samples).

Group = sample id (task sets are told apart by the task's name), rollout = epoch. Outcome = the first score: C is 1, P is
1/2, I and N are 0, a number is itself, of an object the first number counts; a sample with an error or without a score is
unknown. Chat messages give the steps; references to attachments are put back, images become [image <hash>]. Members
of an archive stand in any order and are put in order of sample and epoch; the header may be missing while a log is
being written.
"""

from __future__ import annotations

import re
from typing import Any, Final

from graft_core.errors import InputError
from graft_core.formats._records import Gather, Row, extras, is_messages, with_ids
from graft_core.formats._zip import Archive, BadMember, opened
from graft_core.formats.chat import chat_steps
from graft_core.formats.jsonio import BadJson, loads, word
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

SAMPLES: Final = "samples/"
HEADERS: Final = ("header.json", "_journal/start.json")
WORDS: Final = {
    "C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "true": 1.0, "correct": 1.0, "no": 0.0, "false": 0.0, "incorrect": 0.0,
}  # fmt: skip
REFERENCE: Final = re.compile(r"(?:attachment|tc)://([0-9a-f]{32})")


def detect(head: Head) -> int:
    """Sure where an archive has samples or a log's header, or an object has `eval` beside `status` or `samples`."""
    if head.kind == "zip":
        return 2 if any(n.startswith((SAMPLES, "_journal/")) or n == "header.json" for n in head.members) else 0
    return 2 if _is_log(head.document) or _is_listing(head.document) else 0


def _is_log(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("eval"), dict) and bool({"status", "samples"} & set(value))


def _is_listing(value: Any) -> bool:
    """`logs.json`, which lies beside logs: the headers of all of them by file name."""
    return isinstance(value, dict) and len(value) > 0 and all(_is_log(v) and "samples" not in v for v in value.values())


def read(source: Source, rows: Rows) -> None:
    """One rollout per sample and epoch."""
    document = source.head.document
    if source.head.kind == "zip":
        with opened(source) as archive:
            _read_archive(archive, source, rows)
    elif not _is_log(document):
        raise InputError(f"{source.name}: this is a listing of Inspect logs without their samples; name the logs themselves")
    else:
        samples = document.get("samples")
        gather = Gather(rows)
        for index, sample in enumerate(samples if isinstance(samples, list) else []):
            _add(source, gather, index, sample, document["eval"])
        gather.finish()
        if not samples:
            rows.note(f"{source.name}: the log holds no samples")


def _read_archive(archive: Archive, source: Source, rows: Rows) -> None:
    if archive.problem:
        rows.warn("file_damaged", f"the archive's list of members cannot be read ({archive.problem})", source.name)
    names = [n for n in archive.names if n.startswith(SAMPLES) and n.endswith(".json")]
    ordered = sorted(names, key=_natural)
    if ordered != names:
        rows.note(f"{source.name}: the samples stand out of order in the archive; they were put in order of sample and epoch")
    source.memo["names"] = ordered
    header = _header(archive, source, rows)
    gather = Gather(rows)
    for index, name in enumerate(ordered):
        try:
            sample, cleaned = loads(archive.read(name))
        except (BadMember, BadJson) as error:
            rows.reject(index, str(error))
            continue
        if cleaned:
            rows.warn("surrogates_replaced", "broken characters were escaped", rows.where(index))
            rows.repaired.append(rows.record_key(index))
        _add(source, gather, index, sample, header)
    gather.finish()
    if not names:
        rows.note(f"{source.name}: the log holds no samples")


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A key that puts numbers in the order of numbers."""
    return [(0, int(p), "") if p.isdecimal() and len(p) < 19 else (1, 0, p) for p in re.split(r"(\d+)", name)]


def _header(archive: Archive, source: Source, rows: Rows) -> dict[str, Any]:
    """What the log says of the evaluation; empty where it says nothing."""
    for name in HEADERS:
        if name not in archive.names:
            continue
        try:
            value, _ = loads(archive.read(name))
        except (BadMember, BadJson):
            continue
        if isinstance(value, dict) and isinstance(value.get("eval"), dict):
            if name != HEADERS[0]:
                rows.note(f"{source.name}: the log was not finished (it has no header yet)")
            found: dict[str, Any] = value["eval"]
            return found
    rows.warn("file_damaged", "the log has no header, so its task is not known", source.name)
    return {}


def _add(source: Source, gather: Gather, index: int, sample: Any, header: dict[str, Any]) -> None:
    rows = gather.rows
    if not isinstance(sample, dict) or not is_messages(sample.get("messages")) or "id" not in sample:
        rows.reject(index, "the sample has no id or no list of messages")
        return
    steps, final = chat_steps(_put_back(source, sample, rows, index))
    task = header.get("task")
    known = isinstance(task, str) and task
    ids = {"group_id": sample["id"], "rollout_id": sample.get("epoch", 1), "task_set": task if known else source.label}
    declaration: Row = {
        **_outcome(sample, rows, index),
        "task_family": task if known else None,
        "truncated": True if sample.get("limit") else None,
        "metadata": extras(
            {
                "target": sample.get("target"),
                "scores": _values(sample),
                "model": header.get("model"),
                "run": header.get("run_id"),
                "sample": extras(sample.get("metadata")),
                "error": _error(sample),
                "limit": sample.get("limit"),
            }
        ),
    }
    gather.add(index, with_ids(ids, declaration, steps, final))


def _error(sample: Row) -> Any:
    error = sample.get("error")
    return error.get("message", error) if isinstance(error, dict) else error


def _values(sample: Row) -> dict[str, Any] | None:
    """The value of every score by the scorer's name; older logs have one `score`."""
    scores = sample.get("scores")
    if not isinstance(scores, dict):
        scores = {"score": sample["score"]} if sample.get("score") is not None else {}
    found = {name: score.get("value") if isinstance(score, dict) else score for name, score in scores.items()}
    return found or None


def _outcome(sample: Row, rows: Rows, index: int) -> Row:
    """{"outcome": ...} of a sample; empty where it was not scored."""
    if sample.get("error"):
        rows.warn("infrastructure_error", "a sample ended with an error", rows.where(index))
        return {"outcome": None}
    values = _values(sample)
    if not values:
        return {}
    if len(values) > 1:
        sentence = f"a sample has the scores {', '.join(map(str, list(values)[:5]))}; the first is its outcome"
        rows.warn("scores_several", sentence, rows.where(index))
    value = next(iter(values.values()))
    if isinstance(value, dict) and value:
        if len(value) > 1:
            sentence = f"a score has the parts {', '.join(map(str, list(value)[:5]))}; the first is the outcome"
            rows.warn("scores_several", sentence, rows.where(index))
        value = next(iter(value.values()))
    if isinstance(value, str) and (value in WORDS or value.strip().lower() in WORDS):
        rows.note("scores C, P, I and N were read as 1, 1/2, 0 and 0")
        return {"outcome": WORDS[value] if value in WORDS else WORDS[value.strip().lower()]}
    if isinstance(value, bool):
        return {"outcome": float(value)}
    if isinstance(value, (int, float)) or (isinstance(value, str) and _is_number(value)):
        return {"outcome": value}
    rows.warn("score_unreadable", f"a score is {word(value)[:40]!r}", rows.where(index))
    return {"outcome": None}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _put_back(source: Source, sample: Row, rows: Rows, index: int) -> list[Row]:
    """The messages of a sample with attachments in place of the references to them.

    All attachments put back together may be so large as a compressed file may grow; further ones stay references.
    """
    left = source.memo.setdefault("attachment characters", [source.most_expanded()])
    attachments = sample.get("attachments")
    held: dict[str, Any] = attachments if isinstance(attachments, dict) else {}
    found = [0, 0]

    def text(value: str) -> str:
        def one(match: re.Match[str]) -> str:
            kept = held.get(match[1])
            if isinstance(kept, str) and len(kept) <= left[0]:
                left[0] -= len(kept)
                found[1] += 1
                return kept
            found[0] += 1
            return match[0]

        return REFERENCE.sub(one, value) if "://" in value else value

    def deep(value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return text(value)
        if depth and isinstance(value, list):
            return [deep(item, depth - 1) for item in value]
        if depth and isinstance(value, dict):
            return {key: deep(item, depth - 1) for key, item in value.items()}
        return value

    messages = [{**m, **{k: deep(m[k], 5) for k in ("content", "tool_calls") if k in m}} for m in sample["messages"]]
    if found[0]:
        rows.warn(
            "attachment_missing",
            "a text refers to an attachment that the sample does not hold (or too often to a large one)",
            rows.where(index),
            found[0],
        )
    if found[1]:
        rows.note("attachments were put in place of the references to them", found[1])
    return messages


FORMAT: Final = Format(
    name="inspect-ai",
    meaning="Inspect AI log (.eval or .json): samples as tasks, epochs as rollouts",
    detected_by="a zip archive with samples/ and a header, or a JSON object with eval and samples",
    unit="item",
    detect=detect,
    read=read,
)
