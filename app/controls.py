"""Widgets for `Settings`, built from the registries and bound to the address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from graft_app import urlstate
from graft_app.batch import entries
from graft_core.credit import estimators
from graft_core.errors import UsageError
from graft_core.options import Option
from graft_core.registry import pick
from graft_core.settings import DATA_OPTIONS, LOOK, Settings, credit_options
from graft_core.states.compose import action_rules, join_rules, parse, rules, split_rules

RIGHT = "c_"
"""Begins the words of the right-hand settings of a comparison."""

READY = (
    "exact", "normalised", "carry_noop", "guard", "history:1", "history:2", "history:3", "actions:1", "actions:2", "action_set",
    "prefix",
)
"""Rules on the menu; the States page takes any composition."""


def rules_of(word: str) -> tuple[str, ...]:
    """Rules from their word in the address. What a foreign link could misuse is refused: files and models elsewhere."""
    specs = split_rules(word)
    for spec in specs:
        name, _, parameter = spec.partition(":")
        if name == "edits" and not any(Path(parameter).resolve().is_relative_to(root) for root in roots()):
            raise UsageError(f"rule {spec!r}: edit files are read from beside the given paths only")
        if name == "similarity" and "@" in parameter and not Path(parameter.partition("@")[2]).is_dir():
            raise UsageError(f"rule {spec!r}: the app takes models from a folder on this machine only")
        if name == "custom":
            raise UsageError(f"rule {spec!r}: a function of your own is for the library, not for the app")
    parse(specs)
    return specs


def roots() -> list[Path]:
    """Folders of the files on the menu, in its order."""
    paths = [Path(entry.path).resolve() for entry in entries()]
    return [path if path.is_dir() else path.parent for path in paths]


def rule_words(spec: str) -> str:
    """A rule in plain words."""
    name, _, parameter = spec.partition(":")
    if name in ("history", "actions") and parameter:
        what = {"history": "observation", "actions": "action"}[name]
        return f"text and last {what if parameter == '1' else f'{parameter} {what}s'} are identical"
    meaning = rules()[name].meaning if name in rules() else spec
    return f"{meaning} ({parameter})" if parameter else meaning


def beside(left: Settings) -> Settings:
    """The right-hand settings of a comparison: words that begin with c_; what is absent is as on the left, but for the
    estimator, which is then credit B.
    """
    fields: dict[str, Any] = {
        "estimator": urlstate.read(f"{RIGHT}a", lambda w: pick(estimators(), w, "estimator").name, left.baseline),
        "rules": urlstate.read(f"{RIGHT}rules", rules_of, left.rules),
        "actions": urlstate.read(f"{RIGHT}actions", lambda w: pick(action_rules(), w, "action rule").name, left.actions),
    }
    for name, option in DATA_OPTIONS.items():
        if name != "actions":
            fields[name] = urlstate.read(RIGHT + name, option.check, getattr(left, name))
    given = {name: urlstate.read(RIGHT + name, option.check, None) for name, option in credit_options().items()}
    return left.with_options(**fields, **{name: value for name, value in given.items() if value is not None})


def current() -> Settings:
    """The settings in the address; what is absent has its default."""
    fields: dict[str, Any] = {
        "estimator": urlstate.read("a", lambda w: pick(estimators(), w, "estimator").name, LOOK.estimator),
        "baseline": urlstate.read("b", lambda w: pick(estimators(), w, "estimator").name, LOOK.baseline),
        "rules": urlstate.read("rules", rules_of, LOOK.rules),
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


def option_widget(option: Option, value: Any, default: Any, prefix: str = "") -> None:
    """One widget for an option, by its kind; `default` None means each estimator's own."""
    bound = urlstate.bind(prefix + option.name, value, default, _word)
    text = f"{option.meaning} ({option.name})"
    own = "each estimator's own" if default is None else str(default)
    if option.kind == "word":
        st.selectbox(option.label, option.choices, index=None, placeholder=own, help=text, **bound)
    elif option.kind == "text":
        names = [name for name, member in estimators().items() if not member.fixed]
        st.selectbox(option.label, names, index=None, placeholder=own, help=text, **bound)
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


