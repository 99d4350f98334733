"""`graft probe`: check a credit by rollout here, or send prefixes to an outside trainer and read its outcomes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graft_core.commands._common import Command, add_input, add_settings, json_text, load_input, read_settings
from graft_core.errors import InputError, UsageError

if TYPE_CHECKING:
    from graft_core.insight import Findings
    from graft_core.live.probe import Check

WAYS = "check (here), export (prefixes for an outside trainer), import (its outcomes)"


def _choose_steps(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--step", action="append", default=[], metavar="G/R/S", help="a step as GROUP/ROLLOUT/STEP; repeat")
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="else N best good steps in failures (default 10)")
    parser.add_argument("--tries", type=int, default=64, metavar="N", help="continuations per action (default 64)")
    parser.add_argument("--estimator", default="graft_td", metavar="NAME", help="whose credit is checked (default graft_td)")
    add_settings(parser)


def _arguments(parser: argparse.ArgumentParser) -> None:
    ways = parser.add_subparsers(dest="way", metavar="WAY", required=True, help=WAYS)
    check = ways.add_parser("check", help="continue from the steps of PATH in an environment here", allow_abbrev=False)
    _choose_steps(check)
    check.add_argument("--env", required=True, metavar="NAME", help="the environment that made the rollouts, as in graft live")
    check.add_argument(
        "--policy", default="counts", metavar="P",
        help="who continues: counts (what the file's rollouts did), scripted:SKILL, uniform, or a policy as in graft live",
    )  # fmt: skip
    check.add_argument("--turns", type=int, metavar="N", help="turn limit of a rollout (default: that of the file)")
    check.add_argument("--seed", type=int, default=0, metavar="N")
    check.add_argument("--device", default="auto", metavar="D")
    check.add_argument("--json", action="store_true", help="one JSON document on stdout")
    export = ways.add_parser("export", help="write prefixes as JSONL", allow_abbrev=False)
    _choose_steps(export)
    export.add_argument("-o", "--output", required=True, metavar="OUT", help="a file ending in .jsonl")
    back = ways.add_parser("import", help="read outcomes of exported prefixes", allow_abbrev=False)
    back.add_argument("probes", metavar="PROBES", help="what `graft probe export` wrote")
    back.add_argument("outcomes", metavar="OUTCOMES", help="JSONL: probe_id, action (null: the policy's own), outcome, steps")
    back.add_argument("--gamma", type=float, default=0.99, metavar="G", help="discount per step (default 0.99)")
    back.add_argument("--json", action="store_true", help="one JSON document on stdout")


def _steps(given: argparse.Namespace) -> tuple[Findings, list[int]]:
    """The findings of the input and the path positions to check."""
    from graft_core.insight import findings
    from graft_core.live.probe import find_step

    if given.tries < 1 or given.limit < 1:
        raise UsageError(f"--tries {given.tries}, --limit {given.limit}: expected at least 1 of each")
    settings = read_settings(given, [given.estimator], estimator=given.estimator)
    batch, _ = load_input(given)
    found = findings(batch, settings)
    if given.step:
        return found, [find_step(batch, name) for name in given.step]
    if not found.good.size:
        raise InputError("there is no good step in a failed rollout to check; name one with --step GROUP/ROLLOUT/STEP")
    return found, found.good[: given.limit].tolist()


def _check(given: argparse.Namespace) -> int:
    from graft_core.live.behaviour import continuing_policy
    from graft_core.live.games import make_game
    from graft_core.live.probe import check_step, summary_by
    from graft_core.live.restore import Restorer
    from graft_core.live.start import PolicyOptions

    game = make_game(given.env)
    found, positions = _steps(given)
    restorer = Restorer(game, found.batch)
    policy = continuing_policy(given.policy, game, restorer, PolicyOptions(given.policy, device=given.device))
    gamma = dict(found.settings.given).get("gamma", 0.99)
    checks = []
    for position in positions:
        credit = float(found.credit[position])
        checks.append(check_step(game, restorer, position, credit, policy, given.tries, given.turns, given.seed, gamma))
        if not given.json:
            print(_line(checks[-1]), flush=True)
    words = [_certainty(found, position) for position in positions]
    rows = summary_by(checks, words)
    if given.json:
        print(json_text({"policy": policy.name, "checks": [c.as_dict() for c in checks], "by_certainty": rows}))
        return 0
    print(f"\ncontinued by: {policy.name}, {given.tries} rollouts per action")
    for row in rows:
        print(f"{row['certainty']}: {row['confirmed']} of {row['checks']} confirmed ({row['low']:.2f} to {row['high']:.2f}), "
              f"{row['contradicted']} contradicted")  # fmt: skip
    return 0


def _certainty(found: Findings, position: int) -> str:
    return found.certainty.word(int(found.graph.edge[position])) if found.certainty is not None else "not stated"


def _line(check: Check) -> str:
    best = max(check.rivals, key=lambda arm: arm.value, default=None)
    rival = f"; best rival {best.action!r} {best.success:.2f} [{best.low:.2f}, {best.high:.2f}]" if best else ""
    return (
        f"{check.group_id}/{check.rollout_id}/{check.step} {check.action!r}: credit {check.credit:+.3f}; continued "
        f"{check.difference:+.3f} [{check.low:+.3f}, {check.high:+.3f}]: {check.verdict}; success {check.taken.success:.2f} "
        f"[{check.taken.low:.2f}, {check.taken.high:.2f}] against {check.usual.success:.2f} usually{rival}"
    )


def _export(given: argparse.Namespace) -> int:
    from graft_core.live.exchange import export_probes

    if not given.output.endswith(".jsonl"):
        raise UsageError(f"{given.output}: expected an output name ending in .jsonl")
    found, positions = _steps(given)
    credit = [float(found.credit[p]) for p in positions]
    number = export_probes(found.batch, positions, credit, Path(given.output), given.tries)
    print(f"{number} prefixes written to {given.output}", file=sys.stderr)
    return 0


def _import(given: argparse.Namespace) -> int:
    from graft_core.live.exchange import import_outcomes

    if not 0 < given.gamma <= 1:
        raise UsageError(f"--gamma {given.gamma}: expected a number above 0 up to 1")
    checks = import_outcomes(Path(given.probes), Path(given.outcomes), given.gamma)
    if given.json:
        print(json_text({"checks": [check.as_dict() for check in checks]}))
    else:
        print("\n".join(_line(check) for check in checks))
    return 0


def _run(given: argparse.Namespace) -> int:
    ways: dict[str, Any] = {"check": _check, "export": _export, "import": _import}
    status: int = ways[given.way](given)
    return status


COMMAND = Command("probe", "check a credit by rollout: continue from a step and from its rivals", _arguments, _run, rank=21)
