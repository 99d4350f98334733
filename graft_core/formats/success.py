"""--success-when: a rule such as "reward >= 1" that says which rollouts succeeded. NAME OP NUMBER, never evaluated as code."""

from __future__ import annotations

import dataclasses
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graft_core.constants import SUCCESS_TOLERANCE
from graft_core.errors import UsageError
from graft_core.formats.grouping import Groups, column_names, column_values, metadata_values
from graft_core.formats.limits import LONGEST_RULE
from graft_core.rollouts import LoadReport, RolloutBatch

FORM: Final = re.compile(r"\s*([^\s<>=!]+)\s*(>=|<=|==|!=|=|>|<)\s*(\S+)\s*\Z")
OUTCOME_NAMES: Final = frozenset({"outcome", "reward", "score", "return"})
WORDS: Final = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
Floats = npt.NDArray[np.float64]
COMPARE: Final[dict[str, tuple[Callable[[Floats, float], npt.NDArray[np.bool_]], float]]] = {
    ">=": (operator.ge, -1.0),
    "<=": (operator.le, 1.0),
    ">": (operator.gt, 1.0),
    "<": (operator.lt, -1.0),
}


@dataclass(frozen=True)
class Rule:
    """A success rule: the value called `name` stands in relation `op` to `number`."""

    name: str
    op: str
    number: float

    def __str__(self) -> str:
        short = f"{self.number:g}"
        return f"{self.name} {self.op} {short if float(short) == self.number else repr(self.number)}"

    def holds(self, values: Floats) -> npt.NDArray[np.bool_]:
        """Whether it holds for each value, up to 1e-6 (method.md sec. 1): what is equal up to that counts as equal."""
        if self.op in ("==", "!="):
            equal = np.abs(values - self.number) <= SUCCESS_TOLERANCE
            return equal if self.op == "==" else ~equal
        compare, side = COMPARE[self.op]
        return compare(values, self.number + side * SUCCESS_TOLERANCE)


def parse_rule(text: str) -> Rule:
    """The rule a text names; `UsageError` says what was expected where it is none."""
    found = FORM.match(text) if len(text) <= LONGEST_RULE else None
    number = math.nan
    if found:
        word = found[3].lower()
        try:
            number = WORDS[word] if word in WORDS else float(word)
        except ValueError:
            found = None
    if not found or not math.isfinite(number):
        form = "NAME OP NUMBER, such as 'reward >= 1' (OP: >= > <= < == !=)"
        raise UsageError(f"--success-when {text[:60]!r} is no rule; expected {form}")
    return Rule(found[1], "==" if found[2] == "=" else found[2], number)


def rule_values(batch: RolloutBatch, name: str) -> Floats:
    """The value called `name` of each rollout, NaN where it has none.

    `outcome`, `reward`, `score` and `return` are the outcome unless a column or metadata key has that very name; `steps`
    is the number of steps. Flags count as 1 and 0. `UsageError` where no rollout has such a value.
    """
    found = None if name == "outcome" else _inside(batch, name) if name in OUTCOME_NAMES else column_values(batch, name)
    if found is not None:
        return np.array([_number(value) for value in found], dtype=np.float64)
    if name in OUTCOME_NAMES:
        return np.array(batch.outcome)
    if name in ("steps", "n_steps"):
        return batch.lengths.astype(np.float64)
    raise UsageError(f"--success-when: no value {name!r}; there are outcome, steps, {column_names(batch)}")


def _inside(batch: RolloutBatch, name: str) -> Groups | None:
    """The metadata key of this name; the step column `reward` is not meant."""
    found = metadata_values(batch.rollouts.column("metadata").to_pylist(), name)
    return found if any(v is not None for v in found) else None


def _number(value: str | None) -> float:
    if value is None:
        return math.nan
    word = value.strip().lower()
    try:
        return WORDS[word] if word in WORDS else float(word)
    except ValueError:
        return math.nan


def decide(batch: RolloutBatch, report: LoadReport, text: str | None) -> tuple[RolloutBatch, LoadReport]:
    """The batch with success set by a rule; None changes nothing.

    A rollout without the value that the rule asks for keeps what the file says of it (unknown stays unknown); the report
    counts these.
    """
    if text is None:
        return batch, report
    rule = parse_rule(text)
    values = rule_values(batch, rule.name)
    decided = np.isfinite(values)
    table = batch.rollouts
    flags = np.where(decided, rule.holds(values), table.column("success").to_pylist())
    at = table.column_names.index("success")
    table = table.set_column(at, table.schema.field(at), pa.array(flags.tolist(), pa.bool_()))
    made = RolloutBatch(table, batch.steps, batch.texts, batch.name, batch.success_threshold)
    made.memo["success_when"] = str(rule)
    won, unknown, without = int((made.success == 1).sum()), int(np.isnan(made.success).sum()), int((~decided).sum())
    sentence = f"success: {rule} ({won} of {batch.n_rollouts} rollouts succeeded, {unknown} unknown)"
    if without > unknown:
        sentence += f"; {without} have no such value and keep what the file says"
    return made, dataclasses.replace(report, notes=(*report.notes, sentence))
