"""The fields of the canonical step file, the other names under which they are accepted, and row plans.

A plan says, for one set of keys, which key is which field and which keys are unknown (they go to the metadata). Files
have few key sets, so a plan is made once per set and looked up per row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

Kind = Literal["key", "text", "texts", "number", "flag", "count", "json"]


@dataclass(frozen=True)
class Field:
    """A column of the canonical rows; a wrong value in a strict field rejects the row, in others it is left out."""

    name: str
    kind: Kind
    strict: bool = False
    aliases: tuple[str, ...] = ()


FIELDS: Final[tuple[Field, ...]] = (
    Field("group_id", "key", True, ("uid", "task_id", "game_id", "problem_id", "prompt_id", "group")),
    Field("rollout_id", "key", True, ("traj_uid", "traj_id", "trajectory_id", "episode_id", "episode", "rollout", "trial")),
    Field("step", "count", True, ("step_index", "step_idx", "step_id", "timestep", "turn", "t")),
    Field("observation", "text", False, ("obs",)),
    Field("action", "text", True, ("act",)),
    Field("reward", "number", True, ("step_reward",)),
    Field("next_observation", "text", False, ("next_obs",)),
    Field("outcome", "number", True, ("episode_reward", "episode_rewards", "episode_return", "total_reward", "final_reward")),
    Field("success", "flag", True, ("won", "is_success", "is_correct", "solved")),
    Field("terminated", "flag", True, ("done", "terminal", "is_terminal")),
    Field("truncated", "flag", True, ("is_truncated", "truncation")),
    Field("action_text", "text", False, ("raw_action", "model_response", "response")),
    Field("state", "text", False, ("anchor_obs", "state_hash", "env_state_hash", "state_key")),
    Field("next_state", "text", False, ("next_anchor_obs", "next_state_hash")),
    Field("admissible", "texts", False, ("admissible_commands", "admissible_actions", "available_actions")),
    Field("valid", "flag", False, ("is_action_valid", "action_valid", "valid_action")),
    Field("logprob", "number", False, ("log_prob", "logp")),
    Field("value", "number", False, ("value_estimate",)),
    Field("final_value", "number"),
    Field("advantage", "number", False, ("advantages", "adv")),
    Field("tokens", "json"),
    Field("train_step", "count", False, ("global_step", "training_step")),
    Field("task_family", "key", False, ("task_type", "game_type")),
    Field("order_doubtful", "flag"),
    Field("group_assumed", "flag"),
    Field("metadata", "json"),
)
TASK_SET: Final = Field("task_set", "key")
"""Only for readers: names the set that task ids belong to; not read from canonical files."""

ALL_FIELDS: Final = (*FIELDS, TASK_SET)
BY_NAME: Final[dict[str, Field]] = {f.name: f for f in FIELDS}
HEADER_KEY: Final = "graft_format"
FORMAT_VERSION: Final = 1


@dataclass(frozen=True)
class Plan:
    """How rows with one set of keys are read; `plain` rows need no change at all."""

    plain: bool
    header: bool
    renames: tuple[tuple[str, str], ...]
    extras: tuple[str, ...]


def make_plan(keys: tuple[str, ...]) -> Plan:
    """The plan for rows with these keys. `state` stands in for a missing observation (and `next_state` likewise)."""
    present = set(keys)
    renames: list[tuple[str, str]] = []
    used: set[str] = {k for k in keys if k in BY_NAME}
    missing_observation = not present & {"observation", *BY_NAME["observation"].aliases}
    if missing_observation and "state" in present:
        renames.append(("state", "observation"))
        if "next_state" in present and not present & {"next_observation", *BY_NAME["next_observation"].aliases}:
            renames.append(("next_state", "next_observation"))
    for field in FIELDS:
        if field.name not in present:
            alias = next((a for a in field.aliases if a in present and a not in used), None)
            if alias is not None:
                renames.append((alias, field.name))
                used.add(alias)
    extras = tuple(k for k in keys if k not in used)
    return Plan(not renames and not extras, HEADER_KEY in present, tuple(renames), extras)


def apply_plan(row: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """The row under canonical names, unknown keys moved into its metadata."""
    moved = {old for old, _ in plan.renames}
    out = {k: v for k, v in row.items() if k in BY_NAME and k not in moved}
    for old, new in plan.renames:
        out[new] = row[old]
    if plan.extras:
        given = out.get("metadata")
        kept = given if isinstance(given, dict) else {} if given is None else {"metadata": given}
        out["metadata"] = {**kept, **{k: row[k] for k in plan.extras}}
    return out


def likeness(keys: set[str]) -> int:
    """How much a row with these keys looks canonical: 2 = is one, 1 = might be one under other names, 0 = is none."""
    if HEADER_KEY in keys:
        return 2
    plan = make_plan(tuple(sorted(keys)))
    fields = {k for k in keys if k in BY_NAME} | {new for _, new in plan.renames}
    if {"observation", "action"} <= fields:
        return 2
    if "rollout_id" in fields and fields & {"action", "step", "outcome", "success"}:
        return 2 if "rollout_id" in keys else 1
    return 0
