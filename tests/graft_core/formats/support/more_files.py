"""More small invented files, written from the code of the programs that write such files; no public file was at hand."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]


def user(text: Any) -> Json:
    return {"role": "user", "content": text}


def answer(text: str | None, *calls: tuple[str, Any]) -> Json:
    """A message of the assistant, with tool calls as (name, arguments)."""
    made: Json = {"role": "assistant", "content": text}
    if calls:
        made["tool_calls"] = [
            {"id": f"c{i}", "type": "function", "function": {"name": n, "arguments": a}} for i, (n, a) in enumerate(calls)
        ]
    return made


def tool(text: str) -> Json:
    return {"role": "tool", "content": text, "tool_call_id": "c0"}


SYSTEM = {"role": "system", "content": "rules"}
TALK: list[Json] = [
    SYSTEM,
    user("book a table"),
    answer("Let me see.", ("find", '{"b": 1, "a": "x"}')),
    tool("two tables"),
    answer("Booked."),
    user("thanks"),
]
"""Two steps: 'book a table' -> find, 'two tables' -> Booked., then 'thanks'."""


def verl(prompt: str = "p", output: str = "o", score: Any = 1.0, step: int = 3, **more: Any) -> Json:
    return {"input": prompt, "output": output, "gts": "42", "score": score, "step": step} | more


VERL_V0 = [verl(f"task {t}", f"answer {k}", float(k % 2)) for t in (0, 1) for k in range(3)]
VERL_V1 = [verl(f"task {t}", f"answer {k}", k, uid=f"{t}_{k}_0", acc=bool(k)) for t in (0, 1) for k in range(2)]


def chat(messages: list[Json] | None = None, reward: Any = 1.0, **more: Any) -> Json:
    return {"messages": TALK if messages is None else messages, "reward": reward} | more


CHATS = [chat(task_id=f"t{t}", reward=float(k), seed=k) for t in (0, 1) for k in (0, 1)]


def choice(message: Json) -> Json:
    return {"finish_reason": "stop", "index": 0, "message": message}


def art(messages: list[Json] | None = None, reward: Any = 1.0, **more: Any) -> Json:
    """An ART trajectory: what the model said are Choices."""
    said = [choice(m) if m["role"] == "assistant" else m for m in (messages or TALK)]
    return {
        "messages_and_choices": said,
        "reward": reward,
        "metrics": {"turns": 2},
        "metadata": {"who": "m"},
        "logs": [],
    } | more


ART = [{"trajectories": [art(reward=float(k)) for k in (0, 1)], "metadata": {"task": f"t{t}"}} for t in (0, 1)]


def simulation(task: str = "0", trial: int = 0, reward: Any = 1.0, reason: str = "user_stop", **more: Any) -> Json:
    """A tau2 simulation: tool calls are flat, and the user has tools, too."""
    messages = [
        {"role": "assistant", "content": "Hi! How can I help you today?", "tool_calls": None},
        {"role": "user", "content": "my phone is off", "tool_calls": None},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "name": "get", "arguments": {"z": 1, "a": 2}, "requestor": "assistant"}],
        },
        {"role": "tool", "id": "1", "content": "line ok", "requestor": "assistant", "error": False},
        {"role": "assistant", "content": "Turn it on, please."},
        {
            "role": "user",
            "content": None,
            "tool_calls": [{"id": "2", "name": "turn_on", "arguments": {}, "requestor": "user"}],
        },
        {"role": "tool", "id": "2", "content": "secret of the user", "requestor": "user", "error": False},
        {"role": "user", "content": "done ###STOP###"},
    ]
    scored = None if reward is None else {"reward": reward, "reward_breakdown": {"DB": reward}}
    made: Json = {"id": f"{task}-{trial}", "task_id": task, "trial": trial, "seed": 1, "termination_reason": reason}
    return made | {"reward_info": scored, "messages": messages} | more


TAU2 = {
    "timestamp": "t",
    "info": {"git_commit": "x"},
    "tasks": [{"id": "0"}, {"id": "1"}],
    "simulations": [simulation(str(t), k, float(k)) for t in (0, 1) for k in (0, 1)],
}


def result(example: Any = 0, reward: Any = 1.0, **more: Any) -> Json:
    """A line of verifiers' results.jsonl; metrics stand on the top level, too."""
    made: Json = {"example_id": example, "prompt": TALK[:2], "completion": TALK[2:], "reward": reward, "answer": "x"}
    return made | {"is_completed": True, "is_truncated": False, "error": None, "metrics": {"turns": 2.0}, "turns": 2.0} | more


VERIFIERS = [result(e, float(k)) for e in (0, 1) for k in (0, 1)]


def node(parent: int | None, message: Json, sampled: bool = False, **more: Any) -> Json:
    return {"parent": parent, "message": message, "sampled": sampled, "token_ids": [1, 2], "mask": [1, 1]} | more


def nodes(messages: list[Json] | None = None) -> list[Json]:
    """A tree without branches."""
    return [
        node(i - 1 if i else None, m, m["role"] == "assistant", logprobs=[-0.5, -1.5], advantages=[0.25, 0.25])
        if m["role"] == "assistant"
        else node(i - 1 if i else None, m)
        for i, m in enumerate(TALK if messages is None else messages)
    ]


