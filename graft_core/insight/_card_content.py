"""What stands on a finding card, as plain data: finding, claim, evidence, numbers, surroundings, settings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from graft_core.constants import SIGN_TOLERANCE, SUCCESS_TOLERANCE
from graft_core.credit import estimators
from graft_core.insight._card_text import Redaction
from graft_core.insight._moments import steps_at, value_word
from graft_core.insight.certainty import certainty, no_interval
from graft_core.insight.chance import Chance
from graft_core.insight.findings import Findings, unnormalised
from graft_core.insight.moment import endings
from graft_core.insight.palette import credit_limit
from graft_core.insight.structure import mean_per_edge
from graft_core.insight.why import why
from graft_core.rollouts import IntArray

SHOWN_TEXT, SHOWN_ACTION, SHOWN_PLACE, SHOWN_LABEL = 600, 300, 240, 100
EDGES_SHOWN = 8
TITLES = {
    "good": "A good step in a failed rollout",
    "lost": "Where a failed rollout was lost",
    "bad": "A bad step in a successful rollout",
    "step": "One step of a rollout",
}


NOTHING_HIDDEN = Redaction()


@dataclass(frozen=True)
class Look:
    """How texts come onto a card. cut=False: whole (as far as texts are looked at), to compare with a card that was cut."""

    hide: Redaction = NOTHING_HIDDEN
    cut: bool = True

    def text(self, text: str, length: int, keep_lines: bool = False) -> str:
        return self.hide.excerpt(text, length if self.cut else 0, keep_lines)


def kind_of(found: Findings, position: int) -> str:
    """good, lost (its rollout's largest drop), bad (negative in a success), or just a step."""
    if bool((found.good == position).any()):
        return "good"
    if bool((found.lost == position).any()):
        return "lost"
    succeeded = found.batch.success[found.batch.step_rollout[position]] == 1
    return "bad" if succeeded and found.credit[position] < -SIGN_TOLERANCE else "step"


def content(found: Findings, position: int, look: Look) -> dict[str, Any]:
    """Everything on a card that follows from the data and the settings alone."""
    return {
        "finding": finding(found, position, look),
        "claim": claim(found, position, look),
        "evidence": evidence(found, position, look),
        "numbers": numbers(found, position),
        "moment": moment(found, position, look),
    }


def finding(found: Findings, position: int, look: Look) -> dict[str, Any]:
    """Which step it is: by its row in the batch (which is never redacted), and by its names."""
    batch = found.batch
    row = int(batch.step_rollout[position])
    return {
        "row": int(batch.order[position]),
        "group_id": look.hide.word(batch.group_ids[int(batch.group[row])]),
        "rollout_id": look.hide.word(batch.rollout_ids[row]),
        "step": int(batch.step_index[position]),
        "of_steps": int(batch.lengths[row]),
        "outcome": float(batch.outcome[row]),
        "success": float(batch.success[row]),
    }


def claim(found: Findings, position: int, look: Look) -> dict[str, Any]:
    """The claim in plain words, what supports it, and how the two credits came about."""
    told = why(found, position, paths=1)
    a, b = told.shown or told.formula, told.baseline
    because = [
        said.template.format(**{name: look.hide.word(text) for name, text in said.fields.items()}) for said in told.sentences
    ]
    kind = kind_of(found, position)
    return {
        "kind": kind,
        "title": TITLES[kind],
        "sentence": _sentence(found, position, kind, look),
        "because": because,
        "formulas": [{"estimator": f.title, "symbols": f.symbols, "text": f.text, "note": f.note} for f in (a, b)],
        "value_word": value_word(found.batch, found.values),
    }


def _sentence(found: Findings, position: int, kind: str, look: Look) -> str:
    batch, graph, v = found.batch, found.graph, found.values.v
    row = int(batch.step_rollout[position])
    step, rollout = int(batch.step_index[position]), look.hide.word(batch.rollout_ids[row])
    task = look.hide.word(batch.group_ids[int(batch.group[row])])
    action = look.text(batch.text(int(batch.action[position])), SHOWN_LABEL)
    before, after = float(v[graph.src[position]]), float(v[graph.dst[position]])
    start = {
        "good": f"Rollout {rollout} of task “{task}” failed, but its step {step} was good",
        "lost": f"Rollout {rollout} of task “{task}” was lost at step {step}, its largest drop",
        "bad": f"Rollout {rollout} of task “{task}” succeeded in spite of step {step}",
        "step": f"Step {step} of rollout {rollout} of task “{task}”",
    }[kind]
    word = value_word(batch, found.values)
    known = estimators()
    a, b = known[found.settings.estimator].title, known[found.settings.baseline].title
    return (
        f"{start}: with “{action}” the {word} went from {_plain(before)} to {_plain(after)}. "
        f"Credit: {a} {_signed(float(found.shown[position]))}, {b} {_signed(float(found.baseline[position]))}."
    )


def evidence(found: Findings, position: int, look: Look) -> dict[str, str]:
    """The cited texts: what was seen before, what was done, what was seen after."""
    batch = found.batch
    row = int(batch.step_rollout[position])
    last = position + 1 == batch.offsets[row + 1]
    following = batch.final_observation[row] if last else batch.observation[position + 1]
    return {
        "observation": look.text(batch.text(int(batch.observation[position])), SHOWN_TEXT, keep_lines=True),
        "action": look.text(batch.text(int(batch.action[position])), SHOWN_ACTION, keep_lines=True),
        "next_observation": look.text(batch.text(int(following)), SHOWN_TEXT, keep_lines=True),
    }


def numbers(found: Findings, position: int) -> dict[str, float | int]:
    """Value before and after, credit A (un-normalised, which decides the sign, and as shown) and B, and the support."""
    row = found.rows(np.array([position]))[0]
    names = ("value_before", "value_after", "credit", "credit_shown", "baseline", "seen_by", "of")
    return {name: row[name] for name in names} | {
        "visits": int(found.graph.visits[row["node"]]),
        "gamma": found.values.gamma,
    }


def moment(found: Findings, position: int, look: Look) -> dict[str, Any]:
    """The moment of the step, what was done there, and where that led: what the picture shows."""
    batch, graph, v = found.batch, found.graph, found.values.v
    node, chosen = int(graph.src[position]), int(graph.edge[position])
    at = steps_at(graph, node)
    edges, counts = np.unique(graph.edge[at], return_counts=True)
    order = edges[np.lexsort((edges, -counts, edges != chosen))]
    word = value_word(batch, found.values)
    here = v[(graph.node_group == graph.node_group[node]) & ~np.isnan(v)]
    low, high = (0.0, 1.0) if word.startswith("chance") or not here.size else (float(here.min()), float(here.max()))
    return {
        "text": look.text(batch.text(int(graph.node_text[node])), SHOWN_PLACE),
        "value": float(v[node]),
        "value_limits": [low, high if high > low else low + 1.0],
        "credit_limit": _limit(found, int(graph.node_group[node])),
        "visits": int(graph.visits[node]),
        "actions_total": int(edges.size),
        "actions": [_way(found, edge, at, edge == chosen, look) for edge in order[:EDGES_SHOWN].tolist()],
    }


def _way(found: Findings, edge: int, at: IntArray, chosen: bool, look: Look) -> dict[str, Any]:
    batch, graph = found.batch, found.graph
    steps = at[graph.edge[at] == edge]
    target = int(graph.edge_dst[edge])
    return {
        "action": look.text(batch.text(int(graph.edge_text[edge])), SHOWN_LABEL),
        "chosen": chosen,
        "back": target == int(graph.edge_src[edge]),
        "count": int(steps.size),
        "credit": _mean(found.credit[steps]),
        "baseline": _mean(found.baseline[steps]),
        **endings(graph, batch.step_rollout[steps]),
        "to": {
            "kind": _end(found, target),
            "text": look.text(batch.text(int(graph.node_text[target])), SHOWN_PLACE),
            "value": float(found.values.v[target]),
            "visits": int(graph.visits[target]),
        },
    }


def _end(found: Findings, node: int) -> str:
    if not found.graph.node_is_sink[node]:
        return "ordinary"
    outcome = float(found.graph.sink_value[node])
    if math.isnan(outcome):
        return "unknown"
    return "success" if outcome >= 1 - SUCCESS_TOLERANCE else "failure"


def _limit(found: Findings, group: int) -> float:
    """End of the credit colours: the same as in a picture of the whole task."""
    graph = found.graph
    per_edge = mean_per_edge(graph, found.batch.to_rows(found.credit))
    return credit_limit(per_edge[graph.node_group[graph.edge_src] == group])


def luck(chance: Chance, position: int, group: int) -> dict[str, Any]:
    """What the shuffles say about this step and its list."""
    return {
        **chance.as_dict(),
        "p": float(chance.p[position]),
        "q": float(chance.q[position]),
        "beyond": bool(chance.beyond[position]),
        "group_too_small": bool(chance.too_small[group]),
    }


def sureness(found: Findings, position: int) -> dict[str, Any]:
    """The interval of the step's credit and what it says; only a sentence where there is no checked interval."""
    settings = unnormalised(found.settings)
    reason = no_interval(settings)
    if not reason and not found.graph.known[position]:
        reason = "the outcome of this rollout is unknown"
    if reason:
        return {"sentence": f"No interval: {reason}."}
    per = settings.resolved(settings.estimator).get("per", "transition")
    row = certainty(found.graph, found.values, per).row(int(found.graph.edge[position]))
    interval = ""
    if row["low"] is not None:
        interval = f"; {row['level']:.0%} interval of the credit {_signed(row['low'])} to {_signed(row['high'])}"
    return {**row, "sentence": f"{row['word'].capitalize()}: {row['meaning']}{interval}."}


def settings_words(found: Findings) -> dict[str, Any]:
    """All settings in full, so that a later version with other defaults computes the same."""
    settings = found.settings
    names = dict.fromkeys([settings.estimator, settings.baseline])
    return {
        "words": {name: word for name, word in settings.to_words().items() if name != "rules"},
        "estimator": settings.estimator,
        "baseline": settings.baseline,
        **settings.graph_words,
        "rules": list(settings.rules),
        **settings.value_words,
        "options": {name: settings.resolved(name) for name in names},
        "success_threshold": found.batch.success_threshold,
    }


def _mean(values: Any) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


def _plain(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.2f}".replace("-", "−")


def _signed(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:+.2f}".replace("-", "−")
