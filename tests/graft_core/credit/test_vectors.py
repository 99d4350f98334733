"""Every number of the reference vectors that the graph and the first estimators answer (tests/vectors/README.md)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from row_batches import batch_of

import graft_core as gc
from graft_core.rollouts import RolloutBatch

VECTORS = Path(__file__).resolve().parents[2] / "vectors"
NAMES = ("hand", "grid", "slip", "conflicts", "wide", "mixed", "scores")
REACHES = ("path", "instances", "distinct", "expectation")
EXACT, DIVIDED, PUBLIC = 1e-8, 1e-6, 1e-4


@cache
def vector(name: str) -> tuple[RolloutBatch, dict[str, Any]]:
    rows = [json.loads(line) for line in (VECTORS / f"{name}.jsonl").read_text().splitlines()]
    return batch_of(rows, name), json.loads((VECTORS / f"{name}.expected.json").read_text())


def settings_of(name: str) -> list[str]:
    """SINKS/WEIGHTING[/dense] of a vector."""
    return [key for key in vector(name)[1]["steps"][0] if "/" in key]


CASES = [(name, setting) for name in NAMES for setting in settings_of(name)]


def options_of(setting: str) -> dict[str, str]:
    sinks, weighting, *rewards = setting.split("/")
    return {"sinks": sinks, "weighting": weighting, "rewards": rewards[0] if rewards else "outcome"}


def agree(found: Any, wanted: list[float | None], tolerance: float) -> None:
    """Equal within the tolerance, and undefined at the same steps."""
    right = np.array([np.nan if value is None else value for value in wanted])
    np.testing.assert_allclose(found, right, rtol=0, atol=tolerance, equal_nan=True)


def test_the_vectors_cover_what_they_promise() -> None:
    pairs = {f"{sinks}/{weighting}" for sinks in ("split", "merge", "bootstrap") for weighting in ("visits", "distinct")}
    assert {setting for _, setting in CASES} == pairs | {"split/visits/dense"}
    assert sum(len(vector(name)[1]["steps"]) for name in NAMES) == 10 + 114 + 139 + 31 + 199 + 51 + 52


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_values(name: str, setting: str) -> None:
    batch, expected = vector(name)
    options = options_of(setting)
    graph = gc.build_graph(batch, sinks=options.pop("sinks"))
    values = gc.solve_values(graph, **options)
    agree(batch.to_rows(values.v[graph.src]), [s[setting]["value"] for s in expected["steps"]], EXACT)


@pytest.mark.parametrize(("name", "setting"), CASES)
@pytest.mark.parametrize("per", ["transition", "action"])
def test_td(name: str, setting: str, per: str) -> None:
    batch, expected = vector(name)
    key = "td" if per == "transition" else "td_action"
    found = gc.estimate(batch, "graft_td", per=per, **options_of(setting))
    agree(found, [s[setting][key] for s in expected["steps"]], EXACT)


@pytest.mark.parametrize("reach", REACHES)
@pytest.mark.parametrize(("name", "setting"), CASES)
def test_graph_gae(name: str, setting: str, reach: str) -> None:
    batch, expected = vector(name)
    options = options_of(setting)
    plain = gc.estimate(batch, "graft", reach=reach, normalise="none", **options)
    agree(plain, [s[setting][f"gae_{reach}"] for s in expected["steps"]], EXACT)
    scaled = gc.estimate(batch, "graft", reach=reach, **options)
    agree(scaled, [s[setting][f"gae_{reach}_normalised"] for s in expected["steps"]], DIVIDED)


@pytest.mark.parametrize("name", NAMES)
def test_path_gae_is_the_path_reach_unnormalised(name: str) -> None:
    batch, expected = vector(name)
    agree(gc.estimate(batch, "path_gae"), [s["split/visits"]["gae_path"] for s in expected["steps"]], EXACT)


@pytest.mark.parametrize(("name", "setting"), [case for case in CASES if "visits" in case[1]])
def test_instances_reach_equals_td_for_visit_weights(name: str, setting: str) -> None:
    """Taken literally, Graph GAE (Eq. 10) adds nothing: counted residuals leaving a node sum to zero."""
    batch, _ = vector(name)
    options = options_of(setting)
    td = gc.estimate(batch, "graft_td", **options)
    for lam in (0.3, 0.95, 1.0):
        literal = gc.estimate(batch, "graft_eq10", normalise="none", lam=lam, **options)
        np.testing.assert_allclose(literal, td, rtol=0, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("estimator", ["grpo", "dr_grpo", "rloo"])
def test_outcome_baselines(name: str, estimator: str) -> None:
    batch, expected = vector(name)
    agree(gc.estimate(batch, estimator), [s[estimator] for s in expected["steps"]], DIVIDED)


OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gigpo_over_steps": ("gigpo", {"statistics": "steps"}),
    "gigpo_over_rollouts": ("gigpo", {}),
    "graphgpo_omega_0.8": ("graphgpo", {"omega": 0.8, "statistics": "steps"}),
    "hgpo_k2": ("hgpo", {"k": 2}),
    "rtmc": ("rtmc", {}),
    "salt": ("salt", {}),
}
PUBLISHED = [name for name in NAMES if "public_code" in vector(name)[1]["steps"][0]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", OTHERS)
def test_other_estimators(name: str, key: str) -> None:
    batch, expected = vector(name)
    estimator, options = OTHERS[key]
    agree(gc.estimate(batch, estimator, **options), [s["others"][key] for s in expected["steps"]], DIVIDED)


@pytest.mark.parametrize("sinks", ["merge", "bootstrap"])
@pytest.mark.parametrize("key", ["salt", "graphgpo_omega_0.8", "hgpo_k2", "rtmc", "gigpo_over_steps"])
@pytest.mark.parametrize("name", NAMES)
def test_they_do_not_depend_on_the_sink_rule(name: str, key: str, sinks: str) -> None:
    batch, expected = vector(name)
    estimator, options = OTHERS[key]
    agree(gc.estimate(batch, estimator, sinks=sinks, **options), [s["others"][key] for s in expected["steps"]], DIVIDED)


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("key", ["gigpo_over_steps", "graphgpo_omega_0.8", "hgpo_k2"])
def test_public_programs_agree_except_where_they_are_wrong(name: str, key: str) -> None:
    batch, expected = vector(name)
    estimator, options = OTHERS[key]
    found = gc.estimate(batch, estimator, **options)
    wrong = 0
    for credit, step in zip(found, expected["steps"], strict=True):
        if key not in step["public_code"].get("float_residue", []):
            assert credit == pytest.approx(step["public_code"][key], abs=PUBLIC)
        else:
            wrong += 1
            assert abs(credit - step["others"][key]) < DIVIDED
    assert (wrong > 0) == ((name, key) == ("wide", "graphgpo_omega_0.8"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_public_episode_parts(name: str) -> None:
    batch, expected = vector(name)
    for key, statistics in (("gigpo_episode_over_steps", "steps"), ("gigpo_episode_over_rollouts", "rollouts")):
        found = gc.estimate(batch, "grpo", statistics=statistics)
        for credit, step in zip(found, expected["steps"], strict=True):
            if key not in step["public_code"].get("float_residue", []):
                assert credit == pytest.approx(step["public_code"][key], abs=PUBLIC)
