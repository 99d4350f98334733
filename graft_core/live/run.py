"""A live run: every estimator with every seed, from the same start, with checkpoints, and a table at the end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from graft_core import __version__
from graft_core.errors import InputError, UsageError
from graft_core.live import keep
from graft_core.live import step_sizes as steps
from graft_core.live.games import Game, make_game
from graft_core.live.policy import Policy, UpdateOptions
from graft_core.live.process import status
from graft_core.live.sampler import Plan, Sampled, sample
from graft_core.live.start import PolicyOptions, make_policy
from graft_core.live.table import result_rows
from graft_core.live.trainer import Learned, TrainOptions, histogram, learn
from graft_core.live.weights import LOSSES, SCALES
from graft_core.runs.recorder import Recorder, record

RECORDS: Final = ("first", "all", "none")
OUTCOMES: Final = ("success", "return")
MAY_GROW: Final = ("updates", "seeds", "estimators", "record", "evaluate")
PAUSE_SECONDS: Final = 0.2


@dataclass(frozen=True)
class LiveSettings:
    """What a live run does.

    estimators: name -> options of `estimate` (gamma, lam, weighting, ...). rules: how the graph tells moments apart; the
    policy sees everything whatever they hide. record: rollouts of the first seed of each estimator, of all, or none.
    evaluate: fresh rollouts per seed after the last update. step_sizes: where there are any, each estimator is first tried
    with each of them on other seeds, and runs with its best (see `step_sizes`).
    """

    env: str
    policy: PolicyOptions = field(default_factory=PolicyOptions)
    estimators: dict[str, dict[str, Any]] = field(default_factory=lambda: {"path_gae": {}})
    rules: tuple[str, ...] = ("exact",)
    group_size: int = 16
    groups: int = 1
    updates: int = 20
    seeds: tuple[int, ...] = (0,)
    turns: int = 50
    history: int = 0
    outcome: str = "success"
    loss: str = "step"
    scale: str = "rms"
    update: UpdateOptions = field(default_factory=UpdateOptions)
    record: str = "first"
    evaluate: int = 64
    step_sizes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("group_size", "groups", "updates", "turns"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name.replace('_', '-')}: {getattr(self, name)} is not allowed, expected at least 1")
        if not self.seeds or not self.estimators:
            raise UsageError("expected at least one seed and one estimator")
        for name, allowed in (("record", RECORDS), ("outcome", OUTCOMES), ("loss", LOSSES), ("scale", SCALES)):
            if getattr(self, name) not in allowed:
                raise UsageError(f"{name}: {getattr(self, name)!r} is not allowed, expected one of {', '.join(allowed)}")
        if self.evaluate < 0 or self.history < 0:
            raise UsageError(f"evaluate {self.evaluate}, history {self.history}: expected 0 or more of each")
        if self.step_sizes:
            object.__setattr__(self, "step_sizes", steps.check_sizes(self.step_sizes))
            if max(self.seeds) >= steps.FIRST_SEED:
                what = f"seeds: {max(self.seeds)} is kept for trying step sizes"
                raise UsageError(f"{what}, expected less than {steps.FIRST_SEED}")

    def train(self, estimator: str) -> TrainOptions:
        return TrainOptions(estimator, self.rules, self.estimators[estimator], self.scale, self.loss, self.update)

    def plan(self, seed: int, update: int) -> Plan:
        return Plan(self.groups, self.group_size, self.turns, (seed, update), update, self.history, self.outcome)


@dataclass(frozen=True)
class Progress:
    """Where a run is: `update` of `updates` of one estimator and seed, and seconds left for all of it (None: unknown)."""

    estimator: str
    seed: int
    update: int
    updates: int
    success: float
    done: int
    total: int
    seconds_left: float | None
    notes: tuple[str, ...] = ()  # what the policy has to say since the update before
    trying: float | None = None  # the step size that is being tried, where best ones are looked for


class Stopped(Exception):
    """The run was asked to stop; everything finished so far is kept."""


Tell = Callable[[Progress], None]


def job_folder(run: Path, estimator: str, seed: int) -> Path:
    """Where one estimator with one seed is kept."""
    return run / estimator / f"seed-{seed}"


def run_live(
    settings: LiveSettings, path: str | os.PathLike[str], tell: Tell | None = None, wants_stop: Callable[[], bool] | None = None
) -> list[dict[str, Any]]:
    """Run all of it, or go on where the same run stopped; returns the table's rows, one per estimator.

    Step sizes are tried first, where there are several. Seeds are the outer loop, so that every estimator has the same number
    of seeds at any time. Raises `Stopped` when asked to, UsageError where the directory holds a run with other settings,
    InputError where the environment or model fails.
    """
    run = Path(path)
    game = make_game(settings.env)
    _claim(run, settings)
    clock = _Clock(run, settings, tell)
    clock.say("running")
    asked = wants_stop or (lambda: False)
    try:
        for size in settings.step_sizes:
            one, folder = steps.trial(settings, size), steps.trial_folder(run, size)
            for seed, name in product(one.seeds, one.estimators):
                _run_job(folder, one, game, name, seed, clock, asked, size)
        with_its_own = {name: steps.chosen(run, settings, name) for name in settings.estimators}
        for seed in settings.seeds:
            for name in settings.estimators:
                _run_job(run, with_its_own[name], game, name, seed, clock, asked)
                rows = result_rows(run, settings)
                keep.write_json(run / keep.RESULT, {"rows": rows, "settings": asdict(settings), "version": __version__})
    except Stopped:
        clock.say("stopped")
        raise
    except Exception as error:
        clock.say("failed", str(error))
        raise
    clock.say("done")
    return rows


def _claim(run: Path, settings: LiveSettings) -> None:
    try:
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{run}: cannot be made a run directory ({error.strerror or error})") from error
    at_it = status(run)
    if at_it.get("state") in ("running", "paused") and at_it["pid"] != os.getpid():
        raise UsageError(f"{run}: process {at_it['pid']} is at it; ask it to stop first, or choose another path")
    mine = asdict(settings)
    found = keep.read_json(run / keep.LIVE)
    if found is None and any(run.iterdir()):
        raise UsageError(f"{run}: is not empty and holds no live run; choose another path")
    if found is not None:
        theirs, ours = _plain(asdict(load_settings(run))), _plain(mine)
        for words in (theirs, ours):
            words |= {k: v for name in ("policy", "update") for k, v in words.pop(name).items()}
            words["policy"] = words.pop("name")
        fixed = ("updates", "evaluate") if settings.step_sizes else ()  # with others the best step sizes may be others
        odd = [n for n in ours if (n in fixed or n not in MAY_GROW) and ours[n] != theirs.get(n)]
        if odd:
            what = ", ".join(f"{name} was {theirs.get(name)!r}, is {ours[name]!r}" for name in odd)
            raise UsageError(f"{run}: holds a run with other settings ({what}); choose another path")
    (run / keep.CONTROL).unlink(missing_ok=True)
    keep.write_json(run / keep.LIVE, {"graft_live": 1, "version": __version__, "settings": mine})


def load_settings(path: str | os.PathLike[str]) -> LiveSettings:
    """The settings of a run that was begun. Raises InputError where the directory holds none or they cannot be read."""
    file = Path(path) / keep.LIVE
    found = keep.read_json(file)
    if found is None:
        raise InputError(f"{path}: holds no live run; expected a directory with {keep.LIVE}")
    try:
        words = dict(found["settings"])
        words["policy"], words["update"] = PolicyOptions(**words["policy"]), UpdateOptions(**words["update"])
        words |= {name: tuple(words.get(name, ())) for name in ("rules", "seeds", "step_sizes")}
        return LiveSettings(**words)
    except (KeyError, TypeError) as error:
        raise InputError(f"{file}: is damaged or of another version ({error})") from error


def _plain(words: dict[str, Any]) -> dict[str, Any]:
    """As JSON reads it back."""
    import orjson

    plain: dict[str, Any] = orjson.loads(orjson.dumps(words))
    return plain


class _Clock:
    """Counts finished updates and tells the status."""

    def __init__(self, run: Path, settings: LiveSettings, tell: Tell | None) -> None:
        self.run, self.tell = run, tell
        runs = len(settings.seeds) + len(settings.step_sizes) * steps.SEEDS
        self.total = runs * len(settings.estimators) * settings.updates
        self.done, self.worked, self.spent = 0, 0, 0.0
        self.last: Progress | None = None

    def step(
        self, estimator: str, seed: int, update: int, updates: int, success: float, seconds: float, notes: tuple[str, ...],
        trying: float | None,
    ) -> None:  # fmt: skip
        self.done, self.worked, self.spent = self.done + 1, self.worked + 1, self.spent + seconds
        left = self.spent / self.worked * (self.total - self.done)
        self.last = Progress(estimator, seed, update, updates, success, self.done, self.total, left, notes, trying)
        self.say("running")
        if self.tell is not None:
            self.tell(self.last)

    def say(self, state: str, why: str = "") -> None:
        """Write the status; a disk that refuses does not hide the error that is on its way."""
        words = {"state": state, "pid": os.getpid(), "time": time.time(), "why": why}
        try:
            keep.write_json(self.run / keep.STATUS, {**words, **(asdict(self.last) if self.last else {"total": self.total})})
        except InputError:
            if state == "running":
                raise


def _run_job(
    run: Path, settings: LiveSettings, game: Game, name: str, seed: int, clock: _Clock, wants_stop: Callable[[], bool],
    trying: float | None = None,
) -> None:  # fmt: skip
    folder = job_folder(run, name, seed)
    folder.mkdir(parents=True, exist_ok=True)
    kept = keep.load_checkpoint(folder)
    done = kept.update if kept else 0
    keep.cut_back(folder, done)
    clock.done += min(done, settings.updates)
    if done >= settings.updates and _evaluated(folder, done, settings):
        return
    policy = make_policy(settings.policy, game, seed)
    if kept is not None:
        policy.restore(kept.arrays, kept.words)
    with _recorder(folder, settings, name, seed) as recorder:
        for update in range(done + 1, settings.updates + 1):
            _wait_or_stop(clock.run, clock, wants_stop)
            start = time.perf_counter()
            sampled = sample(game, policy, settings.plan(seed, update), recorder)
            middle = time.perf_counter()
            learned = learn(policy, sampled, settings.train(name))
            end = time.perf_counter()
            keep.add_to_curve(folder, _curve_row(update, sampled, learned, middle - start, end - middle))
            arrays, words = policy.state()
            keep.save_checkpoint(folder, update, arrays, words)
            seconds = time.perf_counter() - start
            clock.step(name, seed, update, settings.updates, sampled.success, seconds, _new_notes(policy), trying)
    _evaluate(folder, settings, game, policy, seed)


def _new_notes(policy: Policy) -> tuple[str, ...]:
    """What the policy noted since it was asked last, such as its device or that memory ran out."""
    notes: list[str] = getattr(policy, "notes", [])
    found = tuple(notes)
    notes.clear()
    return found


def _wait_or_stop(run: Path, clock: _Clock, wants_stop: Callable[[], bool]) -> None:
    """Between two updates: stop or wait where that was asked for."""
    paused = False
    while True:
        word = keep.asked(run)
        if word == "stop" or wants_stop():
            raise Stopped(f"{run}: stopped as asked; the same command goes on from here")
        if word != "pause":
            return
        if not paused:
            clock.say("paused")
        paused = True
        time.sleep(PAUSE_SECONDS)


@contextmanager
def _recorder(folder: Path, settings: LiveSettings, name: str, seed: int) -> Iterator[Recorder | None]:
    wanted = settings.record == "all" or (settings.record == "first" and seed == settings.seeds[0])
    words = {"estimator": name, "seed": seed, "env": settings.env, "rules": list(settings.rules), **settings.estimators[name]}
    made = record(folder, f"{name}, seed {seed}", words, resume=True, flush_every=64) if wanted else nullcontext(None)
    with made as recorder:
        yield recorder


def _curve_row(update: int, sampled: Sampled, learned: Learned, sampling: float, updating: float) -> dict[str, Any]:
    batch, report = sampled.batch, learned.report
    known = learned.credit[np.isfinite(learned.credit)]
    return {
        "update": update, "success": sampled.success, "outcome": float(np.mean(batch.outcome)), "rollouts": batch.n_rollouts,
        "steps": batch.n_steps, "length": batch.n_steps / batch.n_rollouts, "invalid": sampled.invalid, "loss": report.loss,
        "kl": report.kl, "clipped": report.clipped, "grad_norm": report.grad_norm,
        "credit_rms": float(np.sqrt(np.mean(known**2))) if known.size else 0.0, "credit": histogram(learned.credit),
        "seconds_sampling": sampling, "seconds_updating": updating, "time": time.time(),
    }  # fmt: skip


def _evaluated(folder: Path, update: int, settings: LiveSettings) -> bool:
    found = keep.read_json(folder / keep.RESULT)
    return settings.evaluate == 0 or bool(found and found["update"] == update and found["rollouts"] == settings.evaluate)


def _evaluate(folder: Path, settings: LiveSettings, game: Game, policy: Policy, seed: int) -> None:
    """Fresh rollouts of the trained policy, the same number for every task."""
    if not settings.evaluate:
        return
    groups = min(settings.groups, len(game.tasks))
    size = max(1, settings.evaluate // groups)
    plan = Plan(groups, size, settings.turns, (seed, 2**31), None, settings.history, settings.outcome)
    found = sample(game, policy, plan)
    content = {
        "update": settings.updates, "rollouts": settings.evaluate, "success": found.success,
        "outcome": float(np.mean(found.batch.outcome)), "invalid": found.invalid, "steps": found.n_steps,
    }  # fmt: skip
    keep.write_json(folder / keep.RESULT, content)
