"""Certainty intervals: by pencil, against a dense dictionary program, and what must never change or be claimed."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter, defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from row_batches import batch_of, random_rows, walk
from scipy.stats import t as student

from graft_core.credit import estimate
from graft_core.errors import NotComputableError, UsageError
from graft_core.graph import build_graph
from graft_core.insight import _certainty_spread
from graft_core.insight import certainty as module
from graft_core.insight.certainty import MEANINGS, WORDS, Certainty, certainty, no_interval
from graft_core.settings import Settings
from graft_core.values import solve_values

SEEDS = range(6)
Rows = list[dict[str, Any]]


def found(rows: Rows, per: str = "transition", gamma: float = 0.99, sinks: str = "split", **options: Any) -> Certainty:
    graph = build_graph(batch_of(rows), sinks=sinks)
    return certainty(graph, solve_values(graph, gamma=gamma), per, **options)  # type: ignore[arg-type]


def bounds(rows: Rows, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) of every step, in the order of the rows."""
    made = found(rows, **options)
    order = made.graph.batch.order
    low, high = np.empty(order.size), np.empty(order.size)
    low[order], high[order] = made.at_steps(made.low), made.at_steps(made.high)
    return low, high


# -- against independent numbers --------------------------------------------------------------------------------------


def test_one_state_by_pencil() -> None:
    rows = [row for k in range(4) for row in walk(f"r{k}", "s:win" if k < 2 else "s:lose", float(k < 2))]
    made = found(rows)
    # V = .495, Q = .99 and 0: spread 4 * .495^2 = .9801 over 4 draws, of which 8 more of the same are supposed
    variance = (0.9801 + 8 * 0.9801 / 4) / (4 + 8) / 4
    half = 1.894579 * variance**0.5  # t, 95 %, 4 + 3 degrees of freedom
    for edge in range(2):
        credit = made.credit[edge]
        assert abs(abs(credit) - 0.495) < 1e-12
        assert made.low[edge] == pytest.approx(credit - half, abs=1e-6)
        assert made.high[edge] == pytest.approx(credit + half, abs=1e-6)
    assert sorted(made.words) == ["likely bad", "likely good"]
    assert made.support.tolist() == [4, 4]


def slow(rows: Rows, gamma: float, per: str, sinks: str) -> tuple[list[float], list[float]]:
    """The same interval for every row, from dictionaries and one dense inverse over states, pairs and ends."""
    groups: dict[str, Rows] = defaultdict(list)
    for row in rows:
        groups[row["group_id"]].append(row)
    low, high = {}, {}
    for own in groups.values():
        _slow_group(own, gamma, per, sinks, low, high)
    steps = [id(row) for row in rows if row["step"] is not None]
    return [low.get(row, np.nan) for row in steps], [high.get(row, np.nan) for row in steps]


