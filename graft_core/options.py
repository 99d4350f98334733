"""Options: their names, defaults, ranges and meanings, stated once.

Library, command line, app and documentation all take them from here. The values are the words of method.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from graft_core.errors import UsageError

Kind = Literal["float", "int", "word", "text"]


@dataclass(frozen=True)
class Option:
    """One option of an estimator or of the graph.

    name: the word in Python and (with --) on the command line. label: plain words for the screen. `choices` for kind
    "word"; `low` and `high` bound numbers (`open_high`: the upper bound itself is not allowed). A default of None
    means "not set".
    """

    name: str
    default: Any
    meaning: str
    label: str
    kind: Kind = "float"
    choices: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    expert: bool = False

    def with_default(self, default: Any) -> Option:
        return replace(self, default=default)

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        noun = {"float": "a number", "int": "a whole number", "word": "a word", "text": "a text"}[self.kind]
        if math.isinf(self.low) and math.isinf(self.high):
            return noun
        if math.isinf(self.high):
            return f"{noun} {'above' if self.open_low else 'of at least'} {self.low:g}"
        return f"{noun} {'above' if self.open_low else 'from'} {self.low:g} {'up ' if self.open_low else ''}to {self.high:g}"

    def check(self, value: Any) -> Any:
        """`value` in the option's type, or a `UsageError` that says what is allowed."""
        if value is None:
            if self.default is None:
                return None
            raise UsageError(f"{self.name}: nothing given, expected {self.allowed}")
        if self.kind in ("word", "text"):
            if not isinstance(value, str) or (self.choices and value not in self.choices):
                raise UsageError(f"{self.name}: {value!r} is not allowed, expected {self.allowed}")
            return value
        return self._number(value)

    def _number(self, value: Any) -> float | int:
        wrong = UsageError(f"{self.name}: {value!r} is not allowed, expected {self.allowed}")
        if isinstance(value, bool):
            raise wrong
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise wrong from None
        below = number <= self.low if self.open_low else number < self.low
        if not math.isfinite(number) or below or number > self.high:
            raise wrong
        if self.kind == "int":
            if number != int(number):
                raise wrong
            return int(number)
        return number


GAMMA: Final = Option(
    "gamma", 0.99, "discount per step: an outcome one step later counts this much", "shorter is better", low=0.0, high=1.0,
    open_low=True,
)
LAM: Final = Option(
    "lam", 0.95, "lambda: 0 trusts the merged values alone, 1 only what this rollout earned",
    "trust the map ... trust the outcome", low=0.0, high=1.0,
)
REACH: Final = Option(
    "reach", "path", "which later edges Graph GAE averages over: the rollout's own path, raw edge instances (Eq. 10), "
    "distinct edges, or the expectation under the visit counts", "later steps counted", "word",
    ("path", "instances", "distinct", "expectation"),
)
PER: Final = Option(
    "per", "transition", "credit of each transition, or its mean over all instances of (state, action)",
    "credit per", "word", ("transition", "action"),
)
NORMALISE: Final = Option(
    "normalise", "none", "per node, over the step instances that leave it: nothing, minus mean, or also divided by std",
    "normalise per moment", "word", ("none", "mean", "mean_std"),
)
STATISTICS: Final = Option(
    "statistics", "rollouts", "mean and std of the group over its rollouts, or over its steps (long rollouts weigh more)",
    "group mean over", "word", ("rollouts", "steps"), expert=True,
)
SINGLETON: Final = Option(
    "singleton", "zero", "a group with one known rollout: credit zero, or the raw outcome", "a group of one", "word",
    ("zero", "raw"), expert=True,
)
EPS: Final = Option("eps", 1e-6, "added to a standard deviation before dividing (TRL: 1e-4)", "eps", low=0.0, expert=True)
DDOF: Final = Option(
    "ddof", 1, "delta degrees of freedom of the standard deviation", "ddof", "int", low=0, high=1, expert=True
)
INVALID_PENALTY: Final = Option(
    "invalid_penalty", 0.0, "taken off an invalid step's own quantity before normalising (verl-agent: 0.1)",
    "penalty for invalid actions", low=0.0, expert=True,
)
CLIP: Final = Option(
    "clip", None, "bounds the finished credit to this size", "largest credit", low=0.0, open_low=True, expert=True
)
OMEGA: Final = Option("omega", 1.0, "weight of the step part beside the episode part", "weight of the step part", low=0.0)

SINKS: Final = Option(
    "sinks", "split", "where the last step of a rollout leads: a final node per (state, outcome), one per state, or on to "
    "the ordinary node where the rollout was cut off", "how rollouts end", "word", ("split", "merge", "bootstrap"), expert=True,
)
ACTIONS: Final = Option("actions", "parsed", "when two actions count as the same", "two actions are the same when", "text")
WEIGHTING: Final = Option(
    "weighting", "visits", "count every try, or every kind of action once", "count", "word", ("visits", "distinct", "max"),
    expert=True,
)
REWARDS: Final = Option(
    "rewards", "outcome", "only the outcome counts, or the step rewards of the file", "rewards", "word", ("outcome", "dense"),
    expert=True,
)
SOLVER: Final = Option(
    "solver", "direct", "how values are solved: exactly, or by sweeps for teaching (gamma below 1)", "solver", "word",
    ("direct", "gauss_seidel", "jacobi"), expert=True,
)
PRIOR: Final = Option(
    "prior", 0.0, "shrinkage: this many visits of the group's mean value are added to every node (visits only)",
    "shrinkage", low=0.0, expert=True,
)

VALUE_OPTIONS: Final = (WEIGHTING, REWARDS, SOLVER, PRIOR)
GRAPH_OPTIONS: Final = (ACTIONS, SINKS)
