"""Tabular policies: one probability per (state, action) pair of a `Table`, as a float64 array [P]."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from graft_core.environments.tables import Floats, Table, sums
from graft_core.errors import UsageError
from graft_core.fidelity.truth import success_probability

MOST_LEAN = 8.0  # how far logits are leaned towards success, per step that an action saves


def softmax_policy(table: Table, logits: Floats, temperature: float = 1.0) -> Floats:
    """Probabilities [P] proportional to exp(logits / temperature) among the actions of each state."""
    if not temperature > 0:
        raise UsageError(f"temperature: {temperature} is not allowed, expected a number above 0")
    scaled = np.asarray(logits, np.float64) / temperature
    highest = np.full(table.n_states, -np.inf)
    np.maximum.at(highest, table.pair_state, scaled)
    weights = np.exp(scaled - highest[table.pair_state])
    return np.asarray(weights / sums(table.pair_state, weights, table.n_states)[table.pair_state])


def random_policy(table: Table, seed: int | list[int], temperature: float = 1.0) -> Floats:
    """A softmax policy with standard normal logits; a lower temperature gives a more decided one."""
    return softmax_policy(table, np.random.default_rng(seed).standard_normal(table.n_pairs), temperature)


def policy_with_success(
    table: Table,
    seed: int | list[int],
    low: float = 0.05,
    high: float = 0.4,
    temperature: float = 1.0,
    tries: int = 50,
) -> Floats:
    """A random softmax policy whose true undiscounted chance of success, without turn limit, is low..high.

    The chance is drawn uniformly from the range; standard normal logits are then leaned towards or away
    from success (by bisection) until the policy has it, to 1 % of the range. Where the world does not allow
    it (slippery ice), both are drawn anew, `tries` times. Raises UsageError if none fits.
    """
    rng = np.random.default_rng(seed)
    far = table.distances()
    known = np.isfinite(far)
    closer = -table.expected(np.where(known, far, far[known].max(initial=0.0) + 1.0))
    for _ in range(tries):
        target, logits = rng.uniform(low, high), rng.standard_normal(table.n_pairs)
        below, above = -MOST_LEAN, MOST_LEAN
        for _ in range(40):
            lean = (below + above) / 2
            policy = softmax_policy(table, logits + lean * closer, temperature)
            chance = success_probability(table, policy)
            if abs(chance - target) <= 0.01 * (high - low) and low <= chance <= high:
                return policy
            below, above = (lean, above) if chance < target else (below, lean)
    raise UsageError(
        f"{table.world.name}: no policy with a chance of success in {low}..{high} in {tries} tries"
    )


def scripted_policy(table: Table, skill: float, weights: Mapping[str, float] | None = None) -> Floats:
    """Knows the shortest way and is distracted: with chance `skill` an action that leads closer, else any.

    `weights`: how tempting an action is when distracted, by its first word or its full text (default 1).
    Where success is out of reach only the second part acts.
    """
    far = table.distances()
    after = table.expected(np.where(np.isfinite(far), far, 1e9))
    closer = (after < far[table.pair_state]) & np.isfinite(far[table.pair_state])
    given = dict(weights or {})
    tempting = np.array([given.get(a, given.get(a.split(" ")[0], 1.0)) for a in table.pair_action])

    def shares(weight: Floats) -> tuple[Floats, Floats]:
        total = sums(table.pair_state, weight, table.n_states)[table.pair_state]
        return np.divide(weight, total, out=np.zeros_like(weight), where=total > 0), total

    towards, has_way = shares(closer.astype(np.float64))
    astray, _ = shares(tempting)
    keen = np.where(has_way > 0, skill, 0.0)
    return keen * towards + (1.0 - keen) * astray
