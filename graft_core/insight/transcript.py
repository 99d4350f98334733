"""One rollout as a reader follows it: what was seen and done at each step, value and credit along it, and ways to others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson

from graft_core.graph import TrajectoryGraph
from graft_core.insight.findings import Findings
from graft_core.rollouts import FloatArray, IntArray

LONGEST_JSON: Final = 200_000
"""Characters of a text that is still looked at for JSON."""

_MEDIA = re.compile(r"\[(image|audio|video) ([0-9a-f]{12})\]")
_CALL = re.compile(r"([A-Za-z_][\w.\-/:]{0,80})\s*(\{.*\})\s*", re.DOTALL)
_TOOL_KEYS: Final = ("name", "tool", "tool_name", "function", "action")
_ARGUMENT_KEYS: Final = ("arguments", "args", "parameters", "input", "kwargs", "action_input")


@dataclass(frozen=True, eq=False)
class Course:
    """Numbers along one rollout of T steps. Arrays of T are in the order of its steps.

    positions: path positions. steps: the file's step numbers. value: V of the T + 1 moments, the end included. credit,
    baseline: credits A (not normalised) and B. again: for each step the earlier index at which the rollout stood in the
    same moment, -1 where it is new. success: 1, 0 or NaN.
    """

    rollout: int
    group_id: str
    rollout_id: str
    outcome: float
    success: float
    truncated: bool
    positions: IntArray
    steps: IntArray
    value: FloatArray
    credit: FloatArray
    baseline: FloatArray
    again: IntArray

    @property
    def ended(self) -> str:
        """How it ended, in one or two words."""
        word = "unknown" if self.success != self.success else "succeeded" if self.success == 1 else "failed"
        return f"{word}, cut off" if self.truncated else word

    def telling(self) -> int:
        """Index of the step with the largest |credit A|, the first of equals; 0 where none is defined."""
        return int(np.argmax(np.nan_to_num(np.abs(self.credit)))) if self.credit.size else 0


def course(found: Findings, rollout: int) -> Course:
    """Value and credit along the rollout in row `rollout` of the batch."""
    batch, graph, v = found.batch, found.graph, found.values.v
    start, end = batch.offsets[rollout : rollout + 2].tolist()
    positions = np.arange(start, end)
    nodes = graph.src[start:end]
    last = v[graph.dst[max(start, end - 1) : end]]
    return Course(
        rollout=rollout,
        group_id=batch.group_ids[int(batch.group[rollout])],
        rollout_id=batch.rollout_ids[rollout],
        outcome=float(batch.outcome[rollout]),
        success=float(batch.success[rollout]),
        truncated=bool(batch.truncated[rollout]),
        positions=positions,
        steps=batch.step_index[start:end],
        value=np.concatenate([v[nodes], last]),
        credit=found.credit[start:end],
        baseline=found.baseline[start:end],
        again=_again(nodes),
    )


def _again(nodes: IntArray) -> IntArray:
    seen: dict[int, int] = {}
    before = []
    for t, node in enumerate(nodes.tolist()):
        before.append(seen.get(node, -1))
        seen[node] = t
    return np.array(before, dtype=np.int64)


def same_moment_elsewhere(graph: TrajectoryGraph, position: int) -> int | None:
    """First step of the next rollout that stood in this step's moment (the first one again after the last), else None."""
    rollout = graph.batch.step_rollout
    own = int(rollout[position])
    here = np.flatnonzero(graph.src == graph.src[position])
    others = here[rollout[here] != own]
    if not others.size:
        return None
    later = others[rollout[others] > own]
    return int(later[0] if later.size else others[0])


def sibling(graph: TrajectoryGraph, position: int) -> int | None:
    """First step that took the next other action in this step's moment (the first again after the last), else None."""
    here = np.flatnonzero(graph.src == graph.src[position])
    pairs = np.unique(graph.pair[here])
    if pairs.size < 2:
        return None
    following = pairs[(int(np.searchsorted(pairs, graph.pair[position])) + 1) % pairs.size]
    return int(here[graph.pair[here] == following][0])


def media(text: str) -> list[tuple[str, str]]:
    """Kind and fingerprint of every picture, sound or film whose place the text marks, each once, in order."""
    return list(dict.fromkeys((found[1], found[2]) for found in _MEDIA.finditer(text)))


def tool_calls(action: str) -> list[tuple[str, dict[str, Any]]]:
    """Name and arguments of the tool calls an action consists of; empty where it is anything else.

    Understood are lines of `name {"argument": ...}` and JSON objects (or a list of them) with a name and arguments.
    """
    text = action.strip()
    if not text or len(text) > LONGEST_JSON:
        return []
    if text[0] in "[{":
        data = _json(text)
        items = data if isinstance(data, list) else [data]
        calls = [_named(item) for item in items]
    else:
        calls = [_line(line) for line in text.split("\n") if line.strip()]
    found = [call for call in calls if call is not None]
    return found if len(found) == len(calls) else []


def _line(line: str) -> tuple[str, dict[str, Any]] | None:
    match = _CALL.fullmatch(line.strip())
    arguments = _json(match[2]) if match else None
    return (match[1], arguments) if match and isinstance(arguments, dict) else None


def _named(item: Any) -> tuple[str, dict[str, Any]] | None:
    if not isinstance(item, dict):
        return None
    name = next((item[key] for key in _TOOL_KEYS if key in item), None)
    held = {**item, **name} if isinstance(name, dict) else item
    name = name.get("name") if isinstance(name, dict) else name
    arguments = next((held[key] for key in _ARGUMENT_KEYS if key in held), None)
    arguments = _json(arguments) if isinstance(arguments, str) else arguments
    return (name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None


def call_text(name: str, arguments: dict[str, Any]) -> str:
    """A tool call for reading: one line if it is short, else one argument a line."""
    parts = [f"{key}={_value(value)}" for key, value in arguments.items()]
    line = f"{name}({', '.join(parts)})"
    return line if len(line) <= 90 and "\n" not in line else f"{name}(\n" + "".join(f"  {part},\n" for part in parts) + ")"


def _value(value: Any) -> str:
    if isinstance(value, str) and "\n" in value:
        return "\n" + value
    return _dumped(value)


def readable(text: str) -> str:
    """A text that is one JSON document with its members on lines of their own; any other text as it is."""
    stripped = text.strip()
    if len(stripped) > LONGEST_JSON or stripped[:1] not in ("{", "["):
        return text
    data = _json(stripped)
    return text if data is None else _dumped(data, orjson.OPT_INDENT_2) or text


def _dumped(data: Any, option: int = 0) -> str:
    try:
        return orjson.dumps(data, option=option).decode()
    except TypeError:  # nested deeper than can be written
        return ""


def _json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