def trace(rewards: Any = None, tree: list[Json] | None = None, **more: Any) -> Json:
    given = {"right": {"value": 1.0, "weight": 0.75}, "short": {"value": 1.0, "weight": 0.25}} if rewards is None else rewards
    made: Json = {"version": 1, "id": "x", "agent": {"name": "solver"}, "nodes": nodes() if tree is None else tree}
    return made | {"rewards": given, "metrics": {"turns": 2}, "is_completed": True, "ok": True, "errors": []} | more


def episode(name: str = "e", group: Any = "g", *traces: Json, **more: Any) -> Json:
    made: Json = {"id": name, "env": {"id": "booking"}, "task": {"id": 5}, "group": group, "ok": True, "errors": []}
    return made | {"traces": list(traces or [trace()])} | more


TRACES = [episode(f"e{t}{k}", f"g{t}", trace({"r": {"value": float(k), "weight": 1.0}})) for t in (0, 1) for k in (0, 1)]


def export(problem: int = 0, sample: int = 0, reward: Any = 1.0, **more: Any) -> Json:
    """A sample of the platform's export: JSON inside JSON, tool calls once more."""
    inside = [{**m, "tool_calls": [json.dumps(c) for c in m["tool_calls"]]} if "tool_calls" in m else m for m in TALK[2:]]
    made: Json = {"problem_id": problem, "sample_id": sample, "step": 4, "reward": reward, "advantage": -1.49e-08}
    made |= {"prompt": json.dumps(TALK[:2]), "completion": json.dumps(inside), "metrics": json.dumps({"turns": 2})}
    return made | {"timing": "{}", "answer": json.dumps("x")} | more


EXPORT = [export(p, s, float(s)) for p in (0, 1) for s in (0, 1)]


def rllm(name: str = "task:0", reward: Any = 1.0, correct: Any = True, **more: Any) -> Json:
    steps = [
        {
            "observation": "o1",
            "thought": "t",
            "action": "a1",
            "reward": 0.0,
            "done": False,
            "model_response": "<think>t</think>a1",
        },
        {"observation": {"room": 1}, "action": {"name": "go", "arguments": {"b": 1, "a": 2}}, "reward": 1.0, "done": True},
    ]
    trajectory = {"name": "agent", "uid": "u", "reward": reward, "num_steps": 2, "steps": steps}
    made: Json = {"training_step": 7, "epoch": 0, "episode_id": name, "session_id": "s", "task": {"question": "q"}}
    return made | {"is_correct": correct, "termination_reason": "env_done", "trajectories": [trajectory]} | more


RLLM = rllm()


def atif(*steps: Json, **more: Any) -> Json:
    given: list[Json] = [
        {"step_id": 1, "source": "system", "message": "rules"},
        {"step_id": 2, "source": "user", "message": "fix it"},
        {
            "step_id": 3,
            "source": "agent",
            "message": "I look.",
            "reasoning_content": "hm",
            "tool_calls": [{"tool_call_id": "1", "function_name": "run", "arguments": {"z": 1, "cmd": "ls"}}],
            "observation": {"results": [{"source_call_id": "1", "content": "files"}]},
        },
        {"step_id": 4, "source": "agent", "message": "Fixed."},
    ]
    made: Json = {"schema_version": "ATIF-v1.6", "session_id": "s1", "agent": {"name": "bot", "version": "1"}}
    return made | {"steps": list(steps) or given, "final_metrics": {"total_steps": 2}} | more


COMPLETIONS = [
    {
        "step": 5,
        "prompt": f"task {t}",
        "completion": f"answer {k}",
        "right_reward": float(k),
        "length_reward": 0.5,
        "advantage": 0.1,
    }
    for t in (0, 1)
    for k in (0, 1)
]

TRIAL: Json = {"task_name": "t", "trial_name": "t__x", "verifier_result": {"rewards": {"reward": 1.0}}, "exception_info": None}
RUN: Json = {"graft_run": 1, "name": "x", "settings": {}}

MORE_DOCUMENTS: dict[str, tuple[str, Any]] = {
    "art": ("groups.json", ART),
    "tau2-bench": ("results.json", TAU2),
    "rllm": ("episode_hash_1.json", RLLM),
    "atif": ("trajectory.json", atif()),
    "harbor-trial": ("result.json", TRIAL),
    "run": ("run.json", RUN),
    "openai-chat-list": ("chats.json", CHATS),
    "prime-export-list": ("export.json", {"samples": EXPORT}),
}
MORE_LINES: dict[str, tuple[str, list[Any]]] = {
    "verl": ("3.jsonl", VERL_V0),
    "verl-v1": ("4.jsonl", VERL_V1),
    "verl-steps": ("5.jsonl", [verl(traj_uid=f"r{i % 2}", uid="g") for i in range(6)]),
    "openai-chat": ("chats.jsonl", CHATS),
    "art-lines": ("groups.jsonl", ART),
    "verifiers": ("results.jsonl", VERIFIERS),
    "verifiers-v1": ("traces.jsonl", TRACES),
    "prime-export": ("export.jsonl", EXPORT),
    "rllm-lines": ("episodes.jsonl", [rllm(f"t{t}:{k}", float(k), bool(k)) for t in (0, 1) for k in (0, 1)]),
    "run-steps": (
        "000001.jsonl",
        [
            {"graft_format": 1, "graft_run": "x", "train_step": 1},
            *(
                {"group_id": "g", "rollout_id": f"r{i}", "step": s, "observation": "o", "action": "a"}
                for i in (0, 1)
                for s in (0, 1)
            ),
            *({"group_id": "g", "rollout_id": f"r{i}", "step": None, "outcome": i} for i in (0, 1)),
        ],
    ),
}
