"""`graft inspect PATH`: what was loaded, what became of every record, and what the graph looks like."""

from __future__ import annotations

import argparse
from typing import Any

from graft_core.commands._common import Command, add_input, json_text, load_input, report_words
from graft_core.credit.estimate import graph_of
from graft_core.insight.measures import describe, rule_table
from graft_core.insight.merges import action_table, largest_merges, low_information_merges
from graft_core.rollouts import RolloutBatch
from graft_core.settings import Settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--rule", action="append", metavar="R", dest="rules", help="when two moments are the same")
    parser.add_argument("--actions", default="parsed", metavar="A", help="when two actions are the same (default parsed)")
    parser.add_argument("--sinks", default="split", metavar="S", help="how rollouts end (default split)")
    parser.add_argument(
        "--chance", action="store_true", help="say for each rule how many good steps luck would give (200 shuffles each)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def _percent(share: float) -> str:
    return "–" if share != share else f"{100 * share:.1f} %"


def _lines(data: dict[str, Any]) -> list[str]:
    sizes = ", ".join(f"{n} of {size}" for size, n in data["group_sizes"].items())
    lines = [
        f"{data['rollouts']} rollouts in {data['groups']} tasks ({sizes}), {data['steps']} steps",
        f"{data['successes']} succeeded, {data['failures']} failed, {data['unknown']} unknown ({data['success_when']}); "
        f"{data['mixed_groups']} tasks with both outcomes",
        f"records: {data['read']} read, {data['accepted']} accepted ({data['repaired']} repaired), {data['rejected']} rejected",
    ]
    graph = data["graph"]
    if graph is None:
        lines.append(f"no graph: {data['graph_missing']}")
    else:
        conflicts = graph["sink_conflicts"]
        lines += [
            f"graph ({' + '.join(graph['rules'])}, actions {graph['actions']}): {graph['nodes']} moments, "
            f"{graph['edges']} edges, merge rate {_percent(graph['merge_rate'])}",
            f"steps whose moment has two or more steps {_percent(graph['group_size_2'])}, is shared by two or more rollouts "
            f"{_percent(graph['shared'])}; (moment, action) shared {_percent(graph['shared_actions'])}",
            f"outcomes that inform a step: {graph['propagation']['graph']:.1f} through the graph, "
            f"{graph['propagation']['visits']:.1f} by equal moments; (moment, action) with more than one next moment "
            f"{_percent(graph['stochastic_pairs'])}",
            f"paths meet again at {_percent(graph['remerge_index'])} of the moments; {graph['task_roots']} tasks without a "
            "common first moment",
            f"final states with different outcomes: {conflicts['outcomes_states']} "
            f"({conflicts['outcomes_rollouts']} rollouts); left again by another rollout: "
            f"{conflicts['left_again_states']} ({conflicts['left_again_rollouts']} rollouts)",
        ]
    for warning in data["warnings"]:
        lines.append(f"warning {warning['code']} ({warning['count']}x): {warning['sentence']} [{warning['where']}]")
    lines += [f"rejected {r['where']}: {r['reason']}" for r in data["rejections"][:20]]
    if len(data["rejections"]) > 20:
        lines.append(f"... and {len(data['rejections']) - 20} more rejections (--json lists all)")
    return [*lines, *data["notes"]]


def _shorter(text: str, width: int = 70) -> str:
    flat = "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split())) or "(empty)"
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def _luck(row: dict[str, Any], asked: bool) -> tuple[str, ...]:
    """What luck gives and how many good steps are beyond it, where it was asked for."""
    chance = row.get("chance")
    return () if not asked else (f"{chance['low']} to {chance['high']}", str(chance["beyond_luck"])) if chance else ("–", "–")


def _rule_lines(table: list[dict[str, Any]]) -> list[str]:
    """The table of rules as aligned text, the chosen one marked."""
    with_chance = any("chance" in row for row in table)
    head: tuple[str, ...] = (
        "rule", "moments", "merged", "in 2+ steps", "in 2+ rollouts", "outcomes a step", "meet again", "good steps",
        *(("by luck", "beyond luck") if with_chance else ()),
    )  # fmt: skip
    rows: list[tuple[str, ...]] = [head]
    for row in table:
        name = ("* " if row["chosen"] else "  ") + _shorter(row["rules"], 40)
        if "error" in row:
            rows.append((name, row["error"]))
            continue
        degree = row["propagation"]["graph"]
        rows.append(
            (
                name, str(row["nodes"]), _percent(row["merge_rate"]), _percent(row["group_size_2"]), _percent(row["shared"]),
                "–" if degree != degree else f"{degree:.1f}", _percent(row["remerge_index"]),
                "–" if row["good_steps"] is None else str(row["good_steps"]), *_luck(row, with_chance),
            )
        )  # fmt: skip
    full = [row for row in rows if len(row) == len(head)]
    widths = [max(len(row[i]) for row in full) for i in range(len(head))]
    return [
        "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths)))
        if len(row) == len(head)
        else f"{row[0]}: {row[1]}"
        for row in rows
    ]


def _state_lines(data: dict[str, Any]) -> list[str]:
    """Rules side by side, actions, the largest merges and those that say little."""
    lines = ["when are two moments the same (* = chosen):", *("  " + line for line in _rule_lines(data["rule_table"]))]
    table = data["action_table"]
    shares = ", ".join(f"{row['actions']} {_percent(row['shared'])}" for row in table["rules"])
    lines.append(f"(moment, action) shared by two or more rollouts: {shares}; proposed: {table['proposed']}")
    for title, key in (("largest merges", "largest_merges"), ("merges that say little", "low_information_merges")):
        some = data[key][:5]
        if some:
            lines.append(f"{title}:")
        for merge in some:
            texts = [t["text"] for t in merge.get("texts", [])] or [merge["text"]]
            reason = f", {merge['reason']}" if "reason" in merge else ""
            words = " | ".join(_shorter(text, 60) for text in texts[:2])
            lines.append(f"  task {merge['group_id']}: {merge['steps']} steps of {merge['rollouts']} rollouts{reason}: {words}")
    return lines


def _states(batch: RolloutBatch, settings: Settings, with_chance: bool) -> dict[str, Any]:
    """What the rules merge: the table of rules, actions, largest and low-information merges."""
    graph = graph_of(batch, **settings.graph_words)
    return {
        "rule_table": rule_table(batch, settings=settings, with_chance=with_chance),
        "action_table": action_table(graph),
        "largest_merges": largest_merges(graph),
        "low_information_merges": low_information_merges(graph),
    }


def _run(given: argparse.Namespace) -> int:
    settings = Settings(rules=tuple(given.rules or ("exact",)), actions=given.actions, sinks=given.sinks)
    batch, report = load_input(given)
    data = {**report_words(report), **describe(batch, **settings.graph_words)}
    if data["graph"] is not None:
        data["warnings"] = [*data["warnings"], *data["graph"].pop("warnings")]
        data |= _states(batch, settings, given.chance)
    lines = [] if given.json else _lines(data)
    if data["graph"] is not None and not given.json:
        lines += _state_lines(data)
    print(json_text(data) if given.json else "\n".join(lines))
    return 0


COMMAND = Command("inspect", "load a file and say what is in it", _arguments, _run, rank=2)
