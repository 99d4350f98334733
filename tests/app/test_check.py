"""A check by rollout: which environment a step can be played on in, carrying it out, and how loudly its result speaks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from app_pages import run_page, until
from streamlit.testing.v1 import AppTest

import graft_core as gc
from graft_app import check as module
from graft_app import jobs, server
from graft_app.check import COUNTS, NOW, SAMPLE, UNIFORM, CheckOrder, environment, order_of, perform
from graft_app.views import check as view
from graft_core.errors import InputError
from graft_core.insight import findings
from graft_core.insight.report import with_certainty
from graft_core.live.games import make_game
from graft_core.live.probe import check_step
from graft_core.live.restore import Restorer
from graft_core.live.run import LiveSettings, run_live
from graft_core.live.sampler import Plan, sample
from graft_core.live.tabular import TabularPolicy
from graft_core.settings import Settings

HOUSE = "sample_data/household.jsonl"


@pytest.fixture(scope="module")
def home(root: Path) -> gc.RolloutBatch:
    return gc.load(root / HOUSE)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small live run that is over."""
    folder = tmp_path_factory.mktemp("checks") / "runs" / "mine"
    settings = LiveSettings("key-door", estimators={"graft_td": {}}, group_size=4, updates=3, seeds=(0,), turns=20, loss="sum")
    run_live(settings, folder)
    return folder


def order(batch: gc.RolloutBatch, position: int, file: Path, **more: Any) -> CheckOrder:
    row = int(batch.step_rollout[position])
    return CheckOrder(
        str(file), "data", batch.group_ids[int(batch.group[row])], batch.rollout_ids[row], int(batch.step_index[position]),
        module.texts_of(batch, position), **{"tries": 8, **more},
    )  # fmt: skip


def test_an_order_survives_its_word_and_is_known_by_what_is_checked(home: gc.RolloutBatch) -> None:
    one = order(home, 5, Path("a.jsonl"), env="household")
    assert order_of(one.words()[1]) == one
    assert replace(one, file="elsewhere/a.jsonl").key == one.key
    others = [replace(one, policy=UNIFORM), replace(one, step=6), replace(one, data="other"), replace(one, tries=9)]
    assert len({one.key, *(other.key for other in others)}) == 5
    for word in ("", "[]", "{}", '{"file": 1}'):
        with pytest.raises(InputError, match="no order of a check"):
            order_of(word)


def test_the_sample_is_known_for_the_household_game(home: gc.RolloutBatch) -> None:
    nonsense = [p for p in range(home.n_steps) if home.text(int(home.observation[p])) == "Nothing happens."][:2]
    for position in (0, 40, 500, *nonsense):
        assert environment(home, position, None, False) == "household"


def test_slippery_ice_is_told_from_firm_ice() -> None:
    slippery = "frozen-lake:size=4,slippery=true"
    batch = sample(make_game(slippery), TabularPolicy(), Plan(group_size=8, turns=40)).batch
    found = {environment(batch, int(batch.offsets[row + 1]) - 1, None, False) for row in range(batch.n_rollouts)}
    assert slippery in found  # a rollout that slipped shows it; one that never did fits firm ice as well
    firm = sample(make_game("frozen-lake:size=4"), TabularPolicy(), Plan(group_size=4, turns=10)).batch
    assert environment(firm, firm.n_steps - 1, None, False) == "frozen-lake:size=4"


def test_other_texts_are_said_to_be_of_no_known_environment(tmp_path: Path) -> None:
    file = tmp_path / "shop.jsonl"
    step = {"group_id": "cool apple", "rollout_id": "r", "step": 0, "observation": "A shop.", "action": "buy", "outcome": 1}
    file.write_text(json.dumps(step) + "\n")
    with pytest.raises(InputError, match="No environment of this program"):
        environment(gc.load(file), 0, None, False)


def test_other_dynamics_are_refused_though_the_texts_are_the_same(tmp_path: Path, root: Path) -> None:
    rows = [json.loads(line) for line in (root / HOUSE).read_text().splitlines()]
    rollout = [row for row in rows if row.get("group_id") == "cool apple" and row["rollout_id"] == "r1"]
    rollout[2]["admissible"] = ["fly"]
    file = tmp_path / "odd.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rollout) + "\n")
    batch = gc.load(file)
    assert environment(batch, 1, None, False) == "household"
    with pytest.raises(InputError, match="cannot be restored"):
        environment(batch, 3, None, False)


def recorded(folder: Path, env: str) -> tuple[gc.RolloutBatch, Path]:
    with gc.record(folder, settings={"env": env}) as recorder:
        recorder.train_step(1)
        recorder.step("g", "r", 0, "here", "go")
        recorder.end("g", "r", 1.0)
    return gc.load(folder), folder / "steps" / "000001.jsonl"


