"""--group-by: what makes a group, where the file does not say it or says something else."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graft_core.errors import InputError, UsageError
from graft_core.formats._shared_ids import shared_ids
from graft_core.formats.codes import WARNINGS
from graft_core.formats.jsonio import dumps, loads
from graft_core.rollouts import LoadReport, RolloutBatch, Warning_

CHOICES: Final = (
    "file, task, column:NAME (or NAME+NAME: equal in all of them) or regex:PATTERN, or actions (rollouts that share an id in "
    "their actions)"
)
TASK_COLUMNS: Final = (
    "task",
    "task_id",
    "instance_id",
    "problem_id",
    "example_id",
    "question",
    "instruction",
    "goal",
    "prompt",
)
STEP_WORDS: Final = ("observation", "state", "action", "action_text")

JOIN: Final = " + "
Groups = list[str | None]


def regroup(batch: RolloutBatch, report: LoadReport, group_by: str | None) -> tuple[RolloutBatch, LoadReport]:
    """The batch with groups set by `group_by`, or, for None, with the warning that groups were assumed.

    Every rollout must get a group: one sentence (`InputError`) says for how many none was found. A bad expression or
    an unknown column is a `UsageError`.
    """
    if group_by is None:
        return batch, _warn_assumed(batch, report)
    groups = groups_of(batch, group_by)
    missing = [i for i, group in enumerate(groups) if group is None]
    if missing:
        source = batch.rollouts.column("source")[missing[0]].as_py()
        raise InputError(f"--group-by {group_by}: {len(missing)} of {batch.n_rollouts} rollouts give no group, first {source}")
    return _with_groups(batch, report, [str(group) for group in groups])


def groups_of(batch: RolloutBatch, group_by: str) -> Groups:
    """The group of each rollout by a word of `CHOICES`; None where a rollout gives none."""
    kind, _, argument = group_by.partition(":")
    if group_by == "file":
        return list(_file_labels(batch))
    if group_by == "task":
        return _by_task(batch)
    if group_by == "actions":
        return shared_ids(batch, list(_file_labels(batch)))
    if kind == "column" and argument:
        return _by_columns(batch, argument)
    if kind == "regex" and argument:
        return _by_expression(batch, argument)
    raise UsageError(f"--group-by {group_by!r} is not known; expected {CHOICES}")


def _files(batch: RolloutBatch) -> list[str]:
    """The file that each rollout came from, without the place in it."""
    return [re.sub(r"(:\d+|\[[^\[\]]*\]|, row \d+)$", "", s or "") for s in batch.rollouts.column("source").to_pylist()]


def _file_labels(batch: RolloutBatch) -> list[str]:
    from graft_core.formats.load import file_labels

    files = _files(batch)
    distinct = list(dict.fromkeys(files))
    labels = dict(zip(distinct, file_labels([Path(f) for f in distinct]), strict=True))
    return [labels[file] for file in files]


def _by_task(batch: RolloutBatch) -> Groups:
    """The file's own groups; where they were only assumed, a column that names the task."""
    if not batch.groups_assumed:
        return list(map(str, batch.rollouts.column("group_id").to_pylist()))
    for name in TASK_COLUMNS:
        found = column_values(batch, name)
        if found is not None and None not in found:
            return found
    raise InputError(
        "--group-by task: no task is named in this batch (looked for a group id and for the columns "
        f"{', '.join(TASK_COLUMNS)}); choose file, column:NAME or regex:PATTERN"
    )


def _by_columns(batch: RolloutBatch, argument: str) -> Groups:
    """The values of a column or metadata key; of several, joined by +, all of them (a name may itself hold a +)."""
    whole = column_values(batch, argument)
    if whole is not None:
        return whole
    columns: list[Groups] = []
    for name in map(str.strip, argument.split("+")):
        found = column_values(batch, name) if name else None
        if found is None:
            raise UsageError(
                f"--group-by column:{argument}: no column or metadata key {name!r}; there are {column_names(batch)}"
            )
        columns.append(found)
    return [None if None in values else _joined([str(v) for v in values]) for values in zip(*columns, strict=True)]


def _joined(values: list[str]) -> str:
    """Several values as one name, different for different values."""
    return dumps(values) if any(JOIN in value for value in values) else JOIN.join(values)


def _by_expression(batch: RolloutBatch, pattern: str) -> Groups:
    """The first capture group found in the source path, else in the first observation."""
    try:
        expression = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"--group-by regex: {pattern!r} is no regular expression ({error})") from None
    if expression.groups < 1:
        raise UsageError(f"--group-by regex: {pattern!r} has no capture group; put the part that names the task in ( )")
    files, texts = _files(batch), _first_texts(batch, "observation")

    def found(text: str | None) -> str | None:
        match = expression.search(text) if text else None
        return match.group(1) if match else None

    in_file = {file: found(file) for file in set(files)}
    groups = [in_file[file] if in_file[file] is not None else found(text()) for file, text in zip(files, texts, strict=True)]
    if groups and not any(group != "" for group in groups):
        raise UsageError(f"--group-by regex: the capture group of {pattern!r} is empty in every rollout; put the task in ( )")
    return groups


