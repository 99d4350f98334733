"""What a rule merges: the largest merges with their texts, merges that say little, and which actions are shared."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graft_core.graph import TrajectoryGraph
from graft_core.rollouts import IntArray, Warning_
from graft_core.states import action_codes, action_rules, compose
from graft_core.states.base import factorise, step_positions
from graft_core.states.guard import REASONS, reasons
from graft_core.states.preview import text_merges

UNSHARED: Final = 0.05
"""Below this share of steps with a shared (moment, action) every number per action is empty."""


def distinct_per(keys: IntArray, members: IntArray, n_keys: int) -> IntArray:
    """How many distinct members each key has. int64[n_keys]."""
    width = int(members.max(initial=0)) + 1
    return np.bincount(factorise(keys * width + members)[1] // width, minlength=n_keys)


def largest_merges(graph: TrajectoryGraph, limit: int = 20, texts: int = 4) -> list[dict[str, Any]]:
    """The nodes that merge most steps: first those of several raw texts, then those of one.

    Each: node, group_id, steps, rollouts, distinct (raw texts), texts (text, steps, segments {text, equal}).
    """
    batch = graph.batch
    merged = graph.visits[: graph.n_ordinary] >= 2
    several = distinct_per(graph.src, batch.observation + 1, graph.n_ordinary) >= 2
    found = text_merges(batch, graph.src, merged & several, limit, texts)
    return found + text_merges(batch, graph.src, merged & ~several, limit - len(found), texts)


def origins(graph: TrajectoryGraph) -> IntArray:
    """Distinct incoming (state, action) pairs of each ordinary node, being a first state counting as one."""
    inner = graph.edge_dst < graph.n_ordinary
    pairs = distinct_per(graph.edge_dst[inner], graph.edge_pair[inner], graph.n_nodes)[: graph.n_ordinary]
    pairs[np.unique(graph.start[graph.start >= 0])] += 1
    return pairs


def low_information_nodes(graph: TrajectoryGraph) -> IntArray:
    """Why each ordinary node is a merge that says little, by position in `guard.REASONS`; 0 = it is not one.

    A merge is a node with two or more incoming (state, action) pairs. int64[n_ordinary].
    """
    keys = compose(graph.batch, graph.rules)
    why = reasons(graph.batch, keys)[step_positions(graph.batch)]
    low = np.zeros(graph.n_ordinary, dtype=np.int64)
    some = why > 0
    low[graph.src[some]] = why[some]
    return np.where(origins(graph) >= 2, low, 0)


def low_information_merges(graph: TrajectoryGraph, limit: int = 20) -> list[dict[str, Any]]:
    """The merges that say little, most steps first: node, group_id, reason, text, steps, rollouts, origins."""
    batch = graph.batch
    low = low_information_nodes(graph)
    found = np.flatnonzero(low)
    found = found[np.argsort(-graph.visits[found], kind="stable")][:limit]
    pairs = origins(graph)
    return [
        {
            "node": u,
            "group_id": batch.group_ids[int(graph.node_group[u])],
            "reason": REASONS[int(low[u])],
            "text": batch.text(int(graph.node_text[u])),
            "steps": int(graph.visits[u]),
            "rollouts": int(graph.node_rollouts[u]),
            "origins": int(pairs[u]),
        }
        for u in found.tolist()
    ]


def shared_actions(graph: TrajectoryGraph, actions: str) -> float:
    """Share of steps whose (moment, action) two or more rollouts have, under an action rule; NaN without steps."""
    batch = graph.batch
    if not batch.n_steps:
        return float("nan")
    codes = graph.pair if actions == graph.actions else _pairs(graph, actions)
    rollouts = distinct_per(codes, batch.step_rollout, int(codes.max()) + 1)
    return float(np.mean(rollouts[codes] >= 2))


def _pairs(graph: TrajectoryGraph, actions: str) -> IntArray:
    codes = action_codes(graph.batch, actions)
    return factorise(graph.src * (int(codes.max()) + 1) + codes)[0]


def action_table(graph: TrajectoryGraph) -> dict[str, Any]:
    """How many actions each ready rule shares: `rules` [{actions, shared, distinct, chosen}] and the `proposed` rule.

    Proposed is the chosen rule if it shares at least 5 %, else the strictest of parsed, normalised and verb that does, else the
    chosen one.
    """
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys([*action_rules(), graph.actions]):
        codes = action_codes(graph.batch, name)
        rows.append(
            {
                "actions": name,
                "shared": shared_actions(graph, name),
                "distinct": int(factorise(codes)[1].size),
                "chosen": name == graph.actions,
            }
        )
    share = {row["actions"]: row["shared"] for row in rows}
    better = [name for name in ("parsed", "normalised", "verb") if share.get(name, 0.0) >= UNSHARED]
    enough = share[graph.actions] >= UNSHARED
    return {"rules": rows, "proposed": graph.actions if enough or not better else better[0]}


def merge_warnings(graph: TrajectoryGraph) -> list[Warning_]:
    """`low_information_merges` and `actions_unshared`, where they hold."""
    made = []
    batch = graph.batch
    low = low_information_nodes(graph)
    nodes = np.flatnonzero(low)
    if nodes.size:
        steps = int((low[graph.src] > 0).sum())
        largest = nodes[np.argmax(graph.visits[nodes])]
        made.append(
            Warning_(
                "low_information_merges",
                f"{nodes.size} {'moment merges' if nodes.size == 1 else 'moments merge'} steps by an empty, error or no-op "
                f"observation, or one that many unrelated actions lead to ({steps} of {batch.n_steps} steps); the rule guard "
                "keeps them apart",
                int(nodes.size),
                f"group {batch.group_ids[int(graph.node_group[largest])]}",
            )
        )
    share = shared_actions(graph, graph.actions)
    if share < UNSHARED:
        proposed = action_table(graph)["proposed"]
        better = f"; --actions {proposed} shares {100 * shared_actions(graph, proposed):.0f} %"
        made.append(
            Warning_(
                "actions_unshared",
                f"two rollouts share a moment and an action in {100 * share:.1f} % of the steps, so every number per action is "
                "empty" + (better if proposed != graph.actions else ""),
                batch.n_steps,
            )
        )
    return made
