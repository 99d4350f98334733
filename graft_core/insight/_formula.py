"""Formulas with their own numbers filled in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from graft_core.constants import RANGE_ABSOLUTE, RANGE_RELATIVE, SIGN_TOLERANCE
from graft_core.credit import estimators
from graft_core.graph import TrajectoryGraph
from graft_core.insight._moments import residuals, steps_at
from graft_core.rollouts import FloatArray, IntArray
from graft_core.settings import Settings
from graft_core.values import Values

MINUS, TIMES = "−", "×"
FEWEST, ENOUGH, MOST = 2, 4, 6  # digits behind the point
TERMS = 3  # terms of a sum that are written out
AGREES = 1e-6
UNSEEN = 1e-4  # an eps this small beside what it is added to is not written out


@dataclass(frozen=True)
class Formula:
    """How a credit came about.

    symbols: the formula in symbols. text: the same with this step's numbers, "0.99 × 0.62 − 0.31 = +0.30"; as many
    digits as it takes that the printed numbers give the printed result (else "≈"), an eps that cannot be seen left out.
    numbers: the unrounded numbers by name. note: what the text leaves out, plain words. exact: False where the text
    only states the result (no breakdown for this estimator).
    """

    estimator: str
    title: str
    symbols: str
    text: str
    result: float
    numbers: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    exact: bool = True

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "numbers": dict(self.numbers)}


@dataclass(frozen=True, eq=False)
class Case:
    """One step, and what its formula is made from. credit: float64[n_steps] of this estimator, path order."""

    graph: TrajectoryGraph
    values: Values
    settings: Settings
    name: str
    options: Mapping[str, Any]
    credit: FloatArray
    position: int

    @property
    def row(self) -> int:
        return int(self.graph.batch.step_rollout[self.position])

    @property
    def known_here(self) -> IntArray:
        """Positions of the steps of known outcome that leave the same node."""
        at = steps_at(self.graph, int(self.graph.src[self.position]))
        return at[self.graph.known[at]]

    @property
    def known_rows(self) -> IntArray:
        """Rollouts of known outcome of the same group."""
        batch = self.graph.batch
        return np.flatnonzero((batch.group == batch.group[self.row]) & batch.known)


Part = tuple[str, Callable[[int], str], Callable[[int], float], dict[str, float], str]
"""symbols, left side of the text, the left side worked out from numbers rounded to so many digits, numbers, note."""


def number(x: float, digits: int = 2) -> str:
    """A number for a formula: whole numbers bare, a real minus sign, no negative zero."""
    text = f"{abs(x):.0f}" if abs(x - round(x)) <= SIGN_TOLERANCE else f"{abs(x):.{digits}f}"
    return f"{MINUS}{text}" if x < 0 and float(text) != 0 else text


def result_digits(x: float) -> int:
    """Digits behind the point that show a result: two, and more where it is small and would look like zero."""
    size = abs(x)
    if not SIGN_TOLERANCE < size < 0.1:
        return FEWEST
    return min(MOST, FEWEST - 1 - math.floor(math.log10(size)))


def signed(x: float, digits: int | None = None) -> str:
    """A result with its sign, "+0.31"; zero is "0"; NaN is a dash."""
    if math.isnan(x):
        return "–"
    if abs(x) <= SIGN_TOLERANCE:
        return "0"
    text = f"{abs(x):.{result_digits(x) if digits is None else digits}f}"
    return f"{MINUS if x < 0 else '+'}{text}"


def bracketed(x: float, digits: int) -> str:
    """A number behind an operator: negative ones in brackets."""
    text = number(x, digits)
    return f"({text})" if text.startswith(MINUS) else text


def formula(case: Case) -> Formula:
    """The formula of one step's credit; the bare result where there is none for this estimator (or it would not agree)."""
    result = float(case.credit[case.position])
    title = estimators()[case.name].title
    if math.isnan(result):
        why_not = "its credit is undefined here"
        if not case.graph.known[case.position]:
            why_not = "the rollout's outcome is unknown, so its steps have no credit"
        return Formula(case.name, title, "", "–", result, note=why_not, exact=False)
    make = PARTS.get(case.name)
    if make is not None:
        symbols, left, worked_out, numbers, note = make(case)
        if abs(worked_out(15) - result) <= AGREES * max(1.0, abs(result)):
            text = _fitting(result, left, worked_out)
            return Formula(case.name, title, symbols, text, result, numbers, note)
    meaning = estimators()[case.name].meaning
    return Formula(case.name, title, "", f"{title}: {signed(result)}", result, note=meaning, exact=False)


