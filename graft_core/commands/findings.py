"""`graft findings PATH`: good steps in failed rollouts, where failed rollouts were lost, and whether that is luck."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from graft_core.commands._common import Command, add_input, add_settings, json_text, load_input, read_settings, tell_doubts
from graft_core.errors import UsageError
from graft_core.insight import Findings, findings
from graft_core.insight.lost import lost
from graft_core.insight.teach import teach

SHOWN = 30


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--estimator", action="append", metavar="NAME", help="credit A (default graft_td)")
    parser.add_argument("--baseline", default="grpo", metavar="NAME", help="credit B, shown beside A (default grpo)")
    parser.add_argument("--shuffles", default="200", metavar="N", help="deal outcomes at random N times (0: none; default 200)")
    parser.add_argument("--seed", default="0", metavar="N", help="seed of the shuffles (default 0)")
    add_settings(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def _number(value: float) -> str:
    return "–" if value != value else f"{value:.2f}"


def _row(found: Findings, row: dict[str, Any]) -> str:
    action = " ".join(row["action"].split())[:60]
    trust = {"yes": "  beyond luck", "one witness": "  one witness"}.get(row.get("trust", ""), "")
    interval = f" [{row['low']:+.2f}, {row['high']:+.2f}]" if row.get("low", float("nan")) == row.get("low") else ""
    return (
        f"  {row['group_id']} {row['rollout_id']}/{row['step']}  {action!r}  chance {_number(row['value_before'])} -> "
        f"{_number(row['value_after'])}  {found.settings.estimator} {row['credit']:+.3f}{interval}  {found.settings.baseline} "
        f"{row['baseline']:+.3f}  seen by {row['seen_by']} of {row['of']}{trust}"
    )


def _lines(found: Findings) -> list[str]:
    facts = found.summary
    lines = [
        f"tasks {facts['groups']}, rollouts {facts['rollouts']}: {facts['successes']} succeeded, {facts['failures']} failed",
        f"good steps in failed rollouts: {facts['good_steps']} ({facts['good_steps_3_rollouts']} at moments seen by 3 or more "
        f"rollouts), of {facts['failed_steps']} steps there",
    ]
    if found.chance is not None:
        lines.append(found.chance.as_dict()["sentence"])
    lines += [facts[key] for key in ("chance_missing", "certainty_missing") if key in facts]
    lines.append(teach(found.batch, found.graph, found.settings.rewards).sentence)
    for title, positions in (("good steps in failures", found.good), ("where it was lost", found.lost)):
        lines.append(f"\n{title}:")
        lines += [_row(found, row) for row in found.rows(positions[:SHOWN])]
        if positions.size > SHOWN:
            lines.append(f"  ... and {positions.size - SHOWN} more (--json lists all)")
    return lines


MOST_SHUFFLES = 100_000


def _whole(word: str, name: str) -> int:
    if not (word.isascii() and word.isdigit() and int(word[:20]) <= MOST_SHUFFLES):
        raise UsageError(f"--{name}: {word!r} is not allowed, expected a whole number from 0 to {MOST_SHUFFLES}")
    return int(word)


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\rshuffle {done} of {total}", end="\n" if done == total else "", file=sys.stderr)


def _run(given: argparse.Namespace) -> int:
    names = given.estimator or ["graft_td"]
    if len(names) > 1:
        raise UsageError(f"findings lists the good steps of one estimator; {len(names)} were named, expected one")
    settings = read_settings(given, [names[0], given.baseline], estimator=names[0], baseline=given.baseline)
    shuffles, seed = _whole(given.shuffles, "shuffles"), _whole(given.seed, "seed")
    batch, report = load_input(given)
    tell_doubts(report)
    found = findings(batch, settings, shuffles=shuffles, seed=seed, progress=_progress)
    if given.json:
        detail = {
            "lost_groups": [group.as_dict() for group in lost(found).groups],
            "teaches_nothing": teach(batch, found.graph, settings.rewards).as_dict(),
        }
        doubts = {"warnings": [w.as_dict() for w in report.warnings], "rejected": report.rejected}
        print(json_text({**found.as_dict(), **detail, **doubts}))
    else:
        print("\n".join(_lines(found)))
    return 0


COMMAND = Command("findings", "list the good steps of failed rollouts and where failures were lost", _arguments, _run, rank=3)