def _slow_group(own: Rows, gamma: float, per: str, sinks: str, low: dict[int, float], high: dict[int, float]) -> None:
    paths: dict[str, Rows] = defaultdict(list)
    for row in own:
        if row["outcome"] is not None and row["step"] is not None:
            paths[row["rollout_id"]].append(row)
    moves = []  # (row, u, (u, a), v)
    ends: dict[Any, list[float]] = defaultdict(list)
    outcomes = [row["outcome"] for row in {r["rollout_id"]: r for r in own}.values() if row["outcome"] is not None]
    for path in paths.values():
        for row, after in zip(path, [*path[1:], None], strict=True):
            u = ("state", row["observation"])
            if after is not None:
                v: Any = ("state", after["observation"])
            else:
                final = row.get("next_observation")
                v = ("end", final) if sinks == "merge" and final is not None else ("end", final, row["outcome"])
                ends[v].append(row["outcome"])
            moves.append((row, u, (u, row["action"]), v))
    if not outcomes or max(outcomes) - min(outcomes) < 1e-9:
        return
    visits, tries, counts = (Counter(key(m) for m in moves) for key in (lambda m: m[1], lambda m: m[2], lambda m: m[2:]))
    leavers = {u: len({r for r, path in paths.items() for row in path if ("state", row["observation"]) == u}) for u in visits}
    if max(leavers.values(), default=0) < 2:
        return
    names = [*visits, *tries, *ends]
    place = {name: i for i, name in enumerate(names)}
    matrix, gain = np.zeros((len(names), len(names))), np.zeros(len(names))
    for (pair, v), n in counts.items():
        matrix[place[pair], place[v]] += gamma * n / tries[pair]
    for pair, n in tries.items():
        matrix[place[pair[0]], place[pair]] = n / visits[pair[0]]
    for end, got in ends.items():
        gain[place[end]] = np.mean(got)
    inverse = np.linalg.inv(np.eye(len(names)) - matrix)
    value = dict(zip(names, inverse @ gain, strict=True))

    # variances: own spread beside 8 draws of the group's, shared out as V (1 - V) with one draw of the mean added
    least, most = min(0.0, *outcomes), max(0.0, *outcomes)

    def share(u: Any) -> float:
        worth = min(max((value[u] - least) / (most - least), 0.0), 1.0)
        chance = (visits[u] * worth + (np.mean(outcomes) - least) / (most - least)) / (visits[u] + 1)
        return max(chance * (1 - chance), 1e-3)

    spread: dict[Any, float] = defaultdict(float)
    for pair, n in tries.items():
        spread[pair[0]] += n * (value[pair] - value[pair[0]]) ** 2
    for (pair, v), n in counts.items():
        spread[pair] += n * (gamma * value[v] - value[pair]) ** 2
    for end, got in ends.items():
        spread[end] = sum((r - value[end]) ** 2 for r in got)
    size = {**visits, **tries, **{end: len(got) for end, got in ends.items()}}
    weight = {**{u: share(u) for u in visits}, **{p: share(p[0]) for p in tries}, **dict.fromkeys(ends, 1.0)}
    noise = np.empty(len(names))
    for kind in (list(visits), list(tries), list(ends)):
        pooled = sum(spread[w] for w in kind) / sum(size[w] * weight[w] for w in kind)
        if kind == list(visits):
            pooled = max(pooled, 1e-6 * (most - least) ** 2)
        for w in kind:
            noise[place[w]] = (spread[w] + 8 * pooled * weight[w]) / (size[w] + 8) / size[w]

    for row, u, pair, v in moves:
        if per == "action":
            credit, d = value[pair] - value[u], inverse[place[pair]] - inverse[place[u]]
        else:
            credit, d = gamma * value[v] - value[u], gamma * inverse[place[v]] - inverse[place[u]]
        half = student.ppf(0.95, leavers[u] + 3) * float(np.sqrt(d**2 @ noise))
        low[id(row)] = max(credit - half, least - most)
        high[id(row)] = min(credit + half, most - least)


@pytest.mark.parametrize("sinks", ["split", "merge"])
@pytest.mark.parametrize("per", ["transition", "action"])
@pytest.mark.parametrize("seed", SEEDS)
def test_equals_a_dense_dictionary_program(seed: int, per: str, sinks: str) -> None:
    rows = random_rows(seed, rollouts=8, unknown=0.2, no_final=0.2, scores=0.4 * (seed % 2), empty=0.1)
    gamma = (0.99, 0.8, 1.0)[seed % 3]
    expected = slow(rows, gamma, per, sinks)
    got = bounds(rows, per=per, gamma=gamma, sinks=sinks)
    assert np.isfinite(expected[0]).sum() > 20
    np.testing.assert_allclose(got[0], expected[0], atol=1e-10)
    np.testing.assert_allclose(got[1], expected[1], atol=1e-10)


