"""What must not matter, and what must hold on every batch: random batches, all estimators (method.md sec. 3 to 5).

The ordinary tests take seconds; those marked `audit` do the same on many more batches.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from row_batches import batch_of, random_rows
from slow_reference import Slow, at_nodes, build, by_row, mean_rewards, solve, td, weights

import graft_core as gc

SINKS = ("split", "merge", "bootstrap")
SOLVERS = ("direct", "gauss_seidel", "jacobi")
WHOLE_BATCH = {"reinforce_pp_baseline", "task_norm"}
SAME = 1e-12


def full_rows(seed: int, groups: int = 4) -> list[dict[str, Any]]:
    """Random rows with every column an estimator may ask for."""
    rows = random_rows(seed, groups=groups, unknown=0.15, no_final=0.2, scores=0.3, empty=0.1)
    pick = random.Random(seed)
    for row in rows:
        if row["step"] is not None:
            row |= {"logprob": -pick.random(), "value": pick.random(), "valid": pick.random() < 0.8}
            row |= {"final_value": pick.random(), "task_family": f"family {row['group_id'] in ('g0', 'g1')}"}
    last: dict[Any, dict[str, Any]] = {}
    for row in rows:  # one value per rollout
        first = last.setdefault((row["group_id"], row["rollout_id"]), row)
        if row["step"] is not None:
            row["final_value"] = first["final_value"]
    return rows


def all_credits(batch: gc.RolloutBatch) -> dict[str, np.ndarray]:
    """Every estimator, with a few options that take other ways through the code."""
    found = {name: gc.estimate(batch, name) for name in gc.estimators()}
    for reach in ("distinct", "expectation"):
        found[f"graft {reach}"] = gc.estimate(batch, "graft", reach=reach)
    found["graft action"] = gc.estimate(batch, "graft", per="action", normalise="mean", sinks="bootstrap")
    found["td dense"] = gc.estimate(batch, "graft_td", rewards="dense", weighting="distinct", sinks="merge")
    found["td prior"] = gc.estimate(batch, "graft_td", prior=2.0)
    found["td history"] = gc.estimate(batch, "graft_td", rules=["history:2"], solver="gauss_seidel")
    found["gigpo steps"] = gc.estimate(batch, "gigpo", statistics="steps", invalid_penalty=0.1)
    return found


def steps_of(rows: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    return [(r["group_id"], r["rollout_id"], r["step"]) for r in rows if r["step"] is not None]


def same(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray], leave_out: set[str] = frozenset()) -> None:
    for name in wanted:
        if name.split()[0] not in leave_out:
            np.testing.assert_allclose(found[name], wanted[name], rtol=0, atol=SAME, equal_nan=True, err_msg=name)


# -- what must not matter --------------------------------------------------------------------------------------


def row_order(seed: int) -> None:
    rows = full_rows(seed)
    shuffled = rows[:]
    random.Random(seed + 1).shuffle(shuffled)
    place = {key: i for i, key in enumerate(steps_of(rows))}
    back = [place[key] for key in steps_of(shuffled)]
    wanted = all_credits(batch_of(rows))
    same(all_credits(batch_of(shuffled)), {name: credit[back] for name, credit in wanted.items()})


def relabelling(seed: int) -> None:
    rows = full_rows(seed)
    names = sorted({r["observation"] for r in rows if r["step"] is not None} | {r.get("next_observation") or "" for r in rows})
    others = names[:]
    random.Random(seed).shuffle(others)
    new = {name: f"<{other}> é" for name, other in zip(names, others, strict=True)}
    moved = []
    for row in rows:
        row = dict(row)
        for field in ("observation", "next_observation"):
            if row.get(field) is not None:
                row[field] = new[row[field]]
        if row.get("action"):
            row["action"] = {"a": "zz", "b": "aa"}[row["action"]]
        moved.append(row)
    same(all_credits(batch_of(moved)), all_credits(batch_of(rows)))


def duplicating_a_group(seed: int) -> None:
    rows = full_rows(seed)
    copy = [row | {"group_id": "copy"} for row in rows if row["group_id"] == "g1"]
    of_g1 = [i for i, key in enumerate(steps_of(rows)) if key[0] == "g1"]
    wanted, found = all_credits(batch_of(rows)), all_credits(batch_of(rows + copy))
    n = len(steps_of(rows))
    same({name: credit[:n] for name, credit in found.items()}, wanted, WHOLE_BATCH)
    same({name: credit[n:] for name, credit in found.items()}, {k: c[of_g1] for k, c in wanted.items()}, WHOLE_BATCH)
    for name in WHOLE_BATCH:  # these compare over the whole batch, so they move
        assert np.nanmax(np.abs(found[name][:n] - wanted[name])) > SAME, name


@pytest.mark.parametrize("seed", range(3))
def test_row_order_changes_nothing(seed: int) -> None:
    row_order(seed)


@pytest.mark.parametrize("seed", range(3))
def test_names_of_states_and_actions_change_nothing(seed: int) -> None:
    relabelling(seed)


@pytest.mark.parametrize("seed", range(3))
def test_a_second_copy_of_a_group_changes_nothing(seed: int) -> None:
    duplicating_a_group(seed)


@pytest.mark.audit
def test_many_batches_where_nothing_may_change() -> None:
    for seed in range(100, 250):
        row_order(seed)
        relabelling(seed)
        duplicating_a_group(seed)


def test_files_change_nothing(tmp_path: Path) -> None:
    """One file, or the same rollouts over three files: the same credit."""
    rows = full_rows(5)
    keys = list(dict.fromkeys((r["group_id"], r["rollout_id"]) for r in rows))

    def write(name: str, chosen: list[dict[str, Any]]) -> Path:
        kept = [{k: v for k, v in r.items() if v is not None or k in ("outcome", "step")} for r in chosen]
        path = tmp_path / name
        path.write_text("".join(json.dumps(r) + "\n" for r in kept))
        return path

    whole = gc.load(write("all.jsonl", rows), group_by="column:group_id")
    parts = [[r for r in rows if keys.index((r["group_id"], r["rollout_id"])) % 3 == i] for i in range(3)]
    split = gc.load([write(f"part{i}.jsonl", part) for i, part in enumerate(parts)], group_by="column:group_id")
    place = {key: i for i, key in enumerate(steps_of(rows))}
    back = [place[key] for part in parts for key in steps_of(part)]
    same(all_credits(split), {name: credit[back] for name, credit in all_credits(whole).items()})
    same(all_credits(whole), all_credits(batch_of(rows)))


SCRIPT = """
import sys
sys.path[:0] = [{tests!r}, {support!r}]
import numpy as np
from test_properties import all_credits, batch_of, full_rows
np.savez({out!r}, **all_credits(batch_of(full_rows(7, groups=12))))
"""


def in_a_process(out: Path, **settings: str) -> dict[str, np.ndarray]:
    here = Path(__file__).resolve().parent
    script = SCRIPT.format(tests=str(here), support=str(here / "support"), out=str(out))
    subprocess.run([sys.executable, "-c", script], env={**os.environ, **settings}, check=True, timeout=200)
    with np.load(out) as saved:
        return dict(saved)


def test_threads_and_hash_seed_change_nothing(tmp_path: Path) -> None:
    threads = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    one = in_a_process(tmp_path / "one.npz", PYTHONHASHSEED="1", **dict.fromkeys(threads, "1"))
    two = in_a_process(tmp_path / "two.npz", PYTHONHASHSEED="4711", **dict.fromkeys(threads, "2"))
    assert len(one) > 20
    same(two, one)


# -- solvers ---------------------------------------------------------------------------------------------------


def numpy_values(slow: Slow, gamma: float, weighting: str, rewards: str) -> dict[Any, float]:
    """V by numpy.linalg.solve over all nodes at once."""
    mean = mean_rewards(slow) if rewards == "dense" else {}
    fixed = {end: 0.0 if rewards == "dense" else value for end, value in slow.sink.items()}
    place = {node: i for i, node in enumerate(dict.fromkeys(u for u, _, _ in slow.count))}
    a, b = np.eye(len(place)), np.zeros(len(place))
    for (u, act, v), p in weights(slow, weighting).items():
        b[place[u]] += p * mean.get((u, act, v), 0.0)
        if v in place:
            a[place[u], place[v]] -= gamma * p
        else:
            b[place[u]] += gamma * p * fixed[v]
    return {**fixed, **dict(zip(place, np.linalg.solve(a, b).tolist(), strict=True))}


def solvers_agree(seed: int) -> None:
    pick = random.Random(seed)
    gamma = pick.choice((0.3, 0.9, 0.95, 0.99, 0.999))
    weighting, rewards, sinks = pick.choice(("visits", "distinct")), pick.choice(("outcome", "dense")), pick.choice(SINKS)
    rows = random_rows(
        seed, groups=pick.randint(1, 3), rollouts=pick.randint(1, 14), states=pick.randint(2, 30),
        unknown=0.1, scores=0.5, no_final=0.1,
    )  # fmt: skip
    batch, slow = batch_of(rows), build(rows, sinks)
    wanted = at_nodes(slow, numpy_values(slow, gamma, weighting, rewards))
    graph = gc.build_graph(batch, sinks=sinks)
    for solver in SOLVERS:
        v = gc.solve_values(graph, gamma, weighting, rewards, solver).v
        found = np.where(batch.step_known, v[graph.src], np.nan)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10, equal_nan=True, err_msg=f"{seed} {solver}")


def exact_fractions(seed: int) -> None:
    rows = random_rows(seed, groups=1, rollouts=5, states=5, scores=0.4)
    exact = [
        {k: Fraction(str(v)) if k in ("outcome", "reward") and v is not None else v for k, v in row.items()} for row in rows
    ]
    gamma, sinks = Fraction(random.Random(seed).randint(1, 99), 100), SINKS[seed % 3]
    rewards = "dense" if seed % 4 == 0 else "outcome"
    weighting = "distinct" if seed % 2 else "visits"
    slow = build(exact, sinks)
    v = solve(slow, gamma, weighting, rewards)
    assert all(isinstance(value, Fraction) for value in v.values())
    batch = batch_of(rows)
    graph = gc.build_graph(batch, sinks=sinks)
    wanted = [float(x) for x in td(slow, v, gamma, rewards)]
    for solver in SOLVERS:
        found = gc.solve_values(graph, float(gamma), weighting, rewards, solver)
        np.testing.assert_allclose(found.v[graph.src], [float(x) for x in at_nodes(slow, v)], rtol=0, atol=1e-10)
        credit = gc.estimate(batch, "graft_td", graph=graph, values=found)
        np.testing.assert_allclose(credit, wanted, rtol=0, atol=2e-10)


def test_solvers_agree() -> None:
    for seed in range(60):
        solvers_agree(seed)


@pytest.mark.audit
def test_solvers_agree_on_a_thousand_graphs() -> None:
    for seed in range(1000, 2000):
        solvers_agree(seed)


def test_exact_rationals() -> None:
    for seed in range(16):
        exact_fractions(seed)


@pytest.mark.audit
def test_exact_rationals_on_a_hundred_graphs() -> None:
    for seed in range(100, 200):
        exact_fractions(seed)


# -- identities ------------------------------------------------------------------------------------------------


def as_tree(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same rollouts with everything seen and done so far as the observation."""
    told: dict[Any, str] = defaultdict(str)
    grown = []
    for row in rows:
        key = (row["group_id"], row["rollout_id"])
        if row["step"] is not None:
            row = row | {"observation": f"{told[key]}{row['observation']}"}
            told[key] = f"{row['observation']} {row['action']} "
            if row.get("next_observation"):
                row["next_observation"] = told[key] + row["next_observation"]
        grown.append(row)
    return grown


