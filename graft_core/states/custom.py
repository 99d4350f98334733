"""`custom:NAME`: a rule of your own, a Python function registered under a name for this process.

    from graft_core.states import custom_rule
    graph = gc.build_graph(batch, rules=[custom_rule("first-line", lambda text: text.splitlines()[0])])

Never from a file or an address: a name that was not registered is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from graft_core.errors import UsageError
from graft_core.registry import nearest
from graft_core.rollouts import RolloutBatch
from graft_core.states._text import map_texts
from graft_core.states.base import Keys, StateRule, factorise

_TEXT: dict[str, Callable[[str], str]] = {}
_KEYS: dict[str, Callable[[RolloutBatch, Keys], Sequence[int]]] = {}


def custom_rule(name: str, function: Callable[..., Any], on: Literal["text", "keys"] = "text") -> str:
    """Register a function under `name` and return the rule's word, 'custom:NAME'; a second one replaces the first.

    on "text": function(text) -> text, called once per distinct text; texts that become equal are one key; has to stand before
    key rules. on "keys": function(batch, keys) -> one whole number per position of the extended layout (the steps of each
    rollout and then its final state; `keys.codes` is laid out the same). Give a changed function a new name: graphs are
    remembered by the rules' words.
    """
    if not name or "+" in name:
        raise UsageError(f"custom rule {name!r}: expected a name without '+'")
    if on not in ("text", "keys"):
        raise UsageError(f"custom rule {name!r}: on={on!r} is not allowed, expected 'text' or 'keys'")
    _TEXT.pop(name, None)
    _KEYS.pop(name, None)
    (_TEXT if on == "text" else _KEYS)[name] = function
    return f"custom:{name}"


def _check(parameter: str) -> None:
    if parameter not in _TEXT and parameter not in _KEYS:
        names = [*_TEXT, *_KEYS]
        raise UsageError(
            f"rule custom:{parameter}: no such rule{nearest(parameter, names)}; custom_rule(name, function) registers one, "
            f"{'known here: ' + ', '.join(names) if names else 'none is registered here'}"
        )


def _custom(batch: RolloutBatch, keys: Keys, parameter: str) -> Keys:
    _check(parameter)
    if parameter in _TEXT:
        function = _TEXT[parameter]

        def mapped(texts: pa.Array) -> pa.Array:
            return pa.array([function(text) for text in texts.to_pylist()], pa.large_string())

        return map_texts(keys, mapped)
    codes = np.asarray(_KEYS[parameter](batch, keys))
    if codes.shape != keys.codes.shape or not np.issubdtype(codes.dtype, np.integer):
        raise UsageError(
            f"rule custom:{parameter}: the function gave {codes.dtype}{list(codes.shape)}, expected one whole number for each "
            f"of {keys.codes.size} positions (steps, and a final state per rollout)"
        )
    return Keys(factorise(codes.astype(np.int64))[0], keys.final_missing, None, None, keys.rules)


def _stage(parameter: str) -> Literal["text", "key"]:
    return "key" if parameter in _KEYS else "text"


RULE = StateRule(
    name="custom",
    meaning="a function of your own says so",
    stage="text",
    apply=_custom,
    parameter="NAME, as registered in Python",
    rank=40,
    check=_check,
    stage_of=_stage,
)
