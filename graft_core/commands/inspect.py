"""`graft inspect PATH`: what was loaded, what became of every record, and what the graph looks like."""

from __future__ import annotations

import argparse
from typing import Any

from graft_core.commands._common import Command, add_input, json_text, load_input, report_words
from graft_core.insight import describe


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--rule", action="append", metavar="R", dest="rules", help="when two moments are the same")
    parser.add_argument("--actions", default="parsed", metavar="A", help="when two actions are the same (default parsed)")
    parser.add_argument("--sinks", default="split", metavar="S", help="how rollouts end (default split)")
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


def _run(given: argparse.Namespace) -> int:
    batch, report = load_input(given)
    data = {**report_words(report), **describe(batch, given.rules or ["exact"], given.actions, given.sinks)}
    print(json_text(data) if given.json else "\n".join(_lines(data)))
    return 0


COMMAND = Command("inspect", "load a file and say what is in it", _arguments, _run, rank=2)