def _fitting(result: float, left: Callable[[int], str], worked_out: Callable[[int], float]) -> str:
    """Text with the fewest digits on the left whose printed numbers give the printed result; "≈" where four do not."""
    shown = result_digits(result)
    near = 0.5 * 10.0**-shown
    fits = (d for d in range(FEWEST, ENOUGH + 1) if abs(round(worked_out(d), shown) - round(result, shown)) < near)
    digits = next(fits, None)
    if digits is None:
        return f"{left(max(FEWEST + 1, shown))} ≈ {signed(result, shown)}"
    return f"{left(digits)} = {signed(result, shown)}"


def _td(case: Case) -> Part:
    if case.options["per"] == "action":
        return _per_action(case)
    graph, values, p = case.graph, case.values, case.position
    dense = values.rewards == "dense"
    r = float(graph.batch.reward[p]) if dense else 0.0
    after, before = float(values.v[graph.dst[p]]), float(values.v[graph.src[p]])
    numbers = {"gamma": values.gamma, "value_after": after, "value_before": before, **({"reward": r} if dense else {})}

    def left(d: int) -> str:
        gain = f"{values.gamma:g} {TIMES} {bracketed(after, d)} {MINUS} {bracketed(before, d)}"
        return f"{number(r, d)} + {gain}" if dense else gain

    def worked_out(d: int) -> float:
        return round(r, d) + values.gamma * round(after, d) - round(before, d)

    return f"{'r + ' if dense else ''}γ V(s′) {MINUS} V(s)", left, worked_out, numbers, ""


def _per_action(case: Case) -> Part:
    graph, values = case.graph, case.values
    at = case.known_here
    at = at[graph.pair[at] == graph.pair[case.position]]
    before = float(values.v[graph.src[case.position]])
    q = float(residuals(graph, values)[at].mean()) + before
    dense = "r + " if values.rewards == "dense" else ""
    note = f"Q(s, a): mean of {dense}γ V(s′) over the {at.size} time{'s' if at.size > 1 else ''} this was done here"
    numbers = {"mean_after": q, "value_before": before, "times": float(at.size)}
    return (
        f"Q(s, a) {MINUS} V(s)",
        lambda d: f"{number(q, d)} {MINUS} {bracketed(before, d)}",
        lambda d: round(q, d) - round(before, d),
        numbers,
        note,
    )


def _path(case: Case) -> Part:
    graph, values, p = case.graph, case.values, case.position
    if case.options.get("reach", "path") != "path":
        return _later(case)
    end = int(graph.batch.offsets[case.row + 1])
    td = residuals(graph, values)[p:end]
    discount = values.gamma * case.options["lam"]
    weight = discount ** np.arange(td.size)
    shown, rest = min(TERMS, td.size), float(weight[TERMS:] @ td[TERMS:])
    total = float(weight @ td)
    numbers = {"discount": discount, **{f"residual_{k}": float(td[k]) for k in range(shown)}, "rest": rest}
    note = f"{td.size - shown} later steps together" if td.size > shown else ""
    instances = case.known_here
    instances = instances[graph.pair[instances] == graph.pair[p]]
    averaged = case.options["per"] == "action" and instances.size > 1
    if averaged:
        note = f"this time {signed(total)}; averaged over the {instances.size} times this was done here"
        mean = float(case.credit[p])
        return (
            "mean of Σ (γ λ)^k A(t+k) over this action here",
            lambda d: f"mean of {instances.size}",
            lambda d: mean,
            {**numbers, "times": float(instances.size)},
            note,
        )

    def left(d: int) -> str:
        terms = [number(td[0], d)]
        terms += [f"{weight[k]:.{d}f} {TIMES} {bracketed(td[k], d)}" for k in range(1, shown)]
        return " + ".join([*terms, *([bracketed(rest, d)] if td.size > shown else [])])

    def worked_out(d: int) -> float:
        first = sum(round(float(weight[k]), d) * round(float(td[k]), d) for k in range(shown))
        return first + round(rest, d)

    return "A(t) + γ λ A(t+1) + (γ λ)² A(t+2) + …", left, worked_out, numbers, note


