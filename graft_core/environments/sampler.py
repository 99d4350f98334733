"""Fast sampling from a table: all rollouts of all groups advance together, one numpy step per turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graft_core.environments.base import World
from graft_core.environments.tables import Floats, Ints, Table, compile_world


@dataclass(frozen=True, eq=False)
class Paths:
    """Sampled rollouts, R of them with N steps in all, steps in path order (group, rollout, step)."""

    table: Table
    group: Ints  # [R]
    n_steps: Ints  # [R]
    final_state: Ints  # [R]
    terminated: NDArray[np.bool_]  # [R]; the others ran out of turns
    success: NDArray[np.bool_]  # [R]
    rollout: Ints  # [N]
    step: Ints  # [N]
    state: Ints  # [N]
    pair: Ints  # [N], number of (state, action) in the table
    next_state: Ints  # [N]
    reward: Floats  # [N]

    @property
    def outcome(self) -> Floats:
        """[R], 1 for success, else 0."""
        return self.success.astype(np.float64)


def _choose(edges: Floats, row: Ints, luck: Floats, last: Ints) -> Ints:
    """Entry drawn within each row; `edges` rises through row .. row + 1 over the entries of a row."""
    return np.minimum(np.searchsorted(edges, row + luck, side="right"), last)


def _edges(weights: Floats, row: Ints, starts: Ints) -> Floats:
    """Cumulative share within each row plus the row's number, so that one sorted array serves all rows."""
    total = np.concatenate([[0.0], np.cumsum(weights)])
    within = (total[1:] - total[starts[row]]) / (total[starts[row + 1]] - total[starts[row]])
    return np.asarray(row + np.clip(within, 0.0, 1.0))


def sample_paths(
    table: Table,
    policy: Floats | Sequence[Floats],
    groups: int,
    group_size: int,
    max_steps: int,
    seed: int | list[int],
) -> Paths:
    """Sample `groups` x `group_size` rollouts of at most `max_steps` steps.

    `policy` is one array [P] or one per group. Group g draws its luck from `default_rng([seed, g])`, so a
    group stays the same whatever the number of groups.
    """
    given = policy if isinstance(policy, Sequence) else [policy]
    policies = [np.asarray(p, np.float64) for p in given]
    if len(policies) not in (1, groups) or any(p.shape != (table.n_pairs,) for p in policies):
        raise ValueError(
            f"expected 1 or {groups} policies of {table.n_pairs} probabilities, got {len(policies)}"
        )
    pair_edges = np.concatenate(
        [_edges(p, table.pair_state, table.pair_start) + k * table.n_states for k, p in enumerate(policies)]
    )
    result_edges = _edges(table.probability, table.result_pair, table.result_start)
    n = groups * group_size
    group = np.repeat(np.arange(groups), group_size)
    own = group if len(policies) > 1 else np.zeros(n, np.int64)
    first = [seed] if isinstance(seed, int) else seed
    shape = (max_steps + 1, 2, group_size)
    luck = np.stack([np.random.default_rng([*first, g]).random(shape) for g in range(groups)], axis=2)
    luck = luck.reshape(max_steps + 1, 2, n)
    now = np.searchsorted(np.cumsum(table.start), luck[0, 0], side="right").clip(max=table.n_states - 1)
    final, terminated = now.copy(), table.terminal[now].copy()
    alive = np.flatnonzero(~terminated)
    columns: list[tuple[Ints, ...]] = []
    for turn in range(max_steps):
        if not alive.size:
            break
        here = final[alive]
        chosen = (
            _choose(
                pair_edges,
                here + own[alive] * table.n_states,
                luck[turn + 1, 0, alive],
                table.pair_start[here + 1] - 1 + own[alive] * table.n_pairs,
            )
            - own[alive] * table.n_pairs
        )
        got = _choose(result_edges, chosen, luck[turn + 1, 1, alive], table.result_start[chosen + 1] - 1)
        after = table.result_state[got]
        columns.append((alive, np.full(alive.size, turn), here, chosen, after, got))
        final[alive] = after
        terminated[alive] = table.terminal[after]
        alive = alive[~table.terminal[after]]
    return _collect(table, group, final, terminated, columns)


