"""verl rollouts and validation dumps (`rollout_data_dir`, `validation_data_dir`): JSONL with {input, output, score, step}.

One line is one rollout of one step: a conversation of several turns is one text in `output` and cannot be split without
guessing. `step` is the training step. Group: `uid` is sample_rollout_output where a dump has it, else equal `input`.
Where a fork adds `traj_uid`, a line is one step of a rollout, in the order of the file. Extra columns go to the metadata;
numbers may be text.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final

from graft_core.formats._prompt import group_by_prompt, prompt_id, prompt_key, tell_equal_rewards, tell_flattened, tell_groups
from graft_core.formats._records import Gather, Row, extras, records, with_ids
from graft_core.formats._tags import executed
from graft_core.formats.jsonio import dumps, word
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

NEEDED: Final = ("input", "output")
SCORES: Final = ("score", "reward", "episode_rewards", "episode_reward")
SAYS: Final = frozenset({"input", "output", "score", "step", "uid", "traj_uid"})
V1_ID: Final = re.compile(r"(.+)_(\d+)_(\d+)\Z", re.DOTALL)
TRAJECTORY: Final = ("traj_uid", "trajectory_uid", "trajectory_uids")


def detect(head: Head) -> int:
    """Sure where a record has input, output and a score."""
    items = head.records if head.kind == "jsonl" else head.document if isinstance(head.document, list) else ()
    return 2 if any(isinstance(i, dict) and _usable(i) and any(s in i for s in SCORES) for i in items[:20]) else 0


def _usable(item: Row) -> bool:
    return all(isinstance(item.get(name), (str, list)) for name in NEEDED)


def read(source: Source, rows: Rows) -> None:
    """One rollout per line, or one step per line where lines name their trajectory."""
    scratch = Rows()
    scratch.start(source, "verl", "record")
    found = group_by_prompt(
        prompt_key(_text(item["input"])) for _, item in records(source, scratch) if _usable(item) and item.get("uid") is None
    )
    tell_groups(found, source, rows)
    gather = Gather(rows)
    paths: dict[str, list[tuple[int, Row]]] = {}
    rewards: list[float] = []
    groups: set[str] = set()
    coverage: Counter[str] = Counter()
    for record, item in records(source, rows):
        if not _usable(item):
            rows.reject(record, "the record has no text under input and output")
            continue
        coverage.update(k for k in item if k == "input" or k not in SAYS)
        path = next((item[name] for name in TRAJECTORY if item.get(name) is not None), None)
        if path is not None:
            paths.setdefault(dumps([item.get("uid"), path]), []).append((record, item))
            continue
        ids = _ids(item, record, found.use, source.label)
        outcome = _score(item, rows, record)
        if _contradicts(item):
            rows.warn("extras_disagree", "acc contradicts the score", rows.where(record))
        tell_flattened(rows, record, _text(item["output"]))
        gather.add(record, _one_step(ids, item, outcome))
        if isinstance(outcome.get("outcome"), (int, float)):
            rewards.append(float(outcome["outcome"]))
        groups.add(word(ids.get("group_id")))
    gather.finish()
    for lines in paths.values():
        rows.add(_trajectory(lines, source, rows), [lines[0][0], *(record for record, _ in lines)])
    tell_equal_rewards(rewards, len(groups), source, rows)
    _tell_coverage(coverage, source, rows)


def _tell_coverage(coverage: Counter[str], source: Source, rows: Rows) -> None:
    """Say which extra columns only some lines have; the writer drops those whose length is wrong."""
    lines = coverage["input"]
    partly = [f"{name} in {n}" for name, n in coverage.items() if n < lines][:8]
    if partly:
        rows.note(f"{source.name}: extra columns that not all of its {lines} lines have: {', '.join(partly)}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value, sort=True)


def _ids(item: Row, record: int, by_prompt: bool, task_set: str) -> Row:
    """Group and rollout of a line; no group where nothing says it."""
    uid = item.get("uid")
    if uid is not None:
        parts = V1_ID.match(word(uid))
        group, rollout = (parts[1], f"{parts[2]}_{parts[3]}") if parts else (uid, record)
        return {"group_id": group, "rollout_id": rollout, "task_set": task_set}
    if by_prompt:
        return {"group_id": prompt_id(_text(item["input"])), "rollout_id": record, "task_set": task_set}
    return {"rollout_id": record}


def _score(item: Row, rows: Rows, record: int) -> Row:
    """{"outcome": ...} of a line, told where it stands under another name."""
    name = next((n for n in SCORES if item.get(n) is not None), None)
    if name is None:
        return {}
    if name == "reward":
        rows.warn("aliases_used", f"read {name} as outcome", rows.where(record))
    value = item[name]
    if isinstance(value, list) and value and all(isinstance(v, (int, float)) for v in value):
        value = sum(value)
    return {"outcome": value}


def _contradicts(item: Row) -> bool:
    """Whether `acc` says right where the score says wrong, or the reverse."""
    try:
        right, score = float(item["acc"]), float(item["score"])
    except (KeyError, TypeError, ValueError):
        return False
    return (right == 1.0 and score <= 0.0) or (right == 0.0 and score >= 1.0)


def _action(item: Row) -> tuple[str, Row]:
    """The executed action, and {"action_text": ...} where more was said."""
    said = _text(item["output"])
    done = executed(said)
    return done, {"action_text": said} if said != done else {}


def _one_step(ids: Row, item: Row, outcome: Row) -> list[Row]:
    done, more = _action(item)
    step: Row = {"step": 0, "observation": item["input"], "action": done, **more}
    declaration: Row = {"train_step": item.get("step"), "metadata": extras(item, SAYS), **outcome}
    return with_ids(ids, declaration, [step], None)


def _trajectory(lines: list[tuple[int, Row]], source: Source, rows: Rows) -> list[Row]:
    """A rollout whose lines name their trajectory: steps in the order of the file."""
    record, first = lines[0]
    steps = []
    for number, (_, item) in enumerate(lines):
        done, more = _action(item)
        step = {"step": number, "observation": item["input"], "action": done, "valid": item.get("is_action_valid")}
        steps.append({**step, **more, "metadata": extras(item, SAYS)})
    ids: Row = {"rollout_id": next(first[n] for n in TRAJECTORY if first.get(n) is not None)}
    if first.get("uid") is not None:
        ids |= {"group_id": first["uid"], "task_set": source.label}
    outcome = _score(lines[-1][1], rows, lines[-1][0])
    sentence = "lines of one rollout have no step number; they were taken in the order of the file"
    rows.warn("step_missing", sentence, rows.where(record), len(lines))
    return with_ids(ids, {"train_step": first.get("step"), "order_doubtful": True, **outcome}, steps, None)


FORMAT: Final = Format(
    name="verl",
    meaning="verl rollout or validation dump: one text per rollout, no steps",
    detected_by="JSON lines with input, output and score",
    unit="record",
    detect=detect,
    read=read,
)