def on_a_tree(seed: int) -> None:
    """On a tree graft_td (visits, split, per action) is gamma times rtmc."""
    rows = random_rows(seed, groups=3, rollouts=12, states=3, unknown=0.1, no_final=0.2, scores=0.3)
    batch = batch_of(as_tree(rows))
    for gamma in (0.5, 0.99, 1.0):
        td_credit = gc.estimate(batch, "graft_td", per="action", gamma=gamma)
        rtmc = gc.estimate(batch, "rtmc", gamma=gamma)
        assert np.nanmax(np.abs(rtmc)) > 0.01
        np.testing.assert_allclose(td_credit, gamma * rtmc, rtol=0, atol=1e-10, equal_nan=True)


def residuals_sum_to_zero(seed: int) -> None:
    """At the fixed point the counted residuals leaving any node cancel."""
    batch = batch_of(random_rows(seed, groups=3, unknown=0.2, scores=0.3, no_final=0.1))
    for sinks in SINKS:
        for rewards in ("outcome", "dense"):
            graph = gc.build_graph(batch, sinks=sinks)
            credit = gc.estimate(batch, "graft_td", graph=graph, rewards=rewards, gamma=0.97)[batch.order]
            known = batch.step_known
            left = np.bincount(graph.src[known], weights=credit[known], minlength=graph.n_nodes)
            assert np.abs(left).max() < 1e-10


