"""Writing a run directory from any loop, in two lines:

    with gc.record("runs/x", name="household", settings={"gamma": 0.99}) as rec:
        rec.step(group_id, rollout_id, step, observation, action, reward=r)       # after every action
        rec.end(group_id, rollout_id, outcome, next_observation=seen)             # when the rollout is over
        rec.train_step(n)                                                         # before the rollouts of update n

Every step is one line, handed to the operating system in one piece: a process that is killed loses at most the step it
was writing. `flush_every=N` gathers N steps and `flush_seconds` bounds how old they get (looked at when the next call
comes); the end of a rollout, a new training step and the end of the run always write what was gathered. The disk is
made to keep it (fsync) when the training step changes and at the end of the run. A full or broken disk never
stops the loop: what could not be written waits, a warning is given, and only `close` raises.
"""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypedDict, Unpack

import orjson

from graft_core import __version__
from graft_core.errors import InputError, UsageError
from graft_core.formats.jsonio import clean, word
from graft_core.runs.part import Part
from graft_core.runs.store import BEFORE_TRAINING, AnyPath, RunInfo, step_file, step_files, write_run

JSON: Final = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
NUMBERS: Final = frozenset({"reward", "logprob", "value", "advantage", "outcome", "final_value"})


class StepFields(TypedDict, total=False):
    """What a step may have besides its observation, action and reward (design.md, "Canonical step file")."""

    action_text: str | None
    state: Any
    next_observation: Any
    next_state: Any
    admissible: list[str] | None
    valid: bool | None
    logprob: float | None
    value: float | None
    advantage: float | None
    tokens: Any
    metadata: Mapping[str, Any] | None


class EndFields(TypedDict, total=False):
    """What may be said when a rollout is over."""

    success: bool | None
    next_observation: Any
    next_state: Any
    final_value: float | None
    task_family: str | None
    metadata: Mapping[str, Any] | None


@dataclass
class _Open:
    """A rollout that has begun: its file, its ids as every line repeats them, and the number of its next step."""

    part: Part
    ids: dict[str, Any]
    next_step: int = 0


@dataclass
class Recorder:
    """Writes one run directory; made by `record`. Threads may share it, processes may not."""

    info: RunInfo
    flush_every: int = 1
    flush_seconds: float = 1.0
    _part: Part | None = None
    _number: int = BEFORE_TRAINING
    _open: dict[tuple[str, str], _Open] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    def step(
        self,
        group_id: Any,
        rollout_id: Any,
        step: int | None,
        observation: Any,
        action: Any,
        reward: float | None = None,
        **more: Unpack[StepFields],
    ) -> None:
        """Record one step: what was seen, what was done, what it earned.

        `step` None counts by itself. Values that are no text are kept as their JSON. A number that is not finite is
        written as text, so that loading rejects the rollout and says where. Unknown names are a `UsageError`.
        """
        if not more.keys() <= StepFields.__annotations__.keys():
            raise UsageError(_unknown("step", more, StepFields.__annotations__))
        with self._lock:
            rollout = self._rollout(str(group_id), str(rollout_id))
            number = rollout.next_step if step is None else step
            rollout.next_step = int(number) + 1
            row = {**rollout.ids, "step": number, "observation": observation, "action": "" if action is None else action}
            if reward is not None:
                row["reward"] = _number(reward)
            for name, value in more.items():
                if value is not None:
                    row[name] = _number(value) if name in NUMBERS else value
            self._write(rollout.part, row, 1)

    def end(
        self,
        group_id: Any,
        rollout_id: Any,
        outcome: float | str | None = "rewards",
        terminated: bool | None = None,
        truncated: bool | None = None,
        **more: Unpack[EndFields],
    ) -> None:
        """Record that a rollout is over, and how: `outcome` None is unknown, "rewards" the sum of the step rewards.

        A rollout that is never ended counts as broken off: its outcome is unknown.
        """
        if not more.keys() <= EndFields.__annotations__.keys():
            raise UsageError(_unknown("end", more, EndFields.__annotations__))
        key = (str(group_id), str(rollout_id))
        with self._lock:
            rollout = self._rollout(*key)
            row = {**rollout.ids, "step": None}
            if outcome != "rewards":
                row["outcome"] = _number(outcome)
            for name, value in (("terminated", terminated), ("truncated", truncated), *more.items()):
                if value is not None:
                    row[name] = _number(value) if name in NUMBERS else value
            self._write(rollout.part, row, self.flush_every)
            del self._open[key]
            rollout.part.open -= 1
            if rollout.part.open == 0 and rollout.part is not self._part:
                rollout.part.close()

    def train_step(self, number: int) -> None:
        """Say that rollouts which begin from now on belong to training step `number` (0 or more, in any order).

        Rollouts that have begun keep the training step they began in.
        """
        if isinstance(number, bool) or int(number) != number or number < 0:
            raise UsageError(f"train_step {number!r}: expected a whole number from 0 up")
        with self._lock:
            if self._part is not None and int(number) != self._part.train_step:
                self._part.flush(sync=True)
                if self._part.open == 0:
                    self._part.close()
                self._part = None
            self._number = int(number)
            if self._part is None:
                self._part = self._start(self._number)

    def flush(self) -> None:
        """Write what was gathered."""
        with self._lock:
            for part in self._parts():
                part.flush()

    def close(self) -> None:
        """Write everything and end the run; raises `InputError` where the disk did not take all of it."""
        with self._lock:
            self._closed = True
            for part in self._parts():
                part.close()
            left = sum(len(part.waiting) for part in self._parts())
            self._open, self._part = {}, None
        if left:
            raise InputError(f"{self.info.path}: {left} bytes of the run could not be written")

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
            return
        try:
            self.close()
        except InputError as lost:
            warnings.warn(str(lost), stacklevel=2)

    # -- inside --------------------------------------------------------------------------------------------

    def _parts(self) -> list[Part]:
        """Every file that is open, each once."""
        parts = [rollout.part for rollout in self._open.values()]
        return list({id(part): part for part in (*parts, *([self._part] if self._part else []))}.values())

    def _rollout(self, group: str, name: str) -> _Open:
        """The open rollout of these ids, begun if need be; ids that an earlier rollout had get a number behind them."""
        found = self._open.get((group, name))
        if found is not None:
            return found
        if self._closed:
            raise UsageError(f"{self.info.path}: the recorder is closed")
        if self._part is None:
            self._part = self._start(None)
        used = self._part.used
        times = used[group, name] = used.get((group, name), 0) + 1
        if times == 2:
            sentence = f"rollout {name!r} of group {group!r} was recorded before in this training step; it becomes {name}#2"
            warnings.warn(sentence, stacklevel=4)
        ids: dict[str, Any] = {"group_id": group, "rollout_id": name if times == 1 else f"{name}#{times}"}
        if self._part.train_step is not None:
            ids["train_step"] = self._part.train_step
        self._part.open += 1
        found = self._open[group, name] = _Open(self._part, ids)
        return found

    def _start(self, train_step: int | None) -> Part:
        """The file of a training step (None = none was named), with the ids it already holds."""
        for rollout in self._open.values():
            if rollout.part.train_step == train_step:
                return rollout.part
        part = Part(step_file(self.info.path, train_step if train_step is not None else BEFORE_TRAINING), train_step)
        part.begin(self.info.name)
        return part

    def _write(self, part: Part, row: dict[str, Any], weight: int) -> None:
        """Hand one row to its file; `weight` is what it counts towards `flush_every`."""
        try:
            line = orjson.dumps(row, _plain, JSON)
        except orjson.JSONEncodeError:
            line = orjson.dumps(clean(_deep_plain(row)), str, JSON)
        part.waiting += line
        part.steps += weight
        if part.steps >= self.flush_every or time.monotonic() - part.flushed >= self.flush_seconds:
            part.flush()


