"""One update of a language model: AdamW on the clipped loss, part by part, so that memory holds one part's graph at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graft_core.errors import InputError, UsageError
from graft_core.live.policy import (
    Choice,
    Floats,
    Ints,
    Lesson,
    Situation,
    UpdateOptions,
    UpdateReport,
    prefix_members,
    step_pull,
)

if TYPE_CHECKING:
    from graft_core.live.lm import LMPolicy


class Pass(NamedTuple):
    """One pass over a lesson: the loss, KL from the start, and the ratio per step or per token (see `step_pull`)."""

    loss: float
    kl: float
    ratio: Floats


def improve(policy: LMPolicy, lesson: Lesson, options: UpdateOptions) -> UpdateReport:
    """`epochs` steps of AdamW on the clipped loss over all the steps; equal situations are computed once.

    Raises UsageError for KL with free writing, InputError where the gradient is not finite or memory holds not even one
    sequence.
    """
    import torch

    if options.kl and any(choice.chosen < 0 for choice in lesson.choices):
        raise UsageError("kl: not available while the model writes freely; expected 0")
    optimizer = policy.adam(options)
    passes = []
    norm = torch.zeros(())
    for _ in range(options.epochs):
        passes.append(_gradient(policy, lesson, options, optimizer))
        most = options.max_grad_norm if options.max_grad_norm > 0 else float("inf")
        norm = torch.nn.utils.clip_grad_norm_(policy.model.parameters(), most)
        if not torch.isfinite(norm):
            raise InputError(f"{policy.name}: the gradient is not finite; a smaller step size may help")
        optimizer.step()
    policy.changed()
    pull, clipped = step_pull(lesson.advantage, lesson.weight, passes[-1].ratio, options.clip)
    return UpdateReport(passes[0].loss, passes[0].kl, clipped, float(norm), pull)


def _gradient(policy: LMPolicy, lesson: Lesson, options: UpdateOptions, optimizer: Any) -> Pass:
    """Leave the loss's gradient in the parameters; where memory runs out, begin again with smaller parts."""
    import torch

    while True:
        optimizer.zero_grad(set_to_none=True)
        ratio = np.full((len(lesson.choices), int(lesson.tokens.max(initial=1))), np.nan)
        loss, kl = 0.0, 0.0
        try:
            for steps in _parts(policy, lesson):
                part, away, found = _loss(policy, lesson, steps, options)
                (part + options.kl * away).backward()
                loss, kl = loss + float(part.detach()) + options.kl * float(away.detach()), kl + float(away.detach())
                ratio[steps, : found.shape[1]] = found.detach().cpu().numpy()
        except torch.OutOfMemoryError as error:
            optimizer.zero_grad(set_to_none=True)
            policy.halve(error)
            continue
        return Pass(loss, kl, ratio if options.ratio == "token" else ratio[:, 0])


def _parts(policy: LMPolicy, lesson: Lesson) -> Iterator[Ints]:
    """Numbers of the steps whose situations go through the model together."""
    steps: dict[Situation, list[int]] = {}
    for number, situation in enumerate(lesson.situations):
        steps.setdefault(situation, []).append(number)
    distinct, at = list(steps), 0
    while at < len(distinct):
        part = policy.part(distinct, at)
        yield np.array([n for situation in part for n in steps[situation]], np.int64)
        at += len(part)


def _loss(policy: LMPolicy, lesson: Lesson, steps: Ints, options: UpdateOptions) -> tuple[Any, Any, Any]:
    """(loss, KL, ratio [steps, 1 or tokens]) of some steps, as tensors; the ratio is NaN beyond a step's last token."""
    import torch

    situations = [lesson.situations[n] for n in steps]
    choices = [lesson.choices[n] for n in steps]
    count = lesson.tokens[steps]
    per_token = options.ratio == "token"
    old = lesson.old_token_logprobs[steps, : count.max()] if per_token else lesson.old_logprob[steps, None]
    given = (old, lesson.advantage[steps], lesson.weight[steps], count)
    before, advantage, weight, n = (torch.tensor(x, device=policy.device, dtype=torch.float64) for x in given)
    logp, away = _new_logprobs(policy, situations, choices, weight, options, per_token)
    real = torch.isfinite(before)
    change = torch.where(real, logp.double() - before, 0.0)
    ratio = torch.exp(change if per_token else change / n[:, None])
    each = weight / n if per_token else weight
    loss = clipped_loss(ratio, advantage[:, None], each[:, None] * real, options.clip)
    return loss, away, torch.where(real, ratio, torch.nan)


