"""Widgets for `Settings`, built from the registries and bound to the address."""

from __future__ import annotations

from typing import Any

import streamlit as st

from graft_app import urlstate
from graft_core.credit import estimators
from graft_core.options import Option
from graft_core.registry import pick
from graft_core.settings import DATA_OPTIONS, LOOK, Settings, credit_options
from graft_core.states.compose import action_rules, parse, rules

HISTORY = ("history:1", "history:2", "history:3")


def _rules_of(word: str) -> tuple[str, ...]:
    specs = tuple(word.split("+"))
    parse(specs)
    return specs


def current() -> Settings:
    """The settings in the address; what is absent has its default."""
    fields: dict[str, Any] = {
        "estimator": urlstate.read("a", lambda w: pick(estimators(), w, "estimator").name, LOOK.estimator),
        "baseline": urlstate.read("b", lambda w: pick(estimators(), w, "estimator").name, LOOK.baseline),
        "rules": urlstate.read("rules", _rules_of, LOOK.rules),
        "actions": urlstate.read("actions", lambda w: pick(action_rules(), w, "action rule").name, LOOK.actions),
    }
    for name, option in DATA_OPTIONS.items():
        if name != "actions":
            fields[name] = urlstate.read(name, option.check, getattr(LOOK, name))
    given = {name: urlstate.read(name, option.check, None) for name, option in credit_options().items()}
    return Settings(**fields).with_options(**{name: value for name, value in given.items() if value is not None})


def _titles() -> list[str]:
    """Estimators for a menu: the first ones, and the others once "all" was asked for."""
    everything = urlstate.read("all", lambda w: w == "1", False)
    return [name for name, e in estimators().items() if e.menu or everything]


def estimator_menu(label: str, parameter: str, value: str, default: str, hint: str) -> None:
    """Choice of one estimator; its meaning stands in the tooltip."""
    names = _titles()
    names = names if value in names else [*names, value]
    known = estimators()
    meanings = "\n".join(f"- **{known[n].title}**: {known[n].meaning} ({known[n].source})" for n in names)
    st.selectbox(
        label, names, format_func=lambda n: known[n].title, help=f"{hint}\n\n{meanings}",
        **urlstate.bind(parameter, value, default),
    )


def option_widget(option: Option, value: Any, default: Any) -> None:
    """One widget for an option, by its kind; `default` None means each estimator's own."""
    bound = urlstate.bind(option.name, value, default, _word)
    text = f"{option.meaning} ({option.name})"
    own = "each estimator's own" if default is None else str(default)
    if option.kind == "word":
        st.selectbox(option.label, option.choices, index=None, placeholder=own, help=text, **bound)
    else:
        low = None if option.low == float("-inf") else option.low
        high = None if option.high == float("inf") else option.high
        if option.kind == "int":
            low, high = (None if x is None else int(x) for x in (low, high))
        st.number_input(
            option.label, min_value=low, max_value=high, value=None, placeholder=own, help=text,
            step=1 if option.kind == "int" else None, format=None if option.kind == "int" else "%g", **bound,
        )


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def lambda_slider(settings: Settings) -> None:
    """Lambda, where A or B has it: from trusting the map to trusting the outcome."""
    owners = [estimators()[n].option("lam") for n in (settings.estimator, settings.baseline)]
    option = next((o for o in owners if o), None)
    if option is None:
        return
    value = float(dict(settings.given).get("lam", option.default))
    st.slider(
        "trust the map … trust the outcome (λ)", 0.0, 1.0, step=0.05, help=option.meaning,
        **urlstate.bind("lam", value, option.default, _word),
    )


def rule_menu(settings: Settings) -> None:
    """When two moments are the same: the ready rules, and whatever composition the address names."""
    known = rules()
    ready = [n for n, r in known.items() if not r.parameter] + list(HISTORY)
    chosen = "+".join(settings.rules)
    words = ready if chosen in ready else [*ready, chosen]

    def label(word: str) -> str:
        if word in known:
            return known[word].meaning
        if word in HISTORY:
            k = word.partition(":")[2]
            return f"this and the last {'observation is' if k == '1' else k + ' observations are'} identical"
        return word

    st.selectbox(
        "Two moments are the same when", words, format_func=label,
        help="The merge rule decides every number on the graph. "
        + "; ".join(f"{r.name}: {r.meaning}" for r in known.values()),
        **urlstate.bind("rules", chosen, "+".join(LOOK.rules)),
    )


def changed_options(settings: Settings) -> list[str]:
    """Names of the expert options that are not at their defaults."""
    names = [n for n in DATA_OPTIONS if getattr(settings, n) != getattr(LOOK, n)]
    return names + [n for n, _ in settings.given if n != "lam"]


def expert_drawer(settings: Settings) -> None:
    """Everything else, in a drawer with a badge when something there is not the default."""
    changed = changed_options(settings)
    label = f"Expert · {len(changed)} changed" if changed else "Expert"
    with st.popover(label, icon=":material/tune:", help="sinks, solver, weighting, eps, ddof and the rest"):
        st.toggle(
            "offer all estimators", help="the menus A and B then list every estimator of the registry",
            **urlstate.bind("all", urlstate.read("all", lambda w: w == "1", False), False, lambda on: "1" if on else "0"),
        )
        left, right = st.columns(2)
        with left:
            for name, option in DATA_OPTIONS.items():
                if name == "actions":
                    st.selectbox(
                        option.label, list(action_rules()), format_func=lambda n: action_rules()[n].meaning,
                        help=option.meaning, **urlstate.bind("actions", settings.actions, LOOK.actions),
                    )
                else:
                    option_widget(option, getattr(settings, name), getattr(LOOK, name))
        with right:
            given = dict(settings.given)
            used = {o.name for n in (settings.estimator, settings.baseline) for o in estimators()[n].options}
            for name, option in credit_options().items():
                if name != "lam" and name in used:
                    option_widget(option, given.get(name), None)
        st.button("Back to the defaults", on_click=_reset, icon=":material/restart_alt:")


def _reset() -> None:
    for name in [*DATA_OPTIONS, *credit_options(), "rules", "all"]:
        urlstate.write(name, None)