def record(
    path: AnyPath,
    name: str | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    resume: bool = False,
    flush_every: int = 1,
    flush_seconds: float = 1.0,
) -> Recorder:
    """Begin a run directory at `path` and return its `Recorder`, a context manager (see the module's text).

    `name` (default: the directory's) and `settings` are kept in `run.json`. A directory that holds recorded steps is
    only continued with `resume=True`. Raises `UsageError` for that, `InputError` where nothing can be written.
    """
    if flush_every < 1 or flush_seconds < 0:
        raise UsageError(f"flush_every {flush_every}, flush_seconds {flush_seconds}: expected at least 1 and at least 0")
    run = Path(path)
    if not resume and step_files(run):
        raise UsageError(f"{run}: holds recorded steps; choose another path, or resume=True to go on with them")
    try:
        (run / "steps").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{run}: cannot be made a run directory ({error.strerror or error})") from error
    started = datetime.now(UTC).isoformat(timespec="seconds")
    info = RunInfo(run, name or run.name, dict(settings or {}), __version__, started)
    write_run(info)
    return Recorder(info, flush_every, flush_seconds)


def _unknown(call: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    odd = ", ".join(sorted(set(given) - set(known)))
    return f"{call}: unknown name {odd}; known: {', '.join(known)} (anything else belongs into metadata)"


def _number(value: Any) -> Any:
    """A number that JSON can hold; one that is not finite as text; anything else as it is, for the loader to judge."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return value
    return number if math.isfinite(number) else repr(number)


def _plain(value: Any) -> Any:
    """Arrays and tensors as lists or numbers, mappings as dictionaries, everything else as its text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    return str(value)


def _deep_plain(value: Any, depth: int = 0) -> Any:
    """The same all the way down, for values with text that is no Unicode, huge integers or deep nesting."""
    if depth > 50:
        return word(value)[:1000]
    if isinstance(value, Mapping):
        return {str(k): _deep_plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_deep_plain(v, depth + 1) for v in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return str(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    plain = _plain(value)
    return plain if isinstance(plain, str) else _deep_plain(plain, depth + 1)
