"""Twenty-five inputs on which tools for rollouts are known to fail, each made small, and what happens here instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from more_files import TALK, VERIFIERS, answer, chat, episode, nodes, result, simulation, tool, trace, user, verl
from sample_files import EVAL, header, inspect_eval, sample
from step_rows import codes, row

import graft_core as gc
from graft_core.errors import GroupMissingError, InputError
from graft_core.formats import load, write_jsonl, write_parquet
from graft_core.rollouts import LoadReport, RolloutBatch, batch_rows


def lines(path: Path, *values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((v if isinstance(v, str) else json.dumps(v)) + "\n" for v in values))
    return path


def document(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=1))
    return path


def loaded(path: Path, **options: Any) -> tuple[RolloutBatch, LoadReport]:
    return load(path, report=True, **options)


def steps(batch: RolloutBatch) -> list[dict[str, Any]]:
    return batch_rows(batch)[1]


def test_01_numbers_and_flags_that_came_out_as_text_are_read_and_counted(tmp_path: Path) -> None:
    path = lines(tmp_path / "1.jsonl", verl(score="3"), verl(score="True"), verl(score=0.5))
    batch, report = loaded(path)
    assert batch.outcome.tolist() == [3, 1, 0.5] and report.repaired == 2 and codes(report)["numbers_from_text"] == 2
    rows = [row(0, rollout="a", outcome="1", success="False"), row(0, rollout="b", outcome="1.5", success="True")]
    batch, report = loaded(lines(tmp_path / "rows.jsonl", *rows))
    assert batch.outcome.tolist() == [1, 1.5] and batch.success.tolist() == [0, 1] and report.repaired == 2


def test_02_extras_that_contradict_the_score_are_told_and_not_used(tmp_path: Path) -> None:
    rows = [verl(output="a", score=1.0, acc=0.0), verl(output="b", score=0.0, acc=1.0), verl(output="c", score=1.0, acc=1.0)]
    batch, report = loaded(lines(tmp_path / "1.jsonl", *rows))
    assert batch.outcome.tolist() == [1, 0, 1] == batch.success.tolist() and codes(report)["extras_disagree"] == 2


def test_03_a_dump_without_group_ids_says_so_and_shows_what_prompts_would_give(tmp_path: Path) -> None:
    path = lines(tmp_path / "1.jsonl", *(verl(f"task {i}", "o") for i in range(4)), verl("task 0", "p", 0.0))
    batch, report = loaded(path)
    assert codes(report)["group_missing"] == 5 and any("1 of 2, 3 of 1" in note for note in report.notes)
    with pytest.raises(GroupMissingError, match="--group-by"):
        gc.estimate(batch, "grpo")
    batch = load(path, group_by="column:observation")
    assert batch.n_groups == 4 and gc.estimate(batch, "dr_grpo").tolist() == [0.5, 0, 0, 0, -0.5]


def test_04_keys_that_only_some_rows_have_are_kept_and_their_coverage_is_told(tmp_path: Path) -> None:
    batch, report = loaded(lines(tmp_path / "1.jsonl", verl(acc=1, pred="x"), verl(), verl(pred="y")))
    assert report.accepted == 3 and any("acc in 1, pred in 2" in n for n in report.notes)
    kept = [json.loads(r["metadata"]) for r in batch_rows(batch)[0]]
    assert [m.get("pred") for m in kept] == ["x", None, "y"]


@pytest.mark.parametrize("blank", ["", "\n"])
def test_05_torn_lines_cost_only_themselves_and_are_named(tmp_path: Path, blank: str) -> None:
    whole = [json.dumps(r) for r in VERIFIERS]
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join([whole[0], whole[1][:40], whole[2], whole[3][:-9]]) + "\n" + blank)
    batch, report = loaded(path)
    assert batch.n_rollouts == 2 and (report.read, report.accepted, report.rejected) == (4, 2, 2)
    assert [r.where.rpartition(":")[2] for r in report.rejections] == ["2", "4"]
    assert "40 bytes" in report.rejections[0].reason


def test_06_an_empty_file_among_others_is_passed_over_by_name(tmp_path: Path) -> None:
    lines(tmp_path / "full.jsonl", row(0, outcome=1))
    (tmp_path / "empty.traj").write_bytes(b"")
    batch, report = loaded(tmp_path)
    assert batch.n_rollouts == 1 and codes(report) == {"file_skipped": 1}
    assert any("empty.traj" in note and "empty" in note for note in report.notes)
    with pytest.raises(InputError, match="the file is empty"):
        load(tmp_path / "empty.traj")


def test_07_lone_surrogates_can_be_read_grouped_written_and_read_again(tmp_path: Path) -> None:
    talk = [user("see \ud835"), answer("do \udc00", ("f", '{"x": "\\ud800"}')), tool("\udfff")]
    path = lines(tmp_path / "chats.jsonl", chat(talk, task_id="\ud800"), chat(talk, task_id="\ud800"))
    batch, report = loaded(path)
    assert batch.group_ids == ["\\ud800"] and codes(report)["surrogates_replaced"] == 2 and report.repaired == 2
    assert steps(batch)[0]["observation"] == "see \\ud835" and "\\ud800" in steps(batch)[0]["action"]
    for write, name in ((write_jsonl, "copy.jsonl"), (write_parquet, "copy.parquet")):
        write(batch, tmp_path / name)
        assert load(tmp_path / name).equals(batch)


def test_08_a_repeated_example_is_a_group_and_a_true_double_is_told(tmp_path: Path) -> None:
    batch, report = loaded(lines(tmp_path / "results.jsonl", *(result(e, 1.0) for e in (7, 8, 7, 7))))
    assert batch.group_ids == ["7", "8"] and batch.rollout_ids == ["0", "0", "1", "2"]
    assert "rollout_ids_renamed" not in codes(report)
    twice = {"tasks": [], "simulations": [simulation(), simulation(), simulation(trial=1)]}
    batch, report = loaded(document(tmp_path / "tau2.json", twice))
    assert batch.rollout_ids == ["0", "0#2", "1"] and codes(report)["rollout_ids_renamed"] == 1
    lines(tmp_path / "again" / "results.jsonl", *(result(e, 1.0) for e in (7, 8, 7, 7)))
    lines(tmp_path / "again" / "copy.jsonl", *(result(e, 1.0) for e in (7, 8, 7, 7)))
    assert load(tmp_path / "again").n_rollouts == 8, "two result files of one name stay apart"


def test_09_groups_of_different_sizes_keep_their_own_statistics(tmp_path: Path) -> None:
    rewards = {"a": [1, 0, 0, 1], "b": [1], "c": [0, 1]}
    rows = [result(e, float(r)) for e, given in rewards.items() for r in given]
    batch = load(lines(tmp_path / "results.jsonl", *rows))
    credit = gc.estimate(batch, "dr_grpo")[::2]
    assert credit.tolist() == [0.5, -0.5, -0.5, 0.5, 0, -0.5, 0.5], "a rollout alone has no baseline: 0, not an error"


def test_10_what_died_before_it_was_scored_is_unknown_and_changes_nobodys_baseline(tmp_path: Path) -> None:
    dead = [
        (result(0, 0.0, error="Timeout", completion=None), "results.jsonl", [result(0, 1.0), result(0, 0.0)]),
        (episode("d", "g", trace({"r": None})), "traces.jsonl", [episode("e", "g"), episode("f", "g", trace({"r": 0.0}))]),
    ]
    for crashed, name, others in dead:
        batch = load(lines(tmp_path / name, crashed, *others))
        assert np.isnan(batch.outcome[0]) and batch.outcome[1:].tolist() == [1, 0]
        credit = gc.estimate(batch, "dr_grpo")[batch.step_rollout > 0]
        assert credit.tolist() == [0.5] * 2 + [-0.5] * 2
    sims = [simulation("0", 0, 0.0, "infrastructure_error"), simulation("0", 1, 1.0), simulation("0", 2, None)]
    batch, report = loaded(document(tmp_path / "tau2.json", {"tasks": [], "simulations": sims}))
    assert np.isnan(batch.outcome).tolist() == [True, False, True] and codes(report)["infrastructure_error"] == 1
    assert np.isnan(gc.estimate(batch, "grpo")[batch.step_rollout != 1]).all()


def test_11_a_nan_reward_is_rejected_with_a_count_and_poisons_nothing(tmp_path: Path) -> None:
    rows = [result(0, r) for r in (float("nan"), 1.0, 0.0)] + [result(1, r) for r in (float("inf"), 1.0)]
    batch, report = loaded(lines(tmp_path / "results.jsonl", *rows))
    assert report.rejected == 2 and all("expected a finite number" in r.reason for r in report.rejections)
    assert gc.estimate(batch, "dr_grpo").tolist() == [0.5, 0.5, -0.5, -0.5, 0, 0]
    assert np.isfinite(gc.estimate(batch, "grpo")).all(), "a group with one valid rollout has no spread: 0, not NaN"


@pytest.mark.parametrize("estimator", ["grpo", "rloo", "dr_grpo", "gigpo", "opo"])
def test_12_float_residue_is_no_advantage(tmp_path: Path, estimator: str) -> None:
    rewards = [0.35] * 7 + [0.1 + 0.25 - 1e-9]
    assert len(set(rewards)) == 2, "the group must hold a residue"
    batch = load(lines(tmp_path / "results.jsonl", *(result(0, r) for r in rewards)))
    assert gc.estimate(batch, estimator).tolist() == [0.0] * batch.n_steps


def test_13_one_reward_for_all_rollouts_of_several_tasks_is_told(tmp_path: Path) -> None:
    same = [verl(f"task {t}", f"{t}{k}", 0.35) for t in range(2) for k in range(2)]
    assert codes(loaded(lines(tmp_path / "1.jsonl", *same))[1])["rewards_all_equal"] == 1
    same[0]["score"] = 0.36
    assert "rewards_all_equal" not in codes(loaded(lines(tmp_path / "1.jsonl", *same))[1])


def test_14_arrays_that_nobody_looks_at_are_not_kept_and_long_text_is(tmp_path: Path) -> None:
    tree = nodes()
    for node in tree:
        node |= {"token_ids": list(range(50_000)), "mask": [1] * 50_000}
    long = "x" * 300_000
    tree[3]["message"] = tool(long)
    path = lines(tmp_path / "traces.jsonl", episode("e", "g", trace(tree=tree)))
    batch = load(path)
    held = sum(t.nbytes for t in (batch.rollouts, batch.steps, batch.texts))
    assert steps(batch)[1]["observation"] == long and held < 400_000 < path.stat().st_size


def test_15_a_damaged_archive_gives_its_readable_members_and_a_listing_is_explained(tmp_path: Path) -> None:
    whole = inspect_eval(EVAL)
    (tmp_path / "log.eval").write_bytes(whole[: whole.rindex(b"PK\x01\x02") - 40])
    batch, report = loaded(tmp_path / "log.eval")
    assert 1 <= batch.n_rollouts <= 3 and "file_damaged" in codes(report)
    listing = {"a.eval": header(), "b.eval": header()}
    with pytest.raises(InputError, match="listing of Inspect logs"):
        load(document(tmp_path / "logs.json", listing))
    assert load(document(tmp_path / "log.json", {**header(), "samples": [sample()]})).n_rollouts == 1


def test_16_a_pointer_left_by_git_lfs_is_recognised(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:8fbfe3\nsize 2165455\n"
    for name in ("results.jsonl", "completions.parquet"):
        (tmp_path / name).write_text(pointer)
        with pytest.raises(InputError, match="git lfs pull"):
            load(tmp_path / name)


def test_17_tool_arguments_cut_off_at_the_token_limit_stay_as_they_are(tmp_path: Path) -> None:
    talk = [user("q"), answer(None, ("write", '{"path": "a", "text": "cut of'))]
    batch, report = loaded(lines(tmp_path / "c.jsonl", chat(talk, task_id=1), chat(talk, task_id=1)))
    assert steps(batch)[0]["action"] == 'write {"path": "a", "text": "cut of' and report.rejected == 0


def test_18_images_become_hashes_that_tell_states_apart(tmp_path: Path) -> None:
    def picture(data: str) -> dict[str, Any]:
        address = {"url": f"data:image/png;base64,{data}"}
        return user([{"type": "text", "text": "screen"}, {"type": "image_url", "image_url": address}])

    red, blue = "A" * 90_000, "B" * 90_000
    talks = [[picture(red), answer("a"), picture(blue), answer("b")], [picture(red), answer("a"), picture(red), answer("b")]]
    batch = load(lines(tmp_path / "c.jsonl", *(chat(t, task_id=1) for t in talks)))
    seen = [s["observation"] for s in steps(batch)]
    assert seen[0] == seen[2] == seen[3] != seen[1] and seen[0].startswith("screen\n[image ") and len(seen[0]) < 40


def test_19_rows_are_not_rollouts(tmp_path: Path) -> None:
    rows = [row(s, rollout="long", outcome=0) for s in range(9)] + [row(0, rollout="short", outcome=1)]
    batch = load(lines(tmp_path / "rows.jsonl", *rows))
    assert batch.n_rollouts == 2 and gc.estimate(batch, "dr_grpo").tolist() == [-0.5] * 9 + [0.5]
    dumped = [verl(f"turn {i}", traj_uid=f"r{i % 2}", uid="g", score=float(i % 2)) for i in range(6)]
    batch, report = loaded(lines(tmp_path / "1.jsonl", *dumped))
    assert batch.lengths.tolist() == [3, 3] and report.read == 6 and "step_missing" in codes(report)


def test_20_cut_off_is_not_failed_and_a_flag_of_the_wrong_shape_is_left_out(tmp_path: Path) -> None:
    rows = [result(0, 1.0, is_truncated=True), result(0, 0.0, is_truncated=[False, False, True])]
    batch, report = loaded(lines(tmp_path / "results.jsonl", *rows))
    assert batch.truncated.tolist() == [True, False] and batch.success.tolist() == [1, 0]
    assert codes(report)["fields_unusable"] == 1 and report.rejected == 0
    batch = load(lines(tmp_path / "rows.jsonl", row(0, truncated=True)))
    assert np.isnan(batch.outcome[0]), "cut off and without reward is unknown"


def test_21_two_files_with_the_same_ids_are_told_and_the_training_step_comes_from_the_path(tmp_path: Path) -> None:
    for step in (1, 2):
        lines(tmp_path / "run" / f"step_{step}" / "traces.jsonl", episode("e0", "g"), episode("e1", "g"))
    batch = load(tmp_path / "run")
    assert batch.rollouts.column("train_step").to_pylist() == [1, 1, 2, 2] and batch.n_groups == 2
    for epoch in (1, 2):
        lines(tmp_path / "rows" / f"{epoch}.jsonl", row(0, outcome=epoch - 1))
    batch, report = loaded(tmp_path / "rows")
    assert batch.n_rollouts == 2 and codes(report)["group_ids_reused"] == 1


def test_22_another_name_for_the_reward_is_used_and_told(tmp_path: Path) -> None:
    item = verl()
    item["reward"] = item.pop("score")
    batch, report = loaded(lines(tmp_path / "1.jsonl", item, item))
    assert batch.outcome.tolist() == [1, 1] and codes(report)["aliases_used"] == 2
    scored = {"messages": TALK, "score": 0.5, "task_id": "t"}
    batch, report = loaded(lines(tmp_path / "c.jsonl", scored))
    assert batch.outcome.tolist() == [0.5]
    assert next(w for w in report.warnings if w.code == "aliases_used").sentence == "read score as outcome"


def test_23_rounds_need_not_alternate_and_messages_may_be_empty(tmp_path: Path) -> None:
    talk = [
        user("one"),
        user("two"),
        answer("", ("f", "{}")),
        answer(None, ("g", "{}")),
        tool("r1"),
        tool("r2"),
        {"role": "assistant", "content": None},
        {"role": "assistant"},
    ]
    batch, report = loaded(lines(tmp_path / "c.jsonl", chat(talk, task_id=1)))
    assert [s["observation"] for s in steps(batch)] == ["one\n\ntwo", "", "r1\n\nr2", ""]
    assert [s["action"] for s in steps(batch)] == ["f {}", "g {}", "", ""] and report.rejected == 0


def test_24_success_has_a_threshold_that_fractions_do_not_pass(tmp_path: Path) -> None:
    rewards = [1.0, 1 - 5e-7, 0.999, 0.5]
    sims = {"tasks": [], "simulations": [simulation("0", k, r) for k, r in enumerate(rewards)]}
    batch = load(document(tmp_path / "tau2.json", sims))
    assert batch.success.tolist() == [1, 1, 0, 0] and batch.outcome.tolist() == rewards
    assert load(tmp_path / "tau2.json", success_when="reward >= 0.5").success.tolist() == [1, 1, 1, 1]
    batch = load(lines(tmp_path / "results.jsonl", *(result(0, r) for r in rewards)))
    assert batch.success.tolist() == [1, 1, 0, 0] and batch.success_threshold == 1 - 1e-6


def test_25_a_thought_that_only_ends_is_still_a_thought(tmp_path: Path) -> None:
    said = "so I think it is four.\n</think>\n\nfour"
    batch = load(lines(tmp_path / "1.jsonl", verl(output=said), verl(output="<think>hm</think>four"), verl(output="four")))
    assert [s["action"] for s in steps(batch)] == ["four"] * 3 and steps(batch)[0]["action_text"] == said
    batch = load(lines(tmp_path / "c.jsonl", chat([user("q"), answer(said)], task_id=1)))
    assert steps(batch)[0]["action"] == "four"