def _collect(
    table: Table, group: Ints, final: Ints, terminated: NDArray[np.bool_], columns: list[tuple[Ints, ...]]
) -> Paths:
    joined = (
        [np.concatenate(c) for c in zip(*columns, strict=True)] if columns else [np.zeros(0, np.int64)] * 6
    )
    order = np.lexsort((joined[1], joined[0]))
    rollout, step, state, pair, after, got = (c[order] for c in joined)
    return Paths(
        table=table,
        group=group,
        n_steps=np.bincount(rollout, minlength=group.size),
        final_state=final,
        terminated=terminated,
        success=terminated & table.success[final],
        rollout=rollout,
        step=step,
        state=state,
        pair=pair,
        next_state=after,
        reward=table.reward[got],
    )


def take(paths: Paths, rollouts: Sequence[int]) -> Paths:
    """Only the given rollouts, in the given order, which must not mix groups."""
    ends = np.cumsum(paths.n_steps)
    steps = [np.arange(ends[r] - paths.n_steps[r], ends[r]) for r in rollouts]
    at = np.concatenate([*steps, np.zeros(0, np.int64)]).astype(np.int64)
    chosen = np.asarray(rollouts, np.int64)
    return Paths(
        table=paths.table,
        group=paths.group[chosen],
        n_steps=paths.n_steps[chosen],
        final_state=paths.final_state[chosen],
        terminated=paths.terminated[chosen],
        success=paths.success[chosen],
        rollout=np.repeat(np.arange(chosen.size), paths.n_steps[chosen]),
        step=paths.step[at],
        state=paths.state[at],
        pair=paths.pair[at],
        next_state=paths.next_state[at],
        reward=paths.reward[at],
    )


def rows_of(
    paths: Paths,
    group_names: Sequence[str] | None = None,
    task_family: str | None = None,
    admissible: bool = False,
) -> list[dict[str, Any]]:
    """Rows of the canonical step file (format 1). Groups are g0, g1, ..., rollouts r1, r2, ... by default.

    `state` names the full state, whatever the observation hides; `next_observation` and `next_state` stand
    on the last step. A rollout without steps (the first state is terminal) gives one row with step null.
    """
    table = paths.table
    observations, keys = table.observations, table.keys
    ends = np.cumsum(paths.n_steps)
    first_of_group = np.searchsorted(paths.group, paths.group)
    states, pairs, after = paths.state.tolist(), paths.pair.tolist(), paths.next_state.tolist()
    rewards = paths.reward.tolist()
    rows: list[dict[str, Any]] = []
    for r, (end, length) in enumerate(zip(ends.tolist(), paths.n_steps.tolist(), strict=True)):
        g = int(paths.group[r])
        shared: dict[str, Any] = {
            "group_id": group_names[g] if group_names else f"g{g}",
            "rollout_id": f"r{r - int(first_of_group[r]) + 1}",
        }
        closing: dict[str, Any] = {
            "outcome": float(paths.success[r]),
            "success": bool(paths.success[r]),
            "terminated": bool(paths.terminated[r]),
            "truncated": not paths.terminated[r],
        }
        if task_family is not None:
            closing["task_family"] = task_family
        if not length:
            rows.append({**shared, "step": None, **closing})
        for step, k in enumerate(range(end - length, end)):
            row: dict[str, Any] = {
                **shared,
                "step": step,
                "observation": observations[states[k]],
                "action": table.pair_action[pairs[k]],
                "reward": rewards[k],
                "state": keys[states[k]],
                **closing,
            }
            if k == end - 1:
                row |= {"next_observation": observations[after[k]], "next_state": keys[after[k]]}
            if admissible:
                row["admissible"] = list(table.actions(states[k]))
            rows.append(row)
    return rows


def sample_rollouts(
    world: World[Any] | Table,
    policy: Floats | Sequence[Floats],
    groups: int,
    group_size: int,
    max_steps: int,
    seed: int | list[int],
    group_names: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Sample rollouts and return rows of the canonical step file; see `sample_paths` and `rows_of`."""
    table = world if isinstance(world, Table) else compile_world(world)
    return rows_of(sample_paths(table, policy, groups, group_size, max_steps, seed), group_names)
