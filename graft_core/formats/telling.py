"""What is told about assembled rows: rejected rollouts, and warnings about steps, order and doubles."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graft_core.formats import checks
from graft_core.formats.assembly import Assembly, Kept
from graft_core.rollouts import Rejection

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
DOUBLE_SHARE: Final = 0.5


def warn_differing(a: Assembly, name: str, values: Any, given: Bools, chosen: Any) -> None:
    if not given.any():
        return
    differs = np.flatnonzero(given & (values != chosen[np.where(a.roll >= 0, a.roll, 0)]))
    if len(differs):
        sentence = f"rows of one rollout give different values of {name}"
        a.rows.warn("rows_differ", sentence, a.place(int(differs[0])), len(np.unique(a.roll[differs])))


def reject_bad(a: Assembly) -> None:
    """List one rejection per unusable rollout, with the number of its records."""
    if not a.bad.reasons:
        return
    chosen = np.flatnonzero(np.isin(a.roll, list(a.bad.reasons)))
    records = np.unique(np.stack([a.roll[chosen], a.file[chosen], a.record[chosen]]), axis=1)
    sizes = np.bincount(records[0], minlength=a.n)
    for rollout, (row, reason) in sorted(a.bad.reasons.items(), key=lambda item: item[1][0]):
        a.rows.list_rejection(Rejection(a.place(row), f"{_identity(a, row)}: {reason}", int(sizes[rollout])))


def _identity(a: Assembly, row: int) -> str:
    keys = list(a.rows.pools.keys)
    return f"rollout {keys[int(a.get('rollout_id')[row])]!r} of group {keys[int(a.group[row])]!r}"


def warn_flagged(a: Assembly, kept: Kept) -> None:
    """Say that the file itself marks rollouts as out of order, unless its reader has said so."""
    flagged = np.flatnonzero((a.get("order_doubtful") == 1) & kept.row)
    if len(flagged) and not any(w.code == "order_doubtful" for w in a.rows.warnings):
        n = len(np.unique(a.roll[flagged]))
        a.rows.warn("order_doubtful", "the file marks rollouts whose steps seem out of order", a.place(int(flagged[0])), n)


def warn_duplicates(a: Assembly, path: checks.Path, kept: Kept) -> None:
    """Say where files that use the same ids also hold the same steps and say the same of them: one run written twice.

    Short rollouts can be equal by chance, so it takes half of those whose ids were used again.
    """
    if a.reused is None:
        return
    numbers = [a.get("observation"), a.get("action"), a.step, np.nan_to_num(a.get("reward")).view(np.int64)]
    content = checks.content_hash(path, numbers, a.n)
    first = checks.first_row(a.roll, kept.row & (a.reused[: len(a.roll)] >= 0), a.n)
    rollouts = np.flatnonzero(first >= 0)
    seen: dict[tuple[int, int, str], int] = {}
    doubles, again = [], 0
    said_before: set[int] = set()
    for rollout, said in zip(rollouts.tolist(), a.reused[first[rollouts]].tolist(), strict=True):
        key = (said, int(content[rollout]), _declared(a, int(first[rollout])))
        again += said in said_before
        said_before.add(said)
        if seen.setdefault(key, rollout) != rollout:
            doubles.append(rollout)
    if doubles and len(doubles) >= DOUBLE_SHARE * again:
        sentence = "files hold the same rollouts under the same ids; all were kept"
        a.rows.warn("duplicate_rollouts", sentence, a.place(int(first[doubles[0]])), len(doubles))


def _declared(a: Assembly, row: int) -> str:
    """What the first row of a rollout says of it as a whole, for comparing."""
    metadata = a.get("metadata")
    text = metadata[row].as_py() if metadata is not None and not a.is_step[row] else None
    return f"{float(a.get('outcome')[row])!r} {text}"


def warn_steps(a: Assembly, path: checks.Path, kept: Kept) -> None:
    """Warnings about step numbers, links between rows and missing observations, for rollouts that are kept."""
    gaps, repeats = checks.gaps_and_repeats(path)
    links = checks.broken_links(path, a.get("observation"), a.get("next_observation"))
    shown = path.rows[kept.row[path.rows]]
    blind = shown[a.get("observation")[shown] < 0]
    for code, sentence, found in (
        ("step_gap", "step numbers leave some out", gaps),
        ("step_repeat", "a step number occurs twice", repeats),
        ("next_observation_differs", "next_observation is not what the next row observes", links),
        ("observations_missing", f"{len(blind)} of {len(shown)} steps have no observation: one state per group", blind),
    ):
        good = found[kept.row[found]]
        if len(good):
            a.rows.warn(code, sentence, a.place(int(good[0])), len(good))
