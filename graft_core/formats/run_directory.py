"""A recorded run: `run.json` and `steps/NNNNNN.jsonl`, what `graft_core.record` writes.

The step files are canonical, with three differences. A task met again in a later training step is another group (the
policy was another one); its training step's file name is put in front of its id. A rollout is finished by the row that
declares it (`step` null): without one the recording broke off, and its outcome is unknown, whatever its rewards. A last
line that is not complete was being written when the process ended.
"""

from __future__ import annotations

from typing import Any, Final

from graft_core.errors import InputError
from graft_core.formats.canonical import check_version, parsed_blocks, without_collection
from graft_core.formats.fields import HEADER_KEY, apply_plan
from graft_core.formats.jsonio import word
from graft_core.formats.limits import FEWEST_STEPS, STEPS_PER_BYTE
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

RUN_FILE: Final = "run.json"
RUN_KEY: Final = "graft_run"
RUN_VERSION: Final = 1

Key = tuple[str, str]


def detect_steps(head: Head) -> int:
    """Sure where the first line says that the file belongs to a run."""
    return 2 if head.kind == "jsonl" and head.records and {HEADER_KEY, RUN_KEY} <= set(head.records[0]) else 0


def read_steps(source: Source, rows: Rows) -> None:
    """Read the file of one training step."""
    values: list[dict[str, Any]] = []
    numbers: list[int] = []
    with without_collection():
        for some, places in parsed_blocks(source, rows, source.most_records(FEWEST_STEPS, STEPS_PER_BYTE)):
            values.extend(some)
            numbers.extend(places)
    kept = []
    for position, value in enumerate(values):
        if HEADER_KEY in value:
            check_version(source, value[HEADER_KEY])
        else:
            kept.append(position)
    made, numbers = [_canonical(rows, values[i], source.label) for i in kept], [numbers[i] for i in kept]
    _mark_unfinished(rows, made, numbers)
    rows.add(made, numbers)


def _canonical(rows: Rows, value: dict[str, Any], task_set: str) -> dict[str, Any]:
    plan = rows.plan(tuple(value))
    made = value if plan.plain else apply_plan(value, plan)
    made["task_set"] = task_set
    return made


def _mark_unfinished(rows: Rows, values: list[dict[str, Any]], numbers: list[int]) -> None:
    """Say of rollouts without a declaring row that their outcome is unknown."""
    last: dict[Key, int] = {}
    finished: set[Key] = set()
    for position, value in enumerate(values):
        key = (word(value.get("group_id")), word(value.get("rollout_id")))
        last[key] = position
        if value.get("step") is None:
            finished.add(key)
    unfinished = [position for key, position in last.items() if key not in finished]
    for position in unfinished:
        values[position].setdefault("outcome", None)
    if unfinished:
        sentence = "the recording of a rollout broke off; its outcome is unknown"
        rows.warn("rollout_unfinished", sentence, rows.where(numbers[unfinished[0]]), len(unfinished))


def detect_run(head: Head) -> int:
    """Sure where a JSON object has the mark of `run.json`."""
    return 2 if isinstance(head.document, dict) and RUN_KEY in head.document and HEADER_KEY not in head.document else 0


def read_run_file(source: Source, rows: Rows) -> None:
    """Nothing: `run.json` describes the files beside it."""
    if source.named:
        raise InputError(f"{source.name}: this describes a run and holds no rollouts; name the directory it lies in")


FORMAT: Final = (
    Format(
        name="run-steps",
        meaning="recorded run: the steps of one training step, canonical rows",
        detected_by=f"JSON lines, the first with {HEADER_KEY} and {RUN_KEY}",
        unit="line",
        detect=detect_steps,
        read=read_steps,
        rank=50,
    ),
    Format(
        name="run",
        meaning="recorded run: name, settings and version",
        detected_by=f"a JSON object with {RUN_KEY}",
        unit="item",
        detect=detect_run,
        read=read_run_file,
        rank=50,
    ),
)
