"""verifiers v1 and prime-rl traces (`traces.jsonl`): an episode per line, {id, env, task, group, traces: [Trace]}.

A trace is a rollout: a tree of messages (`nodes` with `parent`), of which the path to the node sampled last is read; other
ends are told. Group = the episode's group, else its task. Outcome = sum of value * weight over `rewards`; one that is null
died before it was scored, and a trace with errors broke off: unknown. Token ids and masks are skipped; a step's log-prob and
advantage are the means over its tokens.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from graft_core.formats._records import Gather, Row, extras, records, with_ids
from graft_core.formats.chat import chat_steps
from graft_core.formats.jsonio import dumps, word
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source

SAYS: Final = frozenset({"nodes", "rewards", "calls", "tools", "id", "agent", "timing", "errors", "version", "task"})
IN_PATH: Final = re.compile(r"(?:^|[/\\])step_(\d{1,9})(?=[/\\])")


def detect(head: Head) -> int:
    """Sure where a record has traces with nodes."""
    items = head.records if head.kind == "jsonl" else head.document if isinstance(head.document, list) else [head.document]
    return 2 if any(_is_episode(i) for i in items[:20]) else 0


def _is_episode(value: Any) -> bool:
    traces = value.get("traces") if isinstance(value, dict) else None
    return isinstance(traces, list) and any(isinstance(t, dict) and "nodes" in t for t in traces[:5])


def read(source: Source, rows: Rows) -> None:
    """One rollout per trace."""
    gather = Gather(rows)
    step = IN_PATH.findall(source.name)
    train_step = int(step[-1]) if step else None
    for record, episode in records(source, rows):
        traces = episode.get("traces")
        if not isinstance(traces, list) or not all(_has_nodes(t) for t in traces):
            rows.reject(record, "the episode has no list of traces with nodes")
            continue
        if not traces:
            ids = _ids(episode, {}, record, 0, 1, source.label)
            gather.add(record, with_ids(ids, {"outcome": None, "train_step": train_step}, [], None))
        for number, trace in enumerate(traces):
            steps, final = _steps(trace, rows, record)
            ids = _ids(episode, trace, record, number, len(traces), source.label)
            declaration = {**_outcome(episode, trace, rows, record), **_about(episode, trace), "train_step": train_step}
            gather.add(record, with_ids(ids, declaration, steps, final))
    gather.finish()


def _has_nodes(trace: Any) -> bool:
    nodes = trace.get("nodes") if isinstance(trace, dict) else None
    return isinstance(nodes, list) and all(isinstance(n, dict) and isinstance(n.get("message"), dict) for n in nodes)


def _ids(episode: Row, trace: Row, record: int, number: int, traces: int, task_set: str) -> Row:
    """Group and rollout; traces of several agents of one episode are groups of their own."""
    task = episode.get("task", trace.get("task"))
    group = episode.get("group")
    if group is None and isinstance(task, dict):
        group = next((task[n] for n in ("id", "task_id", "example_id", "idx", "name") if task.get(n) is not None), task)
    elif group is None:
        group = task
    rollout = word(episode.get("id", record))
    if group is not None:
        group = group if isinstance(group, (str, int)) else dumps(group, sort=True)
    if traces > 1:
        agent = trace.get("agent")
        name = agent.get("name", number) if isinstance(agent, dict) else number if agent is None else agent
        return {"group_id": f"{group}/{word(name)}", "rollout_id": f"{rollout}/{number}", "task_set": task_set}
    return {"rollout_id": rollout} | ({"group_id": group, "task_set": task_set} if group is not None else {})


def _outcome(episode: Row, trace: Row, rows: Rows, record: int) -> Row:
    if trace.get("errors") or trace.get("ok") is False or episode.get("errors"):
        rows.warn("infrastructure_error", "a trace has errors", rows.where(record))
        return {"outcome": None}
    rewards = trace.get("rewards")
    if not isinstance(rewards, dict) or not rewards:
        return {"outcome": trace["reward"]} if "reward" in trace else {}
    parts = [_weighted(value) for value in rewards.values()]
    return {"outcome": None if None in parts else sum(p for p in parts if p is not None)}


def _weighted(reward: Any) -> float | None:
    """value * weight of one named reward; None where it was not scored."""
    value, weight = (reward.get("value"), reward.get("weight", 1.0)) if isinstance(reward, dict) else (reward, 1.0)
    if not isinstance(value, (int, float)):
        return None
    return float(value) * (float(weight) if isinstance(weight, (int, float)) else 1.0)


def _about(episode: Row, trace: Row) -> Row:
    """How the trace ended, what it belongs to, and its metrics and rewards by name."""
    stop = word(trace.get("stop_condition") or "")
    env = episode.get("env")
    return {
        "truncated": True if "max_" in stop or "trunc" in stop or "length" in stop else trace.get("is_truncated"),
        "task_family": env.get("id") if isinstance(env, dict) else env,
        "metadata": extras({**trace, "scores": trace.get("rewards")}, SAYS),
    }


def _steps(trace: Row, rows: Rows, record: int) -> tuple[list[Row], str | None]:
    """The steps on the path to the node that was sampled last."""
    nodes = trace["nodes"]
    children: dict[int, int] = {}
    for number, node in enumerate(nodes):
        if isinstance(node.get("parent"), int):
            children[node["parent"]] = number
    leaves = sum(1 for i in range(len(nodes)) if i not in children)
    if leaves > 1:
        sentence = f"a trace has {leaves} ends; the one sampled last was read"
        rows.warn("branches_left_out", sentence, rows.where(record), leaves - 1)
    path = _path(nodes, children)
    kept = [nodes[i] for i in path]
    sampled = [n for n in kept if n["message"].get("role") == "assistant" and n.get("sampled") is not False]
    messages = [n["message"] for n in kept if n["message"].get("role") != "assistant" or n.get("sampled") is not False]
    steps, final = chat_steps(messages)
    for step, node in zip(steps, sampled, strict=True):
        for name, column in (("logprobs", "logprob"), ("advantages", "advantage")):
            mean = _mean(node.get(name))
            if mean is not None:
                step[column] = mean
    return steps, final


def _path(nodes: list[Row], children: dict[int, int]) -> list[int]:
    """The nodes from the root to the node sampled last and on to a leaf, each time by the last child.

    A link that goes in a circle or nowhere ends the path.
    """
    last = next((i for i in range(len(nodes) - 1, -1, -1) if nodes[i].get("sampled")), len(nodes) - 1)
    path: list[int] = []
    seen: set[int] = set()
    at: Any = last
    while isinstance(at, int) and 0 <= at < len(nodes) and at not in seen:
        seen.add(at)
        path.append(at)
        at = nodes[at].get("parent")
    path.reverse()
    following = children.get(last)
    while following is not None and following not in seen:
        seen.add(following)
        path.append(following)
        following = children.get(following)
    return path


def _mean(values: Any) -> float | None:
    if isinstance(values, (int, float)) and not isinstance(values, bool):
        values = [values]
    if not isinstance(values, list) or not values:
        return None
    numbers = [v for v in values if isinstance(v, (int, float)) and abs(v) < 1e300]
    mean = math.fsum(numbers) / len(numbers) if len(numbers) == len(values) else math.nan
    return mean if math.isfinite(mean) else None


FORMAT: Final = Format(
    name="verifiers-v1",
    meaning="verifiers v1 and prime-rl traces: trees of messages",
    detected_by="JSON lines with traces that hold nodes",
    unit="record",
    detect=detect,
    read=read,
)
