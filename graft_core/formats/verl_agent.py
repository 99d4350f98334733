"""verl-agent step dumps: {global_step, trajectories: [{traj_id, success, episode_reward, steps: [...]}]}, one JSON file
per training step. Seen from forks of verl-agent on WebShop.

The dump names no task: one group per file is assumed and flagged. Its steps are numbered, but not reliably in the order
in which they happened (the trainer balances rows over devices before the dump); `order` tests that, rollouts that fail
are flagged. The text of the last action tag is the action, the whole model text is `action_text`; `advantage` is the
trainer's own; other numbers of a step go to its metadata.
"""

from __future__ import annotations

from typing import Any, Final

from graft_core.formats._tags import parsed_action
from graft_core.formats.jsonio import word
from graft_core.formats.order import Doubts, order_doubts
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

FIELDS: Final = {"step", "observation", "action", "advantage", "step_reward"}
SAYS: Final = {"traj_id", "n_steps", "success", "episode_reward", "steps"}


def detect(head: Head) -> int:
    """Sure where the file is an object whose trajectories hold steps with observation and action."""
    document = head.document
    if not isinstance(document, dict) or not isinstance(document.get("trajectories"), list):
        return 0
    items = document["trajectories"][:20]
    return 2 if any(isinstance(i, dict) and isinstance(i.get("steps"), list) and "traj_id" in i for i in items) else 0


def read(source: Source, rows: Rows) -> None:
    """One rollout per trajectory."""
    document = source.head.document
    good: list[tuple[int, dict[str, Any]]] = []
    for index, item in enumerate(document["trajectories"]):
        reason = _problem(item)
        if reason:
            rows.reject(index, reason)
        else:
            good.append((index, item))
    doubts = _doubts([item for _, item in good])
    for position, (index, item) in enumerate(good):
        made = rollout_rows(item, document.get("global_step"), position in doubts.rollouts)
        rows.add(made, [index] * len(made))
    if doubts.rollouts:
        index = good[min(doubts.rollouts)][0]
        rows.warn("order_doubtful", _sentence(doubts), rows.where(index), len(doubts.rollouts))


def _problem(item: Any) -> str:
    if not isinstance(item, dict) or "traj_id" not in item or not isinstance(item.get("steps"), list):
        return "the trajectory has no traj_id or no list of steps"
    for number, step in enumerate(item["steps"]):
        if not isinstance(step, dict) or not isinstance(step.get("action"), str):
            return f"step {number} has no action text"
    return ""


def _doubts(items: list[dict[str, Any]]) -> Doubts:
    steps = [sorted(item["steps"], key=lambda s: s["step"] if isinstance(s.get("step"), int) else 0) for item in items]
    return order_doubts(
        [[word(s.get("observation")) for s in path] for path in steps],
        [[executed(s["action"]) for s in path] for path in steps],
        [[r if isinstance(r := s.get("step_reward"), (int, float)) else None for s in path] for path in steps],
    )


def executed(text: str) -> str:
    """What the shop got of a model's text: the last action tag, in lower case, as the framework hands it over."""
    return parsed_action(text).lower()


def _sentence(doubts: Doubts) -> str:
    parts = []
    if doubts.start:
        parts.append(f"rollouts do not begin at the usual start {(doubts.usual_start or '')[:40]!r}")
    if doubts.end:
        parts.append(f"rollouts go on after {(doubts.ending_action or '')[:40]!r}, which ends them elsewhere")
    return "steps seem out of order: " + ", or ".join(parts)


def rollout_rows(item: dict[str, Any], train_step: Any, doubtful: bool) -> list[dict[str, Any]]:
    """The rows of one trajectory: one that declares it, then its steps."""
    ids = {"rollout_id": item["traj_id"]}
    other = {k: v for k, v in item.items() if k not in SAYS}
    said: dict[str, Any] = {"metadata": other or None, "train_step": train_step}
    if "episode_reward" in item:
        said["outcome"] = item["episode_reward"]
    if "success" in item:
        said["success"] = item["success"]
    if doubtful:
        said["order_doubtful"] = True
    return [{**ids, **said}, *({**ids, **_step(step)} for step in item["steps"])]


def _step(step: dict[str, Any]) -> dict[str, Any]:
    action = executed(step["action"])
    return {
        "step": step.get("step"),
        "observation": step.get("observation"),
        "action": action,
        "action_text": step["action"] if step["action"] != action else None,
        "reward": step.get("step_reward"),
        "advantage": step.get("advantage"),
        "metadata": {k: v for k, v in step.items() if k not in FIELDS} or None,
    }


FORMAT: Final = Format(
    name="verl-agent",
    meaning="verl-agent step dump: trajectories of one training step, without task ids",
    detected_by="a JSON object with trajectories, each with traj_id and steps",
    unit="item",
    detect=detect,
    read=read,
)