def _later(case: Case) -> Part:
    """Graph GAE with another reach: this step's residual and what its later edges add."""
    if case.options["per"] == "action":
        mean = float(case.credit[case.position])
        return "mean over this action here", lambda d: "mean", lambda d: mean, {}, ""
    td = float(residuals(case.graph, case.values)[case.position])
    later = float(case.credit[case.position]) - td
    return (
        "A(t) + Σ (γ λ)^k Ā(k)",
        lambda d: f"{number(td, d)} + {bracketed(later, d)}",
        lambda d: round(td, d) + round(later, d),
        {"residual": td, "later": later},
        f"the second number is what later edges add (reach {case.options['reach']})",
    )


def normalised(case: Case, plain: FloatArray) -> Formula:
    """How a credit normalised per moment (Eq. 11) comes from the un-normalised credits of the steps that leave it."""
    result, x = float(case.credit[case.position]), plain[case.known_here]
    own, title, mode = float(plain[case.position]), estimators()[case.name].title, case.options["normalise"]
    eps, n = float(case.options["eps"]), int(x.size)
    made: tuple[str, Callable[[int], str], Callable[[int], float], dict[str, float], str] | None = None
    if n > 1 and mode != "none" and not math.isnan(result):
        made = _standard(own, x, mode, eps, case.options["ddof"], f"the {n} steps that leave this moment")
    elif n == 1 and mode == "mean_std" and not math.isnan(result):
        zero = abs(own) <= SIGN_TOLERANCE
        numbers = {"credit": own, "eps": eps}
        made = (
            "A / (|A| + eps)",
            lambda d: f"{number(own, d)} / {_with_eps(abs(own), eps, d)}",
            lambda d: 0.0 if zero else round(own, d) / (round(abs(own), d) + (eps or 1e-15)),
            numbers,
            "the only step that leaves this moment: only its sign is left",
        )
    if made is None or abs(made[2](15) - result) > AGREES * max(1.0, abs(result)):
        return Formula(case.name, title, "", signed(result), result, note="as before normalising", exact=False)
    return Formula(case.name, title, made[0], _fitting(result, made[1], made[2]), result, made[3], made[4])


def _with_eps(x: float, eps: float, digits: int) -> str:
    return f"({number(x, digits)} + {eps:g})" if eps > UNSEEN * x else number(x, digits)


def _flat(x: FloatArray) -> bool:
    """The range rule of method.md sec. 4: equal up to float residue."""
    return float(np.ptp(x)) <= RANGE_ABSOLUTE + RANGE_RELATIVE * float(np.abs(x).max())


def _standard(x: float, among: FloatArray, mode: str, eps: float, ddof: int, of: str) -> Part:
    """(x - mean) / (std + eps), or x - mean, with the range rule."""
    if _flat(among):
        same = float(among[0])
        return "0", lambda d: f"{number(x, d)} {MINUS} {bracketed(same, d)}", lambda d: 0.0, {"x": x}, f"equal for {of}"
    mean, std = float(among.mean()), float(among.std(ddof=ddof))
    top = f"x {MINUS} mean"
    numbers = {"x": x, "mean": mean, "std": std, "eps": eps}
    if mode == "mean":
        difference = lambda d: round(x, d) - round(mean, d)  # noqa: E731
        return top, lambda d: f"{number(x, d)} {MINUS} {bracketed(mean, d)}", difference, numbers, of
    return (
        f"({top}) / (std + eps)",
        lambda d: f"({number(x, d)} {MINUS} {bracketed(mean, d)}) / {_with_eps(std, eps, d)}",
        lambda d: (round(x, d) - round(mean, d)) / (round(std, d) + eps),
        numbers,
        f"mean and standard deviation over {of}",
    )


