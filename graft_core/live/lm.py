"""A causal language model as a policy: it scores the admissible actions, or writes freely and is parsed.

Scoring: log-probability of an action = sum over its tokens, normalised over the admissible actions; the same number is
used for sampling and for the ratio of the update. Situations that read alike are computed once and remembered until the next
update; a prompt is read once, its keys and values serve all its actions.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from graft_core.errors import InputError, UsageError
from graft_core.live.policy import (
    Arrays,
    Choice,
    Floats,
    Lesson,
    Situation,
    UpdateOptions,
    UpdateReport,
    draw_actions,
    surrogate_pull,
)

ACTING: Final = ("score", "generate")
MODEL, FIRST, SECOND = "model.", "adam1.", "adam2."
KNOWN_SITUATIONS: Final = 50_000

Ids = tuple[int, ...]


@dataclass(frozen=True)
class LMOptions:
    """How a language model acts.

    acting: `score` the admissible actions or `generate` freely. temperature: of the choice. max_new_tokens: when
    generating. batch: sequences per forward pass (halved when memory runs out). length_normalised: divide an action's
    log-probability by its number of tokens before normalising over the actions.
    """

    acting: str = "score"
    temperature: float = 1.0
    max_new_tokens: int = 16
    batch: int = 256
    length_normalised: bool = False


class LMPolicy:
    """`model` and `tokenizer` of transformers, on `device`. `words` turns what is to be read into the prompt's text."""

    def __init__(
        self, model: Any, tokenizer: Any, device: str, options: LMOptions, words: Callable[[Situation], str], name: str
    ) -> None:
        if options.acting not in ACTING:
            raise UsageError(f"acting: {options.acting!r} is not allowed, expected one of {', '.join(ACTING)}")
        self.model, self.tokenizer, self.options, self.words = model, tokenizer, options, words
        self.device, self._name = device, name
        self.batch = options.batch
        self.pad = int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id or 0)
        self.notes: list[str] = []
        self.tokens = 0  # read so far, padding left out
        self._optimizer: Any = None
        self._reference: Any = None
        self._seen: dict[Situation, Floats] = {}
        self._ids: dict[str, Ids] = {}

    @property
    def name(self) -> str:
        return self._name

    # -- tokens ----------------------------------------------------------------------------------------------

    def prompt_ids(self, situation: Situation) -> Ids:
        return self._encoded("p" + self.words(situation), special=True)

    def action_ids(self, action: str) -> Ids:
        """Token ids of an action as it follows the prompt."""
        found = self._encoded("a" + action, special=False)
        if not found:
            raise InputError(f"{self.name}: the tokenizer makes no token of the action {action!r}")
        return found

    def _encoded(self, text: str, special: bool) -> Ids:
        if text not in self._ids:
            if len(self._ids) > KNOWN_SITUATIONS:
                self._ids.clear()
            self._ids[text] = tuple(self.tokenizer(text[1:], add_special_tokens=special)["input_ids"])
        return self._ids[text]

    # -- scoring ---------------------------------------------------------------------------------------------

    def action_logits(self, situations: Sequence[Situation], model: Any = None) -> Any:
        """Tensor [n, widest] of log-probabilities of the admissible actions, -inf beyond; differentiable."""
        import torch

        widest = max(len(s.admissible) for s in situations)
        parts, start = [], 0
        while start < len(situations):
            part = self._part(situations, start)
            try:
                parts.append(self._sums(part, widest, model or self.model))
            except torch.OutOfMemoryError as error:
                self._halve(error)
                continue
            start += len(part)
        found = torch.cat(parts) if len(parts) > 1 else parts[0]
        return torch.log_softmax(found / self.options.temperature, dim=1)

    def _part(self, situations: Sequence[Situation], start: int) -> Sequence[Situation]:
        """As many situations from `start` on as have at most `batch` actions together, but at least one."""
        total, end = 0, start
        while end < len(situations) and (end == start or total + len(situations[end].admissible) <= self.batch):
            total += len(situations[end].admissible)
            end += 1
        return situations[start:end]

    def _halve(self, error: Exception) -> None:
        if self.batch == 1:
            raise InputError(f"{self.name}: {self.device} has too little memory for one sequence: {error}") from error
        self.batch = max(1, self.batch // 2)
        self.notes.append(f"{self.device} ran out of memory: at most {self.batch} sequences per pass from now on")

    def _sums(self, situations: Sequence[Situation], widest: int, model: Any) -> Any:
        """[n, widest], per action the sum of its tokens' log-probabilities. A prompt is read once for all its actions."""
        import torch

        at, column, rows = [], [], []
        for i, situation in enumerate(situations):
            for j, action in enumerate(situation.admissible):
                at.append(i)
                column.append(j)
                rows.append(self.action_ids(action))
        index = torch.tensor(at, device=self.device)
        longest = max(map(len, rows))
        prompts = [self.prompt_ids(s) for s in situations]
        ids, mask, position = self._left_padded(prompts)
        made = model(
            input_ids=ids, attention_mask=mask, position_ids=position, use_cache=longest > 1, logits_to_keep=1
        )
        first = torch.log_softmax(made.logits[:, -1].float(), dim=-1)
        found = first[index, torch.tensor([row[0] for row in rows], device=self.device)]
        if longest > 1:
            found = found + self._later_tokens(rows, index, mask, made, model)
        if self.options.length_normalised:
            found = found / torch.tensor([len(row) for row in rows], device=self.device)
        out = torch.full((len(situations), widest), -torch.inf, device=self.device, dtype=torch.float32)
        return out.index_put((index, torch.tensor(column, device=self.device)), found)

    def _later_tokens(self, rows: Sequence[Ids], index: Any, mask: Any, made: Any, model: Any) -> Any:
        """[rows], log-probabilities of each action's tokens after its first, with the prompts' keys and values reused."""
        import torch

        longest = max(map(len, rows)) - 1
        fed, target = np.full((2, len(rows), longest), self.pad, np.int64)
        real = np.zeros((len(rows), longest), np.int64)
        for k, row in enumerate(rows):
            n = len(row) - 1
            fed[k, :n], target[k, :n], real[k, :n] = row[:-1], row[1:], 1
        tokens, wanted, counted = (torch.from_numpy(x).to(self.device) for x in (fed, target, real))
        word = cache_word(model)
        cache = made[word]
        cache.batch_select_indices(index)
        self.tokens += int(real.sum())
        before = mask.sum(dim=1)[index]
        position = before[:, None] + torch.arange(longest, device=self.device)[None]
        after = model(
            input_ids=tokens, attention_mask=torch.cat([mask[index], counted], dim=1), position_ids=position,
            use_cache=True, **{word: cache},
        )  # fmt: skip
        logp = torch.log_softmax(after.logits.float(), dim=-1).gather(2, wanted[:, :, None])[:, :, 0]
        return (logp * counted).sum(dim=1)

    def _left_padded(self, rows: Sequence[Ids]) -> tuple[Any, Any, Any]:
        """Token ids, attention mask and positions of rows that end together, [n, longest] each."""
        import torch

        longest = max(map(len, rows))
        ids = np.full((len(rows), longest), self.pad, np.int64)
        mask = np.zeros((len(rows), longest), np.int64)
        for i, row in enumerate(rows):
            ids[i, longest - len(row) :] = row
            mask[i, longest - len(row) :] = 1
        self.tokens += int(mask.sum())
        position = np.clip(np.cumsum(mask, axis=1) - 1, 0, None)
        put = [torch.from_numpy(x).to(self.device) for x in (ids, mask, position)]
        return put[0], put[1], put[2]

    def _text_logprobs(self, rows: Sequence[tuple[Ids, Ids]]) -> Any:
        """Log-probability of each freely written text after its prompt, the sum over its tokens. Tensor [rows]."""
        import torch

        parts, start = [], 0
        while start < len(rows):
            part = rows[start : start + self.batch]
            try:
                parts.append(self._texts(part))
            except torch.OutOfMemoryError as error:
                self._halve(error)
                continue
            start += len(part)
        return torch.cat(parts)

    def _texts(self, rows: Sequence[tuple[Ids, Ids]]) -> Any:
        import torch

        most = max(len(text) for _, text in rows)
        ids, mask, position = self._left_padded([(*prompt, *text) for prompt, text in rows])
        made = self.model(
            input_ids=ids, attention_mask=mask, position_ids=position, use_cache=False, logits_to_keep=most + 1
        )
        logp = torch.log_softmax(made.logits[:, -most - 1 : -1].float() / self.options.temperature, dim=-1)
        real = torch.zeros((len(rows), most), device=self.device)
        for i, (_, text) in enumerate(rows):
            real[i, most - len(text) :] = 1.0
        return (logp.gather(2, ids[:, -most:, None])[:, :, 0] * real).sum(dim=1)

    # -- acting ----------------------------------------------------------------------------------------------

    def choose(self, situations: Sequence[Situation], luck: Floats) -> list[Choice]:
        if self.options.acting == "generate":
            from graft_core.live.generate import write_freely

            return write_freely(self, situations, luck)
        scores = self._scores(situations)
        chosen = draw_actions(scores, luck[:, 0])
        return [
            Choice(s.admissible[c], s.admissible[c], c, float(row[c]), self.action_ids(s.admissible[c]), True)
            for s, c, row in zip(situations, chosen, scores, strict=True)
        ]

    def _scores(self, situations: Sequence[Situation]) -> list[Floats]:
        """Log-probabilities per situation; what was met since the last update is remembered."""
        import torch

        new = [s for s in dict.fromkeys(situations) if s not in self._seen]
        if new:
            if len(self._seen) > KNOWN_SITUATIONS:
                self._seen.clear()
                new = list(dict.fromkeys(situations))
            with torch.inference_mode():
                made = self.action_logits(new).double().cpu().numpy()
            for situation, row in zip(new, made, strict=True):
                self._seen[situation] = row[: len(situation.admissible)]
        return [self._seen[s] for s in situations]

    # -- learning --------------------------------------------------------------------------------------------

    def improve(self, lesson: Lesson, options: UpdateOptions) -> UpdateReport:
        """`epochs` steps of AdamW on the clipped loss over all the steps; equal situations are computed once."""
        import torch

        distinct: dict[Situation, int] = {}
        at = [distinct.setdefault(s, len(distinct)) for s in lesson.situations]
        where = torch.tensor(at, device=self.device)
        chosen = torch.tensor([c.chosen for c in lesson.choices], device=self.device)
        given = (lesson.old_logprob, lesson.advantage, lesson.weight)
        old, advantage, weight = (torch.tensor(x, device=self.device, dtype=torch.float64) for x in given)
        free = bool((chosen < 0).any())
        if free and options.kl:
            raise UsageError("kl: not available while the model writes freely; expected 0")
        optimizer = self._adam(options)
        reference = self._start_logits(list(distinct)) if options.kl else None
        first: tuple[float, float] | None = None
        for _ in range(max(1, options.epochs)):
            if free:
                rows = [(self.prompt_ids(s), c.tokens) for s, c in zip(lesson.situations, lesson.choices, strict=True)]
                logp, kl = self._text_logprobs(rows).double(), torch.zeros((), dtype=torch.float64, device=self.device)
            else:
                table = self.action_logits(list(distinct))
                logp = table[where, chosen].double()
                kl = _divergence(table, reference, where, weight)
            loss, ratio = clipped_loss(logp, old, advantage, weight, options.clip)
            loss = loss + options.kl * kl
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            most = options.max_grad_norm if options.max_grad_norm > 0 else float("inf")
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), most)
            if not torch.isfinite(norm):
                raise InputError(f"{self.name}: the gradient is not finite; a smaller step size may help")
            optimizer.step()
            first = first or (float(loss.detach()), float(kl.detach()))
        self._seen.clear()
        pull, silenced = surrogate_pull(lesson.advantage, lesson.weight, ratio.detach().cpu().numpy(), options.clip)
        assert first is not None
        return UpdateReport(first[0], first[1], float(silenced.mean()), float(norm), pull)

    def _start_logits(self, situations: list[Situation]) -> Any:
        import torch

        if self._reference is None:
            self.keep_reference()
        with torch.no_grad():
            return self.action_logits(situations, self._reference)

    def keep_reference(self) -> None:
        """Remember the present weights as what KL is measured from."""
        self._reference = copy.deepcopy(self.model).requires_grad_(False)

    def _adam(self, options: UpdateOptions) -> Any:
        import torch

        if self._optimizer is None:
            named = [p for _, p in self.model.named_parameters()]
            self._optimizer = torch.optim.AdamW(named, lr=options.step_size, weight_decay=options.weight_decay)
        for group in self._optimizer.param_groups:
            group["lr"], group["weight_decay"] = options.step_size, options.weight_decay
        return self._optimizer

    # -- keeping ---------------------------------------------------------------------------------------------

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """Weights and AdamW's moments; bfloat16 is kept as float32, which holds it exactly."""
        arrays: Arrays = {}
        steps: dict[str, float] = {}
        for name, parameter in self.model.named_parameters():
            arrays[MODEL + name] = parameter.detach().float().cpu().numpy().copy()
            moments = self._optimizer.state.get(parameter) if self._optimizer is not None else None
            if moments:
                arrays[FIRST + name] = moments["exp_avg"].float().cpu().numpy().copy()
                arrays[SECOND + name] = moments["exp_avg_sq"].float().cpu().numpy().copy()
                steps[name] = float(moments["step"])
        return arrays, {"kind": "lm", "name": self.name, "steps": steps, "reference": self._reference is not None}

    def restore(self, arrays: Mapping[str, NDArray[Any]], words: Mapping[str, Any]) -> None:
        import torch

        parameters = dict(self.model.named_parameters())
        lacking = sorted(name for name in parameters if MODEL + name not in arrays)
        if lacking:
            raise InputError(f"{self.name}: the saved state lacks {len(lacking)} weights, the first is {lacking[0]}")
        if words.get("reference") and self._reference is None:
            self.keep_reference()  # what was loaded is the start that KL is measured from
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(torch.from_numpy(np.array(arrays[MODEL + name])))
        self._seen.clear()
        if words.get("steps"):
            optimizer = self._adam(UpdateOptions())
            for name, step in words["steps"].items():
                parameter = parameters[name]
                optimizer.state[parameter] = {
                    "step": torch.tensor(step),
                    "exp_avg": torch.from_numpy(np.array(arrays[FIRST + name])).to(parameter),
                    "exp_avg_sq": torch.from_numpy(np.array(arrays[SECOND + name])).to(parameter),
                }


def cache_word(model: Any) -> str:
    """What the model's forward pass calls the keys and values of what was read (renamed in transformers 5.24)."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def clipped_loss(logp: Any, old: Any, advantage: Any, weight: Any, clip: float) -> tuple[Any, Any]:
    """(loss, ratio [N]): minus the weighted clipped objective with one ratio per step (Schulman et al. 2017, Eq. 7)."""
    import torch

    ratio = torch.exp(logp - old)
    gain = ratio * advantage
    if clip > 0:
        gain = torch.minimum(gain, torch.clamp(ratio, 1 - clip, 1 + clip) * advantage)
    return -(weight * gain).sum(), ratio


def _divergence(table: Any, reference: Any, where: Any, weight: Any) -> Any:
    """Weighted mean over the steps of KL(policy || start) over the admissible actions; 0 without a reference."""
    import torch

    if reference is None:
        return torch.zeros((), dtype=torch.float64, device=table.device)
    real = torch.isfinite(table)
    here = torch.where(real, table, 0.0)
    gap = here - torch.where(real, reference, 0.0)
    each = (torch.where(real, torch.exp(here), 0.0) * gap).sum(dim=1).double()
    return (weight * each[where]).sum()
