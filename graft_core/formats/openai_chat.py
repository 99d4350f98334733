"""Chats with a reward: JSON or JSONL, one {messages, reward, ...} per rollout, messages as in the OpenAI API.

Also `conversations` with {from, value} (ShareGPT, as ETO and AgentGym write it), and {prompt, completion, reward} under the
names of several trainers, each text or messages (a text is one step; messages in a prompt are examples, no steps).
Ids, outcome, flags and training step are read under the names of the canonical step file and their aliases, also inside
`metadata`, `meta` or `info`; `reward` and `score` are the outcome; a list `rewards` with one number per assistant message
holds step rewards. Where no task is named, rollouts with the same messages before the first answer are one group.
"""

from __future__ import annotations

from typing import Any, Final

from graft_core.formats._prompt import group_by_prompt, prompt_id, prompt_key, tell_equal_rewards, tell_flattened, tell_groups
from graft_core.formats._records import Gather, Row, extras, is_messages, records, with_ids
from graft_core.formats.chat import chat_steps
from graft_core.formats.fields import BY_NAME
from graft_core.formats.jsonio import dumps
from graft_core.formats.registry import Format
from graft_core.formats.rows import Rows
from graft_core.formats.source import Head, Source
from graft_core.formats.verifiers import as_messages

CHATS: Final = ("messages", "conversations", "conversation", "chat", "messages_and_choices")
PROMPTS: Final = ("prompt", "input_prompt", "question", "query")
COMPLETIONS: Final = ("completion", "output_response", "response", "output")
NESTED: Final = ("metadata", "meta", "info", "extra_info")
ROLES: Final = {
    "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "model": "assistant", "system": "system",
    "tool": "tool", "observation": "tool", "function_response": "tool", "environment": "tool",
}  # fmt: skip
FIELDS: Final = ("group_id", "rollout_id", "outcome", "success", "terminated", "truncated", "train_step", "task_family")
MORE: Final[dict[str, tuple[str, ...]]] = {
    "group_id": ("example_id", "item_id", "question_id", "instance_id", "scenario_id"),
    "rollout_id": ("trial_id", "sample_id", "rollout_index", "sample_idx", "repetition_id", "id"),
    "outcome": ("reward", "score"),
    "terminated": ("finished",),
    "task_family": ("data_source", "env_class"),
    "train_step": ("step",),
}


def detect(head: Head) -> int:
    """Perhaps, where a record holds messages with an answer of the assistant, or a prompt, its completion and a reward."""
    document = head.document
    items = head.records if head.kind == "jsonl" else document if isinstance(document, list) else [document]
    return 1 if any(isinstance(i, dict) and _is_chat(i) for i in items[:20]) else 0


def _is_chat(item: Row) -> bool:
    answered = any(message.get("role") == "assistant" for message in chat_of(item) or ())
    return answered and (any(name in item for name in CHATS) or any(name in item for name in ("reward", "score", "rewards")))


def chat_of(item: Row) -> list[Row] | None:
    """The messages of a record in OpenAI's form; None where it has none."""
    for name in CHATS:
        value = item.get(name)
        if is_messages(value) and value:
            messages = [message_of(m) for m in value]
            return messages if all("role" in m for m in messages) else None
    prompt, completion = _first(item, PROMPTS), _first(item, COMPLETIONS)
    given, said = as_messages(prompt, "user"), as_messages(completion, "assistant")
    if not given or not said:
        return None
    return [*(m if m.get("role") != "assistant" else {**m, "role": "system"} for m in given), *said]


def _first(item: Row, names: tuple[str, ...]) -> Any:
    return next((item[name] for name in names if item.get(name) is not None), None)


def message_of(entry: Row) -> Row:
    """A message from a message, from a Choice of the API (which holds one), or from {from, value}."""
    if "role" not in entry and isinstance(entry.get("message"), dict):
        held: Row = entry["message"]
        return held if "role" in held else {"role": "assistant", **held}
    if "role" not in entry and isinstance(entry.get("from"), str):
        return {"role": ROLES.get(entry["from"], entry["from"]), "content": entry.get("value")}
    return entry


