"""`graft live`: sample from a small policy, train it with each estimator from the same start, and say how that went."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from graft_core.commands._common import Command, add_settings, json_text, read_settings
from graft_core.credit import estimators
from graft_core.errors import UsageError
from graft_core.registry import pick

if TYPE_CHECKING:
    from graft_core.live.games import Game
    from graft_core.live.run import LiveSettings, Progress

DEFAULT_ESTIMATORS = ("graft_td", "path_gae", "grpo")
NUMBERS = {
    "group-size": (16, "rollouts per group"), "groups": (1, "groups per update; tasks are cycled through"),
    "turns": (None, "turn limit of a rollout (default: the environment's)"),
    "history": (0, "turns of the past that the policy reads before the present observation"),
    "evaluate": (64, "fresh rollouts per seed after the last update; 0 = judge by the last update's"),
    "epochs": (None, "passes over one batch (default: tabular 1, language models 2)"),
    "max-new-tokens": (16, "when generating"),
    "batch": (256, "sequences per forward pass of a language model"),
}  # fmt: skip
REALS = {
    "step-size": (None, "of the update (default: tabular 3, tiny 0.002, else 0.000001)"), "ratio-clip": (None, "0 = none"),
    "kl": (0.0, "weight of KL(policy || start)"), "max-grad-norm": (1.0, "gradient clipping of language models, 0 = none"),
    "temperature": (1.0, "of a language model's choices"), "spread": (0.0, "noise of a tabular policy's first logits"),
}  # fmt: skip
WORDS = {
    "device": ("auto", "auto, cuda, cuda:N, mps or cpu"), "dtype": ("auto", "of a language model's weights"),
    "acting": ("score", "score the admissible actions, or generate freely and be parsed"),
    "loss": (None, "token, sequence, step or sum (default: tabular sum, language models step)"),
    "ratio": ("sequence", "of new to old probability, which is clipped: one per step (sequence) or per token"),
    "step-sizes": (None, "several joined by commas, or search: each estimator runs with its best, chosen on other seeds"),
    "scale": ("rms", "of the credit before it is used: rms or none"),
    "outcome": ("success", "success, or return of the rewards"),
    "record": ("first", "whose rollouts are kept: those of the first seed, all or none"),
}  # fmt: skip


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--env", metavar="NAME",
        help="frozen-lake, key-door, cliff, household, layered (options behind a colon: frozen-lake:size=4,slippery=true), "
        "toy-text:ID, or your own MODULE:CLASS",
    )  # fmt: skip
    parser.add_argument("--policy", default="tabular", metavar="P", help="tabular, tiny, a folder, a Hugging Face id, or a run")
    names = ", ".join(DEFAULT_ESTIMATORS)
    parser.add_argument("--estimator", action="append", metavar="NAME", help=f"repeat for several (default {names})")
    parser.add_argument("--graph-key", metavar="K", help="how the graph tells moments apart: a rule, or a name such as no-key")
    parser.add_argument("--updates", type=int, default=60, metavar="N", help="updates per seed (default 60)")
    parser.add_argument("--seeds", default="10", metavar="N", help="how many (0 .. N-1), or a list such as 3,5,8 (default 10)")
    for table, kind in ((NUMBERS, int), (REALS, float), (WORDS, str)):
        for name, (default, meaning) in table.items():
            parser.add_argument(f"--{name}", type=kind, default=default, metavar=name[0].upper(), help=meaning)
    parser.add_argument("-o", "--output", metavar="RUN", help="run directory; the same command goes on where it stopped")
    parser.add_argument("--resume", action="store_true", help="go on with the run at -o as it was set up")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout, progress on stderr")
    parser.add_argument("--length-normalised", action="store_true", help="divide an action's log-probability by its tokens")
    parser.add_argument("--stop-with", type=int, metavar="PID", help="stop after the present update when that process is gone")
    add_settings(parser)


def seeds_of(word: str) -> tuple[int, ...]:
    """`10` is 0..9, `3,5,8` those; raises UsageError for anything else."""
    try:
        numbers = [int(part) for part in word.split(",")]
    except ValueError:
        raise UsageError(f"--seeds {word!r}: expected a number of seeds, or seeds joined by commas") from None
    if min(numbers) < 0 or (len(numbers) == 1 and numbers[0] == 0) or len(set(numbers)) < len(numbers):
        raise UsageError(f"--seeds {word!r}: expected at least one seed, none below 0 and none twice")
    return tuple(range(numbers[0])) if len(numbers) == 1 else tuple(numbers)


def settings_of(given: argparse.Namespace, game: Game) -> LiveSettings:
    """The run's settings from the flags, with the defaults of the kind of policy."""
    from graft_core.live.policy import UpdateOptions
    from graft_core.live.run import LiveSettings
    from graft_core.live.start import PolicyOptions
    from graft_core.live.step_sizes import step_sizes_of

    names = list(dict.fromkeys(given.estimator or DEFAULT_ESTIMATORS))
    for name in names:
        pick(estimators(), name, "estimator")
    look = read_settings(given, names)
    rules = game.rules(given.graph_key) if given.graph_key else look.rules
    shared = {**{k: v for k, v in look.graph_words.items() if k != "rules"}, **look.value_words}
    tabular = given.policy == "tabular"
    step_size = 3.0 if tabular else 2e-3 if given.policy == "tiny" else 1e-6
    own = given.step_size is not None
    fallback: dict[str, Any] = {"step_size": step_size, "epochs": 1 if tabular else 2}
    fallback |= {"ratio_clip": 0.2, "loss": "sum" if tabular else "step", "turns": game.turns}
    for name, value in fallback.items():
        if getattr(given, name) is None:
            setattr(given, name, value)
    if given.step_sizes is not None and own:
        raise UsageError("--step-size and --step-sizes: expected one of them")
    update = UpdateOptions(given.step_size, given.epochs, given.ratio_clip, given.kl, given.max_grad_norm, ratio=given.ratio)
    policy = PolicyOptions(
        given.policy, given.spread, given.device, given.dtype, given.acting, given.temperature, given.max_new_tokens,
        given.batch, given.length_normalised,
    )  # fmt: skip
    return LiveSettings(
        env=given.env, policy=policy, estimators={n: {**shared, **look.options_for(n)} for n in names}, rules=rules,
        group_size=given.group_size, groups=given.groups, updates=given.updates, seeds=seeds_of(given.seeds),
        turns=given.turns, history=given.history, outcome=given.outcome, loss=given.loss, scale=given.scale, update=update,
        record=given.record, evaluate=given.evaluate,
        step_sizes=step_sizes_of(given.step_sizes, step_size) if given.step_sizes is not None else (),
    )  # fmt: skip


