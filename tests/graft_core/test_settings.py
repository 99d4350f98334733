"""Settings: their words, their defaults, and what they refuse."""

from __future__ import annotations

import urllib.parse

import pytest

from graft_core.errors import UsageError
from graft_core.settings import LOOK, Settings, train


def test_words_round_trip() -> None:
    settings = LOOK.with_options(
        rules=("exact", "history:2"), sinks="merge", prior=2.0, estimator="graft", lam=0.25, ddof=0, reach="distinct"
    )
    words = settings.to_words()
    assert words["rules"] == "exact+history:2"
    assert words["lam"] == "0.25"
    assert Settings.from_words(words) == settings
    assert LOOK.to_words() == {}


@pytest.mark.parametrize(
    "rules",
    [
        (r"masked:/\d+ (left|right)/", "history:2"),
        (r"masked:/a\+\+b+/", "masked:/[+]/"),
        ("carry_noop:1 + 1 = 2", "visited:C++*", "actions:1"),
        ("carry_noop:ends with +", "visited:+begins with +"),
        ("visited:100 % & more; a=b?#c",),
    ],
)
def test_rules_with_any_parameter_round_trip(rules: tuple[str, ...]) -> None:
    settings = Settings(rules=rules)
    assert Settings.from_words(settings.to_words()) == settings
    address = urllib.parse.urlencode(settings.to_words())
    assert Settings.from_words(dict(urllib.parse.parse_qsl(address))) == settings


def test_a_plus_inside_a_rule_is_doubled() -> None:
    assert Settings(rules=("masked:/a+/", "prefix")).to_words()["rules"] == "masked:/a++/+prefix"


def test_an_option_reaches_only_the_estimators_that_have_it() -> None:
    settings = LOOK.with_options(lam=0.5, gamma=0.9)
    assert settings.options_for("grpo") == {}
    assert settings.options_for("path_gae") == {"lam": 0.5, "gamma": 0.9}
    assert LOOK.resolved("gigpo")["gamma"] == 0.95
    assert settings.resolved("gigpo")["gamma"] == 0.9


def test_none_takes_an_option_back() -> None:
    assert LOOK.with_options(lam=0.5).with_options(lam=None) == LOOK


def test_presets() -> None:
    assert (LOOK.estimator, LOOK.baseline) == ("graft_td", "grpo")
    resolved = train().resolved("graft")
    assert (resolved["reach"], resolved["lam"], resolved["normalise"]) == ("path", 0.95, "mean_std")


@pytest.mark.parametrize(
    "words",
    [{"lam": "2"}, {"sinks": "drain"}, {"a": "b"}, {"rules": "nope"}, {"estimator": "nope"}, {"actions": "nope"}, {"eps": "x"}],
)
def test_unknown_words_are_refused(words: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        Settings.from_words(words)