def the_path_ends_at_the_outcome(seed: int) -> None:
    """At lambda 1 `path` is gamma^(T-t) R - V under `split`, whatever the values' weighting."""
    rows = random_rows(seed, groups=3, unknown=0.2, scores=0.3, no_final=0.1)
    batch, slow = batch_of(rows), build(rows)
    for weighting in ("visits", "distinct"):
        v = numpy_values(slow, 0.9, weighting, "outcome")
        wanted = by_row(slow, lambda s, v=v: 0.9 ** (s.remaining + 1) * s.outcome - v[s.node])
        found = gc.estimate(batch, "graft", lam=1.0, gamma=0.9, normalise="none", weighting=weighting)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10, equal_nan=True)


def reaches_without_effect(seed: int) -> None:
    """`instances` and `expectation` equal TD with visit counts."""
    batch = batch_of(random_rows(seed, groups=3, unknown=0.2, scores=0.3, no_final=0.1))
    for sinks in SINKS:
        plain = gc.estimate(batch, "graft_td", sinks=sinks)
        for reach in ("instances", "expectation"):
            found = gc.estimate(batch, "graft", reach=reach, normalise="none", sinks=sinks)
            np.testing.assert_allclose(found, plain, rtol=0, atol=1e-9, equal_nan=True)


def sinks_without_repeats(seed: int) -> None:
    """Where every final state is seen once and never left, the sink rules agree."""
    rows = random_rows(seed, groups=3, unknown=0.2, scores=0.3)
    per: dict[Any, int] = defaultdict(int)
    for row in rows:
        if row.get("next_observation"):
            per[row["group_id"]] += 1
            row["next_observation"] = f"end {row['group_id']} {per[row['group_id']]}"
    batch = batch_of(rows)
    split = gc.estimate(batch, "graft")
    for sinks in ("merge", "bootstrap"):
        np.testing.assert_allclose(gc.estimate(batch, "graft", sinks=sinks), split, rtol=0, atol=SAME, equal_nan=True)


IDENTITIES = (on_a_tree, residuals_sum_to_zero, the_path_ends_at_the_outcome, reaches_without_effect, sinks_without_repeats)


@pytest.mark.parametrize("identity", IDENTITIES)
def test_identities(identity: Any) -> None:
    for seed in range(12):
        identity(seed)


@pytest.mark.audit
@pytest.mark.parametrize("identity", IDENTITIES)
def test_identities_on_many_batches(identity: Any) -> None:
    for seed in range(1000, 1500):
        identity(seed)
