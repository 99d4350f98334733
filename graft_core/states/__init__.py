"""When are two moments the same? State rules and action rules (method.md sec. 6)."""

from graft_core.states.compose import action_codes, action_rules, compose, join_rules, rules, split_rules, state_keys
from graft_core.states.custom import custom_rule

__all__ = [
    "action_codes", "action_rules", "compose", "custom_rule", "join_rules", "rules", "split_rules", "state_keys",
]  # fmt: skip
