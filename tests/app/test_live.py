"""The Live page as a script: the form's words, what it says of runs, and what a result allows to say."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from app_pages import run_page
from streamlit.testing.v1 import AppTest

from graft_app import jobs, server
from graft_app.views import live_figures, live_form, live_rollouts
from graft_app.views.live_form import CASES, Order
from graft_core.commands.live import COMMAND, settings_of
from graft_core.live import keep
from graft_core.live.games import make_game
from graft_core.live.run import LiveSettings, run_live
from graft_core.live.table import interval

Open = Callable[..., AppTest]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Open]:
    """`opened(run="NAME")` runs the Live page of a server whose runs lie in the test's folder."""
    monkeypatch.setenv(server.PATHS_VARIABLE, "[]")
    monkeypatch.setenv(jobs.RUNS_VARIABLE, str(tmp_path))
    monkeypatch.setattr(live_form, "torch_there", lambda: True)
    jobs.jobs.cache_clear()

    def go(**address: str) -> AppTest:
        return run_page("live", **address)

    yield go
    jobs.jobs().close()
    jobs.jobs.cache_clear()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LiveSettings]:
    """A small run that is over."""
    settings = LiveSettings(
        "key-door", estimators={"graft_td": {}, "grpo": {}}, group_size=4, updates=3, seeds=(0, 1), turns=20, loss="sum",
        evaluate=4,
    )  # fmt: skip
    run = tmp_path_factory.mktemp("live") / "finished"
    run_live(settings, run)
    return run, settings


def words(test: AppTest) -> str:
    kinds = ("markdown", "caption", "warning", "error", "info")
    return "\n".join(str(element.value) for kind in kinds for element in test.get(kind))


def parsed(order: Order) -> LiveSettings:
    """The order as `graft live` reads it."""
    import argparse

    parser = argparse.ArgumentParser()
    COMMAND.arguments(parser)
    given = parser.parse_args(order.words)
    return settings_of(given, make_game(given.env))


def test_the_forms_words_are_those_of_the_command_line() -> None:
    order = Order("frozen-lake:size=4", "tabular", ("grpo", "rloo"), "row", 8, 4, 7, 33, 0.5)
    settings = parsed(order)
    assert (settings.env, settings.policy.name, list(settings.estimators)) == (order.env, "tabular", ["grpo", "rloo"])
    assert (settings.group_size, settings.seeds, settings.updates, settings.turns) == (8, (0, 1, 2, 3), 7, 33)
    assert (settings.update.step_size, settings.rules) == (0.5, (r"masked:/column \d+/",))


def test_the_expert_words_are_those_of_the_command_line_and_stand_only_where_they_differ() -> None:
    assert not {"--kl", "--epochs", "--device", "--ratio-clip"} & set(Order(policy="tiny", step_size=0.002).words)
    order = Order(
        policy="tiny", step_size=0.002, epochs=3, clip=0.1, kl=0.5, device="cpu", acting="generate", history=2, ratio="token"
    )
    settings = parsed(order)
    assert (settings.update.epochs, settings.update.clip, settings.update.kl, settings.update.ratio) == (3, 0.1, 0.5, "token")
    assert (settings.policy.device, settings.policy.acting, settings.history) == ("cpu", "generate", 2)
    assert settings.update.step_size == 0.002
    assert parsed(Order(search=True, step_size=3.0)).step_sizes == (0.3, 0.9, 3.0, 9.0, 30.0)
    assert "no KL" in live_form.trouble(order)
    assert "Device must be one of" in live_form.trouble(replace(order, kl=0.0, device="cuda:9"))
    assert Order(search=True).seconds > 5 * Order().seconds


def test_the_standing_cases_are_those_of_the_text() -> None:
    clean, hidden = (parsed(order) for order, _ in CASES.values())
    assert hidden == replace(clean, rules=(r"masked:/You have (the|no) key\./",))
    assert (clean.rules, clean.group_size, clean.updates, len(clean.seeds)) == (("exact",), 16, 60, 10)
    assert (clean.update.step_size, clean.scale, list(clean.estimators)) == (3.0, "rms", ["graft_td", "path_gae", "grpo"])


