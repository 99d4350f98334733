"""Small invented files, one or more per reader, in the shape that the program behind the format writes."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

Json = dict[str, Any]

CHAT: list[Json] = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "content": "r"},
    {"role": "assistant", "content": "done"},
]
TAU = [
    {"task_id": t, "trial": k, "reward": 1.0, "info": {"task": {"user_id": "u"}}, "traj": CHAT} for t in (0, 1) for k in (0, 1)
]
STEP = {"step": 0, "observation": "o", "action": "<action>a</action>", "step_reward": 0.0, "advantage": 0.1, "entropy": 1.0}
VERL = {
    "global_step": 1,
    "trajectories": [{"traj_id": str(i), "success": True, "episode_reward": 1.0, "steps": [STEP, STEP]} for i in range(9)],
}
ROWS = [
    {"group_id": "g", "rollout_id": i, "step": s, "observation": "o", "action": "a", "reward": 0}
    for i in (1, 2)
    for s in (0, 1)
]


def sample(name: Any = 1, epoch: int = 1, value: Any = "C", **more: Any) -> Json:
    """A sample of an Inspect log: a question, a tool call, the answer."""
    call = {"id": "c", "function": "bash", "arguments": {"cmd": "ls"}, "type": "function"}
    messages = [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "question", "source": "input"},
        {"role": "assistant", "content": "look", "tool_calls": [call]},
        {"role": "tool", "content": "files", "tool_call_id": "c", "function": "bash"},
        {"role": "assistant", "content": "answer"},
    ]
    scores = {} if value is None else {"scores": {"match": {"value": value, "answer": "a"}}}
    return {
        "id": name,
        "epoch": epoch,
        "input": "question",
        "target": "t",
        "messages": messages,
        **scores,
        "metadata": {},
    } | more


def header(task: str = "quiz", **more: Any) -> Json:
    return {"version": 2, "status": "success", "eval": {"task": task, "run_id": "r", "model": "m", **more}, "plan": {}}


def inspect_json(*samples: Any, **more: Any) -> Json:
    return {**header(), "samples": list(samples)} | more


def inspect_eval(members: dict[str, Any], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive with these members, in this order; a value is bytes or JSON."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, value in members.items():
            archive.writestr(name, value if isinstance(value, bytes) else json.dumps(value))
    return stream.getvalue()


EVAL: Json = {
    "_journal/start.json": header(),
    "samples/2_epoch_1.json": sample(2, 1, "I"),
    "samples/1_epoch_1.json": sample(1, 1, "C"),
    "samples/1_epoch_2.json": sample(1, 2, 0.5),
    "header.json": header(),
}


def intercode_task(number: int, best: float = 1.0, turns: int = 2, **more: Any) -> Json:
    history = {
        "actions": [f"a{i}" for i in range(turns)],
        "observations": [f"o{i}" for i in range(turns)],
        "rewards": [0.25] * (turns - 1) + [best],
        "valid_action": [True] * turns,
    }
    summary = {"max_reward": best, "max_reward_idx": turns - 1, "turns_taken": turns, "turns_max": 3}
    made = {"environment": "ic_bash", "dataset": "./data/nl2bash/fs_1.json", "task_id": number, "query": f"task {number}"}
    return {**made, "turn_history": history, "summary": summary} | more


INTERCODE = {str(i): intercode_task(i, best=i / 2) for i in range(3)}


def say(text: str, role: str = "assistant") -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}] if role == "assistant" else text
    return {"type": "message", "role": role, "content": content}


def call(name: str, arguments: Any = "{}") -> Json:
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": name}


def result(text: str) -> Json:
    return {"type": "function_call_output", "call_id": "c", "output": text}


def nemo(task: int | None = 0, rollout: int | None = 0, reward: Any = 1.0, output: Any = None, **more: Any) -> Json:
    """A NeMo-Gym record: a call, its result, an answer."""
    items = [call("look", '{"b": 1, "a": 2}'), result("seen"), say("bye")] if output is None else output
    request = {"input": [say("rules", "system"), say("do it", "user")]}
    made: Json = {"responses_create_params": request, "response": {"output": items, "error": None}, "reward": reward}
    if task is not None:
        made["_ng_task_index"] = task
    if rollout is not None:
        made["_ng_rollout_index"] = rollout
    return made | more


NEMO = [nemo(t, r, float(t - r), terminated=True, truncated=False) for t in (0, 1) for r in (0, 1)]


def swe(actions: int = 3, **more: Any) -> Json:
    """A SWE-agent trajectory with its history."""
    steps = [
        {
            "action": f"run {i}\n",
            "observation": f"out {i}",
            "response": f"I will\nrun {i}\n",
            "state": "{}",
            "thought": "I will",
        }
        for i in range(actions)
    ]
    history = [
        {"role": "system", "content": "rules", "message_type": "system_prompt", "agent": "main"},
        {"role": "user", "content": "a demonstration", "is_demo": True, "agent": "main"},
        {"role": "user", "content": "the issue", "message_type": "observation", "agent": "main"},
        {"role": "assistant", "content": "I will", "action": "run 0\n", "thought": "I will", "agent": "main"},
        {"role": "user", "content": "out 0", "message_type": "observation", "agent": "main"},
    ]
    return {"environment": "swe_main", "trajectory": steps, "history": history, "info": {"exit_status": "submitted"}} | more


MINI: list[Json] = [
    {"role": "system", "content": "one bash block"},
    {"role": "user", "content": "the issue"},
    {"role": "assistant", "content": "look:\n\n```mswea_bash_command\nls -la\n```"},
    {"role": "user", "content": "<returncode>0</returncode>\n<output>\nfiles</output>"},
    {"role": "assistant", "content": "end:\n```bash\necho DONE\n```"},
    {"role": "user", "content": ""},
]
EVENTS: list[Json] = [
    {"id": 0, "source": "user", "action": "message", "args": {"content": "the issue", "wait_for_response": False}},
    {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "look", "blocking": True}},
    {"id": 2, "source": "agent", "observation": "run", "content": "files", "cause": 1, "extras": {}},
    {"id": 3, "source": "environment", "observation": "agent_state_changed", "content": "", "extras": {}},
    {"id": 4, "source": "agent", "action": "finish", "args": {"outputs": {}, "thought": "done"}},
]
FLAT: list[Json] = [
    {"action": "message", "content": "the issue", "wait_for_response": False},
    {"action": "run", "command": "ls", "thought": "look", "keep_prompt": True},
    {"observation": "run", "content": "files", "command_id": -1, "command": "ls", "exit_code": 0},
    {"action": "finish", "outputs": {}, "thought": "done"},
]
OPENHANDS: list[Json] = [
    {"instance_id": "a__b-1", "instance": {}, "history": EVENTS, "test_result": {"git_patch": "p"}, "error": None},
    {"instance_id": "a__b-2", "history": FLAT, "test_result": {"report": {"resolved": True}}, "metrics": {}},
    {"issue": {"owner": "o", "repo": "r", "number": 5}, "history": FLAT, "success": False, "error": None},
]


def lines(values: list[Any]) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def pretty(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode()


DOCUMENTS: dict[str, tuple[str, Any]] = {
    "tau-bench": ("airline.json", TAU),
    "verl-agent": ("dump.json", VERL),
    "canonical-list": ("rows.json", ROWS),
    "inspect-ai": ("log.json", inspect_json(sample(1, 1), sample(1, 2, "I"), sample(2, 1, 0.5))),
    "intercode": ("bash.json", INTERCODE),
    "swe-agent": ("a__b-1.traj", swe()),
    "mini-swe-agent": ("a__b-1.traj.json", MINI),
    "openhands-events": ("basic.json", EVENTS),
}
"""Whole JSON documents by reader."""

LINES: dict[str, tuple[str, list[Any]]] = {
    "canonical": ("rows.jsonl", ROWS),
    "nemo-gym": ("rollouts.jsonl", NEMO),
    "openhands": ("output.jsonl", OPENHANDS),
}
"""JSONL records by reader."""
