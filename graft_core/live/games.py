"""Environments by name for playing: registered worlds, gymnasium's toy_text, and any class as `module:Class`.

    frozen-lake:size=8,slippery=true        a registered environment with options
    household                               one group per task, in the order of the tasks
    toy-text:Taxi-v3                        gymnasium's, if it is installed
    mypackage.games:Maze                    your own class with the methods of `Environment`
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from graft_core.environments import Environment, WorldEnvironment, environments, make_world
from graft_core.environments.household_tasks import TASKS
from graft_core.errors import UsageError
from graft_core.registry import nearest, pick

METHODS: Final = ("reset", "step", "admissible", "state_key", "success")
TURNS: Final = {"frozen-lake": 100, "key-door": 60, "household": 30, "cliff": 100, "layered": 20}
DEFAULT_TURNS: Final = 50
LIVE_OPTIONS: Final[dict[str, dict[str, Any]]] = {"key-door": {"pits": False}, "frozen-lake": {"size": 8}}
"""Options that differ from the environment's own where nothing is said: a beginner must sometimes succeed, but not at once."""

GRAPH_KEYS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "key-door": {"no-key": (r"masked:/You have (the|no) key\./",)},
    "frozen-lake": {"row": (r"masked:/column \d+/",)},
}
"""Named ways of telling moments apart that leave something out, per environment: words for `rules`."""


@dataclass(frozen=True)
class Game:
    """A kind of environment: `make(task)` gives a fresh one; `tasks` are what groups cycle through ("" = only one).

    turns: the limit where none is given. graph_keys: see `GRAPH_KEYS`. families, goals: by task; a goal stands before
    every prompt, since the observation does not say it.
    """

    name: str
    make: Callable[[str], Environment]
    tasks: tuple[str, ...] = ("",)
    turns: int = DEFAULT_TURNS
    graph_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)
    goals: Mapping[str, str] = field(default_factory=dict)

    def rules(self, key: str) -> tuple[str, ...]:
        """State rules behind a graph key: a name of this environment, or the words of `--rule` joined by +."""
        from graft_core.states.compose import parse, split_rules

        if key in self.graph_keys:
            return self.graph_keys[key]
        try:
            rules = tuple(split_rules(key))
            parse(rules)
        except UsageError as error:
            named = f"; {self.name} also knows {', '.join(self.graph_keys)}" if self.graph_keys else ""
            raise UsageError(f"graph key {key!r}: {error}{named}") from error
        return rules


def make_game(spec: str, **options: Any) -> Game:
    """The game a specification names (see the module's text); `options` win over those in the specification."""
    name, _, rest = spec.partition(":")
    if name in environments():
        return _registered(name, {**LIVE_OPTIONS.get(name, {}), **_options(name, rest), **options})
    if name == "toy-text":
        from graft_core.live.toy_text import toy_text

        return Game(spec, lambda task: toy_text(rest or "FrozenLake-v1", **options), turns=100)
    if rest:
        return user_game(spec, **options)
    known = [*environments(), "toy-text:ID", "module:Class"]
    raise UsageError(f"unknown environment {spec!r}{nearest(spec, environments())}; known: {', '.join(known)}")


def _options(name: str, words: str) -> dict[str, Any]:
    """`size=8,slippery=true` as values of the options' own types."""
    found: dict[str, Any] = {}
    for word in filter(None, words.split(",")):
        key, equals, value = word.partition("=")
        default = pick(environments()[name].options, key, f"option of {name}")
        if not equals:
            raise UsageError(f"{name}: {word!r}: expected OPTION=VALUE")
        found[key] = read_option(f"{name}: {key}", value, default)
    return found


def read_option(what: str, word: str, default: Any) -> Any:
    """A word as a value of the default's type; raises UsageError where it is none."""
    kind = type(default)
    if kind is bool:
        if word.lower() not in ("true", "false", "1", "0", "yes", "no"):
            raise UsageError(f"{what}: {word!r} is not allowed, expected true or false")
        return word.lower() in ("true", "1", "yes")
    try:
        return kind(word)
    except (TypeError, ValueError):
        raise UsageError(f"{what}: {word!r} is not allowed, expected {kind.__name__}") from None


def _registered(name: str, options: dict[str, Any]) -> Game:
    turns, keys = TURNS.get(name, DEFAULT_TURNS), GRAPH_KEYS.get(name, {})
    title = ",".join(f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in options.items())
    title = f"{name}:{title}" if title else name
    if name != "household":
        world = make_world(name, **options)
        return Game(title, lambda task: WorldEnvironment(world), turns=turns, graph_keys=keys)
    from graft_core.environments.household_more import MORE_TASKS

    known = {**TASKS, **MORE_TASKS}
    tasks = [options["task"]] if "task" in options else list(known)
    worlds = {task: make_world(name, task=task) for task in tasks}
    families, goals = {task: known[task].family for task in tasks}, {task: known[task].goal for task in tasks}
    return Game(title, lambda task: WorldEnvironment(worlds[task]), tuple(tasks), turns, keys, families, goals)


def user_game(spec: str, **options: Any) -> Game:
    """A class named `module:Class`, called with `options`; raises UsageError where it cannot be had or lacks a method."""
    module, _, name = spec.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # the folder one works in counts, however the command was started
    try:
        found = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise UsageError(f"environment {spec!r}: cannot import {module!r} ({error}); expected MODULE:CLASS") from error
    except AttributeError:
        raise UsageError(f"environment {spec!r}: {module!r} has no {name!r}; expected MODULE:CLASS") from None

    def make(task: str) -> Environment:
        game: Environment = found(**options)
        lacking = [method for method in METHODS if not callable(getattr(game, method, None))]
        if lacking:
            raise UsageError(f"environment {spec!r}: lacks {', '.join(lacking)}; expected {', '.join(METHODS)}")
        return game

    tasks = tuple(str(task) for task in getattr(found, "tasks", ("",)))
    return Game(spec, make, tasks, int(getattr(found, "turns", DEFAULT_TURNS)))


def can_restore(game: Environment) -> bool:
    """Whether the environment can save a state and go back to it."""
    return callable(getattr(game, "save", None)) and callable(getattr(game, "restore", None))


def state_text(game: Environment) -> str:
    """The full state as one text, for the column `state`."""
    key = game.state_key()
    if isinstance(game, WorldEnvironment):
        return game.world.key(key)
    return key if isinstance(key, str) else repr(key)
