"""A causal language model as a policy: it scores the admissible actions, or writes freely and is parsed.

Scoring: log-probability of an action = sum over its tokens, normalised over the admissible actions; the same number is
used for sampling and for the ratio of the update. Situations that read alike are computed once and remembered until the next
update; a prompt is read once, its keys and values serve all its actions.
"""

from __future__ import annotations

import copy
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
    prefix_members,
)
from graft_core.live.reading import Ids, Read, Reader, cache_word

ACTING: Final = ("score", "generate")
MODEL, FIRST, SECOND = "model.", "adam1.", "adam2."
KNOWN_SITUATIONS: Final = 50_000


@dataclass(frozen=True)
class LMOptions:
    """How a language model acts.

    acting: `score` the admissible actions or `generate` freely. temperature: of the choice. max_new_tokens: when
    generating. batch: sequences per forward pass (halved when memory runs out). length_normalised: divide an action's
    log-probability by its number of tokens before normalising over the actions. remembers: keep what was read until the next
    turn where prompts grow (see `reading`).
    """

    acting: str = "score"
    temperature: float = 1.0
    max_new_tokens: int = 16
    batch: int = 256
    length_normalised: bool = False
    remembers: bool = True

    def __post_init__(self) -> None:
        if self.acting not in ACTING:
            raise UsageError(f"acting: {self.acting!r} is not allowed, expected one of {', '.join(ACTING)}")
        if not 0.0 < self.temperature < float("inf"):
            raise UsageError(f"temperature: {self.temperature} is not allowed, expected a number above 0")
        for name in ("batch", "max_new_tokens"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name.replace('_', '-')}: {getattr(self, name)} is not allowed, expected at least 1")


