"""The latest rollouts of a live run: as a table, and as a graph that grows while they arrive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from graft_app import cache
from graft_app.views.graph import graph_view
from graft_app.views.live_figures import title_of
from graft_app.views.text import count, number, one_line
from graft_core.errors import GraftError
from graft_core.formats import load
from graft_core.insight import Findings
from graft_core.insight.findings import findings
from graft_core.insight.palette import credit_limit
from graft_core.insight.picture import picture
from graft_core.insight.structure import GraphPaint, GraphStructure, mean_per_edge, paint
from graft_core.live.run import LiveSettings, job_folder
from graft_core.live.trainer import step_credit
from graft_core.live.weights import Shares, update_shares
from graft_core.rollouts import RolloutBatch
from graft_core.runs import step_files
from graft_core.settings import Settings

MOST_BYTES = 800_000
"""Of step files behind one picture: what a second on one core is enough for."""
MOST_ROLLOUTS = 10
MOST_STEPS = 50
MOST_NODES = 120
FIRST_MOMENT = "column:observation"
"""What joins the updates of a run in one graph where there is one task: rollouts that begin with the same observation."""


@dataclass(frozen=True)
class Latest:
    """The rollouts of the latest updates of one estimator: batch, graph and credit, and which updates these are."""

    found: Findings
    first: int
    last: int
    updates: int


def recorded(run: Path, settings: LiveSettings, name: str) -> Path:
    """The run directory in which an estimator's rollouts are kept: that of the first seed."""
    return job_folder(run, name, settings.seeds[0])


def latest_files(folder: Path) -> tuple[Path, ...]:
    """The newest step files that together are small enough, in order; at least one where there is any."""
    taken: list[Path] = []
    total = 0
    for file in reversed(step_files(folder)):
        total += file.stat().st_size
        if taken and total > MOST_BYTES:
            break
        taken.append(file)
    return tuple(reversed(taken))


def read_latest(run: Path, settings: LiveSettings, name: str) -> Latest | None:
    """The latest rollouts, None before the first."""
    folder = recorded(run, settings, name)
    try:
        files = latest_files(folder)
        stamp = tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files)
        return _read(stamp, name, settings.rules) if files else None
    except (GraftError, OSError):  # a file that was being written, or cut back: the next look finds it whole
        return None


@st.cache_resource(max_entries=12, show_spinner=False)
def _read(stamp: cache.Stamp, name: str, rules: tuple[str, ...]) -> Latest:
    paths = [Path(path) for path, _, _ in stamp]
    batch = load([str(path) for path in paths])
    if one_task(batch):
        batch = load([str(path) for path in paths], group_by=FIRST_MOMENT)
    found = findings(batch, Settings(estimator=name, rules=rules))
    return Latest(found, int(paths[0].stem), int(paths[-1].stem), len(paths))


def one_task(batch: RolloutBatch) -> bool:
    """Whether all updates sampled the same task; a group's id begins with its update's number."""
    return len({name.partition("/")[2] for name in batch.group_ids}) == 1


def graph(latest: Latest, key: str) -> None:
    """The picture of the first task with both outcomes, else of the last task."""
    batch = latest.found.batch
    won = [np.bincount(batch.group[batch.success == x], minlength=batch.n_groups) > 0 for x in (1, 0)]
    both = np.flatnonzero(won[0] & won[1])
    group = int(both[-1]) if both.size else batch.n_groups - 1
    structure, painted = _drawn(latest, group)
    graph_view(structure, painted, key=key, height=360)
    which = f"update {latest.last}" if latest.first == latest.last else f"updates {latest.first} to {latest.last}"
    mixed = " · the policy changed between them, so a chance is a mean over its versions" if latest.updates > 1 else ""
    st.caption(f"{which}: {structure.caption}{mixed}")


