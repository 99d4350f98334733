"""What a live run is to do: the form, in the words of `graft live`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Final

import streamlit as st

from graft_app.jobs import QUICK_SECONDS
from graft_app.views.text import literal, one_line
from graft_core.credit import estimators
from graft_core.live.games import DEFAULT_TURNS, GRAPH_KEYS, TURNS
from graft_core.live.step_sizes import FACTORS, SEARCH, SEEDS

ENVIRONMENTS: Final = {
    "key-door": "Key and door, 4 × 4",
    "frozen-lake:size=4": "Frozen lake, 4 × 4",
    "frozen-lake:size=4,slippery=true": "Frozen lake, 4 × 4, slippery",
    "frozen-lake": "Frozen lake, 8 × 8",
    "cliff": "Cliff walk",
    "layered": "Random layers that re-merge",
    "household": "Household, 18 tasks",
}
TABULAR, TINY = "tabular", "tiny"
POLICIES: Final = {TABULAR: "Tabular (no torch)", TINY: "Tiny language model"}
OWN: Final = "another model"
STEP_SIZES: Final = {TABULAR: 3.0, TINY: 0.002, OWN: 0.000001}
EXACT: Final = "exact"
LIMITS: Final = {
    "group_size": (2, 256), "seeds": (1, 50), "updates": (1, 2000), "turns": (1, 1000), "epochs": (1, 20), "history": (0, 50),
    "kl": (0, 10), "clip": (0, 10),
}  # fmt: skip
DEVICES: Final = ("auto", "cpu", "cuda", "mps")
ACTING: Final = {"score": "scores actions", "generate": "writes freely"}
RATIOS: Final = {"sequence": "per step", "token": "per token"}
CLIP: Final = 0.2
EPOCHS: Final = {TABULAR: 1, TINY: 2, OWN: 2}
KEY_WORDS: Final = {EXACT: "the whole observation", "no-key": "all but the key (hidden)", "row": "the row alone"}
FIRST_ESTIMATORS: Final = ("graft_td", "path_gae", "grpo")
NEEDED: Final = ("torch", "transformers", "tokenizers", "safetensors")
LM_ONLY: Final = ("device", "acting", "history", "ratio")


@dataclass(frozen=True)
class Order:
    """A run that was asked for. step_size, epochs None: the policy's own default. search: each estimator's best step size."""

    env: str = "key-door"
    policy: str = TABULAR
    estimators: tuple[str, ...] = FIRST_ESTIMATORS
    graph_key: str = EXACT
    group_size: int = 16
    seeds: int = 3
    updates: int = 20
    turns: int = TURNS["key-door"]
    step_size: float | None = None
    search: bool = False
    epochs: int | None = None
    clip: float = CLIP
    kl: float = 0.0
    device: str = "auto"
    acting: str = "score"
    history: int = 0
    ratio: str = "sequence"

    @property
    def words(self) -> list[str]:
        """The words of the command line."""
        numbers = {"group-size": self.group_size, "seeds": self.seeds, "updates": self.updates, "turns": self.turns}
        words = ["--env", self.env, "--policy", self.policy]
        words += [word for name in self.estimators for word in ("--estimator", name)]
        words += [] if self.graph_key == EXACT else ["--graph-key", self.graph_key]
        words += [word for name, value in numbers.items() for word in (f"--{name}", str(value))]
        plain = Order()
        more: dict[str, Any] = {
            "step-size": None if self.search else self.step_size, "step-sizes": SEARCH if self.search else None,
            "epochs": self.epochs, "ratio-clip": None if self.clip == CLIP else self.clip, "kl": self.kl or None,
            **{name: None if getattr(self, name) == getattr(plain, name) else getattr(self, name) for name in LM_ONLY},
        }  # fmt: skip
        return [*words, *(word for name, value in more.items() if value is not None for word in (f"--{name}", str(value)))]

    @property
    def seconds(self) -> float:
        """How long a tabular run of this size takes at the most, roughly, on one core."""
        seeds = self.seeds + (len(FACTORS) * SEEDS if self.search else 0)
        updates = len(self.estimators) * seeds * self.updates * (self.epochs or 1)
        return updates * (0.008 + 1e-5 * self.group_size * self.turns)

    @property
    def quick(self) -> bool:
        return self.policy == TABULAR and self.env != "household" and self.seconds <= QUICK_SECONDS


CASES: Final = {
    "Clean keys": (
        Order(seeds=10, updates=60, step_size=3.0),
        "Moments are told apart by the whole observation: every credit learns to fetch the key and open the door.",
    ),
    "Hidden key": (
        Order(seeds=10, updates=60, step_size=3.0, graph_key="no-key"),
        "The policy sees the key, the graph does not: credit that trusts the map alone (graph TD) fails, credit that also "
        "trusts the outcome (path GAE, GRPO) learns.",
    ),
}
"""The two standing cases: what each credit makes of the same start when the graph is right, and when it hides a state."""


def key_words(env: str, rules: Sequence[str]) -> str:
    """How a run's graph tells moments apart, in the form's words where it has some."""
    named = {**GRAPH_KEYS.get(env.partition(":")[0], {}), EXACT: (EXACT,)}
    word = next((KEY_WORDS[key] for key, own in named.items() if own == tuple(rules) and key in KEY_WORDS), None)
    return word or literal(" + ".join(rules), 80)


def torch_there() -> bool:
    """Whether a language model can be run here."""
    return all(find_spec(name) is not None for name in NEEDED)


def usual_turns(env: str) -> int:
    """The turn limit where none is chosen."""
    return TURNS.get(env.partition(":")[0], DEFAULT_TURNS)


def _kept(key: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "persist_state": "session", **more}


def form(open_to_others: bool) -> Order:
    """The choices. open_to_others: other machines reach the app, so nothing of theirs is imported or downloaded."""
    env = st.selectbox(
        "Environment", list(ENVIRONMENTS), format_func=lambda e: ENVIRONMENTS.get(e, one_line(e, 60)),
        accept_new_options=not open_to_others,
        help="Options stand behind a colon: frozen-lake:size=6,slippery=true. toy-text:Taxi-v3 takes one of gymnasium's, "
        "module:Class your own, as in `graft live --env`.",
        **_kept("live_env"),
    )  # fmt: skip
    env = str(env or "key-door")
    policy, kind = _policy(open_to_others)
    known = estimators()
    names = st.multiselect(
        "Estimators", [n for n, e in known.items() if "value" not in e.needs], default=list(FIRST_ESTIMATORS),
        format_func=lambda n: known[n].title, max_selections=6, help="Each trains from the same start with the same seeds.",
        **_kept("live_estimators"),
    )  # fmt: skip
    keys = [EXACT, *GRAPH_KEYS.get(env.partition(":")[0], {}), "history:1"]
    graph_key = st.selectbox(
        "The graph tells moments apart by", keys, format_func=lambda k: KEY_WORDS.get(k, "this and the last observation"),
        help="Only the graph: the policy sees everything whatever is hidden here.", **_kept(f"live_key_{keys[1]}"),
    )  # fmt: skip
    left, right = st.columns(2)
    # limits are checked below: beyond its own a widget keeps the last number that was allowed, and a run would start with that
    size = left.number_input("Group size", None, None, 16, help="rollouts of one update", **_kept("live_size"))
    seeds = right.number_input("Seeds", None, None, 3, help="intervals are over seeds", **_kept("live_seeds"))
    updates = left.number_input("Updates", None, None, 20, **_kept("live_updates"))
    turns = right.number_input(
        "Turns", None, None, usual_turns(env), help="limit of a rollout", **_kept(f"live_turns_{env}")
    )
    search = bool(st.session_state.get("live_search", False))
    step_size = st.number_input(
        "Step size", 0.0, 1000.0, STEP_SIZES[kind], format="%g", step=None, disabled=search,
        help="of the update; one for all estimators, so none is tuned more than another", **_kept(f"live_step_{kind}"),
    )  # fmt: skip
    more = _expert(kind, search)
    plain = Order(env, policy, tuple(names), str(graph_key), int(size), int(seeds), int(updates), int(turns), step_size)
    return replace(plain, **more)


def _expert(kind: str, search: bool) -> dict[str, Any]:
    """What few people change, folded away."""
    with st.expander("Expert", icon=":material/tune:"):
        st.toggle(
            "Find each estimator's best step size first", **_kept("live_search"),
            help=f"Tries {len(FACTORS)} step sizes around the usual one with {SEEDS} seeds of their own, then runs each "
            "estimator with its best on the seeds above.",
        )  # fmt: skip
        left, right = st.columns(2)
        epochs = left.number_input(
            "Passes", None, None, EPOCHS[kind], help="over one batch of rollouts", **_kept(f"live_epochs_{kind}")
        )
        clip = right.number_input(
            "Clip", 0.0, 10.0, CLIP, format="%g", step=None, **_kept("live_clip"),
            help="How far the ratio of new to old probability may go before a step counts no more; 0 = no limit.",
        )  # fmt: skip
        kl = left.number_input(
            "KL weight", 0.0, 10.0, 0.0, format="%g", step=None, **_kept("live_kl"),
            help="How strongly the policy is held near its start.",
        )  # fmt: skip
        found = {"search": search, "epochs": None if epochs == EPOCHS[kind] else int(epochs), "clip": clip, "kl": kl}
        if kind == TABULAR:
            return found
        history = right.number_input(
            "History", None, None, 0, **_kept("live_history"),
            help="Turns of the past that the model reads before the present observation.",
        )  # fmt: skip
        acting = st.selectbox(
            "The model", list(ACTING), format_func=lambda a: ACTING[a], **_kept("live_acting"),
            help="It scores the possible actions and one is drawn; or it writes what it likes and that is parsed: what is no "
            "possible action counts as invalid.",
        )  # fmt: skip
        device = left.selectbox(
            "Device", DEVICES, **_kept("live_device"), help="cuda: NVIDIA; mps: Apple; auto: the best of them that there is."
        )
        ratio = right.selectbox(
            "Ratio", list(RATIOS), format_func=lambda r: RATIOS[r], **_kept("live_ratio"),
            help="What is clipped: one ratio for the whole action, or one for each of its tokens.",
        )  # fmt: skip
    return {**found, "history": int(history), "acting": str(acting), "device": str(device), "ratio": str(ratio)}


def _policy(open_to_others: bool) -> tuple[str, str]:
    """The policy and its kind."""
    if not torch_there():
        st.selectbox("Policy", [TABULAR], format_func=lambda p: POLICIES[p], **_kept("live_policy_bare"))
        st.caption("A language model needs torch and transformers: stop the app and start it with `make live`.")
        return TABULAR, TABULAR
    kinds = [TABULAR, TINY] if open_to_others else [TABULAR, TINY, OWN]
    kind = str(st.selectbox("Policy", kinds, format_func=lambda p: POLICIES.get(p, "Another model …"), **_kept("live_policy")))
    if kind != OWN:
        return kind, kind
    path = st.text_input(
        "Model", placeholder="a folder, or a Hugging Face id", max_chars=500, **_kept("live_model"),
        help="A causal language model; code that comes with a model is never run. An id may be downloaded by transformers.",
    )  # fmt: skip
    return path.strip(), OWN


def trouble(order: Order, open_to_others: bool = False) -> str:
    """Why the order cannot be queued, empty where it can. A browser may send what its form does not offer."""
    if not order.estimators:
        return "Choose at least one estimator."
    if not order.policy:
        return "Name a model: a folder or a Hugging Face id."
    if order.policy.startswith("-") or order.env.startswith("-"):
        return "A name does not begin with a dash."
    if open_to_others and (order.env not in ENVIRONMENTS or order.policy not in POLICIES):
        return "Other machines reach this app, so it runs only the environments and policies of the menus."
    if order.acting == "generate" and order.kl:
        return "While the model writes freely there is no KL: set its weight to 0."
    for name, allowed in (("device", DEVICES), ("acting", ACTING), ("ratio", RATIOS)):
        if getattr(order, name) not in allowed:
            return f"{name.capitalize()} must be one of {', '.join(allowed)}."
    if order.step_size is not None and order.step_size <= 0:
        return "The step size must be above 0: with 0 nothing is learned."
    for name, (low, high) in LIMITS.items():
        value = getattr(order, name)
        if value is not None and not low <= value <= high:
            return f"{name.replace('_', ' ').capitalize()} must be from {low} to {high}."
    return ""


def order_words(words: Sequence[str]) -> str:
    """The command a person would type for the same run."""
    import shlex

    return "graft " + shlex.join(words)
