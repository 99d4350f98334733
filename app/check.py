"""A check by rollout that the page asks for: which step, in which environment, played on by whom; and carrying it out.

A recorded run says in `run.json` which environment made it. Other files say nothing: for them the environments that come
with the library are tried, and one is taken only where it shows the recorded texts. Nothing that a file names is imported:
an environment of one's own is played only for runs that lie in the app's own folder of runs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import orjson

from graft_core.errors import GraftError, InputError
from graft_core.live import keep
from graft_core.live.games import Game, make_game
from graft_core.live.restore import Restorer
from graft_core.rollouts import RolloutBatch
from graft_core.runs import read_run
from graft_core.runs.store import STEPS

COUNTS, UNIFORM, NOW, SAMPLE = "counts", "uniform", "now", "scripted:0.4"
POLICIES: Final = {
    COUNTS: "what these rollouts did",
    NOW: "the trained policy as it is now",
    SAMPLE: "the sample's agent",
    UNIFORM: "chance: all actions alike",
}
MEANINGS: Final = {
    COUNTS: "each action as often as these rollouts took it in that state, plus half a try",
    NOW: "the policy that this run has trained, after its latest update",
    SAMPLE: "an agent like the one that made the sample: it takes the shortest way with chance 0.4, else anything",
    UNIFORM: "every possible action with the same chance",
}
TRIED: Final = (
    "household", "key-door:pits=false", "key-door:pits=true", "frozen-lake:size=4", "frozen-lake:size=8",
    "frozen-lake:size=4,slippery=true", "frozen-lake:size=8,slippery=true", "cliff", "layered",
)  # fmt: skip
"""Environments that a file without a word about its own is compared with."""
NOT_KNOWN: Final = (
    "No environment of this program shows these texts, so the state of this step cannot be restored here; your own trainer "
    "can play on from it."
)
OWN_CLASS: Final = (
    "These rollouts come from an environment of one's own. The page runs no code that a file names; the command below does, "
    "if you give it."
)
_TAME: Final = re.compile(r"[a-z-]+(:[a-z_]+=[a-z0-9. -]{1,30}(,[a-z_]+=[a-z0-9. -]{1,30})*)?|toy-text:[A-Za-z]+-v\d{1,2}")
_LARGE: Final = re.compile(r"\d{3}")


@dataclass(frozen=True)
class CheckOrder:
    """One check: the step by its names in `file`; texts: see `texts_of`, so that another step is never taken for it.

    data: what the file's content is known by. policy: a word of `POLICIES`. run: the live run's folder, empty for other files.
    """

    file: str
    data: str
    group: str
    rollout: str
    step: int
    texts: str
    env: str
    policy: str = COUNTS
    tries: int = 64
    gamma: float = 0.99
    run: str = ""

    @property
    def key(self) -> str:
        """A word that tells this check from all others."""
        own = {name: value for name, value in asdict(self).items() if name != "file"}
        return hashlib.sha256(orjson.dumps(own, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]

    @property
    def quick(self) -> bool:
        """Whether it takes seconds: no language model plays."""
        return self.policy != NOW or _policy_name(self) == "tabular"

    def words(self) -> list[str]:
        return ["check", orjson.dumps(asdict(self)).decode()]


def texts_of(batch: RolloutBatch, position: int) -> str:
    """What a step saw and did, as a short word."""
    both = [batch.text(int(batch.observation[position])), batch.text(int(batch.action[position]))]
    return hashlib.sha256(orjson.dumps(both)).hexdigest()[:32]


def order_of(word: str) -> CheckOrder:
    """The order behind its word. `InputError` for anything else."""
    try:
        given = orjson.loads(word)
        return CheckOrder(**{field.name: given[field.name] for field in fields(CheckOrder)})
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"this is no order of a check ({error})") from error


# -- where the rollouts come from -------------------------------------------------------------------------------------------


def step_source(batch: RolloutBatch, row: int) -> Path | None:
    """The step file of a recorded run that holds a rollout, None for every other file. batch: as the file itself says."""
    file = Path(str(batch.rollouts.column("source")[row].as_py() or "").rpartition(":")[0])
    return file if file.parent.name == STEPS and (file.parent.parent / "run.json").is_file() else None


def live_folder(file: Path) -> Path | None:
    """The live run that a step file belongs to, None where an outside loop recorded it."""
    run = file.resolve().parents[3] if len(file.resolve().parents) > 3 else None
    return run if run is not None and (run / keep.LIVE).is_file() else None


def recorded_environment(file: Path) -> str:
    """What `run.json` says of the environment, empty where nothing."""
    try:
        return str(read_run(file.parent.parent).settings.get("env") or "")
    except GraftError:
        return ""


def is_tame(spec: str) -> bool:
    """Whether a specification that a file names can be played without importing anything of its author's, and is small."""
    return bool(_TAME.fullmatch(spec)) and not _LARGE.search(spec)


def environment(batch: RolloutBatch, position: int, file: Path | None, trusted: bool) -> str:
    """The specification of the environment that a step can be played on in. `InputError` with one sentence where none is.

    batch: as the file itself says. trusted: the run lies in the app's own folder of runs.
    """
    spec = recorded_environment(file) if file is not None else ""
    if spec and not is_tame(spec):
        if not trusted:
            raise InputError(OWN_CLASS)
        return spec  # not even looked at here: only the process that plays imports it
    trouble = ""
    for tried in [spec] if spec else TRIED:
        game = make_game(tried)
        if not _begins_alike(game, batch, position):
            continue
        try:
            if not _replays(game, batch, position):
                _fits(Restorer(game, batch), position)
        except GraftError as error:
            trouble = str(error)
            continue
        return tried
    raise InputError(trouble or NOT_KNOWN)


