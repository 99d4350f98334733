"""`graft verify CARD.json [PATH]`: compute the finding of a card again from the data, and say whether it comes out the same."""

from __future__ import annotations

import argparse
from pathlib import Path

from graft_core.commands._common import Command, json_text


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("card", metavar="CARD.json", help="the finding card")
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="its data (default: by name, beside the card or in the working directory)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def _run(given: argparse.Namespace) -> int:
    from graft_core.insight.cards import read_card, verify_card

    card = read_card(given.card)
    found = verify_card(card, near=[Path(given.card).resolve().parent, Path.cwd()], paths=given.paths)
    if given.json:
        print(json_text(found.as_dict()))
    else:
        print("\n  ".join([found.status, *found.details, *found.notes]))
    return 0 if found.ok else 1


COMMAND = Command("verify", "check a finding card against its data", _arguments, _run, rank=8)