def _run(given: argparse.Namespace) -> int:
    from graft_core.live.games import make_game
    from graft_core.live.process import is_alive
    from graft_core.live.run import Stopped, load_settings, run_live
    from graft_core.live.table import table_text

    if not (given.output if given.resume else given.env):
        raise UsageError("expected --env NAME, or --resume -o RUN to go on with a run")
    settings = load_settings(given.output) if given.resume else settings_of(given, make_game(given.env))
    asked: list[int] = []
    before = {s: signal.signal(s, lambda number, _: asked.append(number)) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        with tempfile.TemporaryDirectory(prefix="graft-live-") as spare:
            gone = given.stop_with
            rows = run_live(
                settings, given.output or spare, _teller(settings),
                lambda: bool(asked) or (gone is not None and not is_alive(gone)),
            )  # fmt: skip
    except Stopped as stop:
        print(f"graft: {stop}" if given.output else "graft: stopped", file=sys.stderr)
        return 130 if signal.SIGINT in asked else 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if given.json:
        print(json_text({"rows": rows, "settings": asdict(settings)}))
    else:
        print(_heading(settings))
        print(table_text(rows, settings))
    return 0


def _heading(settings: LiveSettings) -> str:
    return (
        f"{settings.env}, {settings.policy.name} policy, {settings.groups} x {settings.group_size} rollouts of at most "
        f"{settings.turns} turns, {settings.updates} updates, step size "
        f"{' or '.join(f'{s:g}' for s in settings.step_sizes) or f'{settings.update.step_size:g}'}, graph key "
        f"{' + '.join(settings.rules)}"
    )


def _teller(settings: LiveSettings) -> Any:
    """Prints progress to stderr: on a terminal one line that changes, else one line per finished seed."""
    terminal = sys.stderr.isatty()

    told: set[str] = set()

    def tell(p: Progress) -> None:
        for note in p.notes:
            if note not in told:
                print(f"{note:<100}", file=sys.stderr)
            told.add(note)
        left = "" if p.seconds_left is None else f", {p.seconds_left:.0f} s left"
        what = "" if p.trying is None else f"trying step size {p.trying:g}, "
        line = f"{what}seed {p.seed} {p.estimator}: update {p.update}/{p.updates}, success {p.success:.2f}"
        line += f" ({p.done}/{p.total}{left})"
        if terminal:
            end = "\n" if p.done == p.total else ""
            print(f"\r{line:<100}", end=end, file=sys.stderr, flush=True)
        elif p.update == p.updates:
            print(line, file=sys.stderr, flush=True)

    return tell


COMMAND = Command("live", "run and train a small policy with each estimator from the same start", _arguments, _run, rank=20)
