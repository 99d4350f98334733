"""Trains `policies/frozen-lake-8x8`: a two-layer language model that imitates a distracted player of FrozenLake 8x8.

Run `python sample_data/train_policy.py [FOLDER]` (about 20 seconds; needs the extra `live`). The player knows the way
and takes it with chance SKILL, else does anything; the model learns from the text of its rollouts alone. Running
it again on the same machine and versions gives the same weights.
"""

from __future__ import annotations

import sys
from pathlib import Path

from graft_core.environments import make_world
from graft_core.environments.policies import scripted_policy
from graft_core.environments.sampler import sample_paths
from graft_core.environments.tables import compile_world
from graft_core.live.lm import LMOptions, LMPolicy
from graft_core.live.models import imitate, plain_words, save_policy, tiny_model, torch_needed, word_tokenizer
from graft_core.live.policy import Situation

SEED = 0
SKILL = 0.5  # the player then succeeds in about one of five rollouts of 100 turns
ROLLOUTS = 300
TURNS = 100
STEPS = 400


def make(seed: int = SEED) -> tuple[LMPolicy, list[float]]:
    """The trained policy and the loss per step."""
    torch = torch_needed()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    table = compile_world(make_world("frozen-lake", size=8))
    paths = sample_paths(table, scripted_policy(table, SKILL), 1, ROLLOUTS, TURNS, seed)
    situations = [Situation(table.observations[s], table.keys[s], table.actions(s)) for s in paths.state.tolist()]
    actions = [table.pair_action[p] for p in paths.pair.tolist()]
    tokenizer = word_tokenizer([*table.observations, *table.pair_action])
    model = tiny_model(tokenizer, seed)
    policy = LMPolicy(model, tokenizer, "cpu", LMOptions(), plain_words, "frozen-lake-8x8")
    losses = imitate(policy, situations, actions, STEPS, 64, 3e-3, seed)
    return policy, losses


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else Path(__file__).with_name("policies") / "frozen-lake-8x8"
    policy, losses = make()
    about = {
        "name": "frozen-lake-8x8", "environment": "frozen-lake:size=8", "skill": SKILL, "rollouts": ROLLOUTS,
        "steps": STEPS, "seed": SEED, "made_by": "sample_data/train_policy.py",
    }  # fmt: skip
    save_policy(policy, folder, "You stand on the ice at row 3, column 5. <act> left", about)
    print(f"loss {losses[0]:.3f} -> {sum(losses[-20:]) / 20:.3f}; written to {folder}")


if __name__ == "__main__":
    main(sys.argv[1:])
