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
    from graft_core.live.stated import Stated

HOW_TO_READ = """expected: the share that should show the credit's sign if its interval is right, the noise of the continuations
counted in; matches: it lies within the interval of what was seen. confirmed: the continuations alone exclude zero. Steps that
are picked for a large credit are the lucky ones too: they hold less often, and are smaller when tried, than is stated of a
single step. --beyond-luck allows for most of that in the sign, and for none of it in the size."""

WAYS = "check (here), export (prefixes for an outside trainer), import (its outcomes)"


def _choose_steps(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--step", action="append", default=[], metavar="G/R/S", help="a step as GROUP/ROLLOUT/STEP; repeat")
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="else N best good steps in failures (default 10)")
    parser.add_argument("--beyond-luck", action="store_true", help="of these only the ones marked beyond luck")
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
    good = found.good.tolist()
    if given.beyond_luck:
        if found.chance is None:
            raise UsageError(f"--beyond-luck: {given.estimator} has no test against luck; expected graft_td or path_gae")
        good = [p for p in good if found.chance.beyond[p]]
    if not good:
        what = "good step in a failed rollout" + (" that is beyond luck" if given.beyond_luck else "")
        raise InputError(f"there is no {what} to check; name one with --step GROUP/ROLLOUT/STEP")
    first_of_each = {int(found.graph.edge[p]): p for p in reversed(good)}  # equal moment and action: one check tells all
    return found, [p for p in good if first_of_each[int(found.graph.edge[p])] == p][: given.limit]


def _check(given: argparse.Namespace) -> int:
    from graft_core.live.behaviour import continuing_policy
    from graft_core.live.games import make_game
    from graft_core.live.probe import check_step
    from graft_core.live.restore import Restorer
    from graft_core.live.start import PolicyOptions
    from graft_core.live.stated import by_certainty, certainty_table

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
    rows = by_certainty(checks, _stated(found, positions))
    if given.json:
        print(json_text({"policy": policy.name, "checks": [c.as_dict() for c in checks], "by_certainty": rows}))
        return 0
    print(f"\ncontinued by: {policy.name}, {given.tries} rollouts per action\n{certainty_table(rows)}\n{HOW_TO_READ}")
    return 0


def _stated(found: Findings, positions: list[int]) -> list[Stated | None]:
    from graft_core.live.stated import stated_at

    return [stated_at(found.certainty, int(found.graph.edge[position])) for position in positions]


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
    number = export_probes(found.batch, positions, credit, Path(given.output), given.tries, _stated(found, positions))
    print(f"{number} prefixes written to {given.output}", file=sys.stderr)
    return 0


def _import(given: argparse.Namespace) -> int:
    from graft_core.live.exchange import import_outcomes
    from graft_core.live.stated import by_certainty, certainty_table

    if not 0 < given.gamma <= 1:
        raise UsageError(f"--gamma {given.gamma}: expected a number above 0 up to 1")
    found = import_outcomes(Path(given.probes), Path(given.outcomes), given.gamma)
    rows = by_certainty([check for check, _ in found], [stated for _, stated in found])
    if given.json:
        print(json_text({"checks": [check.as_dict() for check, _ in found], "by_certainty": rows}))
    else:
        print("\n".join(_line(check) for check, _ in found), f"\n{certainty_table(rows)}\n{HOW_TO_READ}", sep="\n")
    return 0


def _run(given: argparse.Namespace) -> int:
    ways: dict[str, Any] = {"check": _check, "export": _export, "import": _import}
    status: int = ways[given.way](given)
    return status


COMMAND = Command("probe", "check a credit by rollout: continue from a step and from its rivals", _arguments, _run, rank=21)