def test_how_moments_are_told_apart_is_said_in_the_forms_words() -> None:
    assert live_form.key_words("key-door:pits=true", (r"masked:/You have (the|no) key\./",)) == "all but the key (hidden)"
    assert live_form.key_words("cliff", ("exact",)) == "the whole observation"
    assert live_form.key_words("cliff", ("history:1", "<b>")) == r"history\:1 \+ \<b\>"


def test_only_small_tabular_runs_are_quick() -> None:
    assert Order().quick
    assert not CASES["Clean keys"][0].quick
    assert not Order(policy="tiny").quick
    assert not Order(updates=2000).quick


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (Order(estimators=()), "at least one estimator"),
        (Order(policy=""), "Name a model"),
        (Order(env="--env"), "begin with a dash"),
        (Order(step_size=0.0), "above 0"),
        (Order(seeds=51), "Seeds must be from 1 to 50"),
        (Order(), ""),
    ],
)
def test_an_order_that_cannot_run_is_not_queued(order: Order, said: str) -> None:
    assert said in live_form.trouble(order)
    assert bool(live_form.trouble(order)) == bool(said)


def test_a_number_beyond_its_limit_stops_the_order(opened: Callable[..., AppTest]) -> None:
    """A widget with limits of its own would keep the last number that it allowed, and the run would start with that."""
    test = opened()
    test.number_input(key="live_updates").set_value(3000).run()
    assert test.button(key="live_start").disabled
    said = "".join(element.value for kind in ("caption", "error", "warning") for element in test.get(kind))
    assert "Updates must be from 1 to 2000." in said


def test_what_others_send_runs_nothing_of_theirs() -> None:
    for order in (Order(env="theirs:Game"), Order(policy="their/model"), Order(env="frozen-lake:size=5000")):
        assert "only the environments and policies of the menus" in live_form.trouble(order, open_to_others=True)
        assert live_form.trouble(order) == ""
    assert live_form.trouble(Order(), open_to_others=True) == ""


def test_the_page_starts_with_small_defaults(opened: Open) -> None:
    test = opened()
    assert "Hidden key" in words(test)
    assert test.number_input(key="live_seeds").value == 3
    assert "quick lane" in words(test)
    test.number_input(key="live_updates").set_value(2000).run()
    assert "waits its turn among the long runs" in words(test)
    test.selectbox(key="live_policy").set_value("tiny").run()
    assert test.number_input(key="live_step_tiny").value == 0.002


def test_what_few_people_change_is_folded_away_and_fits_the_policy(opened: Open) -> None:
    test = opened()
    box = next(e for e in test.expander if e.label == "Expert")
    assert not box.proto.expanded
    assert {n.label for n in box.number_input} == {"Passes", "KL weight", "Clip"}
    assert not box.selectbox
    test.selectbox(key="live_policy").set_value("tiny").run()
    box = next(e for e in test.expander if e.label == "Expert")
    assert {s.label for s in box.selectbox} == {"The model", "Device", "Ratio"}
    test.selectbox(key="live_acting").set_value("generate").run()
    test.toggle(key="live_search").set_value(True).run()
    said = [code.value for code in test.code if code.value.startswith("graft live")]
    assert "--acting generate" in said[0] and "--step-sizes search" in said[0] and "--step-size " not in said[0]


