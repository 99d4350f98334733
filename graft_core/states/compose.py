"""Applying rules: parsing their words, composing them left to right, and their registries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from graft_core.constants import NO_TEXT
from graft_core.errors import UsageError
from graft_core.registry import members, pick
from graft_core.rollouts import IntArray, RolloutBatch
from graft_core.states.base import ActionRule, Keys, StateRule, final_positions, step_positions


@cache
def rules() -> dict[str, StateRule]:
    """State rules by name."""
    import graft_core.states as package

    return members(package, "RULE")


@cache
def action_rules() -> dict[str, ActionRule]:
    """Action rules by name."""
    import graft_core.states as package

    return members(package, "ACTION_RULE")


def split_spec(spec: str, default: str) -> tuple[str, str]:
    """'history:2' -> ('history', '2'); without a colon the default parameter."""
    name, colon, parameter = spec.partition(":")
    return name.strip(), parameter if colon else default


def parse(specs: Sequence[str]) -> list[tuple[StateRule, str]]:
    """Rules with their parameters; unknown names and text rules behind key rules are `UsageError`s."""
    parsed: list[tuple[StateRule, str]] = []
    for spec in specs:
        rule = pick(rules(), spec.partition(":")[0].strip(), "state rule")
        if ":" in spec and not rule.parameter:
            raise UsageError(f"rule {spec!r}: {rule.name} takes nothing behind the colon")
        parameter = split_spec(spec, rule.default)[1]
        if rule.check is not None:
            rule.check(parameter)
        if rule.stage_with(parameter) == "text" and parsed and parsed[-1][0].stage_with(parsed[-1][1]) == "key":
            raise UsageError(
                f"rule {rule.name!r} works on texts and has to stand before {parsed[-1][0].name!r}, which works on keys"
            )
        parsed.append((rule, parameter))
    return parsed


def join_rules(specs: Sequence[str]) -> str:
    """Rules as one word, joined by "+"; a "+" inside a rule is doubled: 'masked:/a+/' and 'prefix' -> 'masked:/a++/+prefix'."""
    return "+".join(spec.replace("+", "++") for spec in specs)


def split_rules(word: str) -> tuple[str, ...]:
    """The inverse of `join_rules` (no rule begins with "+")."""
    return tuple(part.replace("\0", "+") for part in word.replace("++", "\0").split("+"))


def observed(batch: RolloutBatch) -> Keys:
    """The keys before any rule: the observation texts themselves."""
    codes = np.empty(batch.n_steps + batch.n_rollouts, dtype=np.int64)
    codes[step_positions(batch)] = batch.observation
    codes[final_positions(batch)] = batch.final_observation
    missing = batch.final_observation == NO_TEXT
    # a missing observation is a key of its own, behind all texts
    return Keys(np.where(codes == NO_TEXT, batch.texts.num_rows, codes), missing, batch.text_array)


def compose(batch: RolloutBatch, specs: Sequence[str]) -> Keys:
    """The keys of all rollouts under the given rules, applied left to right (none: `exact`)."""
    keys = observed(batch)
    for spec, (rule, parameter) in zip(specs, parse(specs), strict=True):
        made = rule.apply(batch, keys, parameter)
        keys = replace(made, rules=(*keys.rules, spec))
    return keys


def state_keys(batch: RolloutBatch, specs: Sequence[str] = ("exact",)) -> tuple[IntArray, IntArray]:
    """(key per step in path order, key per rollout's final state; -1 where there is none)."""
    keys = compose(batch, specs)
    final = np.where(keys.final_missing, NO_TEXT, keys.codes[final_positions(batch)])
    return keys.codes[step_positions(batch)], final


def action_codes(batch: RolloutBatch, spec: str = "parsed") -> IntArray:
    """Action key per step in path order under an action rule (text ids for the ready rules)."""
    name = spec.partition(":")[0].strip()
    rule: ActionRule = pick(action_rules(), name, "action rule")
    if ":" in spec and not rule.parameter:
        raise UsageError(f"actions {spec!r}: {rule.name} takes nothing behind the colon")
    return rule.apply(batch, split_spec(spec, rule.default)[1])
