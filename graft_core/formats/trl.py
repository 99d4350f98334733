"""TRL completions (`log_completions`): Parquet with step, prompt, completion, one column per reward function, advantage.

One row is one rollout of one step (of several where prompt and completion are lists of messages). Group = equal prompt
within a training step. Outcome = the sum of the reward columns, as TRL adds them with its default weights; one that is
null or NaN was not given. Reward columns are the numbers whose name says reward, else all numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from graft_core.formats._parquet import check_decoded, opened, python_values
from graft_core.formats._prompt import prompt_id, tell_equal_rewards, tell_flattened
from graft_core.formats._records import Gather, Row, extras, is_messages, with_ids
from graft_core.formats._tags import executed
from graft_core.formats.chat import chat_steps
from graft_core.formats.jsonio import clean, dumps, word
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

NEEDED: Final = frozenset({"prompt", "completion"})
OWN: Final = NEEDED | {"step", "advantage"}
ROWS_AT_ONCE: Final = 256
LARGE_BATCH: Final = 1 << 26


def detect(head: Head) -> int:
    """Sure where a Parquet file has prompt, completion, and step or advantage."""
    columns = set(head.columns)
    return 2 if head.kind == "parquet" and columns >= NEEDED and columns & {"step", "advantage"} else 0


def read(source: Source, rows: Rows) -> None:
    """One rollout per row."""
    rows.note(f"{source.name}: one completion per rollout; rollout-level estimators are what it can tell apart")
    gather, index = Gather(rows), 0
    rewards: list[float] = []
    groups: set[str] = set()
    with opened(source) as file:
        names = reward_columns(file.schema_arrow)
        if len(names) > 1:
            rows.warn("rewards_summed", f"the outcome is the sum of {', '.join(names[:5])}", source.name)
        for item in _items(file, source):
            made = _rollout(clean(item), index, names, source, rows)
            if made:
                gather.add(index, made)
                groups.add(word(made[0]["group_id"]))
                rewards += [made[0]["outcome"]] if made[0]["outcome"] is not None else []
            index += 1
    gather.finish()
    tell_equal_rewards(rewards, len(groups), source, rows)


def _items(file: Any, source: Source) -> Iterator[Row]:
    """The rows one by one, some at a time as Python values."""
    total = 0
    for batch in file.iter_batches(ROWS_AT_ONCE):
        before, total = total, check_decoded(batch, source, total)
        size = ROWS_AT_ONCE if total - before < LARGE_BATCH else 1
        for start in range(0, batch.num_rows, size):
            yield from python_values(batch.slice(start, size))


def reward_columns(schema: pa.Schema) -> list[str]:
    """The columns that hold rewards: numbers whose name says reward, else all numbers that are nothing else."""
    numbers = [f.name for f in schema if f.name not in OWN and _is_number(f.type)]
    return [name for name in numbers if "reward" in name.lower()] or numbers


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _rollout(item: Row, index: int, names: list[str], source: Source, rows: Rows) -> list[Row]:
    prompt, completion = item["prompt"], item["completion"]
    if not (isinstance(prompt, str) or is_messages(prompt)) or not (isinstance(completion, str) or is_messages(completion)):
        rows.reject(index, "prompt or completion is neither text nor a list of messages")
        return []
    steps, final = _steps(prompt, completion)
    if isinstance(completion, str):
        tell_flattened(rows, index, completion)
    group = prompt_id(prompt if isinstance(prompt, str) else dumps(prompt, sort=True))
    step = item.get("step")
    task_set = source.label if step is None else f"step {step}"
    given = [float(item[n]) for n in names if item[n] is not None and not math.isnan(item[n])]
    advantage = item.get("advantage")
    if isinstance(advantage, (int, float)) and math.isfinite(advantage):
        steps = [{**row, "advantage": advantage} for row in steps]
    declaration: Row = {
        "outcome": sum(given) if given else None,
        "train_step": step,
        "metadata": extras(item, set(OWN)),
    }
    return with_ids({"group_id": group, "rollout_id": index, "task_set": task_set}, declaration, steps, final)


def _steps(prompt: Any, completion: Any) -> tuple[list[Row], str | None]:
    """The steps of one row: one for a text, one per message of the assistant for a conversation."""
    if isinstance(completion, str):
        done = executed(completion)
        seen = prompt if isinstance(prompt, str) else dumps(prompt)
        if is_messages(prompt):
            seen = next((row["observation"] for row in chat_steps([*prompt, {"role": "assistant"}])[0][-1:]), seen)
        step: Row = {"step": 0, "observation": seen, "action": done}
        return [step | ({"action_text": completion} if completion != done else {})], None
    given = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    return steps_after(given, completion)


def steps_after(given: list[Row], completion: list[Row]) -> tuple[list[Row], str | None]:
    """The steps of `completion`, the first of which sees what arrived last in `given` (examples in it are no steps)."""
    steps, final = chat_steps([*given, *completion])
    done = sum(1 for message in given if message.get("role") == "assistant")
    return [{**row, "step": number} for number, row in enumerate(steps[done:])], final if len(steps) > done else None


FORMAT: Final = Format(
    name="trl",
    meaning="TRL completions: one completion per rollout",
    detected_by="a Parquet file with prompt, completion, and step or advantage",
    unit="item",
    detect=detect,
    read=read,
)
