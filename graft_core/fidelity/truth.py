"""True values and advantages of a tabular policy in a world with known dynamics (method.md sec. 8).

    Q(s,a) = sum_s' P(s'|s,a) [r +] gamma V(s')        V(s) = sum_a pi(a|s) Q(s,a)        A = Q - V

Two conventions, with the words of the graph's values. `outcome`: no step rewards, a final state is worth
its outcome (1 for success, else 0), so that V of a state one step before success is gamma. `dense`: the
world's rewards, final states worth 0. With one reward at success V_dense = V_outcome / gamma in every state
that is not final.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graft_core.environments.tables import Floats, Ints, Table, sums
from graft_core.errors import UsageError

DENSE_STATES = 300  # up to here one dense solve is quickest
LU_STATES = 30_000  # beyond, the fill of a sparse factorisation could be anything: iterate
TOLERANCE = 1e-11


@dataclass(frozen=True, eq=False)
class Truth:
    """Exact values of one policy: `v` [S] per state, `q` and `a` [P] per (state, action) of the table."""

    table: Table
    gamma: float
    rewards: str
    v: Floats
    q: Floats

    @property
    def a(self) -> Floats:
        """[P], true advantage of each pair."""
        return self.q - self.v[self.table.pair_state]

    def td(self, state: Ints, next_state: Ints, reward: Floats | float = 0.0) -> Floats:
        """True TD residual of transitions, [r +] gamma V(s') - V(s); the advantage where nothing is random.

        `next_state` are numbers of the table; `reward` counts under `dense` only.
        """
        after = self.gamma * self.v[next_state] - self.v[state]
        return after + reward if self.rewards == "dense" else after


@dataclass(frozen=True, eq=False)
class FiniteTruth:
    """Exact values under a turn limit: `v[h]` [S] with h = 0..horizon turns left; running out is worth 0."""

    table: Table
    gamma: float
    rewards: str
    v: Floats  # [horizon + 1, S]

    def q(self, left: int) -> Floats:
        """[P], value of each pair with `left` turns left before the action."""
        return _pair_values(self.table, self.v[left - 1], self.gamma, self.rewards)

    def a(self, left: int) -> Floats:
        """[P], true advantage of each pair with `left` turns left before the action."""
        return np.asarray(self.q(left) - self.v[left][self.table.pair_state])

    def advantages(self, pair: Ints, left: Ints) -> Floats:
        """True advantages of many steps at once: `pair` taken with `left` turns left."""
        table, found = self.table, np.empty(pair.size)
        for turns in np.unique(left):
            at = left == turns
            found[at] = self.a(int(turns))[pair[at]]
        return found if table.n_pairs else np.zeros(pair.size)


def true_values(table: Table, policy: Floats, gamma: float = 0.99, rewards: str = "outcome") -> Truth:
    """V, Q and A of `policy` [P] without turn limit, by one linear solve.

    States from which the policy never ends a rollout are worth 0; with gamma 1 under `dense` such a state
    that earns rewards has no value, which is a UsageError.
    """
    _check(table, policy, gamma, rewards)
    final = _final_values(table, rewards)
    inner = ~table.terminal & _can_end(table, policy)
    earned = table.per_state(policy, table.reward_of_pair) if rewards == "dense" else np.zeros(table.n_states)
    v = final.copy()
    if gamma == 1.0 and np.any(earned[~table.terminal & ~inner] != 0):
        raise UsageError(f"{table.world.name}: a rollout that never ends has no value with gamma 1")
    if gamma < 1.0 and rewards == "dense":
        inner = ~table.terminal
    numbers = np.flatnonzero(inner)
    if numbers.size:
        v[numbers] = _solve(table, policy, gamma, numbers, earned[numbers], final)
    return Truth(table, gamma, rewards, v, _pair_values(table, v, gamma, rewards))


def finite_values(
    table: Table, policy: Floats, horizon: int, gamma: float = 0.99, rewards: str = "outcome"
) -> FiniteTruth:
    """V by backward induction with at most `horizon` turns: the values of a sampler with a turn limit."""
    _check(table, policy, gamma, rewards)
    if horizon < 0:
        raise UsageError(f"horizon: {horizon} is not allowed, expected 0 or more")
    v = np.zeros((horizon + 1, table.n_states))
    v[:] = _final_values(table, rewards)
    for left in range(1, horizon + 1):
        q = _pair_values(table, v[left - 1], gamma, rewards)
        v[left] = np.where(table.terminal, v[left], table.per_state(policy, q))
    return FiniteTruth(table, gamma, rewards, v)


def success_probability(table: Table, policy: Floats) -> float:
    """True chance that a rollout from the start succeeds, undiscounted and without turn limit."""
    return float(table.start @ true_values(table, policy, gamma=1.0).v)


def _check(table: Table, policy: Floats, gamma: float, rewards: str) -> None:
    if not 0.0 < gamma <= 1.0:
        raise UsageError(f"gamma: {gamma} is not allowed, expected a number above 0 up to 1")
    if rewards not in ("outcome", "dense"):
        raise UsageError(f"rewards: {rewards!r} is not allowed, expected one of outcome, dense")
    if policy.shape != (table.n_pairs,):
        raise ValueError(
            f"policy: expected {table.n_pairs} numbers, one per (state, action); got {policy.shape}"
        )


def _final_values(table: Table, rewards: str) -> Floats:
    """[S], outcome of final states, 0 elsewhere."""
    worth = table.terminal & table.success if rewards == "outcome" else np.zeros(table.n_states, bool)
    return worth.astype(np.float64)


def _pair_values(table: Table, v: Floats, gamma: float, rewards: str) -> Floats:
    q = gamma * table.expected(v)
    return q + table.reward_of_pair if rewards == "dense" else q


def _can_end(table: Table, policy: Floats) -> NDArray[np.bool_]:
    """[S], whether the policy can come from here to a final state."""
    live = (policy[table.result_pair] > 0) & (table.probability > 0)
    origin, target = table.pair_state[table.result_pair[live]], table.result_state[live]
    reached = table.terminal.copy()
    while True:
        new = reached.copy()
        new[origin[reached[target]]] = True
        if np.array_equal(new, reached):
            return reached
        reached = new


def _solve(
    table: Table, policy: Floats, gamma: float, numbers: Ints, earned: Floats, final: Floats
) -> Floats:
    """V of the states `numbers`: (I - gamma P) V = earned + gamma P_final final."""
    from scipy import sparse

    place = np.full(table.n_states, -1)
    place[numbers] = np.arange(numbers.size)
    origin = place[table.pair_state[table.result_pair]]
    target = place[table.result_state]
    weight = gamma * policy[table.result_pair] * table.probability
    inside, out = (origin >= 0) & (target >= 0), (origin >= 0) & (target < 0)
    gain = earned + sums(origin[out], (weight * final[table.result_state])[out], numbers.size)
    shape = (numbers.size, numbers.size)
    moves = sparse.csr_array((weight[inside], (origin[inside], target[inside])), shape=shape)
    if numbers.size <= DENSE_STATES:
        return np.asarray(np.linalg.solve(np.eye(numbers.size) - moves.toarray(), gain), np.float64)
    if numbers.size <= LU_STATES:
        from scipy.sparse.linalg import splu

        found: Floats = splu((sparse.eye_array(numbers.size) - moves).tocsc()).solve(gain)
        return found
    if gamma == 1.0:
        raise UsageError(f"{table.world.name}: {numbers.size} states are too many for gamma 1")
    return _iterate(lambda v: np.asarray(moves @ v, np.float64), gain, gamma)


def _iterate(move: Callable[[Floats], Floats], gain: Floats, gamma: float) -> Floats:
    """Fixed point of v = gain + move(v) to within TOLERANCE, move being a contraction by gamma."""
    v, change = np.zeros(gain.size), np.inf
    while change > TOLERANCE * (1 - gamma) / gamma:
        new = gain + move(v)
        change = float(np.max(np.abs(new - v)))
        v = new
    return v