def _drawn(latest: Latest, group: int) -> tuple[GraphStructure, GraphPaint]:
    found = latest.found
    structure = picture(found.graph, group, max_nodes=MOST_NODES)
    credit = mean_per_edge(found.graph, found.batch.to_rows(found.credit))
    mine = credit[structure.edge_id[structure.edge_id >= 0]]
    v = found.values.v
    painted = paint(
        structure, v, credit, limit=credit_limit(mine), value_limits=(0.0, 1.0), root_value=found.graph.root_value(group, v),
        credit_name=title_of(found.settings.estimator), value_name="chance of success",
    )  # fmt: skip
    return structure, painted


def shares_of(run: Path, settings: LiveSettings, name: str) -> tuple[Shares, int] | None:
    """What the newest recorded update saw, and its number; None before the first. Of a seed that is under way the newest
    file may still grow."""
    try:
        files = latest_files(recorded(run, settings, name))[-1:]
        stamp = tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files)
        return (_shares(stamp, name, repr(settings), settings), int(files[0].stem)) if files else None
    except (GraftError, OSError):
        return None


@st.cache_resource(max_entries=12, show_spinner=False)
def _shares(stamp: cache.Stamp, name: str, words: str, _settings: LiveSettings) -> Shares:
    batch = load([path for path, _, _ in stamp])
    credit = step_credit(batch, _settings.train(name))
    return update_shares(batch, credit, _settings.loss, _settings.scale, _settings.update.clip)


def shares_table(shares: Shares, by: str) -> pd.DataFrame:
    """Gradient weight by verb, rollout or step, the largest first; what pushes down is what is not up."""
    if by == "step":
        rows = _steps(shares)
    else:
        rows = shares.by_verb() if by == "verb" else shares.by_rollout()
    return pd.DataFrame(
        {
            by: [one_line(row["name"], 80) for row in rows],
            "steps": [row["steps"] for row in rows],
            "share of the update": [row["share"] for row in rows],
            "made likelier": [row["up"] for row in rows],
            "made rarer": [row["share"] - row["up"] for row in rows],
        }
    )


def _steps(shares: Shares) -> list[dict[str, Any]]:
    batch, numbers = shares.batch, shares.batch.to_rows(shares.batch.step_index)
    found = []
    for row in np.argsort(-shares.share, kind="stable")[:MOST_STEPS].tolist():
        name = f"{batch.rollout_ids[int(shares.rollout[row])]}/{int(numbers[row])} {shares.verbs[row]}"
        share = float(shares.share[row])
        found.append({"name": name, "steps": 1, "share": share, "up": share if shares.pull[row] > 0 else 0.0})
    return found


def table(batch: RolloutBatch) -> pd.DataFrame:
    """The latest rollouts, the newest first."""
    rows = range(batch.n_rollouts - 1, max(-1, batch.n_rollouts - 1 - MOST_ROLLOUTS), -1)
    updates = batch.rollouts.column("train_step").to_pylist()
    return pd.DataFrame([{"update": updates[row], **_row(batch, row)} for row in rows])


def _row(batch: RolloutBatch, row: int) -> dict[str, Any]:
    start, end = batch.offsets[row : row + 2].tolist()
    success = float(batch.success[row])
    actions = [batch.text(int(batch.action[step])) for step in range(start, end)]
    return {
        "rollout": one_line(batch.rollout_ids[row].partition("#")[0], 30),
        "ended": "going on" if success != success else "success" if success == 1 else "failure",
        "outcome": number(float(batch.outcome[row])),
        "steps": end - start,
        "what it did": one_line(" · ".join(actions), 300),
    }


def facts(latest: Latest) -> str:
    """What the picture rests on, in one line."""
    batch = latest.found.batch
    won = int((batch.success == 1).sum())
    good = latest.found.good.size
    return (
        f"{count(batch.n_rollouts, 'rollout')}, {won} succeeded · {count(batch.n_steps, 'step')} · "
        f"{count(good, 'good step')} in failed ones"
    )
