"""A causal language model as a policy: it scores the admissible actions, or writes freely and is parsed.

Scoring: log-probability of an action = sum over its tokens, normalised over the admissible actions; the same number is
used for sampling and for the ratio of the update. Situations that read alike are computed once, and remembered until
the next update.
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

        rows: list[tuple[Ids, Ids]] = []
        places: list[tuple[int, int]] = []
        single = True
        for i, situation in enumerate(situations):
            prompt = self.prompt_ids(situation)
            for j, action in enumerate(situation.admissible):
                ids = self.action_ids(action)
                single = single and len(ids) == 1
                rows.append((prompt, ids))
                places.append((i, j))
        found = self._single(situations, rows, places, model) if single else self._several(rows, model)
        widest = max(len(s.admissible) for s in situations)
        out = torch.full((len(situations), widest), -torch.inf, device=self.device, dtype=torch.float32)
        at = torch.tensor(places, device=self.device)
        if self.options.length_normalised:
            found = found / torch.tensor([len(ids) for _, ids in rows], device=self.device)
        out = out.index_put((at[:, 0], at[:, 1]), found / self.options.temperature)
        return torch.log_softmax(out, dim=1)

    def _single(
        self, situations: Sequence[Situation], rows: list[tuple[Ids, Ids]], places: list[tuple[int, int]], model: Any
    ) -> Any:
        """Scores where every action is one token: one forward pass per prompt serves all its actions."""
        import torch

        last = self._last_logits([(self.prompt_ids(s), ()) for s in situations], model)[:, 0]
        logp = torch.log_softmax(last.float(), dim=-1)
        at = torch.tensor([i for i, _ in places], device=self.device)
        return logp[at, torch.tensor([ids[0] for _, ids in rows], device=self.device)]

    def _several(self, rows: list[tuple[Ids, Ids]], model: Any) -> Any:
        """Scores of (prompt, continuation) pairs, each the sum over the continuation's tokens. Tensor [len(rows)]."""
        import torch

        most = max(len(ids) for _, ids in rows)
        logp = torch.log_softmax(self._last_logits(rows, model).float(), dim=-1)
        target = torch.full((len(rows), most), self.pad, dtype=torch.long)
        real = torch.zeros((len(rows), most))
        for i, (_, ids) in enumerate(rows):
            target[i, most - len(ids) :] = torch.tensor(ids)
            real[i, most - len(ids) :] = 1.0
        target, real = target.to(self.device), real.to(self.device)
        picked = logp[:, :most].gather(2, target[:, :, None])[:, :, 0]
        return (picked * real).sum(dim=1)

    def _last_logits(self, rows: Sequence[tuple[Ids, Ids]], model: Any) -> Any:
        """Logits at the last positions of prompt + continuation, [rows, longest continuation + 1, vocabulary].

        Padded on the left, so that continuations end together; position k from the right predicts what follows it.
        """
        import torch

        keep = max(len(ids) for _, ids in rows) + 1
        parts = []
        start = 0
        while start < len(rows):
            part = rows[start : start + self.batch]
            try:
                parts.append(self._forward(part, keep, model))
            except torch.OutOfMemoryError as error:
                if self.batch == 1:
                    raise InputError(f"{self.name}: {self.device} has too little memory for one sequence: {error}") from error
                self.batch = max(1, self.batch // 2)
                self.notes.append(f"{self.device} ran out of memory: at most {self.batch} sequences per pass from now on")
                continue
            start += len(part)
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    def _forward(self, rows: Sequence[tuple[Ids, Ids]], keep: int, model: Any) -> Any:
        import torch

        longest = max(len(p) + len(ids) for p, ids in rows)
        ids = np.full((len(rows), longest), self.pad, np.int64)
        mask = np.zeros((len(rows), longest), np.int64)
        for i, (prompt, tail) in enumerate(rows):
            row = (*prompt, *tail)
            ids[i, longest - len(row) :] = row
            mask[i, longest - len(row) :] = 1
        position = np.clip(np.cumsum(mask, axis=1) - 1, 0, None)
        put = [torch.from_numpy(x).to(self.device) for x in (ids, mask, position)]
        made = (model or self.model)(
            input_ids=put[0], attention_mask=put[1], position_ids=put[2], use_cache=False, logits_to_keep=min(keep, longest)
        )
        return made.logits[:, -keep:]

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
                logp, kl = self._several(rows, None).double(), torch.zeros((), dtype=torch.float64, device=self.device)
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