def _first_rows(batch: RolloutBatch) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The batch row of each rollout's first step, -1 for a rollout without steps."""
    has = batch.lengths > 0
    starts = np.full(batch.n_rollouts, -1, dtype=np.int64)
    starts[has] = batch.order[batch.offsets[:-1][has]]
    return starts


def _first_texts(batch: RolloutBatch, name: str) -> list[Callable[[], str | None]]:
    ids = batch.steps.column(name).to_pylist()
    rows = _first_rows(batch).tolist()
    found = [ids[row] if row >= 0 else None for row in rows]
    return [lambda i=i: None if i is None else batch.text(i) for i in found]  # type: ignore[misc]


def column_values(batch: RolloutBatch, name: str) -> Groups | None:
    """One value per rollout of a column or a metadata key ("a.b" reaches inside), or None where nobody has it.

    Looked for among the columns of rollouts, their metadata, the columns of their first steps and the metadata of these.
    """
    words = name in ("final_observation", "final_state")
    if name in batch.rollouts.column_names and name not in ("metadata", "source"):
        column = batch.rollouts.column(name)
        if column.null_count < len(column) or not len(column):
            return [_text(batch.text(v) if words and v is not None else v) for v in column.to_pylist()]
    inside = metadata_values(batch.rollouts.column("metadata").to_pylist(), name)
    if any(v is not None for v in inside):
        return inside
    rows = _first_rows(batch)
    take = pa.array(rows, mask=rows < 0)
    if name in batch.steps.column_names and name not in ("rollout", "metadata", "admissible"):
        values = pc.take(batch.steps.column(name), take).to_pylist()
        if any(v is not None for v in values):
            return [_text(batch.text(v) if name in STEP_WORDS and v is not None else v) for v in values]
    inside = metadata_values(pc.take(batch.steps.column("metadata"), take).to_pylist(), name)
    return inside if any(v is not None for v in inside) else None


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return dumps(value, sort=True) if isinstance(value, (dict, list, bool)) else str(value)


def metadata_values(texts: list[str | None], name: str) -> Groups:
    """The value of a key in each JSON text."""
    out: Groups = []
    for text in texts:
        value: Any = loads(text.encode())[0] if text else None
        if isinstance(value, dict) and name in value:
            value = value[name]
        else:
            for part in name.split("."):
                value = value.get(part) if isinstance(value, dict) else None
        out.append(_text(value))
    return out


def column_names(batch: RolloutBatch) -> str:
    """Columns that hold something and metadata keys, for a message."""
    names = [n for n in batch.rollouts.column_names if batch.rollouts.column(n).null_count < batch.n_rollouts]
    keys: dict[str, None] = {}
    for table in (batch.rollouts, batch.steps):
        for text in table.column("metadata").slice(0, 100).to_pylist():
            keys.update(dict.fromkeys(loads(text.encode())[0] if text else {}))
    return ", ".join([*(n for n in names if n not in ("metadata", "source")), *list(keys)[:20]])


def _with_groups(batch: RolloutBatch, report: LoadReport, groups: list[str]) -> tuple[RolloutBatch, LoadReport]:
    """Set the groups; rollouts that share both ids afterwards get their file or a number in front of their id."""
    ids, seen, renamed = list(batch.rollout_ids), set(), []
    last: dict[tuple[str, str], int] = {}
    for row, group in enumerate(groups):
        if (group, ids[row]) in seen:
            number = last.get((group, ids[row]), 1) + 1  # those below are taken
            while (group, f"{ids[row]}#{number}") in seen:
                number += 1
            last[group, ids[row]] = number
            ids[row] = f"{ids[row]}#{number}"
            renamed.append(row)
        seen.add((group, ids[row]))
    table = batch.rollouts
    for name, values in (("group_id", groups), ("rollout_id", ids), ("group_assumed", [False] * len(groups))):
        at = table.column_names.index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))
    warnings = tuple(w for w in report.warnings if w.code != "group_ids_reused")
    if renamed:
        place = table.column("source")[renamed[0]].as_py()
        warnings += (_warning("rollout_ids_renamed", "two rollouts of one id came into one group", len(renamed), place),)
    regrouped = RolloutBatch(table, batch.steps, batch.texts, batch.name, batch.success_threshold)
    return regrouped, dataclasses.replace(report, warnings=warnings)


def _warn_assumed(batch: RolloutBatch, report: LoadReport) -> LoadReport:
    assumed = np.asarray(batch.rollouts.column("group_assumed").to_pylist(), dtype=bool)
    if not assumed.any():
        return report
    row = int(np.flatnonzero(assumed)[0])
    sentence = f"no task (group) is named; one group per file is assumed; choose with --group-by {CHOICES}"
    warning = _warning("group_missing", sentence, int(assumed.sum()), batch.rollouts.column("source")[row].as_py())
    return dataclasses.replace(report, warnings=(warning, *report.warnings))


def _warning(code: str, sentence: str, count: int, where: str) -> Warning_:
    assert code in WARNINGS
    return Warning_(code, sentence, count, where)
