"""One page to hand on: counts, findings, chance, drops and pictures, with settings, version and data; no script."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final

from graft_core.credit import estimators
from graft_core.insight.chance import sentence, too_small_sentence
from graft_core.insight.findings import Findings
from graft_core.rollouts import IntArray
from graft_core.takeaway._page import add, page, rendered, table
from graft_core.takeaway.drawn import drawn, group_code, value_word
from graft_core.takeaway.snippet import command
from graft_core.takeaway.svg import graph_element

ROWS: Final = 100
PICTURES: Final = 6


def report_html(
    found: Findings,
    travels: Mapping[str, Any],
    groups: Sequence[int | str] | None = None,
    *,
    group_by: str | None = None,
    texts: bool = True,
    rows: int = ROWS,
) -> str:
    """The findings as one self-contained page: no script, nothing loaded, rollout text as text.

    travels: `provenance(files, settings)`. groups: tasks whose graphs are drawn (default: the first six with good steps,
    best first). texts: False leaves out what rollouts said; ids and numbers stay. rows: most rows of each table.
    Raises `UsageError` for a task that is not in the batch.
    """
    chosen = _groups_with_findings(found) if groups is None else [group_code(found.batch, g) for g in groups]
    name = found.batch.name or "rollouts"
    document, body = page(f"GRAFT Lab: {name}", (resources.files("graft_core.takeaway") / "page.css").read_text("utf-8"))
    add(body, "h1", f"Which step earned the outcome? {name}")
    _counts(body, found)
    word = value_word(found.batch)
    _steps(body, found, found.good, "Good steps in failed rollouts", word, texts, rows)
    _steps(body, found, found.lost, "Where failed rollouts were lost: the largest drop of each", word, texts, rows)
    for group in chosen:
        _picture(body, found, group, texts)
    _origin(body, found, travels, group_by)
    return rendered(document)


def _groups_with_findings(found: Findings) -> list[int]:
    batch = found.batch
    groups = dict.fromkeys(batch.group[batch.step_rollout[found.good]].tolist())
    return list(groups)[:PICTURES]


def _count(n: int, one: str) -> str:
    return f"{n:,} {one}" + ("" if n == 1 else "s")


def _counts(body: ET.Element, found: Findings) -> None:
    facts, known = found.summary, estimators()
    add(
        body, "p",
        f"{_count(facts['groups'], 'task')}, {_count(facts['rollouts'], 'rollout')}: {facts['successes']:,} succeeded, "
        f"{facts['failures']:,} failed, {facts['unknown']:,} of unknown outcome; {_count(facts['steps'], 'step')}.",
    )  # fmt: skip
    add(
        body, "p",
        f"{_count(facts['good_steps'], 'good step')} in failed rollouts, {facts['good_steps_3_rollouts']:,} at moments seen by "
        f"3 or more rollouts, of {_count(facts['failed_steps'], 'step')} there. A step is good when its credit under "
        f"{known[found.settings.estimator].title}, not normalised, is above 0.",
    )  # fmt: skip
    if found.chance is not None:
        add(body, "p", f"{sentence(found.chance)} {too_small_sentence(found.chance)}".strip())
    for key in ("chance_missing", "certainty_missing"):
        if key in facts:
            add(body, "p", str(facts[key]))


def _steps(
    body: ET.Element, found: Findings, positions: IntArray, title: str, word: str, texts: bool, most: int
) -> None:
    a, b = (estimators()[name].title for name in (found.settings.estimator, found.settings.baseline))
    add(body, "h2", title)
    if not positions.size:
        add(body, "p", "None.")
        return
    merged = found.merged_rows(positions, most)
    heads = ["task", "rollout / step", "times", *(["what the agent did"] if texts else ["node"]), f"{word} before", "after",
             f"A: {a}", f"B: {b}", "seen by"]  # fmt: skip
    heads += ["beyond luck"] if found.chance is not None else []
    lines = [
        [
            row["group_id"], f"{row['rollout_id']}/{row['step']}", row["count"], row["action"] if texts else str(row["node"]),
            row["value_before"], row["value_after"], row["credit"], row["baseline"], f"{row['seen_by']} of {row['of']}",
            *([row["trust"]] if found.chance is not None else []),
        ]
        for row in merged
    ]  # fmt: skip
    stands = sum(row["count"] for row in merged)
    note = "" if stands == positions.size else f", the first of {positions.size:,}"
    caption = f"{_count(len(lines), 'row')} for {_count(stands, 'step')}{note}: equal moment and action are one row"
    table(body, heads, lines, caption)


def _picture(body: ET.Element, found: Findings, group: int, texts: bool) -> None:
    batch = found.batch
    if not bool((found.graph.node_group == group).any()):
        return
    structure, painted = drawn(found, group)
    here = batch.group == group
    add(body, "h2", f"Task {batch.group_ids[group]}")
    ended = f"{int((batch.success[here] == 1).sum())} succeeded, {int((batch.success[here] == 0).sum())} failed"
    add(body, "p", f"{_count(int(here.sum()), 'rollout')}: {ended}.")
    add(body, "div", class_="scroll").append(graph_element(structure, painted, title=batch.group_ids[group], texts=texts))


def _origin(body: ET.Element, found: Findings, travels: Mapping[str, Any], group_by: str | None) -> None:
    add(body, "h2", "How this was made")
    words = found.settings.to_words() or {"preset": "Look (the default)"}
    table(body, ["setting", "value"], list(words.items()))
    files = list(travels.get("input", ()))
    table(body, ["file", "SHA-256"], [(str(f["file"]), str(f["sha256"])) for f in files])
    add(body, "p", f"{travels['tool']} {travels['version']}. The same from a shell, in the folder of the data:")
    add(body, "pre", command(found.settings, files[0]["file"] if len(files) == 1 else found.batch.name or "PATH", group_by))
