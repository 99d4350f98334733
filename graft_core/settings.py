"""Settings: every option of an analysis in one frozen dataclass, with its words for file and URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from graft_core.credit import estimators
from graft_core.errors import UsageError
from graft_core.options import ACTIONS, PRIOR, REWARDS, SINKS, SOLVER, WEIGHTING, Option
from graft_core.registry import nearest, pick
from graft_core.rollouts import FloatArray, RolloutBatch
from graft_core.states.compose import action_rules, join_rules, parse, split_rules

DATA_OPTIONS: Final = {o.name: o for o in (ACTIONS, SINKS, WEIGHTING, REWARDS, SOLVER, PRIOR)}


def credit_options() -> dict[str, Option]:
    """Options of all estimators by name (defaults of the first estimator that has them)."""
    known: dict[str, Option] = {}
    for member in estimators().values():
        for option in member.options:
            known.setdefault(option.name, option)
    return known


@dataclass(frozen=True)
class Settings:
    """How a batch is looked at: the graph, the values, and the two credits side by side.

    rules, actions, sinks: how moments, actions and ends merge. weighting, rewards, solver, prior: how values are
    solved. estimator (A) and baseline (B): the two credits. given: options of the estimators that were set on
    purpose, as sorted (name, value) pairs; each applies to every estimator that has it.
    """

    rules: tuple[str, ...] = ("exact",)
    actions: str = "parsed"
    sinks: str = "split"
    weighting: str = "visits"
    rewards: str = "outcome"
    solver: str = "direct"
    prior: float = 0.0
    estimator: str = "graft_td"
    baseline: str = "grpo"
    given: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        parse(self.rules)
        pick(action_rules(), self.actions.partition(":")[0], "action rule")
        for name in ("sinks", "weighting", "rewards", "solver", "prior"):
            DATA_OPTIONS[name].check(getattr(self, name))
        for name in (self.estimator, self.baseline):
            pick(estimators(), name, "estimator")
        known = credit_options()
        for name, value in self.given:
            pick(known, name, "option").check(value)

    def with_options(self, **changes: Any) -> Settings:
        """A copy with fields or estimator options changed; None takes an estimator option back."""
        own = {f.name for f in fields(self)} - {"given"}
        given = dict(self.given)
        for name in [key for key in changes if key not in own]:
            value = changes.pop(name)
            if value is None:
                given.pop(name, None)
            else:
                given[name] = value
        return replace(self, **changes, given=tuple(sorted(given.items())))

    def options_for(self, name: str) -> dict[str, Any]:
        """The given options that the estimator has."""
        has = {option.name for option in estimators()[name].options}
        return {key: value for key, value in self.given if key in has}

    def resolved(self, name: str) -> dict[str, Any]:
        """All option values the estimator will use, defaults included."""
        return estimators()[name].resolve(self.options_for(name))

    @property
    def graph_words(self) -> dict[str, Any]:
        return {"rules": self.rules, "actions": self.actions, "sinks": self.sinks}

    @property
    def value_words(self) -> dict[str, Any]:
        return {"weighting": self.weighting, "rewards": self.rewards, "solver": self.solver, "prior": self.prior}

    def credit(self, batch: RolloutBatch, name: str) -> FloatArray:
        """Credit of `name` under these settings: float64[n_steps] in batch order."""
        from graft_core.credit import estimate

        return estimate(batch, name, **self.graph_words, **self.value_words, **self.options_for(name))

    def to_words(self) -> dict[str, str]:
        """Every field that is not the default, as words for a URL or a file."""
        words: dict[str, str] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "given":
                words |= {name: _word(v) for name, v in value}
            elif value != f.default:
                words[f.name] = join_rules(value) if f.name == "rules" else _word(value)
        return words

    @classmethod
    def from_words(cls, words: Mapping[str, str]) -> Settings:
        """The inverse of `to_words`; an unknown name or value is a `UsageError`."""
        own = {f.name for f in fields(cls)} - {"given"}
        known = credit_options()
        values: dict[str, Any] = {}
        given: dict[str, Any] = {}
        for name, word in words.items():
            if name == "rules":
                values[name] = split_rules(word)
            elif name in own:
                values[name] = DATA_OPTIONS[name].check(word) if name in DATA_OPTIONS else word
            elif name in known:
                given[name] = known[name].check(word)
            else:
                names = [*own, *known]
                raise UsageError(f"unknown setting {name!r}{nearest(name, names)}; known: {', '.join(sorted(names))}")
        return cls(**values, given=tuple(sorted(given.items())))


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


LOOK: Final = Settings()
"""Preset for looking: graph TD, not normalised, beside GRPO."""


def train() -> Settings:
    """Preset for training: `graft` = path, lambda .95, node-normalised."""
    return Settings(estimator="graft")