@pytest.mark.parametrize("per", ["transition", "action"])
@pytest.mark.parametrize("seed", SEEDS)
def test_walking_and_factorising_agree(seed: int, per: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_rows(seed, groups=2, rollouts=30, states=12)
    walked = found(rows, per)
    monkeypatch.setattr(_certainty_spread, "COLUMNS", 7)
    monkeypatch.setattr(_certainty_spread.gathered, "__defaults__", (0,))
    factorised = found(rows, per)
    assert np.isfinite(walked.low).all()
    np.testing.assert_allclose(factorised.low, walked.low, atol=1e-12)
    np.testing.assert_allclose(factorised.high, walked.high, atol=1e-12)


@pytest.mark.parametrize("per", ["transition", "action"])
def test_stands_around_the_credit_that_is_shown(per: str) -> None:
    batch = batch_of(random_rows(3, rollouts=10, unknown=0.2))
    graph = build_graph(batch)
    made = certainty(graph, solve_values(graph), per)  # type: ignore[arg-type]
    shown = estimate(batch, "graft_td", per=per)[batch.order]
    np.testing.assert_allclose(made.at_steps(made.credit), shown, atol=1e-12)
    low, high = made.at_steps(made.low), made.at_steps(made.high)
    inside = ~np.isnan(low)
    assert inside.sum() > 50
    assert (low[inside] <= shown[inside]).all()
    assert (high[inside] >= shown[inside]).all()
    assert np.isnan(low[~batch.step_known]).all()


# -- what must not matter ---------------------------------------------------------------------------------------------


def test_names_and_order_do_not_matter() -> None:
    rows = random_rows(4, rollouts=9)
    low, high = bounds(rows)
    names = {row["rollout_id"]: f"{9 - int(row['rollout_id'][1:])}th" for row in rows}
    order = sorted(range(len(rows)), key=lambda i: (names[rows[i]["rollout_id"]], rows[i]["group_id"], rows[i]["step"]))
    renamed = []
    for i in order:
        row = dict(rows[i], observation=f"room {rows[i]['observation']}", action=rows[i]["action"] * 3)
        row["rollout_id"] = names[row["rollout_id"]]
        if row.get("next_observation") is not None:
            row["next_observation"] = f"room {row['next_observation']}"
        renamed.append(row)
    other = bounds(renamed)  # groups now take turns in the file
    np.testing.assert_allclose(other[0], low[order], atol=1e-10)
    np.testing.assert_allclose(other[1], high[order], atol=1e-10)


def test_another_group_does_not_matter() -> None:
    rows = random_rows(5, groups=1, rollouts=9)
    low, high = bounds(rows)
    again = [dict(row, group_id="again") for row in rows]
    other = [dict(row, group_id="other") for row in random_rows(6, groups=1, scores=1.0)]
    for got, alone in zip(bounds([*rows, *again, *other]), (low, high), strict=True):
        np.testing.assert_allclose(got[: len(rows)], alone, atol=1e-12)
        np.testing.assert_allclose(got[len(rows) : 2 * len(rows)], alone, atol=1e-12)


def test_the_unit_of_the_outcome_does_not_matter() -> None:
    rows = random_rows(7, groups=1, rollouts=10, scores=0.5)
    low, high = bounds(rows)
    seven = bounds([dict(row, outcome=7 * row["outcome"]) for row in rows])
    np.testing.assert_allclose(seven[0], 7 * low, atol=1e-9)
    turned = bounds([dict(row, outcome=-row["outcome"]) for row in rows])
    np.testing.assert_allclose(turned[0], -high, atol=1e-9)


def test_more_of_the_same_makes_surer_and_a_higher_level_wider() -> None:
    rows = random_rows(8, groups=1, rollouts=8)
    widths = []
    for copies in (1, 4):
        many = [dict(row, rollout_id=f"{row['rollout_id']}.{k}") for k in range(copies) for row in rows]
        low, high = bounds(many)
        widths.append(float(np.mean(high - low)))
    assert widths[1] < 0.7 * widths[0]
    low95, high95 = bounds(rows, level=0.95)
    low, high = bounds(rows)
    assert (low95 <= low).all() and (high95 >= high).all() and (high95 - low95 > high - low).any()


# -- what must not be claimed -----------------------------------------------------------------------------------------


def test_one_witness_never_has_a_sign() -> None:
    signs = Counter()
    for seed in range(30):
        made = found(random_rows(seed, rollouts=12, states=9), per=("transition", "action")[seed % 2])
        assert (made.sign[made.one_witness] == 0).all()
        assert {made.word(e) for e in np.flatnonzero(made.one_witness & np.isfinite(made.low)).tolist()} <= {"one witness"}
        signs.update(made.sign.tolist())
        signs["one"] += int(made.one_witness.sum())
        outside = (made.low > 1e-9) | (made.high < -1e-9)
        signs["withheld"] += int((outside & made.one_witness).sum())
        assert (made.sign[~made.one_witness] != 0).sum() == (outside & ~made.one_witness).sum()
    assert signs[1] > 5 and signs[-1] > 5 and signs["one"] > 50 and signs["withheld"] > 0


def test_words_say_what_is_known() -> None:
    rows = [
        *walk("r1", "s:left a:on", 1.0), *walk("r2", "s:left a:on", 1.0), *walk("r3", "s:right b:on", 0.0),
        *walk("r4", "s:up a:on", 0.0), *walk("r5", "s:left a:back s:left a:on", None),
    ]  # fmt: skip
    made = found(rows)
    graph = made.graph
    here = [graph.batch.text(int(text)) for text in graph.node_text[graph.edge_src]]
    done = [graph.batch.text(int(text)) for text in graph.edge_text]
    words = defaultdict(set)
    for state, action, word in zip(here, done, made.words, strict=True):
        words[state, action].add(word)
    assert words["s", "up"] == words["s", "right"] == {"action seen once"}
    assert words["s", "left"] == {"not sure"}
    assert words["b", "on"] == {"one witness"}
    assert words["a", "back"] == {"outcome unknown"}
    assert set(made.summary()) == set(WORDS) and sum(made.summary().values()) == graph.n_edges
    assert len(MEANINGS) == len(WORDS) == len(set(WORDS))
    row = made.row(words_at(made, "outcome unknown"))
    assert row["low"] is None and row["credit"] is None and row["word"] == "outcome unknown"


def words_at(made: Certainty, word: str) -> int:
    return made.words.index(word)


@pytest.mark.parametrize(
    ("outcomes", "paths", "word"),
    [
        ((1.0, 1.0), ("s:a", "s:b"), "all ended alike"),
        ((0.3, 0.3 + 1e-12), ("s:a", "s:b"), "all ended alike"),
        ((1.0,), ("s:a t:b",), "all ended alike"),
        ((1.0, 0.0), ("s:a t:b", "u:a v:b"), "spread unknown"),
        ((1.0, 0.0), ("s:a s:a s:b", "u:a v:b"), "spread unknown"),
        ((None, None), ("s:a", "s:b"), "outcome unknown"),
    ],
)
def test_no_number_where_nothing_can_be_compared(
    outcomes: tuple[float | None, ...], paths: tuple[str, ...], word: str
) -> None:
    rows = [row for k, (r, path) in enumerate(zip(outcomes, paths, strict=True)) for row in walk(f"r{k}", path, r)]
    for per in ("transition", "action"):
        made = found(rows, per)
        assert set(made.words) == {word}
        assert np.isnan(made.low).all() and np.isnan(made.high).all()
        assert not made.sign.any()
        assert made.unknown_spread.all() == (word == "spread unknown")


def test_no_rollout_has_a_step() -> None:
    made = found([*walk("r1", "", 1.0), *walk("r2", "", 0.0)])
    assert made.low.size == 0 and made.at_steps(made.low).size == 0


def test_rough_ranges_are_called_rough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROUGH", ((4, 7),))
    made = found(random_rows(2, groups=2, rollouts=10))
    at = (made.support >= 4) & (made.support <= 7) & np.isfinite(made.low)
    assert at.any() and made.rough.tolist() == at.tolist()
    assert {made.word(e) for e in np.flatnonzero(at).tolist()} == {"rough"} and not made.sign[at].any()


def test_settings_that_were_never_checked_say_so() -> None:
    rows = random_rows(1)
    graph = build_graph(batch_of(rows))
    for options in ({"weighting": "distinct"}, {"weighting": "max"}, {"rewards": "dense"}, {"prior": 2.0}):
        with pytest.raises(NotComputableError, match="no checked interval"):
            certainty(graph, solve_values(graph, **options))  # type: ignore[arg-type]
        assert "no checked interval" in no_interval(Settings().with_options(**options))
    with pytest.raises(NotComputableError, match="bootstrap"):
        found(rows, sinks="bootstrap")
    for given in (
        {"estimator": "grpo"}, {"estimator": "path_gae"}, {"estimator": "graft"}, {"sinks": "bootstrap"}, {"clip": 0.5},
        {"estimator": "graft", "lam": 0.0},
    ):  # fmt: skip
        assert no_interval(Settings().with_options(**given)).startswith("no checked interval exists for")
    for given in ({}, {"per": "action"}, {"sinks": "merge"}, {"estimator": "path_gae", "lam": 0.0}):
        assert no_interval(Settings().with_options(**given)) == ""


def test_options_out_of_range() -> None:
    with pytest.raises(UsageError, match="level"):
        found(random_rows(1), level=1.0)
    with pytest.raises(UsageError, match="per"):
        found(random_rows(1), per="step")


# -- known truth, a little ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def experiment() -> ModuleType:
    path = Path(__file__).resolve().parents[3] / "benchmarks" / "interval_coverage.py"
    spec = importlib.util.spec_from_file_location("interval_coverage", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("name", ["frozen lake 4x4", "frozen lake 4x4, slippery", "layered"])
def test_covers_the_truth_and_not_by_being_too_wide(
    experiment: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = next(w for w in experiment.WORLDS if w.name == name)

    def coverage() -> tuple[float, float]:
        cells = experiment.measure(world, 16, 40, seed=5)
        held, cases = sum(sum(c.held) for c in cells), sum(sum(c.cases) for c in cells)
        assert cases > 1000
        return held / cases, sum(c.width for c in cells) / cases

    covered, width = coverage()
    assert 0.80 <= covered <= 0.98
    assert width < 0.3
    monkeypatch.setattr(module, "quantiles", lambda support, level: np.full(support.size, 0.5))
    assert coverage()[0] < 0.80  # the experiment tells narrow intervals from honest ones


def test_the_table_says_which_cells_are_rough_or_few(experiment: ModuleType) -> None:
    n = experiment.FEWEST_GROUPS
    honest = experiment.Cell("w", 16, "action", "1", held=[9] * n, cases=[10] * n)
    narrow = experiment.Cell("w", 16, "action", "2-3", held=[7] * n, cases=[10] * n)
    wide = experiment.Cell("w", 16, "action", "4-7", held=[10] * n, cases=[10] * n)
    few = experiment.Cell("w", 16, "action", "8+", held=[0] * (n - 1), cases=[10] * (n - 1))
    cells = [honest, narrow, wide, few]
    assert [c.rough for c in cells] == [False, True, True, False]
    assert honest.error == pytest.approx(0.0) and honest.coverage == pytest.approx(0.9)
    text = experiment.show(cells, details=True)
    assert text.count("rough") == 2 and text.count("few") == 1 and " 90.0 " in text
    assert experiment.verdict(cells).startswith("3 cells, 2 outside 80 to 98 %")