def _begins_alike(game: Game, batch: RolloutBatch, position: int) -> bool:
    """Whether the game's first observation is the rollout's: costs nothing, and passes over what is quite another game."""
    row = int(batch.step_rollout[position])
    group = batch.group_ids[int(batch.group[row])]
    here = batch.text(int(batch.observation[int(batch.offsets[row])]))
    fitting = [task for task in game.tasks if task in group]
    return bool(fitting) and game.make(max(fitting, key=len)).reset(0) == here


def _replays(game: Game, batch: RolloutBatch, position: int) -> bool:
    """Whether the recorded actions show the recorded texts again, and the recorded choices: the cheap way to be sure."""
    row = int(batch.step_rollout[position])
    group = batch.group_ids[int(batch.group[row])]
    one = game.make(max((task for task in game.tasks if task in group), key=len))
    listed, seen, ended = batch.steps.column("admissible"), one.reset(0), False
    for p in range(int(batch.offsets[row]), position + 1):
        known = listed[int(batch.order[p])].as_py()
        if ended or seen != batch.text(int(batch.observation[p])):
            return False
        if known is not None and sorted(batch.text(a) for a in known) != sorted(one.admissible()):
            return False
        if p < position:
            seen, _, ended = one.step(batch.text(int(batch.action[p])))
    return True


def _fits(restorer: Restorer, position: int) -> None:
    """Every state from the rollout's beginning to the step can be found again, offers the actions that were recorded, and can
    be reached from the one before: for worlds with luck, where replaying shows nothing."""
    from graft_core.environments import WorldEnvironment

    batch = restorer.batch
    first = int(batch.offsets[int(batch.step_rollout[position])])
    listed = batch.steps.column("admissible")
    reachable: set[Any] | None = None
    for p in range(first, position + 1):
        place = restorer.place(p)
        one = restorer.game.make(place.task)
        if not isinstance(one, WorldEnvironment):
            continue
        one.restore(place.saved)
        known, offered = listed[int(batch.order[p])].as_py(), one.admissible()
        alike = known is None or sorted(batch.text(a) for a in known) == sorted(offered)
        if not alike or (reachable is not None and place.saved not in reachable):
            raise InputError(
                f"{restorer.game.name} goes on otherwise at step {int(batch.step_index[p])} than was recorded, so the state "
                "cannot be restored"
            )
        action = batch.text(int(batch.action[p]))
        after = one.world.transitions(place.saved, action) if action in offered else ()
        reachable = {outcome.state for outcome in after} or {place.saved}


def policies(batch: RolloutBatch, live: Path | None, trusted: bool, sample: bool) -> list[str]:
    """Who can play on, the best first."""
    found = [SAMPLE] if sample else []
    if batch.n_steps and bool((batch.step_ids("state") >= 0).all()):
        found.append(COUNTS)
    if live is not None and trusted:
        found.append(NOW)
    return [*found, UNIFORM]


# -- carrying it out, in a process of its own ---------------------------------------------------------------------------------


def perform(order: CheckOrder, tell: Callable[[int, int], None]) -> dict[str, Any]:
    """Play on, and return the check as plain data, with the policy's name. Raises `GraftError` with one sentence."""
    from graft_core.formats import load
    from graft_core.live.probe import check_step

    batch = load(order.file)
    position = _find(batch, order)
    game = make_game(order.env)
    if order.policy == SAMPLE and len(game.tasks) > 1:  # its way is known per task: one is enough
        game = make_game(f"{order.env}:task={Restorer(game, batch).task_of(order.group)}")
    restorer = Restorer(game, batch)
    policy, turns, history, name = _policy(order, game, restorer)
    check = check_step(
        game, restorer, position, 0.0, policy, order.tries, turns, gamma=order.gamma, history=history, tell=tell
    )
    return {**check.as_dict(), "played_by": name}


def _find(batch: RolloutBatch, order: CheckOrder) -> int:
    """The step in the file; the group of a run's step file stands in the run's batch with the file's name before it."""
    from graft_core.insight.cards import find_step

    groups = [name for name in batch.group_ids if order.group == name or order.group.endswith(f"/{name}")]
    if not groups:
        raise InputError("this file no longer holds the step that was to be checked")
    position = find_step(batch, max(groups, key=len), order.rollout, order.step)
    if texts_of(batch, position) != order.texts:
        raise InputError("this file has changed: another step stands where the one to be checked was")
    return position


def _policy(order: CheckOrder, game: Game, restorer: Restorer) -> tuple[Any, int | None, int, str]:
    """Who plays on, the turn limit, how much of the past is read, and what to call it."""
    from dataclasses import replace

    from graft_core.live.behaviour import continuing_policy
    from graft_core.live.run import load_settings
    from graft_core.live.start import PolicyOptions

    settings = load_settings(order.run) if order.run else None
    turns, history = (settings.turns, settings.history) if settings else (None, 0)
    if order.policy != NOW or settings is None:
        return continuing_policy(order.policy, game, restorer, PolicyOptions()), turns, history, MEANINGS[order.policy]
    seed = Path(order.file).parent.parent
    kept = keep.load_checkpoint(seed)
    if kept is None:
        raise InputError("this run has finished no update yet, so there is no trained policy to play on")
    options = replace(settings.policy, name=str(seed))
    return continuing_policy(str(seed), game, restorer, options), turns, history, f"the policy after update {kept.update}"


def _policy_name(order: CheckOrder) -> str:
    try:
        return str(keep.read_json(Path(order.run) / keep.LIVE)["settings"]["policy"]["name"])
    except (GraftError, KeyError, TypeError):
        return ""
