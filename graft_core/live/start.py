"""The policy a run starts from, by name: `tabular`, `tiny`, a folder, a Hugging Face id, or what another run trained."""

from __future__ import annotations

import importlib.util
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from graft_core.environments import WorldEnvironment
from graft_core.environments.tables import compile_world
from graft_core.errors import InputError
from graft_core.live import keep
from graft_core.live.games import Game
from graft_core.live.policy import Policy
from graft_core.live.tabular import TabularPolicy

DATA: Final = "graft_sample_data"
SHIPPED: Final = {"frozen-lake:size=8": "frozen-lake-8x8"}


@dataclass(frozen=True)
class PolicyOptions:
    """Which policy, and how it acts (see `LMOptions`). spread: noise of a tabular policy's first logits."""

    name: str = "tabular"
    spread: float = 0.0
    device: str = "auto"
    dtype: str = "auto"
    acting: str = "score"
    temperature: float = 1.0
    max_new_tokens: int = 16
    batch: int = 256
    length_normalised: bool = False


def make_policy(options: PolicyOptions, game: Game, seed: int = 0) -> Policy:
    """A fresh policy; raises InputError or UsageError where it cannot be had."""
    if options.name == "tabular":
        return TabularPolicy(seed, options.spread)
    if (Path(options.name) / keep.STATE).is_file():
        return trained(Path(options.name), options, game)
    from graft_core.live.lm import LMOptions
    from graft_core.live.models import load_policy

    names = LMOptions.__dataclass_fields__
    acting = LMOptions(**{k: v for k, v in asdict(options).items() if k in names})
    if options.name != "tiny":
        return load_policy(options.name, options.device, acting, options.dtype)
    folder = shipped(game)
    if folder is not None:
        return load_policy(str(folder), options.device, acting, options.dtype)
    return _untrained(game, options, acting, seed)


def trained(folder: Path, options: PolicyOptions, game: Game) -> Policy:
    """The policy that a run left in `RUN/<estimator>/seed-<n>`."""
    kept = keep.load_checkpoint(folder)
    assert kept is not None
    if kept.words.get("kind") == "tabular":
        policy: Policy = TabularPolicy()
    else:
        policy = make_policy(replace(options, name=str(kept.words["name"])), game)
    policy.restore(kept.arrays, kept.words)
    return policy


def shipped(game: Game) -> Path | None:
    """The folder of the tiny model that comes with the package for this game, None where there is none."""
    name = SHIPPED.get(game.name)
    found = importlib.util.find_spec(DATA)
    places = list(found.submodule_search_locations or []) if found else []
    places.append(str(Path(__file__).resolve().parents[2] / "sample_data"))
    folders = [Path(place) / "policies" / name for place in places] if name else []
    return next((folder for folder in folders if (folder / "config.json").is_file()), None)


def _untrained(game: Game, options: PolicyOptions, acting: Any, seed: int) -> Policy:
    """A tiny model with random weights that knows the words of the game's texts."""
    from graft_core.live.lm import LMPolicy
    from graft_core.live.models import choose_device, plain_words, tiny_model, word_tokenizer

    device = choose_device(options.device)
    texts: list[str] = [">", *game.goals.values()]
    for task in game.tasks:
        one = game.make(task)
        if not isinstance(one, WorldEnvironment):
            raise InputError(f"{game.name}: the words of its texts are not known; expected a model's path instead of 'tiny'")
        table = compile_world(one.world)
        texts += [*table.observations, *dict.fromkeys(table.pair_action)]
    tokenizer = word_tokenizer(texts)
    model = tiny_model(tokenizer, seed).to(device).eval()
    policy = LMPolicy(model, tokenizer, device, acting, plain_words, "tiny")
    policy.notes.append(f"tiny: {sum(p.numel() for p in model.parameters()) / 1e6:.1f} million random weights on {device}")
    return policy