def _new_logprobs(
    policy: LMPolicy, situations: Sequence[Situation], choices: Sequence[Choice], weight: Any, options: UpdateOptions,
    per_token: bool,
) -> tuple[Any, Any]:  # fmt: skip
    """(log-probabilities [steps, 1 or tokens] under the present weights, weighted KL from the start)."""
    import torch

    none = torch.zeros((), dtype=torch.float64, device=policy.device)
    if any(choice.chosen < 0 for choice in choices):
        found = text_logprobs(policy, [(policy.prompt_ids(s), c.tokens) for s, c in zip(situations, choices, strict=True)])
        return (found if per_token else found.sum(dim=1, keepdim=True)), none
    distinct = {s: i for i, s in enumerate(dict.fromkeys(situations))}
    where = torch.tensor([distinct[s] for s in situations], device=policy.device)
    table = policy.action_logits(list(distinct))
    away = _divergence(table, policy.start_logits(list(distinct)), where, weight) if options.kl else none
    if per_token:
        return _token_logprobs(policy, table, where, situations, choices), away
    chosen = torch.tensor([c.chosen for c in choices], device=policy.device)
    return table[where, chosen][:, None], away


def _token_logprobs(
    policy: LMPolicy, table: Any, where: Any, situations: Sequence[Situation], choices: Sequence[Choice]
) -> Any:
    """[steps, tokens]: the chosen action's log-probability shared out to its tokens (see `prefix_members`); 0 beyond."""
    import torch

    pairs: dict[tuple[Situation, int], int] = {}
    at = [pairs.setdefault((s, c.chosen), len(pairs)) for s, c in zip(situations, choices, strict=True)]
    longest = max(len(c.tokens) for c in choices)
    member = np.zeros((len(pairs), longest + 1, table.shape[1]), bool)
    for (situation, chosen), k in pairs.items():
        rows = prefix_members([policy.action_ids(a) for a in situation.admissible], chosen)
        member[k, : len(rows), : rows.shape[1]] = rows
        member[k, len(rows) :, : rows.shape[1]] = rows[-1]
    inside = torch.from_numpy(member).to(policy.device)[torch.tensor(at, device=policy.device)]
    mass = torch.where(inside, table[where][:, None], -torch.inf).logsumexp(dim=2)
    return mass.diff(dim=1)


def text_logprobs(policy: LMPolicy, rows: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> Any:
    """Log-probability of each token of freely written texts after their prompts, [rows, most tokens], 0 beyond a text."""
    import torch

    most = max(len(text) for _, text in rows)
    longest = max(len(prompt) + len(text) for prompt, text in rows)
    ids = np.full((len(rows), longest), policy.pad, np.int64)
    mask = np.zeros((len(rows), longest), np.int64)
    last, real = np.zeros((2, len(rows), most), np.int64)
    for i, (prompt, text) in enumerate(rows):
        n = len(prompt) + len(text)
        ids[i, :n], mask[i, :n] = [*prompt, *text], 1
        last[i, : len(text)] = np.arange(len(prompt), n)
        real[i, : len(text)] = 1
    tokens, shown, at, counted = (torch.from_numpy(x).to(policy.device) for x in (ids, mask, last, real))
    policy.reader.tokens += int(mask.sum())
    made = policy.model(input_ids=tokens, attention_mask=shown, use_cache=False)
    every = made.logits.gather(1, (at - 1).clamp(min=0)[:, :, None].expand(-1, -1, made.logits.shape[2]))
    logp = torch.log_softmax(every.float() / policy.options.temperature, dim=-1)
    return logp.gather(2, tokens.gather(1, at)[:, :, None])[:, :, 0] * counted


def clipped_loss(ratio: Any, advantage: Any, weight: Any, clip: float) -> Any:
    """Minus the weighted clipped objective (Schulman et al. 2017, Eq. 7), summed over tensors of one shape."""
    import torch

    gain = ratio * advantage
    if clip > 0:
        gain = torch.minimum(gain, torch.clamp(ratio, 1 - clip, 1 + clip) * advantage)
    return -(weight * gain).sum()


def _divergence(table: Any, reference: Any, where: Any, weight: Any) -> Any:
    """Weighted sum over the steps of KL(policy || start) over the admissible actions."""
    import torch

    real = torch.isfinite(table)
    here = torch.where(real, table, 0.0)
    gap = here - torch.where(real, reference, 0.0)
    each = (torch.where(real, torch.exp(here), 0.0) * gap).sum(dim=1).double()
    return (weight * each[where]).sum()
