"""What could make rollouts one task, where a file does not say: each way with the group sizes it would give.

Nothing is chosen here: a wrong grouping invents credit, so a person looks at the sizes first. Groups of the size at which
a trainer samples (all of one size, say 8) speak for a candidate; one group of everything, or groups of one, against it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from graft_core.errors import GraftError
from graft_core.formats.grouping import TASK_COLUMNS, Groups, column_values, groups_of
from graft_core.formats.jsonio import loads
from graft_core.rollouts import RolloutBatch

FIXED: Final = (
    ("column:prompt", "the same prompt"),
    ("column:observation", "the same first observation"),
    ("actions", "an id shared in the actions (a product, a user), inferred"),
    ("file", "the same file"),
)
MOST_COLUMNS: Final = 12
LOOKED_AT: Final = 100
NO_TASK: Final = frozenset(
    {"group_id", "rollout_id", "outcome", "success", "terminated", "truncated", "n_steps", "final_observation", "final_state",
     "final_value", "order_doubtful", "group_assumed", "source", "metadata", "prompt", "train_step"}
)  # fmt: skip
SIZES: Final = ("_tokens", "_length", "_count", "_seconds")
"""How names end that tell how much there was of something, which is no task; a person can still ask for such a column."""


@dataclass(frozen=True)
class Candidate:
    """One way to group: the word for `group_by`, its meaning, and what would come of it.

    `sizes` maps group size to how many groups have it; `mixed` counts groups with successes and failures; `without` counts
    rollouts that it gives no group (with any, it cannot be used as it is); `example` is the name of the largest group.
    """

    group_by: str
    meaning: str
    groups: int
    sizes: dict[int, int]
    mixed: int
    without: int
    example: str

    @property
    def usable(self) -> bool:
        return self.without == 0

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        sizes = {str(size): n for size, n in self.sizes.items()}
        plain = {"group_by": self.group_by, "meaning": self.meaning, "groups": self.groups, "sizes": sizes}
        return {**plain, "mixed": self.mixed, "without": self.without, "usable": self.usable, "example": self.example}


def candidates(batch: RolloutBatch) -> list[Candidate]:
    """All ways to group the rollouts of a batch that its columns and texts offer, those that can be used first.

    In this order: columns that name a task, the prompt, the first observation, ids shared in actions, the file, other
    columns and metadata keys that take fewer values than there are rollouts. The batch's own groups are not listed.
    """
    if not batch.n_rollouts:
        return []
    ways = [(f"column:{name}", f"the same {name}") for name in TASK_COLUMNS if name != "prompt"]
    ways += FIXED
    own = [name for name in _own_columns(batch) if name not in TASK_COLUMNS]
    ways += [(f"column:{name}", f"the same {name}") for name in own[:MOST_COLUMNS]]
    found: list[Candidate] = []
    for group_by, meaning in ways:
        groups = _try(batch, group_by)
        if groups is not None and any(group is not None for group in groups):
            made = _candidate(batch, group_by, meaning, groups)
            if group_by not in {f"column:{name}" for name in own} or 1 < made.groups < batch.n_rollouts:
                found.append(made)
    return sorted(found, key=lambda c: not c.usable)


def _try(batch: RolloutBatch, group_by: str) -> Groups | None:
    kind, _, name = group_by.partition(":")
    if kind == "column":
        return column_values(batch, name)
    try:
        return groups_of(batch, group_by)
    except GraftError:
        return None


def _own_columns(batch: RolloutBatch) -> list[str]:
    """Columns of rollouts, and keys of their metadata or of that of their first steps, that could name a task."""
    names = [
        n for n in batch.rollouts.column_names if n not in NO_TASK and batch.rollouts.column(n).null_count < batch.n_rollouts
    ]
    steps = batch.order[batch.offsets[:-1][batch.lengths > 0]][:LOOKED_AT]
    first = batch.steps.column("metadata").take(pa.array(steps))
    for text in [*batch.rollouts.column("metadata").slice(0, LOOKED_AT).to_pylist(), *first.to_pylist()]:
        value = loads(text.encode())[0] if text else None
        if isinstance(value, dict):
            names += [k for k, v in value.items() if isinstance(v, (str, int)) and k not in NO_TASK]
    return [name for name in dict.fromkeys(names) if not name.endswith(SIZES)]


def _candidate(batch: RolloutBatch, group_by: str, meaning: str, groups: Groups) -> Candidate:
    members: dict[str, list[int]] = {}
    for row, group in enumerate(groups):
        if group is not None:
            members.setdefault(group, []).append(row)
    outcomes = [{w for w in batch.success[rows].tolist() if w == w} for rows in members.values()]
    sizes = Counter(map(len, members.values()))
    return Candidate(
        group_by=group_by,
        meaning=meaning,
        groups=len(members),
        sizes=dict(sorted(sizes.items(), reverse=True)),
        mixed=sum(len(seen) == 2 for seen in outcomes),
        without=sum(group is None for group in groups),
        example=max(members, key=lambda g: len(members[g]))[:200],
    )
