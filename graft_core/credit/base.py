"""What an estimator is and what it gets: the contract of the files beside this one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from graft_core.errors import UsageError
from graft_core.graph import TrajectoryGraph
from graft_core.options import CLIP, Option
from graft_core.rollouts import BoolArray, FloatArray, IntArray, RolloutBatch
from graft_core.values import Values, solve_values


@dataclass(frozen=True, eq=False)
class Inputs:
    """What an estimator computes from. All per-step arrays are in path order; credits are returned in path order.

    `options` holds a checked value for every option the estimator declares.
    """

    batch: RolloutBatch
    options: Mapping[str, Any]
    graph_source: Callable[[], TrajectoryGraph] = field(repr=False)
    value_options: Mapping[str, Any] = field(default_factory=dict)
    given_values: Values | None = None
    given_gamma: float | None = None

    def __getitem__(self, name: str) -> Any:
        return self.options[name]

    @cached_property
    def graph(self) -> TrajectoryGraph:
        return self.graph_source()

    @cached_property
    def split_graph(self) -> TrajectoryGraph:
        """The graph under the same rules with `split` sinks."""
        from graft_core.credit.estimate import graph_of

        graph = self.graph
        return graph if graph.sinks == "split" else graph_of(self.batch, graph.rules, graph.actions, "split")

    @property
    def dense(self) -> bool:
        """Whether the step rewards of the file count, not only the outcome."""
        return self.value_options.get("rewards", "outcome") == "dense"

    @property
    def values(self) -> Values:
        """Node values with this estimator's gamma, or the given ones; a given gamma has to be theirs."""
        if self.given_values is not None:
            gamma = self.given_values.gamma
            if self.given_gamma not in (None, gamma):
                raise UsageError(f"gamma {self.given_gamma!r} contradicts the given values, solved with {gamma!r}")
            return self.given_values
        return solve_values(self.graph, gamma=self["gamma"], **self.value_options)

    @property
    def known(self) -> BoolArray:
        """bool[n]: the outcome of the step's rollout is known."""
        return self.batch.step_known

    @cached_property
    def known_steps(self) -> Any:
        """What selects the steps of known outcome from a per-step array: a slice where that is all of them."""
        return slice(None) if self.known.all() else np.flatnonzero(self.known)

    def spread(self, credit: FloatArray) -> FloatArray:
        """One number per known step, put where these steps stand; NaN elsewhere. float64[n_steps]."""
        if isinstance(self.known_steps, slice):
            return credit
        out = np.full(self.known.size, np.nan)
        out[self.known_steps] = credit
        return out

    @property
    def rollout(self) -> IntArray:
        """int64[n]: rollout row of each step."""
        return self.batch.step_rollout

    @property
    def outcome(self) -> FloatArray:
        """float64[R]: outcome per rollout row, NaN unknown."""
        return self.batch.outcome


@dataclass(frozen=True)
class Estimator:
    """A credit estimator as the registry knows it.

    meaning: plain words. source: arXiv id. needs: columns it cannot do without ("logprob", "value"). uses: "rollouts"
    (outcomes of a group only), "graph" or "columns" (each rollout by itself, so groups need not be known). options: the
    options it has, with its own defaults. apply(inputs) -> float64[n_steps].
    """

    name: str
    title: str
    meaning: str
    source: str
    apply: Callable[[Inputs], FloatArray]
    options: tuple[Option, ...] = ()
    needs: tuple[str, ...] = ()
    uses: str = "graph"
    menu: bool = False
    fixed: tuple[tuple[str, Any], ...] = ()
    rank: int = 100

    def option(self, name: str) -> Option | None:
        return next((option for option in self.options if option.name == name), None)

    def resolve(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Checked values of all its options: those given, else its own defaults. Unknown names are a `UsageError`."""
        names = [option.name for option in self.options]
        for name in given:
            if name not in names:
                raise UsageError(f"{self.name} has no option {name!r}; it has: {', '.join(names) or 'none'}")
        return {option.name: option.check(given.get(option.name, option.default)) for option in self.options}


def estimator(
    name: str,
    *,
    title: str,
    meaning: str,
    source: str,
    options: Iterable[Option] = (),
    needs: Iterable[str] = (),
    uses: str = "graph",
    menu: bool = False,
    rank: int = 100,
) -> Callable[[Callable[[Inputs], FloatArray]], Callable[[Inputs], FloatArray]]:
    """Decorator that registers a function as an estimator, for the library's own files and for users' own.

    The function gets `Inputs` and returns one float64 per step in path order, NaN where undefined. Every estimator has
    the option `clip`, which `estimate` applies to the finished credit. A name of the library is a `UsageError`.
    """

    def register(apply: Callable[[Inputs], FloatArray]) -> Callable[[Inputs], FloatArray]:
        if not ours(apply):
            _refuse_taken(name)
        own = tuple(options)
        if all(option.name != CLIP.name for option in own):
            own = (*own, CLIP)
        made = Estimator(name, title, meaning, source, apply, own, tuple(needs), uses, menu, (), rank)
        REGISTERED[name] = made
        return apply

    return register


def ours(apply: Callable[[Inputs], FloatArray]) -> bool:
    """Whether an estimator is one of the library's own."""
    return apply.__module__.startswith("graft_core.credit.")


def _refuse_taken(name: str) -> None:
    """The library's own names stay what they are; a user's own may be registered anew."""
    from graft_core.credit.estimate import estimators

    known = estimators().get(name)
    if known is not None and ours(known.apply):
        raise UsageError(f"an estimator called {name!r} is there already; choose another name")


REGISTERED: dict[str, Estimator] = {}
"""Estimators by name; filled by the decorator. Use `estimators()`, which loads the library's own files first."""