def test_without_torch_the_page_says_how_to_get_it(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    test = opened()
    monkeypatch.setattr(live_form, "torch_there", lambda: False)
    test.run()
    assert "`make live`" in words(test)
    assert list(test.selectbox(key="live_policy_bare").options) == ["Tabular (no torch)"]


@pytest.mark.parametrize("word", ["../../etc", "/etc/passwd", "a b", "nobody-knows-it"])
def test_the_address_names_runs_only(opened: Open, word: str) -> None:
    said = words(opened(run=word))
    assert "was not usable" in said or "There is no run of this name" in said
    assert "Traceback" not in said


def test_a_finished_run_of_an_earlier_server(opened: Open, finished: tuple[Path, LiveSettings], tmp_path: Path) -> None:
    import shutil

    shutil.copytree(finished[0], tmp_path / "finished")
    test = opened(run="finished")
    said = words(test)
    assert "tabular policy · 4 rollouts per update · 3 updates · 2 seeds · at most 20 turns" in said
    assert "Latest rollouts of graph TD" in said
    frames = [frame.value for frame in test.dataframe]
    assert list(frames[0]["estimator"]) == ["graph TD", "GRPO"]
    assert list(frames[0]["seeds"]) == [2, 2]
    assert frames[1]["update"].iloc[0] == 3
    assert [button.label for button in test.button if button.key in ("live_longer", "live_remove")] == [
        "20 more updates", "Delete the run",
    ]  # fmt: skip


def test_a_run_that_was_cut_off_offers_to_go_on(opened: Open, finished: tuple[Path, LiveSettings], tmp_path: Path) -> None:
    import shutil

    run = tmp_path / "cut"
    shutil.copytree(finished[0], run)
    keep.write_json(run / keep.STATUS, {"state": "running", "pid": 2**22 + 7, "time": time.time()})
    assert any(button.key == "live_go_on" for button in opened(run="cut").button)


def test_a_run_that_broke_off_says_why_as_text(opened: Open, finished: tuple[Path, LiveSettings], tmp_path: Path) -> None:
    import shutil

    run = tmp_path / "broken"
    shutil.copytree(finished[0], run)
    keep.write_json(run / keep.STATUS, {"state": "failed", "why": "<b>no space</b> [x](y)", "pid": 1, "time": 0.0})
    said = words(opened(run="broken"))
    assert r"\<b\>no space" in said
    assert "What was sampled before is kept" in said
    assert "Latest rollouts of" in said


def test_damaged_settings_are_one_sentence(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / keep.LIVE).write_text(json.dumps({"settings": {"env": "key-door", "new": 1}}))
    assert "is damaged or of another version" in words(opened(run="odd"))


def test_bands_are_means_and_intervals_over_the_seeds() -> None:
    curves = [[{"update": u, "success": s} for u, s in enumerate(row, start=1)] for row in ((0.0, 0.5, 1.0), (0.5, 0.5))]
    points = live_figures.bands(curves)
    assert [(p[0], p[1], p[4]) for p in points] == [(1, 0.25, 2), (2, 0.5, 2), (3, 1.0, 1)]
    assert points[0][2:4] == interval([0.0, 0.5])
    assert math.isnan(points[2][2])


def row(name: str, end: float, low: float, high: float, seeds: int = 10) -> dict[str, Any]:
    return {"estimator": name, "end": end, "low": low, "high": high, "seeds": seeds}


def test_the_verdict_is_no_louder_than_the_intervals() -> None:
    level = [row("graft_td", 0.8, 0.7, 0.9), row("grpo", 0.95, 0.85, 1.0)]
    assert "No winner among GRPO and graph TD" in live_figures.verdict(level)
    apart = [row("graft_td", 0.01, 0.0, 0.02), row("path_gae", 1.0, 1.0, 1.0), row("grpo", 1.0, 1.0, 1.0)]
    said = live_figures.verdict(apart)
    assert "No winner among path GAE and GRPO" in said
    assert "graph TD does not win: it ends at 0.01" in said
    assert "One seed is no comparison" in live_figures.verdict([row("grpo", 1, 1, 1, 1), row("graft_td", 0, 0, 0, 1)])
    assert live_figures.verdict([row("grpo", 1, 1, 1)]) == ""


def test_the_verdict_says_how_step_sizes_were_chosen() -> None:
    rows = [
        {**row("graft_td", 0.8, 0.7, 0.9), "step_size": 3.0, "at_edge": False},
        {**row("grpo", 0.9, 0.8, 1.0), "step_size": 30.0, "at_edge": True},
    ]
    said = live_figures.verdict(rows)
    assert "best step size, chosen on other seeds" in said and "one step size" not in said
    assert "That of GRPO was the smallest or largest tried" in said


def test_invalid_actions_are_counted_over_all_curves() -> None:
    one = [{"invalid": 2, "steps": 10}, {"invalid": 1, "steps": 5}]
    assert "3 of 20 actions" in live_figures.invalid_words({"grpo": [one], "rloo": [[{"invalid": 0, "steps": 5}]]})
    assert live_figures.invalid_words({"grpo": [[{"invalid": 0, "steps": 5}]]}) == ""


def test_rollouts_of_a_run_have_an_address_of_their_own(
    opened: Open, finished: tuple[Path, LiveSettings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    other = tmp_path / "other.jsonl"
    other.write_text('{"graft_format":1}\n')
    monkeypatch.setenv(server.PATHS_VARIABLE, json.dumps([str(other)]))  # the runs lie outside what the app was started on
    shutil.copytree(finished[0], tmp_path / "mine")
    test = opened(run="mine")
    test.button(key="live_take").click().run()
    assert not test.exception
    assert test.query_params["file"] == "live:mine/graft_td/seed-0"
    again = AppTest.from_file(str(server.MAIN), default_timeout=60)
    again.query_params["file"] = "live:mine/graft_td/seed-0"
    again.run()
    assert "12 rollouts" in words(again)
    shutil.rmtree(tmp_path / "mine")
    gone = AppTest.from_file(str(server.MAIN), default_timeout=60)
    gone.query_params["file"] = "live:mine/graft_td/seed-0"
    gone.run()
    assert "this live run is gone" in words(gone) and not gone.exception


def test_the_latest_rollouts_of_one_task_are_one_graph(finished: tuple[Path, LiveSettings]) -> None:
    run, settings = finished
    latest = live_rollouts.read_latest(run, settings, "grpo")
    assert latest is not None
    assert (latest.first, latest.last, latest.found.batch.n_groups) == (1, 3, 1)
    assert latest.found.batch.n_rollouts == 12
    assert live_rollouts.read_latest(run.parent / "nowhere", settings, "grpo") is None
    table = live_rollouts.table(latest.found.batch)
    assert len(table) == live_rollouts.MOST_ROLLOUTS
    assert table["rollout"].iloc[0] == "r4"


def test_few_files_when_they_are_large(finished: tuple[Path, LiveSettings], monkeypatch: pytest.MonkeyPatch) -> None:
    run, settings = finished
    folder = live_rollouts.recorded(run, settings, "grpo")
    monkeypatch.setattr(live_rollouts, "MOST_BYTES", 1)
    assert [file.stem for file in live_rollouts.latest_files(folder)] == ["000003"]


def test_what_the_update_sees_sums_to_the_whole(finished: tuple[Path, LiveSettings]) -> None:
    run, settings = finished
    found = live_rollouts.shares_of(run, settings, "grpo")
    assert found is not None
    shares, update = found
    assert update == 3
    for by in ("verb", "rollout"):
        table = live_rollouts.shares_table(shares, by)
        assert table["share of the update"].sum() == pytest.approx(float(shares.share.sum()))
        assert (table["made likelier"] + table["made rarer"]).tolist() == pytest.approx(table["share of the update"].tolist())
    steps = live_rollouts.shares_table(shares, "step")
    assert steps["share of the update"].is_monotonic_decreasing
    assert set(live_rollouts.shares_table(shares, "verb")["verb"]) <= {"up", "down", "left", "right"}
    rollouts = live_rollouts.shares_table(shares, "rollout")
    assert rollouts["steps"].sum() == shares.batch.n_steps