def read(source: Source, rows: Rows) -> None:
    """One rollout per record."""
    scratch = Rows()
    scratch.start(source, "openai-chat", "record")
    some = (item for _, item in records(source, scratch) if _field(item, "group_id") is None)
    found = group_by_prompt(prompt_key(opening(messages)) for item in some if (messages := chat_of(item)) is not None)
    tell_groups(found, source, rows)
    gather = Gather(rows)
    rewards: list[float] = []
    groups: set[str] = set()
    for record, item in records(source, rows):
        messages = chat_of(item)
        if messages is None:
            rows.reject(
                record, f"the record has no messages with roles under {', '.join(CHATS[:3])}, and no prompt and completion"
            )
            continue
        made = _rollout(source, rows, record, item, messages, found.use)
        gather.add(record, made)
        outcome = made[0].get("outcome")
        rewards += [float(outcome)] if isinstance(outcome, (int, float)) and abs(outcome) < 1e300 else []
        groups.add(dumps(made[0].get("group_id")))
    gather.finish()
    tell_equal_rewards(rewards, len(groups), source, rows)


def opening(messages: list[Row]) -> str:
    """Everything before the first answer of the assistant, as one text that equal openings share."""
    first = next((i for i, m in enumerate(messages) if m.get("role") == "assistant"), len(messages))
    return dumps([[m.get("role"), m.get("content")] for m in messages[:first]], sort=True)


def _rollout(source: Source, rows: Rows, record: int, item: Row, messages: list[Row], by_prompt: bool) -> list[Row]:
    steps, final = chat_steps(messages)
    said = _first(item, COMPLETIONS)
    if isinstance(said, str) and len(steps) == 1:
        tell_flattened(rows, record, said)
    group, rollout = _field(item, "group_id"), _field(item, "rollout_id")
    ids: Row = {"rollout_id": record if rollout is None else rollout}
    if group is not None:
        ids |= {"group_id": group, "task_set": source.label}
    elif by_prompt:
        ids |= {"group_id": prompt_id(_shown(messages)), "task_set": source.label}
    declaration: Row = {name: value for name in FIELDS[3:] if (value := _field(item, name)) is not None}
    declaration |= _outcome(item, steps, rows, record)
    if item.get("stop_reason") == "length" or item.get("finish_reason") == "length":
        declaration.setdefault("truncated", True)
    declaration["metadata"] = extras(item, {*CHATS, *PROMPTS, *COMPLETIONS, "rewards", "reward", "tools"})
    return with_ids(ids, declaration, steps, final)


def _shown(messages: list[Row]) -> str:
    """The opening, the last text of which stands last, for a readable group id."""
    first = next((i for i, m in enumerate(messages) if m.get("role") == "assistant"), len(messages))
    last = messages[first - 1].get("content") if first else ""
    return opening(messages) + "\n" + (last if isinstance(last, str) else dumps(last))


def _field(item: Row, name: str) -> Any:
    """The value of a field under any of its names, in the record or in what it says about itself."""
    names = (name, *BY_NAME[name].aliases, *MORE.get(name, ()))
    for held in (item, *(item[n] for n in NESTED if isinstance(item.get(n), dict))):
        found = next((n for n in names if held.get(n) is not None and not isinstance(held[n], (dict, list))), None)
        if found is not None:
            return held[found]
    return None


def _outcome(item: Row, steps: list[Row], rows: Rows, record: int) -> Row:
    """{"outcome": ...} of a record, empty where it has none; a list of step rewards is put into the steps."""
    given = item.get("rewards")
    if isinstance(given, list) and len(given) == len(steps) > 0:
        for step, reward in zip(steps, given, strict=True):
            step["reward"] = reward
    elif given is not None:
        rows.note("a list of rewards that has not one number per step was left out")
    for held in (item, *(item[n] for n in NESTED if isinstance(item.get(n), dict))):
        names = [n for n in ("outcome", *BY_NAME["outcome"].aliases, *MORE["outcome"]) if n in held]
        found = next((n for n in names if held[n] is not None), names[0] if names else None)
        if found is None:
            continue
        value = held[found]
        if isinstance(value, list) and value and all(isinstance(v, (int, float)) for v in value):
            value = sum(value)  # one number per token
        if isinstance(value, dict) and value and all(isinstance(v, (int, float)) for v in value.values()):
            rows.warn("rewards_summed", f"the outcome is the sum of {', '.join(map(str, list(value)[:5]))}", rows.where(record))
            value = sum(value.values())
        if found not in ("reward", "outcome"):
            rows.warn("aliases_used", f"read {found} as outcome", rows.where(record))
        return {"outcome": value}
    return {}


FORMAT: Final = Format(
    name="openai-chat",
    meaning="chats with a reward (OpenAI messages, ShareGPT, or prompt and completion), one per rollout",
    detected_by="JSON or JSON lines with messages (role, content), conversations (from, value), or prompt, completion, reward",
    unit="record",
    detect=detect,
    read=read,
)