def _grpo(case: Case) -> Part:
    batch, rows = case.graph.batch, case.known_rows
    outcome = float(batch.outcome[case.row])
    if rows.size == 1:
        alone = outcome if case.options["singleton"] == "raw" else 0.0
        return "0", lambda d: "one rollout", lambda d: alone, {"outcome": outcome}, "no other rollout to compare with"
    if case.options["statistics"] == "steps":
        among = np.repeat(batch.outcome[rows], batch.lengths[rows])
        of = f"the {among.size} steps of the task's {rows.size} rollouts"
    else:
        among, of = batch.outcome[rows], f"the outcomes of the task's {rows.size} rollouts"
    made = _standard(outcome, among, "mean_std", case.options["eps"], case.options["ddof"], of)
    return made[0].replace("x", "R"), *made[1:]


def _dr_grpo(case: Case) -> Part:
    among = case.graph.batch.outcome[case.known_rows]
    of = f"mean outcome of the task's {among.size} rollouts"
    made = _standard(float(case.graph.batch.outcome[case.row]), among, "mean", 0.0, 0, of)
    return made[0].replace("x", "R"), *made[1:]


def _rloo(case: Case) -> Part:
    batch, rows = case.graph.batch, case.known_rows
    outcome, others = float(batch.outcome[case.row]), batch.outcome[rows[rows != case.row]]
    if not others.size:
        return _grpo(case)
    mean = float(others.mean())
    return (
        f"R {MINUS} mean of the others",
        lambda d: f"{number(outcome, d)} {MINUS} {bracketed(mean, d)}",
        lambda d: round(outcome, d) - round(mean, d),
        {"outcome": outcome, "mean_of_others": mean},
        f"mean outcome of the task's {others.size} other rollouts",
    )


def _maxrl(case: Case) -> Part:
    batch = case.graph.batch
    own, rate = float(batch.success[case.row]), float(np.nanmean(batch.success[case.known_rows]))
    if rate == 0:
        return "0", lambda d: "no success", lambda d: 0.0, {}, "no rollout of this task succeeded"
    return (
        f"(s {MINUS} p) / p",
        lambda d: f"({number(own, d)} {MINUS} {number(rate, d)}) / {number(rate, d)}",
        lambda d: (round(own, d) - round(rate, d)) / max(round(rate, d), 10.0**-d),
        {"success": own, "rate": rate},
        f"share of successes among the task's {case.known_rows.size} rollouts",
    )


def _gigpo(case: Case) -> Part:
    batch, here = case.graph.batch, case.known_here
    episode = _grpo(case)[2](15)
    gamma, own = case.options["gamma"], int(np.searchsorted(here, case.position))
    if case.settings.rewards == "dense":
        ends = batch.offsets[batch.step_rollout[here] + 1]
        g = np.array([_discounted(batch.reward[p:end], gamma) for p, end in zip(here, ends, strict=True)])
    else:
        g = gamma ** batch.remaining[here].astype(np.float64) * batch.outcome[batch.step_rollout[here]]
    scale = case.options["eps"] + (math.inf if _flat(g) else float(g.std(ddof=case.options["ddof"])))
    step = float((g[own] - g.mean()) / scale)
    omega = float(case.options["omega"])
    return (
        "A(rollout) + ω A(step)",
        lambda d: f"{number(episode, d)} + {omega:g} {TIMES} {bracketed(step, d)}",
        lambda d: round(episode, d) + omega * round(step, d),
        {"episode": episode, "omega": omega, "step": step, "return": float(g[own]), "mean_return": float(g.mean())},
        f"GRPO's credit, and the return from here ({g[own]:.2f}) against its mean over {here.size} tries ({g.mean():.2f})",
    )


def _discounted(rewards: FloatArray, gamma: float) -> float:
    return float(gamma ** np.arange(rewards.size) @ rewards)


PARTS: dict[str, Callable[[Case], Part]] = {
    "graft_td": _td,
    "path_gae": _path,
    "graft": _path,
    "graft_eq10": _later,
    "grpo": _grpo,
    "dr_grpo": _dr_grpo,
    "rloo": _rloo,
    "maxrl": _maxrl,
    "gigpo": _gigpo,
}
