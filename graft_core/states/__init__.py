"""When are two moments the same? State rules and action rules (method.md sec. 6)."""

from graft_core.states.compose import action_codes, action_rules, compose, rules, state_keys

__all__ = ["action_codes", "action_rules", "compose", "rules", "state_keys"]
