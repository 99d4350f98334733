"""`graft card PATH --task G --rollout R --step N -o FOLDER`: a card of one finding, to show and to check."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from graft_core.commands._common import Command, add_input, add_settings, load_input, read_settings
from graft_core.errors import NotComputableError
from graft_core.insight.findings import Findings, findings

if TYPE_CHECKING:
    from graft_core.insight.chance import Chance


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--task", required=True, metavar="G", help="the task (group) of the step")
    parser.add_argument("--rollout", required=True, metavar="R", help="its rollout")
    parser.add_argument("--step", required=True, type=int, metavar="N", help="its number in the file")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="where the JSON, Markdown and SVG go")
    parser.add_argument(
        "--redact", action="append", default=[], metavar="TEXT", help="hide this text wherever it stands; repeat for several"
    )
    parser.add_argument("--redact-all", action="store_true", help="hide every text of the data, names of tasks too")
    parser.add_argument("--no-chance", action="store_true", help="leave out what outcomes dealt at random would give")
    parser.add_argument("--estimator", default="graft_td", metavar="NAME", help="credit A (default graft_td)")
    parser.add_argument("--baseline", default="grpo", metavar="NAME", help="credit B, shown beside A (default grpo)")
    add_settings(parser)


def _run(given: argparse.Namespace) -> int:
    from graft_core.insight.cards import find_step, make_card

    settings = read_settings(
        given, [given.estimator, given.baseline], estimator=given.estimator, baseline=given.baseline
    )
    batch, report = load_input(given)
    position = find_step(batch, given.task, given.rollout, given.step)
    found = findings(batch, settings)
    card = make_card(
        found, position, report.files, path=given.paths[0] if len(given.paths) == 1 else None, group_by=given.group_by,
        redact=given.redact, redact_all=given.redact_all, chance=None if given.no_chance else _chance(found),
    )  # fmt: skip
    print("\n".join(map(str, card.write(given.output))))
    return 0


def _chance(found: Findings) -> Chance | None:
    from graft_core.insight.chance import chance

    try:
        return chance(found.batch, found.settings)
    except NotComputableError as error:
        print(f"graft: without chance: {error}", file=sys.stderr)
        return None


COMMAND = Command("card", "make a card of one finding: JSON, Markdown, picture", _arguments, _run, rank=7)
