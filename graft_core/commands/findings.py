"""`graft findings PATH`: good steps in failed rollouts, and where failed rollouts were lost."""

from __future__ import annotations

import argparse

from graft_core.commands._common import Command, add_input, add_settings, json_text, load_input, read_settings
from graft_core.errors import UsageError
from graft_core.insight import Findings, findings

SHOWN = 30


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--estimator", action="append", metavar="NAME", help="credit A (default graft_td)")
    parser.add_argument("--baseline", default="grpo", metavar="NAME", help="credit B, shown beside A (default grpo)")
    add_settings(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def _number(value: float) -> str:
    return "–" if value != value else f"{value:.2f}"


def _lines(found: Findings) -> list[str]:
    facts = found.summary
    lines = [
        f"{facts['groups']} tasks, {facts['rollouts']} rollouts, {facts['successes']} succeeded, {facts['failures']} failed",
        f"{facts['good_steps']} good steps in failed rollouts ({facts['good_steps_3_rollouts']} at moments seen by 3 or more "
        f"rollouts), of {facts['failed_steps']} steps there",
    ]
    for title, positions in (("good steps in failures", found.good), ("where it was lost", found.lost)):
        lines.append(f"\n{title}:")
        for row in found.rows(positions[:SHOWN]):
            action = " ".join(row["action"].split())[:60]
            lines.append(
                f"  {row['group_id']} {row['rollout_id']}/{row['step']}  {action!r}  chance {_number(row['value_before'])} -> "
                f"{_number(row['value_after'])}  {found.settings.estimator} {row['credit']:+.3f}  {found.settings.baseline} "
                f"{row['baseline']:+.3f}  seen by {row['seen_by']} of {row['of']}"
            )
        if positions.size > SHOWN:
            lines.append(f"  ... and {positions.size - SHOWN} more (--json lists all)")
    return lines


def _run(given: argparse.Namespace) -> int:
    names = given.estimator or ["graft_td"]
    if len(names) > 1:
        raise UsageError(f"findings lists the good steps of one estimator; {len(names)} were named, expected one")
    settings = read_settings(given, [names[0], given.baseline], estimator=names[0], baseline=given.baseline)
    batch, _ = load_input(given)
    found = findings(batch, settings)
    print(json_text(found.as_dict()) if given.json else "\n".join(_lines(found)))
    return 0


COMMAND = Command("findings", "list the good steps of failed rollouts and where failures were lost", _arguments, _run, rank=3)
