"""Why a step got its credit: the formula with its numbers, who was in this moment, who made the values, what comes next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graft_core.insight._formula import Case, Formula, formula, normalised, signed
from graft_core.insight._moments import ActionHere, Ended, actions_at, ended, steps_at, value_word
from graft_core.insight._paths import Path, Paths, top_paths
from graft_core.insight._words import excerpt
from graft_core.insight.contributions import Contribution, Influence, influence, step_contributions
from graft_core.insight.findings import Findings, unnormalised
from graft_core.rollouts import FloatArray, RolloutBatch
from graft_core.settings import Settings
from graft_core.values import solve_values

__all__ = ["Formula", "Path", "Paths", "Sentence", "Why", "position_of_row", "why"]

WORTH_SAYING = 0.1  # a rollout that changes the credit by less than this share of it is not mentioned


@dataclass(frozen=True)
class Sentence:
    """A plain sentence; names from the file stand in `fields`, never in `template`, so that a page can escape them."""

    template: str
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.template.format(**self.fields)

    def as_dict(self) -> dict[str, Any]:
        return {"template": self.template, "fields": dict(self.fields), "text": self.text}


@dataclass(frozen=True)
class Why:
    """Everything there is to say about one step's credit.

    formula: of the un-normalised credit A, which decides the sign; shown: of the normalised credit where the settings
    normalise, else None; baseline: of B. reached: how the rollouts that left this moment ended (this one included).
    actions: what was done here. contributions: each known rollout's part in both values; paths_before, paths_after: the
    likeliest ways on from s and from s'. action, observation, next_observation are excerpts of rollout text.
    """

    position: int
    row: int
    group_id: str
    rollout_id: str
    step: int
    of_steps: int
    action: str
    observation: str
    next_observation: str
    node: int
    next_node: int
    value_before: float
    value_after: float
    value_word: str
    credit: float
    formula: Formula
    shown: Formula | None
    baseline: Formula
    reached: Ended
    actions: tuple[ActionHere, ...]
    contributions: tuple[Contribution, ...]
    paths_before: Paths
    paths_after: Paths
    influence: Influence | None
    sentences: tuple[Sentence, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, tuple):
                value = [one.as_dict() for one in value]
            data[name] = value.as_dict() if hasattr(value, "as_dict") else value
        return data


def position_of_row(batch: RolloutBatch, row: int) -> int:
    """Path position of a step given by its batch row (as in `Findings.rows`)."""
    return row if batch.in_path_order else int(np.flatnonzero(batch.order == row)[0])


def why(findings: Findings, position: int, paths: int = 5, leave_out: bool = True) -> Why:
    """Explain the credit of the step at a path position under some findings.

    paths: how many ways on are listed. leave_out: whether each rollout is left out in turn (`influence`; up to some
    tenths of a second for groups of 64).
    """
    batch, graph, values = findings.batch, findings.graph, findings.values
    row, node, after = int(batch.step_rollout[position]), int(graph.src[position]), int(graph.dst[position])
    here = steps_at(graph, node)
    last = position + 1 == batch.offsets[row + 1]
    following = batch.final_observation[row] if last else batch.observation[position + 1]
    reached = ended(batch, batch.step_rollout[here])
    actions = actions_at(graph, values, here, int(graph.pair[position]))
    left = influence(findings, position) if leave_out else None
    plain = unnormalised(findings.settings)
    return Why(
        position=position,
        row=int(batch.order[position]),
        group_id=batch.group_ids[int(batch.group[row])],
        rollout_id=batch.rollout_ids[row],
        step=int(batch.step_index[position]),
        of_steps=int(batch.lengths[row]),
        action=excerpt(batch.text(int(batch.action[position]))),
        observation=excerpt(batch.text(int(batch.observation[position]))),
        next_observation=excerpt(batch.text(int(following))),
        node=node,
        next_node=after,
        value_before=float(values.v[node]),
        value_after=float(values.v[after]),
        value_word=value_word(batch, values),
        credit=float(findings.credit[position]),
        formula=formula(_case(findings, position, plain.estimator, findings.credit, plain)),
        shown=_shown(findings, position),
        baseline=_baseline(findings, position),
        reached=reached,
        actions=actions,
        contributions=step_contributions(graph, values, position),
        paths_before=top_paths(graph, values, node, paths),
        paths_after=top_paths(graph, values, after, paths),
        influence=left,
        sentences=_sentences(findings, position, reached, actions, left),
    )


def _case(findings: Findings, position: int, name: str, credit: FloatArray, settings: Settings) -> Case:
    """A step's case under one estimator, with the values that this estimator's gamma gives."""
    options, values = settings.resolved(name), findings.values
    gamma = options.get("gamma")
    if gamma is not None and gamma != values.gamma:
        values = solve_values(findings.graph, gamma=gamma, **settings.value_words)
    return Case(findings.graph, values, settings, name, options, credit, position)


def _baseline(findings: Findings, position: int) -> Formula:
    settings, name = findings.settings, findings.settings.baseline
    case = _case(findings, position, name, findings.baseline, settings)
    if case.options.get("normalise", "none") == "none":
        return formula(case)
    plain = settings.with_options(normalise="none").credit(findings.batch, name)[findings.batch.order]
    return normalised(case, plain)


def _shown(findings: Findings, position: int) -> Formula | None:
    settings = findings.settings
    if settings.resolved(settings.estimator).get("normalise", "none") == "none":
        return None
    return normalised(_case(findings, position, settings.estimator, findings.shown, settings), findings.credit)


def _share(group: Ended) -> str:
    """ "3 of 4" of those whose outcome is known."""
    return f"{group.succeeded} of {group.known}"


def _sentences(
    findings: Findings, position: int, reached: Ended, actions: tuple[ActionHere, ...], left: Influence | None
) -> tuple[Sentence, ...]:
    found = [_reached(reached)]
    if reached.rollouts > 1:
        found.append(_compared(findings, position, actions))
    found += _led(findings, position, actions)
    if left is not None:
        found += _left(findings, position, left, reached)
    return tuple(found)


def _reached(reached: Ended) -> Sentence:
    if reached.rollouts == 1:
        return Sentence("Only this rollout was ever in this moment: one witness.")
    if reached.known == reached.rollouts:
        some = {0: "none", reached.rollouts: "all"}.get(reached.succeeded, str(reached.succeeded))
        return Sentence(f"{reached.rollouts} rollouts reached this moment; {some} of them succeeded.")
    if not reached.known:
        return Sentence(f"{reached.rollouts} rollouts reached this moment; how they ended is unknown.")
    return Sentence(
        f"{reached.rollouts} rollouts reached this moment; {_share(reached)} whose outcome is known succeeded."
    )


def _compared(findings: Findings, position: int, actions: tuple[ActionHere, ...]) -> Sentence:
    batch, graph = findings.batch, findings.graph
    chosen = next(a for a in actions if a.chosen)
    if len(actions) == 1:
        return Sentence("Everyone who was here did the same.")
    here = steps_at(graph, int(graph.src[position]))
    others = ended(batch, batch.step_rollout[here[graph.pair[here] != graph.pair[position]]])
    if not chosen.ended.known or not others.known:
        side = "this action" if not chosen.ended.known else "the other actions here"
        return Sentence(f"How those ended that took {side} is unknown.")
    return Sentence(
        f"After this action {_share(chosen.ended)} succeeded; after the other actions here {_share(others)}."
    )


def _led(findings: Findings, position: int, actions: tuple[ActionHere, ...]) -> list[Sentence]:
    """Where the step led, if more rollouts were there than took this action here: their endings made the value after it."""
    batch, graph = findings.batch, findings.graph
    chosen = next(a for a in actions if a.chosen)
    there = ended(batch, batch.step_rollout[steps_at(graph, int(graph.dst[position]))])
    if there.rollouts <= chosen.ended.rollouts or not there.known:
        return []
    return [Sentence(f"It led to a moment that {there.rollouts} rollouts reached; {_share(there)} succeeded.")]


def _left(findings: Findings, position: int, left: Influence, reached: Ended) -> list[Sentence]:
    if left.undefined_without_own and reached.rollouts > 1:
        return [Sentence("Only this rollout went on from here to where it came next: one witness of what follows.")]
    others = [one for one in left.rollouts if not one.own and not math.isnan(one.change)]
    if left.undefined_without_own or not others or left.most is None:
        return []
    most, now = left.most, float(findings.credit[position])
    if abs(most.change) < WORTH_SAYING * abs(now):
        return []
    who = "its own evidence" if most.own else "rollout {rollout}"
    return [
        Sentence(
            f"Without {who} the credit would be {signed(most.credit)} instead of {signed(now)}.",
            {} if most.own else {"rollout": excerpt(most.rollout_id, 40)},
        )
    ]
