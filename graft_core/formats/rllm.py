"""rLLM episodes: one JSON file per episode (or JSON lines), {episode_id "task:rollout", trajectories: [{steps}], is_correct}.

Every trajectory is a rollout; those of different agents (names) are groups of their own. Steps have observation, action,
reward, done; where the observation is missing it is taken from the step's chat (which repeats everything before it).
Outcome = the trajectory's reward, else the episode's correctness. What was ended by an error is unknown.
"""

from __future__ import annotations

from typing import Any, Final

from graft_core.formats._records import Gather, Row, extras, is_messages, records, with_ids
from graft_core.formats._tags import executed
from graft_core.formats.chat import canonical_arguments, chat_steps
from graft_core.formats.jsonio import dumps, word
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

SAYS: Final = frozenset({"trajectories", "episode_id", "session_id", "id", "task_hash", "is_correct", "training_step"})
STEP_SAYS: Final = frozenset(
    {"observation", "action", "reward", "done", "model_response", "chat_completions", "input", "output"}
)
CUT_OFF: Final = ("max_", "length", "timeout", "truncat", "overlong")
Names = tuple[str, ...]


def detect(head: Head) -> int:
    """Sure where an object has trajectories with steps and an episode's id or correctness."""
    document = head.document
    items = head.records if head.kind == "jsonl" else document if isinstance(document, list) else [document]
    return 2 if any(_is_episode(i) for i in items[:20]) else 0


def _is_episode(value: Any) -> bool:
    if not isinstance(value, dict) or not {"episode_id", "is_correct", "eval_idx", "termination_reason"} & set(value):
        return False
    trajectories = value.get("trajectories")
    return isinstance(trajectories, list) and all(isinstance(t, dict) and "steps" in t for t in trajectories[:5])


def read(source: Source, rows: Rows) -> None:
    """One rollout per trajectory."""
    gather = Gather(rows)
    for record, episode in records(source, rows):
        trajectories = episode.get("trajectories")
        if not isinstance(trajectories, list) or not all(_has_steps(t) for t in trajectories):
            rows.reject(record, "the episode has no list of trajectories with steps")
            continue
        reason = word(episode.get("termination_reason") or "").lower()
        if "error" in reason:
            rows.warn("infrastructure_error", f"an episode ended by {reason[:60]}", rows.where(record))
        names = list(dict.fromkeys(word(t.get("name")) for t in trajectories))
        for number, trajectory in enumerate(trajectories or [{}]):
            ids = _ids(episode, record, source)
            if len(trajectories) > 1:
                ids["rollout_id"] = f"{word(ids['rollout_id'])}/{number}"
            if len(names) > 1 and "group_id" in ids:
                ids["group_id"] = f"{word(ids['group_id'])}/{word(trajectory.get('name'))}"
            steps = [_step(step) for step in trajectory.get("steps", [])]
            alone = len(trajectories) < 2
            declaration = _declaration(episode, trajectory, reason, alone)
            gather.add(record, with_ids(ids, declaration, [{**s, "step": i} for i, s in enumerate(steps)], None))
    gather.finish()


def _has_steps(trajectory: Any) -> bool:
    return (
        isinstance(trajectory, dict)
        and isinstance(trajectory.get("steps"), list)
        and all(isinstance(step, dict) for step in trajectory["steps"])
    )


def _ids(episode: Row, record: int, source: Source) -> Row:
    """Task and rollout from episode_id "task:rollout"; else the hash or the text of the task."""
    name = episode.get("episode_id", episode.get("id"))
    before, colon, rollout = str(name).rpartition(":") if isinstance(name, (str, int)) else ("", "", "")
    if colon and before:
        return {"group_id": before, "rollout_id": rollout}
    held = episode.get("task")
    inside = held.get("id") if isinstance(held, dict) else held
    task: Any = next((v for v in (episode.get("task_hash"), inside) if isinstance(v, (str, int))), "")
    index = episode.get("eval_idx", episode.get("session_id"))
    chosen = next((v for v in (name, index) if isinstance(v, (str, int))), f"{source.label}:{record}")
    return {"rollout_id": chosen} | ({"group_id": task} if task != "" else {})


def _declaration(episode: Row, trajectory: Row, reason: str, alone: bool) -> Row:
    reward, correct = trajectory.get("reward"), episode.get("is_correct")
    made: Row = {}
    if "error" in reason:
        made["outcome"] = None
    elif reward is not None:
        made["outcome"] = reward
    elif isinstance(correct, bool):
        made["outcome"] = float(correct)
    if alone and isinstance(correct, bool) and "error" not in reason:
        made["success"] = correct
    cut = any(word in reason for word in CUT_OFF)
    ended = "done" in reason or any(step.get("done") is True for step in trajectory.get("steps", [])[-1:])
    return made | {
        "train_step": episode.get("training_step"),
        "truncated": True if cut else None,
        "terminated": True if ended and not cut else None,
        "metadata": extras(episode, SAYS),
    }


def _step(step: Row) -> Row:
    said = step.get("model_response", step.get("output"))
    action = step.get("action")
    seen = step.get("observation", step.get("input"))
    chat: Any = step.get("chat_completions")
    if is_messages(chat) and (seen in (None, "", {}) or action in (None, "", {})):
        turns, _ = chat_steps(chat)
        last = turns[-1] if turns else {}
        seen = seen if seen not in (None, "", {}) else last.get("observation")
        if action in (None, "", {}):
            action, said = last.get("action"), said or last.get("action_text")
    if isinstance(action, dict) and isinstance(action.get("name"), str):
        action = f"{word(action['name'])} {canonical_arguments(action.get('arguments', action.get('parameters')))}"
    if action in (None, "", {}):
        action = executed(said) if isinstance(said, str) else ""
    action = action if isinstance(action, str) else dumps(action, sort=True)
    made: Row = {"observation": seen, "action": action, "reward": step.get("reward"), "metadata": extras(step, STEP_SAYS)}
    return made | ({"action_text": said} if isinstance(said, str) and said and said != action else {})


FORMAT: Final = Format(
    name="rllm",
    meaning="rLLM episodes: trajectories with steps",
    detected_by="a JSON object with trajectories of steps, and episode_id, is_correct or termination_reason",
    unit="record",
    detect=detect,
    read=read,
)
