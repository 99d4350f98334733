"""What is said of suspect merges, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graft_core.graph import TrajectoryGraph
from graft_core.insight.labels import plain, shorten

if TYPE_CHECKING:
    from graft_core.insight.suspect import GroupSuspicion, Suspects

CANDIDATES: Final = {
    "visited": "part every moment by whether the rollout has met this node before",
    "guard": "keep observations that say little apart by what came before them",
    "history:1": "part every moment also by the observation before it",
    "actions:1": "part every moment also by the action before it",
}

LIKELY: Final = {
    "guard": "Likely a text that says little stands for several situations.",
    "history:1": "Likely it matters what was seen just before.",
    "actions:1": "Likely it matters what was done just before.",
    "": "",
}
"""What an alarm points at where the proposed rule is not `visited:W`."""

NEXT_SENTENCE: Final = "The same action led elsewhere, depending on how one came here."
SEEN_TOO_RARELY: Final = "seen too rarely to judge"
LEFT: Final = "Not tested: the task has very many moments, and more visited ones came first."
MEMORY: Final = (
    "An agent that remembers more than its state shows raises this alarm too, even with a perfect rule; only "
    "“the same action led elsewhere” speaks of the task alone."
)
"""Stands beside every alarm: language models remember."""

_SHOWN = 3
_LONGEST_NAME = 80


def visited_rule(graph: TrajectoryGraph, node: int) -> str:
    """The rule `visited:W` that names this node: by its text where that is short and names it alone, else by its hash."""
    text = graph.batch.text(int(graph.node_text[node]))
    if _names_it(graph, node, text):
        return f"visited:{text}"
    from graft_core.states._nodes import hash_word
    from graft_core.states.base import step_positions
    from graft_core.states.compose import compose

    if "keys" not in graph.memo:
        graph.memo["keys"] = compose(graph.batch, graph.rules)
    keys = graph.memo["keys"]
    code = keys.codes[step_positions(graph.batch)[int(np.flatnonzero(graph.src == node)[0])]]
    return f"visited:{hash_word(int(keys.hashes[code]))}"


def _names_it(graph: TrajectoryGraph, node: int, text: str) -> bool:
    """Whether the text can stand behind `visited:` and no other node of the group was seen with it."""
    if not text or len(text) > _LONGEST_NAME or plain(text) != text or text.startswith("#") or text.endswith("*"):
        return False
    own = graph.node_group[graph.src] == graph.node_group[node]
    same = own & (graph.batch.observation == graph.node_text[node])
    seen = np.unique(graph.batch.observation[graph.src == node])
    return seen.size == 1 and np.unique(graph.src[same]).size == 1


def name(graph: TrajectoryGraph, node: int) -> str:
    """A node in one short line."""
    text = graph.batch.text(int(graph.node_text[node]))
    return f"“{shorten(plain(text), 60)}”" if text else "(no observation)"


def sentence(found: Suspects, group: int) -> str:
    """What is said of one group, and of how many of its moments; no alarm is never "clean"."""
    said = found.groups[group]
    return " ".join([_said(found, said), *_untested(said)])


def _untested(said: GroupSuspicion) -> list[str]:
    """Where a group has more moments than could be tested."""
    if said.tested == said.testable:
        return []
    return [f"Only {said.tested} of {said.testable} moments were tested one by one, the most visited ones."]


def _said(found: Suspects, said: GroupSuspicion) -> str:
    from graft_core.insight import suspect

    if said.word == suspect.ALARM:
        return _alarm(found, said)
    if said.word == suspect.NODES:
        return _single_nodes(found, said)
    if said.word == suspect.RARE:
        share = f"{100 * said.judged:.0f} % of the steps lie in moments seen often enough"
        return f"Too small to judge: {share}; the others are {SEEN_TOO_RARELY}."
    if said.word == suspect.CUT:
        cut = f"{100 * said.cut:.0f} % of the rollouts were cut off"
        return f"No sign, but turn limits hide most of what this test uses ({cut})."
    if said.word == suspect.SMALL:
        return (
            f"No sign of a wrong merge. With {said.rollouts} rollouts up to a fifth of hidden facts like a key, and about half "
            "of the single moments concerned, stay unseen."
        )
    return "No sign; a hidden milestone like a key would almost surely show (measured in toy worlds)."


def _alarm(found: Suspects, said: GroupSuspicion) -> str:
    parts = [
        "In this task the past changes what follows, more than a correct state rule allows (1 in 30 correct tasks would say "
        "this)."
    ]
    if said.rule.startswith("visited") and said.w >= 0:
        parts.append(f"Likely fact that the rule hides: has visited {name(found.graph, said.w)}.")
    else:
        parts.append(LIKELY[said.rule])
    if said.nodes:
        parts.append(f"{_listed(found, said)}; of the moments named, about 1 in 10 is innocent.")
    else:
        parts.append("No single moment stands out.")
    return " ".join(part for part in [*parts, *_offer(said)] if part)


def _single_nodes(found: Suspects, said: GroupSuspicion) -> str:
    from graft_core.insight.suspect import TESTS

    tests = {TESTS[found.test[u]] for u in said.nodes}
    parts = [NEXT_SENTENCE] if "next" in tests else []
    if "own" in tests:
        parts.append("At single moments the past changes what follows, more than a correct state rule allows.")
    return " ".join([*parts, f"{_listed(found, said)}.", *_offer(said)])


def _listed(found: Suspects, said: GroupSuspicion) -> str:
    shown = ", ".join(name(found.graph, u) for u in said.nodes[:_SHOWN])
    more = len(said.nodes) - _SHOWN
    return f"Suspect: {shown}{f' and {more} more' if more > 0 else ''}"


def _offer(said: GroupSuspicion) -> list[str]:
    """The proposed rule with its effect."""
    if not said.effects:
        return []
    best = said.effects[0]
    if said.alarm:
        after = "ends the alarm" if best.silenced else "does not end the alarm"
    else:
        after = "foretells the next moment better" if best.gain > 0 else "does not foretell the next moment better"
    size = f"{best.nodes} nodes, {100 * best.shared:.0f} % of steps shared"
    return [f"Adding the rule “{shorten(best.rule, 60)}” {after} ({size})."]


def node_sentence(found: Suspects, node: int) -> str:
    """Why one node is a suspect, or why it is not called one."""
    from graft_core.insight.suspect import TESTS

    test = TESTS[found.test[node]]
    if test == "next":
        return NEXT_SENTENCE
    if test:
        via = int(found.via[node])
        fact = f": it goes on otherwise where the rollout has met {name(found.graph, via)} before" if via >= 0 else ""
        return f"The past changes what follows here{fact}."
    if found.left[node]:
        return LEFT
    return "No sign of a wrong merge here." if found.judged[node] else f"{SEEN_TOO_RARELY.capitalize()}."


def summary(found: Suspects) -> str:
    """All groups in one sentence, with what chance alone would give; one more where a group had too many moments."""
    from graft_core.insight.suspect import LEVEL

    tested = [said for said in found.groups if not np.isnan(said.p)]
    if not tested:
        return "No task repeats its moments often enough to look for wrong merges."
    n, expected = len(tested), LEVEL * len(tested)
    chance = f"about {expected:.0f}" if expected >= 1 else "fewer than 1"
    short = sum(bool(_untested(said)) for said in found.groups)
    where = f" In {short} of them only" if n > 1 else " Only"
    rest = f"{where} the most visited moments were tested one by one: the others were too many." if short else ""
    if n == 1:
        return f"The task {'raises the' if found.alarms else 'raises no'} alarm.{rest}"
    return f"{found.alarms} of {n} tasks raise the alarm; with correct state rules {chance} would.{rest}"


def as_dict(found: Suspects) -> dict[str, Any]:
    """Plain data for JSON."""

    def number(value: float) -> float | None:
        return None if np.isnan(value) else float(value)

    from graft_core.insight.suspect import TESTS

    batch = found.graph.batch

    def node(u: int) -> dict[str, Any]:
        text = batch.text(int(found.graph.node_text[u]))
        return {"node": u, "text": text, "p": number(found.p[u]), "test": TESTS[found.test[u]]}

    groups = [
        {
            "group_id": batch.group_ids[said.group],
            "word": said.word,
            "p": number(said.p),
            "exact": said.exact,
            "rollouts": said.rollouts,
            "cut": said.cut,
            "judged": said.judged,
            "tested": said.tested,
            "testable": said.testable,
            "sentence": sentence(found, said.group),
            "visited": None if said.w < 0 else batch.text(int(found.graph.node_text[said.w])),
            "rule": said.rule,
            "effects": [effect.as_dict() for effect in said.effects],
            "nodes": [node(u) for u in said.nodes],
        }
        for said in found.groups
    ]
    return {"summary": summary(found), "alarms": found.alarms, "seed": found.seed, "draws": found.draws, "groups": groups}