@pytest.mark.parametrize(
    "env", ["theirs:Game", "os:system", "frozen-lake:size=5000", "toy-text:theirs:Game-v0", "household:task=x;y"]
)
def test_nothing_that_a_file_names_is_imported_or_made_huge(
    tmp_path: Path, env: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    batch, file = recorded(tmp_path / "run", env)
    with pytest.raises(InputError, match="no code that a file names"):
        environment(batch, 0, file, False)
    assert environment(batch, 0, file, True) == env  # a run of the app's own folder: its process imports it, not the page


def test_the_environment_of_a_run_is_what_it_says(run: Path) -> None:
    batch = gc.load(run / "graft_td" / "seed-0")
    file = module.step_source(batch, 0)
    assert file is not None and module.live_folder(file) == run.resolve()
    assert environment(batch, 7, file, False) == "key-door"
    assert module.policies(batch, run, True, False) == [COUNTS, NOW, UNIFORM]
    assert module.policies(batch, run, False, False) == [COUNTS, UNIFORM]


def test_a_check_is_that_of_the_library(home: gc.RolloutBatch, root: Path) -> None:
    told: list[tuple[int, int]] = []
    position = 44
    asked = order(home, position, root / HOUSE, env="household", policy=COUNTS)
    found = perform(asked, lambda done, total: told.append((done, total)))
    game = make_game("household")
    restorer = Restorer(game, home)
    policy = module._policy(asked, game, restorer)[0]
    same = check_step(game, restorer, position, 0.0, policy, 8)
    assert json.loads(json.dumps(found)) == {**json.loads(json.dumps(same.as_dict())), "played_by": found["played_by"]}
    assert told == [(n + 1, len(same.rivals) + 2) for n in range(len(same.rivals) + 2)]
    sampled = perform(replace(asked, policy=SAMPLE), lambda done, total: None)
    assert "shortest way with chance 0.4" in sampled["played_by"]


def test_a_step_of_a_run_is_found_in_its_own_file(run: Path) -> None:
    batch = gc.load(run / "graft_td" / "seed-0")
    position = int(batch.offsets[5]) + 2  # of update 2: its group has the file's name before it
    file = module.step_source(batch, int(batch.step_rollout[position]))
    assert file is not None and file.stem == "000002"
    asked = order(batch, position, file, env="key-door", run=str(run))
    for policy, said in ((COUNTS, "half a try"), (NOW, "the policy after update 3")):
        found = perform(replace(asked, policy=policy), lambda done, total: None)
        assert said in found["played_by"]
        assert found["action"] == batch.text(int(batch.action[position]))
    with pytest.raises(InputError, match="another step stands where"):
        perform(replace(asked, texts="other"), lambda done, total: None)
    with pytest.raises(InputError, match="no longer holds the step"):
        perform(replace(asked, group="other"), lambda done, total: None)


# -- what is said ------------------------------------------------------------------------------------------------------------


def result(taken: int, usual: int, difference: float, low: float, high: float, tries: int = 64) -> dict[str, Any]:
    return {
        "taken": {"successes": taken, "tries": tries}, "usual": {"successes": usual, "tries": tries},
        "difference": difference, "low": low, "high": high,
    }  # fmt: skip


def test_the_sentence_is_no_louder_than_the_interval() -> None:
    better, worse = result(58, 42, 0.26, 0.11, 0.38), result(23, 36, -0.2, -0.34, -0.03)
    assert view.sentence(better, 0.3).startswith("**Confirmed.** After this action 58 of 64 succeed")
    assert view.sentence(better, -0.3).startswith("**Contradicted.**")
    assert "says better than usual, the rollouts say worse" in view.sentence(worse, 0.3)
    assert "says worse than usual, and so do the rollouts" in view.sentence(worse, -0.1)
    assert view.sentence(better, 0.0).startswith("**Nothing to check.** The credit is 0")
    assert "not defined" in view.sentence(better, math.nan)
    assert view.sentence(result(30, 30, 0.0, -0.15, 0.15), 0.3).startswith("**Not decided.**")


def test_how_many_rollouts_would_decide() -> None:
    # an interval shrinks with the square root: from 0.15 to 0.05 takes 9 times as many
    assert "as small as the credit (+0.05) would take about 580" in view.too_few(64, 0.15, 0.01, 0.05)
    assert "the one found would take about 64" in view.too_few(64, 0.15, -0.15, 0.3)
    assert "would likely have shown." in view.too_few(64, 0.15, 0.0, 0.3)


def test_every_action_stands_beside_its_credit(home: gc.RolloutBatch) -> None:
    found = with_certainty(findings(home, Settings()))
    position = int(found.good[1])
    game = make_game("household")
    restorer = Restorer(game, home)
    policy = module._policy(order(home, position, Path("x"), env="household", policy=UNIFORM), game, restorer)[0]
    check = check_step(game, restorer, position, 0.0, policy, 4).as_dict()
    table = view.arms_table(check, found, position)
    assert table["action"].iloc[0].endswith(home.text(int(home.action[position])))
    assert table["credit"].iloc[0] == f"{found.credit[position]:+.2f}"
    assert table["credit"].iloc[1] == "–"
    same = found.graph.src == found.graph.src[position]
    for _, line in table.iloc[2:].iterrows():
        steps = [p for p in same.nonzero()[0] if home.text(int(home.action[p])) == line["action"]]
        expected = f"{sum(found.credit[p] for p in steps) / len(steps):+.2f}" if steps else "–"
        assert line["credit"] in (expected, expected.replace("-0.00", "+0.00"))


# -- in the queue and on the page --------------------------------------------------------------------------------------------


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[jobs.Jobs]:
    made = jobs.Jobs(tmp_path / "runs")
    yield made
    made.close()


def test_a_check_runs_beside_the_page_is_shared_and_leaves_no_file(
    queue: jobs.Jobs, home: gc.RolloutBatch, root: Path, tmp_path: Path
) -> None:
    asked = order(home, 3, root / HOUSE, env="household", policy=UNIFORM)
    queue.check(asked.key, asked.words(), "one", asked.quick)
    queue.check(asked.key, asked.words(), "two", asked.quick)
    until(lambda: not queue.view_check(asked.key).active)
    found = queue.view_check(asked.key)
    assert found.state == "done", found.why
    assert found.status["check"]["action"] == home.text(int(home.action[3]))
    assert queue.of("one") == [] and not queue.folder.exists()
    assert queue.checks_by(asked.key, "one") and not queue.checks_by(asked.key, "two")
    wrong = replace(asked, env="nowhere")
    queue.check(wrong.key, wrong.words(), "one", True)
    until(lambda: not queue.view_check(wrong.key).active)
    assert queue.view_check(wrong.key).why.startswith("unknown environment 'nowhere'")


def test_a_check_that_is_cancelled_can_be_asked_for_again(queue: jobs.Jobs, home: gc.RolloutBatch, root: Path) -> None:
    asked = order(home, 3, root / HOUSE, env="household", policy=UNIFORM, tries=100_000)
    queue.check(asked.key, asked.words(), "one", True)
    until(lambda: queue.view_check(asked.key).active)
    queue.cancel_check(asked.key)
    until(lambda: queue.view_check(asked.key).state == "stopped")
    queue.check(asked.key, asked.words(), "one", True)
    assert queue.view_check(asked.key).active


def test_only_so_many_checks_are_remembered(queue: jobs.Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "CHECKS_KEPT", 2)
    for number in range(4):
        queue._jobs[f"check-{number}"] = jobs.Job(f"check-{number}", [], "one", True, ended=True, check=True)
    queue.check("new", ["check", "{}"], "one", True)
    assert set(queue._jobs) == {"check-2", "check-3", "check-new"}


def opened(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **address: str) -> AppTest:
    monkeypatch.setenv(server.PATHS_VARIABLE, json.dumps([str(path)]))
    monkeypatch.setenv(jobs.RUNS_VARIABLE, str(tmp_path / "runs"))
    jobs.jobs.cache_clear()
    return run_page("graph", **address)


def said(test: AppTest) -> str:
    kinds = ("markdown", "caption", "info", "success", "warning", "error")
    return "\n".join(str(getattr(element, "value", "")) for kind in kinds for element in test.get(kind))


def test_the_step_panel_asks_and_answers(
    root: Path, home: gc.RolloutBatch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = findings(home, Settings())
    position = int(found.good[1])
    words = {"sel": f"e{int(found.graph.edge[position])}", "at": str(int(home.order[position]))}
    task = home.group_ids[int(home.group[home.step_rollout[position]])]
    test = opened(root / HOUSE, monkeypatch, tmp_path, task=task, **words)
    button = next(b for b in test.button if b.key == "check_start")
    assert button.label == "Check by rollout: play on from here 64 times"
    assert any("graft probe check household.jsonl" in str(c.value) for c in test.code)
    button.click().run()
    queue = jobs.jobs()
    [name] = queue._jobs
    until(lambda: not queue.view_check(name.removeprefix("check-")).active)
    test.run()
    assert not test.exception
    assert any(word in said(test) for word in ("Confirmed", "Contradicted", "Not decided"))
    assert "64 fresh rollouts each, played on by" in said(test)
    queue.close()
    jobs.jobs.cache_clear()


def test_where_no_state_can_be_restored_there_is_a_sentence_and_no_button(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "shop.jsonl"
    rows = [
        {"group_id": "g", "rollout_id": f"r{n}", "step": 0, "observation": "A shop.", "action": f"buy {n}", "outcome": n}
        for n in range(2)
    ]
    file.write_text("\n".join(map(json.dumps, rows)) + "\n")
    test = opened(file, monkeypatch, tmp_path, sel="e0", at="0")
    assert "No environment of this program shows these texts" in said(test)
    assert not any((b.key or "").startswith("check_") for b in test.button)
    assert any("graft probe export shop.jsonl --step g/r0/0" in str(c.value) for c in test.code)
    jobs.jobs.cache_clear()


def test_a_language_model_is_not_for_the_quick_lane(home: gc.RolloutBatch, run: Path) -> None:
    asked = order(home, 3, Path("x"), env="household", policy=NOW, run=str(run))
    assert asked.quick
    kept = json.loads((run / "live.json").read_text())
    other = run.with_name("lm")
    other.mkdir()
    kept["settings"]["policy"]["name"] = "tiny"
    (other / "live.json").write_text(json.dumps(kept))
    assert not replace(asked, run=str(other)).quick
    assert replace(asked, run=str(other), policy=COUNTS).quick
