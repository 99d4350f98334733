"""The door of the credit library: names, options, registry, and its sentences for wrong input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk

import graft_core as gc
from graft_core import credit as credit_package
from graft_core.credit import base
from graft_core.errors import NotComputableError, UsageError
from graft_core.options import GAMMA, Option

BATCH = batch_of(random_rows(4, groups=2))

ESTIMATE = sys.modules["graft_core.credit.estimate"]


@pytest.fixture
def registry() -> Iterator[None]:
    """Puts the registry back as it was."""
    gc.estimators()
    before = dict(base.REGISTERED)
    yield
    base.REGISTERED.clear()
    base.REGISTERED.update(before)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("grpoo", {}, r"unknown estimator 'grpoo' \(did you mean 'grpo'\?\); known: grpo, "),
        ("grpo", {"gamma": 0.9}, "grpo has no option 'gamma'; it has: statistics, singleton, eps, ddof"),
        ("graft_td", {"gamma": 1.5}, "gamma: 1.5 is not allowed, expected a number above 0 up to 1"),
        ("graft_td", {"gamma": 0}, "gamma: 0 is not allowed"),
        ("graft_td", {"per": "step"}, "per: 'step' is not allowed, expected one of transition, action"),
        ("path_gae", {"lam": 1.01}, "lam: 1.01 is not allowed, expected a number from 0 to 1"),
        ("path_gae", {"lam": -0.1}, "lam: -0.1 is not allowed"),
        ("path_gae", {"lam": "x"}, "lam: 'x' is not allowed"),
        ("graft", {"reach": "far"}, "reach: 'far' is not allowed, expected one of path, instances, distinct, expectation"),
        ("graft", {"normalise": "std"}, "normalise: 'std' is not allowed, expected one of none, mean, mean_std"),
        ("graft", {"eps": -1e-9}, "eps: -1e-09 is not allowed, expected a number of at least 0"),
        ("graft", {"ddof": 2}, "ddof: 2 is not allowed, expected a whole number from 0 to 1"),
        ("graft", {"ddof": 0.5}, "ddof: 0.5 is not allowed"),
        ("grpo", {"statistics": "tokens"}, "statistics: 'tokens' is not allowed, expected one of rollouts, steps"),
        ("grpo", {"singleton": "one"}, "singleton: 'one' is not allowed, expected one of zero, raw"),
        ("graft_td", {"weighting": "mean"}, "weighting: 'mean' is not allowed"),
        ("graft_td", {"rewards": "sparse"}, "rewards: 'sparse' is not allowed"),
        ("graft_td", {"sinks": "x"}, "sinks: 'x' is not allowed"),
        ("graft_td", {"rules": ["exactly"]}, r"unknown state rule 'exactly' \(did you mean 'exact'\?\)"),
        ("graft_eq10", {"reach": "path"}, "graft_eq10 fixes reach to 'instances'; 'path' is not allowed"),
        ("grpo", {"weighting": "mean"}, "weighting: 'mean' is not allowed"),
    ],
)
def test_wrong_input_is_one_sentence(name: str, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        gc.estimate(BATCH, name, **options)
    assert "\n" not in str(caught.value)


def test_options_that_contradict_the_given_values() -> None:
    graph = gc.build_graph(BATCH)
    values = gc.solve_values(graph, gamma=0.9)
    with pytest.raises(UsageError, match=r"gamma 0\.5 contradicts the given values, solved with 0\.9"):
        gc.estimate(BATCH, "graft_td", graph=graph, values=values, gamma=0.5)
    with pytest.raises(UsageError, match="weighting 'max' contradicts the given values, solved with 'visits'"):
        gc.estimate(BATCH, "graft_td", graph=graph, values=values, weighting="max")
    same = gc.estimate(BATCH, "graft_td", graph=graph, values=values, gamma=0.9, weighting="visits")
    assert np.array_equal(same, gc.estimate(BATCH, "graft_td", gamma=0.9), equal_nan=True)


def test_given_values_leave_estimators_without_values_alone() -> None:
    graph = gc.build_graph(BATCH)
    values = gc.solve_values(graph, gamma=0.9)
    for name in ("gigpo", "rtmc", "hgpo", "rewardflow", "grpo", "salt"):
        wanted = gc.estimate(BATCH, name)
        assert np.array_equal(gc.estimate(BATCH, name, graph=graph, values=values), wanted, equal_nan=True), name
    dense = gc.solve_values(graph, gamma=0.9, rewards="dense")
    found = gc.estimate(BATCH, "gigpo", graph=graph, values=dense)
    assert np.array_equal(found, gc.estimate(BATCH, "gigpo", rewards="dense"), equal_nan=True)
    half = gc.estimate(BATCH, "gigpo", gamma=0.5)
    assert np.array_equal(gc.estimate(BATCH, "gigpo", gamma=0.5, graph=graph, values=values), half, equal_nan=True)


def test_an_option_of_none_is_the_estimators_own_default() -> None:
    assert np.array_equal(gc.estimate(BATCH, "gigpo", gamma=None), gc.estimate(BATCH, "gigpo", gamma=0.95))


def test_defaults_are_those_of_the_catalogue() -> None:
    known = gc.estimators()
    defaults = {name: {o.name: o.default for o in e.options} for name, e in known.items()}
    for name, wanted in {
        "gigpo": {"gamma": 0.95, "omega": 1.0, "statistics": "rollouts", "singleton": "zero", "eps": 1e-6, "ddof": 1},
        "graft_td": {"gamma": 0.99, "per": "transition"},
        "graft": {"gamma": 0.99, "lam": 0.95, "reach": "path", "normalise": "mean_std", "per": "transition"},
        "graft_eq10": {"gamma": 0.99, "lam": 0.95, "reach": "instances", "normalise": "mean_std"},
        "path_gae": {"gamma": 0.99, "lam": 0.95, "per": "transition"},
    }.items():
        assert wanted.items() <= defaults[name].items(), name
    assert [e.name for e in known.values() if e.menu] == ["grpo", "gigpo", "graft_td", "path_gae"]
    assert list(known)[:4] == ["grpo", "gigpo", "graft_td", "path_gae"]


def test_everything_a_screen_needs_is_there() -> None:
    for name, entry in gc.estimators().items():
        assert entry.name == name
        assert entry.title and entry.meaning and "arXiv" in entry.source, name
        assert entry.uses in ("rollouts", "graph", "columns"), name
        for option in entry.options:
            assert option.meaning and option.label and option.allowed, (name, option.name)
            assert option.check(option.default) == option.default, (name, option.name)


def test_results_are_fresh_float64_in_batch_order() -> None:
    for name, entry in gc.estimators().items():
        if entry.needs:
            continue
        first = gc.estimate(BATCH, name)
        assert first.dtype == np.float64
        assert first.shape == (BATCH.n_steps,)
        first[:] = 7.0  # writing into it must not reach anything remembered
        assert (gc.estimate(BATCH, name) != 7.0).any(), name


def test_a_users_own_estimator(registry: None) -> None:
    @gc.estimator(
        "mine", title="Mine", meaning="gamma times the rank", source="arXiv 0000.00000",
        options=(GAMMA, Option("shift", 1.0, "m", "l")),
    )
    def mine(inputs: credit_package.Inputs) -> np.ndarray:
        return inputs["gamma"] * inputs.batch.rank + inputs["shift"] + 0.0 * inputs.values.v[inputs.graph.src]

    assert gc.estimators()["mine"].meaning == "gamma times the rank"
    found = gc.estimate(BATCH, "mine", gamma=0.5, shift=2.0)
    assert np.array_equal(found, BATCH.to_rows(0.5 * BATCH.rank + 2.0))
    with pytest.raises(UsageError, match="mine has no option 'lam'; it has: gamma, shift"):
        gc.estimate(BATCH, "mine", lam=0.5)
    unknown = batch_of(walk("a", "S:x", None))
    assert np.isnan(gc.estimate(unknown, "mine")).all()


def test_an_estimators_columns_are_asked_for_in_one_sentence(registry: None) -> None:
    @gc.estimator("needy", title="N", meaning="m", source="arXiv 0", needs=("logprob",), uses="rollouts")
    def needy(inputs: credit_package.Inputs) -> np.ndarray:
        return inputs.batch.step_column("logprob")

    sentence = "needy needs the step column 'logprob', which this file does not have"
    with pytest.raises(NotComputableError, match=sentence):
        gc.estimate(BATCH, "needy")
    assert credit_package.unavailable(BATCH, "needy") == sentence
    assert credit_package.unavailable(BATCH, "grpo") == ""
    with_column = batch_of(walk("a", "S:x", 1.0, logprob=[-0.5]))
    assert gc.estimate(with_column, "needy").tolist() == [-0.5]


def test_adding_an_estimator_is_one_new_file(
    registry: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "constant_seven.py").write_text(
        "import numpy as np\n"
        "from graft_core.credit.base import estimator\n"
        "@estimator('seven', title='Seven', meaning='seven everywhere', source='arXiv 7', rank=0)\n"
        "def seven(inputs):\n"
        "    return np.full(inputs.batch.n_steps, 7.0)\n"
    )
    monkeypatch.setattr(credit_package, "__path__", [*credit_package.__path__, str(tmp_path)])
    ESTIMATE._load.cache_clear()
    try:
        assert next(iter(gc.estimators())) == "seven"
        assert (gc.estimate(BATCH, "seven") == 7.0).all()
    finally:
        sys.modules.pop("graft_core.credit.constant_seven", None)


def test_a_name_is_not_taken_twice(registry: None) -> None:
    with pytest.raises(UsageError, match="an estimator called 'grpo' is there already"):
        gc.estimator("grpo", title="G", meaning="m", source="arXiv 0")(lambda inputs: inputs.batch.reward)
    with pytest.raises(UsageError, match="an estimator called 'graft_eq10' is there already"):
        gc.estimator("graft_eq10", title="G", meaning="m", source="arXiv 0")(lambda inputs: inputs.batch.reward)
    # a notebook cell that is run again replaces what it registered
    for factor in (1.0, 2.0):
        gc.estimator("again", title="A", meaning="m", source="arXiv 0")(lambda i, f=factor: np.full(i.batch.n_steps, f))
    assert (gc.estimate(BATCH, "again") == 2.0).all()


def test_the_graph_is_built_once_per_rule_and_forgotten_in_time() -> None:
    batch = batch_of(random_rows(4, groups=2))
    first = ESTIMATE.graph_of(batch)
    gc.estimate(batch, "graft_td")
    assert ESTIMATE.graph_of(batch) is first
    for k in range(12):
        gc.estimate(batch, "graft_td", rules=[f"history:{k}"])
    kept = [key for key in batch.memo if key[0] == "graph"]
    assert len(kept) == ESTIMATE.GRAPHS_KEPT
    assert kept[-1] == ("graph", ("history:11",), "parsed", "split")
