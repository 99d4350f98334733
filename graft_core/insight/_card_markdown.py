"""A card as Markdown. Rollout text stands in fences that it cannot close, or with every punctuation mark escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from graft_core.insight.labels import plain, shorten

SHOWN_PLACE = 100

# What begins markup inside a line: emphasis, code, links, references, mentions, formulas, tables, strikethrough, and what
# programs make links of (a colon or a full stop inside a word).
_MARKUP = re.compile(r"([\\`*_\[\]#|~$@]|:(?=\S)|\.(?=[^\W\d]))")
_TICKS = re.compile(r"`+")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def literal(text: str) -> str:
    """One line of text that Markdown, HTML and tables show as it is."""
    flat = _MARKUP.sub(r"\\\1", plain(text))
    return "".join(_ENTITIES.get(char, char) for char in flat)


def fenced(text: str) -> str:
    """A block of text as it is, between fences longer than any row of backticks in it."""
    shown = plain(text, keep_lines=True) or "(empty)"
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(shown)), default=0))
    return f"{fence}text\n{shown}\n{fence}"


def markdown(card: Mapping[str, Any], picture: str) -> str:
    """The whole card; `picture` is the file name of its picture, beside it."""
    parts = [
        f"# {literal(card['claim']['title'])}",
        literal(card["claim"]["sentence"]),
        "\n".join(f"- {literal(reason)}" for reason in card["claim"]["because"]),
        f"![The moment of the step, what was done there, and where that led]({picture})",
        *_evidence(card["evidence"]),
        *_numbers(card),
        *_moment(card),
        *_luck(card),
        *_origin(card),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _evidence(evidence: Mapping[str, str]) -> list[str]:
    return [
        "## Evidence",
        "Seen before:", fenced(evidence["observation"]),
        "Done:", fenced(evidence["action"]),
        "Seen after:", fenced(evidence["next_observation"]),
    ]  # fmt: skip


def _numbers(card: Mapping[str, Any]) -> list[str]:
    numbers, settings, word = card["numbers"], card["settings"], card["claim"]["value_word"]
    rows = [
        (f"{word}, before", _number(numbers["value_before"])),
        (f"{word}, after", _number(numbers["value_after"])),
        (f"credit A ({settings['estimator']}), not normalised", _number(numbers["credit"])),
        (f"credit A ({settings['estimator']}), as shown", _number(numbers["credit_shown"])),
        (f"credit B ({settings['baseline']})", _number(numbers["baseline"])),
        ("rollouts of known outcome that were in this moment", f"{numbers['seen_by']} of {numbers['of']}"),
    ]
    formulas = card["claim"]["formulas"]
    how = [f"- {literal(f['estimator'])}: {literal(f['symbols'])}; here {literal(f['text'])}" for f in formulas]
    return ["## Numbers", _table(("what", "number"), rows), "\n".join(how)]


def _moment(card: Mapping[str, Any]) -> list[str]:
    here = card["moment"]
    heads = ("action", "times", "led to", card["claim"]["value_word"], "credit A", "credit B", "succeeded", "failed")
    rows = [
        (
            way["action"] + (" (this step)" if way["chosen"] else ""), str(way["count"]), _target(way),
            _number(way["to"]["value"]), _number(way["credit"]), _number(way["baseline"]),
            str(way["succeeded"]), str(way["failed"]),
        )
        for way in here["actions"]
    ]  # fmt: skip
    hidden = here["actions_total"] - len(rows)
    return ["## What was done in this moment", _table(heads, rows), f"and {hidden} more" if hidden > 0 else ""]


def _target(way: Mapping[str, Any]) -> str:
    ends = {"success": "the end: success", "failure": "the end: failure", "unknown": "the end: outcome unknown"}
    return "the same moment" if way["back"] else ends.get(way["to"]["kind"]) or shorten(way["to"]["text"], SHOWN_PLACE)


def _luck(card: Mapping[str, Any]) -> list[str]:
    parts: list[str] = []
    chance, certainty = card.get("chance"), card.get("certainty")
    if chance and "left_out" in chance:
        parts += ["## Chance", "What outcomes dealt at random would give was left out when this card was made."]
    elif chance:
        said = (
            f"{chance['observed']} good steps were found; with outcomes dealt at random {chance['shuffles']} times, "
            f"{chance['low']} to {chance['high']} (mean {_number(chance['mean'])})."
        )
        own = (
            "The group is too small for any step to be marked beyond luck." if chance["group_too_small"]
            else f"This step is {'' if chance['beyond'] else 'not '}beyond luck at {chance['level']:g} "
            f"(p {_number(chance['p'])}, false-discovery rate {_number(chance['q'])})."
        )  # fmt: skip
        parts += ["## Chance", literal(f"{said} {own}")]
    if certainty:
        parts += ["## Certainty", literal(certainty["sentence"])]
    return parts


def _origin(card: Mapping[str, Any]) -> list[str]:
    settings, data = card["settings"], card["data"]
    options = "; ".join(
        f"{name}: " + ", ".join(f"{key} {_value(value)}" for key, value in given.items())
        for name, given in settings["options"].items()
    )
    rows = [
        ("moments are the same by", " + ".join(settings["rules"])),
        ("actions, ends", f"{settings['actions']}, {settings['sinks']}"),
        ("values", ", ".join(f"{name} {_value(settings[name])}" for name in ("weighting", "rewards", "solver", "prior"))),
        ("estimator options", options),
        ("grouped by", data["group_by"] or "the file's own tasks"),
        *([("succeeded when", data["success_when"])] if data.get("success_when") else []),
        *[("data", f"{file['file']}, SHA-256 {file['sha256']}") for file in data["files"]],
        ("made", f"{card['made']} with {card['tool']} {card['version']}"),
    ]
    check = "Check it: `graft verify` with the JSON file of this card, and the data beside it."
    hidden = "Some texts are redacted." if card["redacted"] else ""
    return ["## Settings and data", _table(("what", "value"), rows), check, hidden]


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(heads)]
    lines += [["---"] * len(lines[0])]
    words = [[literal(cell) for cell in lines[0]], lines[1], *[[literal(cell) for cell in row] for row in rows]]
    return "\n".join("| " + " | ".join(row) + " |" for row in words)


def _number(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.4g}".replace("-", "−")


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