class LMPolicy:
    """`model` and `tokenizer` of transformers, on `device`. `words` turns what is to be read into the prompt's text."""

    def __init__(
        self, model: Any, tokenizer: Any, device: str, options: LMOptions, words: Callable[[Situation], str], name: str
    ) -> None:
        self.model, self.tokenizer, self.options, self.words = model, tokenizer, options, words
        self.device, self._name = device, name
        self.batch = options.batch
        self.pad = int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id or 0)
        self.notes: list[str] = []
        self.reader = Reader(device, self.pad, options.remembers)
        self._optimizer: Any = None
        self._reference: Any = None
        self._seen: dict[Situation, Floats] = {}
        self._factors: dict[tuple[Situation, int], tuple[float, ...]] = {}
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
            part = self.part(situations, start)
            try:
                parts.append(self._sums(part, widest, model or self.model))
            except torch.OutOfMemoryError as error:
                self.halve(error)
                continue
            start += len(part)
        found = torch.cat(parts) if len(parts) > 1 else parts[0]
        return torch.log_softmax(found / self.options.temperature, dim=1)

    def part(self, situations: Sequence[Situation], start: int) -> Sequence[Situation]:
        """As many situations from `start` on as have at most `batch` actions together, but at least one."""
        total, end = 0, start
        while end < len(situations) and (end == start or total + len(situations[end].admissible) <= self.batch):
            total += len(situations[end].admissible)
            end += 1
        return situations[start:end]

    def halve(self, error: Exception) -> None:
        """After memory ran out: remember nothing, then half as many sequences per pass; InputError where it was one."""
        if self.reader.holds:
            self.reader.remembers = False
            self.reader.forget()
            self.notes.append(f"{self.device} ran out of memory: every prompt is read whole from now on")
            return
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
        read = self.reader.read(model, [self.prompt_ids(s) for s in situations], longest > 1)
        first = torch.log_softmax(read.logits, dim=-1)
        found = first[index, torch.tensor([row[0] for row in rows], device=self.device)]
        if longest > 1:
            found = found + self._later_tokens(rows, index, read, model)
        if self.options.length_normalised:
            found = found / torch.tensor([len(row) for row in rows], device=self.device)
        out = torch.full((len(situations), widest), -torch.inf, device=self.device, dtype=torch.float32)
        return out.index_put((index, torch.tensor(column, device=self.device)), found)

    def _later_tokens(self, rows: Sequence[Ids], index: Any, read: Read, model: Any) -> Any:
        """[rows], log-probabilities of each action's tokens after its first, with the prompts' keys and values reused."""
        import torch

        longest = max(map(len, rows)) - 1
        fed, target = np.full((2, len(rows), longest), self.pad, np.int64)
        real = np.zeros((len(rows), longest), np.int64)
        for k, row in enumerate(rows):
            n = len(row) - 1
            fed[k, :n], target[k, :n], real[k, :n] = row[:-1], row[1:], 1
        tokens, wanted, counted = (torch.from_numpy(x).to(self.device) for x in (fed, target, real))
        cache, mask = read.cache, read.mask
        cache.batch_select_indices(index)
        self.reader.tokens += int(real.sum())
        before = mask.sum(dim=1)[index]
        position = before[:, None] + torch.arange(longest, device=self.device)[None]
        after = model(
            input_ids=tokens, attention_mask=torch.cat([mask[index], counted], dim=1), position_ids=position,
            use_cache=True, **{cache_word(model): cache},
        )  # fmt: skip
        logp = torch.log_softmax(after.logits.float(), dim=-1).gather(2, wanted[:, :, None])[:, :, 0]
        return (logp * counted).sum(dim=1)

    # -- acting ----------------------------------------------------------------------------------------------

    def choose(self, situations: Sequence[Situation], luck: Floats) -> list[Choice]:
        if self.options.acting == "generate":
            from graft_core.live.generate import write_freely

            return write_freely(self, situations, luck)
        scores = self._scores(situations)
        chosen = draw_actions(scores, luck[:, 0])
        return [self._scored(s, c, row) for s, c, row in zip(situations, chosen, scores, strict=True)]

    def _scored(self, situation: Situation, chosen: int, scores: Floats) -> Choice:
        action, each = situation.admissible[chosen], self._token_logprobs(situation, chosen, scores)
        return Choice(action, action, chosen, float(scores[chosen]), self.action_ids(action), True, each)

    def _token_logprobs(self, situation: Situation, chosen: int, scores: Floats) -> tuple[float, ...]:
        """The chosen action's log-probability as a sum over its tokens (see `prefix_members`); none for a single token."""
        if len(self.action_ids(situation.admissible[chosen])) < 2:
            return ()
        if (situation, chosen) not in self._factors:
            members = prefix_members([self.action_ids(a) for a in situation.admissible], chosen)
            mass = np.logaddexp.reduce(np.where(members, scores, -np.inf), axis=1)
            self._factors[situation, chosen] = tuple(np.diff(mass).tolist())
        return self._factors[situation, chosen]

    def _scores(self, situations: Sequence[Situation]) -> list[Floats]:
        """Log-probabilities per situation; what was met since the last update is remembered."""
        import torch

        new = [s for s in dict.fromkeys(situations) if s not in self._seen]
        if new:
            if len(self._seen) > KNOWN_SITUATIONS:
                self.changed()
                new = list(dict.fromkeys(situations))
            with torch.inference_mode(), self.reader.turn([self.prompt_ids(s) for s in new]):
                made = self.action_logits(new).double().cpu().numpy()
            for situation, row in zip(new, made, strict=True):
                self._seen[situation] = row[: len(situation.admissible)]
        return [self._seen[s] for s in situations]

    # -- learning --------------------------------------------------------------------------------------------

    def improve(self, lesson: Lesson, options: UpdateOptions) -> UpdateReport:
        """One update, see `lm_update`."""
        from graft_core.live.lm_update import improve

        return improve(self, lesson, options)

    def changed(self) -> None:
        """Forget what was computed with other weights."""
        self._seen.clear()
        self._factors.clear()
        self.reader.forget()

    def start_logits(self, situations: Sequence[Situation]) -> Any:
        """`action_logits` of the policy at the start, without a gradient."""
        import torch

        if self._reference is None:
            self.keep_reference()
        with torch.no_grad():
            return self.action_logits(situations, self._reference)

    def keep_reference(self) -> None:
        """Remember the present weights as what KL is measured from."""
        self._reference = copy.deepcopy(self.model).requires_grad_(False)

    def adam(self, options: UpdateOptions) -> Any:
        """The optimiser, with these options from now on."""
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
        self.changed()
        if words.get("steps"):
            optimizer = self.adam(UpdateOptions())
            for name, step in words["steps"].items():
                parameter = parameters[name]
                optimizer.state[parameter] = {
                    "step": torch.tensor(step),
                    "exp_avg": torch.from_numpy(np.array(arrays[FIRST + name])).to(parameter),
                    "exp_avg_sq": torch.from_numpy(np.array(arrays[SECOND + name])).to(parameter),
                }