def lambda_slider(settings: Settings, left: Settings | None = None) -> None:
    """Lambda, where A or B has it: from trusting the map to trusting the outcome. left: what a right-hand side starts from."""
    names = (settings.estimator,) if left else (settings.estimator, settings.baseline)
    option = next((o for o in (estimators()[n].option("lam") for n in names) if o), None)
    if option is None:
        return
    value = float(dict(settings.given).get("lam", option.default))
    default = dict(left.given).get("lam", option.default) if left else option.default
    st.slider(
        "trust the map … trust the outcome (λ)", 0.0, 1.0, step=0.05, help=option.meaning,
        **urlstate.bind(f"{RIGHT if left else ''}lam", value, default, _word),
    )


def rule_menu(settings: Settings, left: Settings | None = None) -> None:
    """When two moments are the same: the ready rules, and whatever composition the address names."""
    chosen = join_rules(settings.rules)
    words = list(READY) if chosen in READY else [*READY, chosen]
    st.selectbox(
        "Two moments are the same when", words, format_func=lambda word: " + ".join(map(rule_words, split_rules(word))),
        help="The merge rule decides every number on the graph. The States page compares rules and takes any composition.",
        **urlstate.bind(f"{RIGHT if left else ''}rules", chosen, join_rules((left or LOOK).rules)),
    )


def credit_row(settings: Settings, of_a: str, of_b: str, drawer: bool = True) -> None:
    """Below a page: credit A and B, with what each is for, and when two moments are the same; the expert drawer at the end."""
    places = st.columns([1, 1, 1.4, 0.8] if drawer else [1, 1, 1.4], vertical_alignment="bottom")
    with places[0]:
        estimator_menu("Credit A", "a", settings.estimator, LOOK.estimator, of_a)
    with places[1]:
        estimator_menu("Compare with B", "b", settings.baseline, LOOK.baseline, of_b)
    with places[2]:
        rule_menu(settings)
    if drawer:
        with places[3]:
            expert_drawer(settings)


def changed_options(settings: Settings) -> list[str]:
    """Names of the expert options that are not at their defaults."""
    names = [n for n in DATA_OPTIONS if getattr(settings, n) != getattr(LOOK, n)]
    return names + [n for n, _ in settings.given if n != "lam"]


def expert_drawer(settings: Settings) -> None:
    """Everything else, in a drawer with a badge when something there is not the default."""
    changed = changed_options(settings)
    label = f"Expert · {len(changed)} changed" if changed else "Expert"
    with _drawer(label, "expert", "sinks, solver, weighting, eps, ddof and the rest") as box:
        if not box.open:
            return
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


def _drawer(label: str, key: str, hint: str) -> Any:
    """A drawer whose widgets are made when it is opened: closed, it costs the page nothing."""
    return st.popover(label, icon=":material/tune:", help=hint, on_change="rerun", key=f"drawer_{key}")


def _reset() -> None:
    for name in [*DATA_OPTIONS, *credit_options(), "rules", "all"]:
        urlstate.write(name, None)


def right_drawer(settings: Settings, left: Settings) -> None:
    """Everything else of the right-hand side of a comparison; what is not set is as on the left."""
    known = dict(left.given)
    own = [n for n in DATA_OPTIONS if getattr(settings, n) != getattr(left, n)]
    own += [n for n, value in settings.given if n != "lam" and value != known.get(n)]
    label = f"Expert B · {len(own)} differ" if own else "Expert B"
    with _drawer(label, "right", "what is not set here is as on the left") as box:
        if not box.open:
            return
        columns = st.columns(2)
        with columns[0]:
            st.selectbox(
                "two actions are the same when", list(action_rules()), format_func=lambda n: action_rules()[n].meaning,
                **urlstate.bind(f"{RIGHT}actions", settings.actions, left.actions),
            )
            for name in [n for n in DATA_OPTIONS if n != "actions"]:
                option_widget(DATA_OPTIONS[name], getattr(settings, name), getattr(left, name), RIGHT)
        with columns[1]:
            given = dict(settings.given)
            for option in estimators()[settings.estimator].options:
                if option.name != "lam":
                    option_widget(credit_options()[option.name], given.get(option.name), known.get(option.name), RIGHT)
        st.button("As on the left", on_click=_as_left, icon=":material/restart_alt:")


def _as_left() -> None:
    for name in [*DATA_OPTIONS, *credit_options(), "rules"]:
        urlstate.write(RIGHT + name, None)
