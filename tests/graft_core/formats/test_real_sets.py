"""Every set of real files: the counts of an independent count, the traps that the index names, and a lossless copy."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from step_rows import codes

from graft_core.cli import main
from graft_core.credit.estimate import estimate
from graft_core.errors import GroupMissingError
from graft_core.formats import load, write_jsonl, write_parquet
from graft_core.rollouts import LoadReport, RolloutBatch, batch_rows

SETS = [
    "tau_bench", "verl_agent_webshop", "inspect_ai", "intercode", "nemo_gym/blackjack_rollouts.jsonl",
    "nemo_gym/example_session_state_mgmt_rollouts.jsonl", "nemo_gym/grl_sokoban_rollouts.jsonl",
    "nemo_gym/toolsandbox_rollouts.jsonl", "nemo_gym/workplace_assistant_rollouts.jsonl", "swe_agent", "mini_swe_agent",
    "openhands/output.jsonl",
]  # fmt: skip


def counts(batch: RolloutBatch) -> dict[str, Any]:
    """What expected.json counts, in the same words."""
    sizes = Counter(Counter(batch.group.tolist()).values())
    seen: dict[int, set[float]] = {}
    for group, success in zip(batch.group.tolist(), batch.success.tolist(), strict=True):
        if success == success:
            seen.setdefault(group, set()).add(success)
    return {
        "trajectories": batch.n_rollouts,
        "groups": batch.n_groups,
        "group_sizes": {str(size): n for size, n in sizes.items()},
        "steps": batch.n_steps,
        "zero_step": int((batch.lengths == 0).sum()),
        "success": int((batch.success == 1).sum()),
        "fail": int((batch.success == 0).sum()),
        "unknown": int(np.isnan(batch.success).sum()),
        "mixed_groups": sum(len(outcomes) == 2 for outcomes in seen.values()),
    }


def test_all_sets_of_the_count_are_tested(test_data: Path) -> None:
    assert [e["set"] for e in json.loads((test_data / "expected.json").read_text())] == SETS


@pytest.mark.parametrize("name", SETS)
def test_counts(test_data: Path, name: str) -> None:
    expected = next(e for e in json.loads((test_data / "expected.json").read_text()) if e["set"] == name)
    batch, report = load(test_data / name, report=True)
    found = counts(batch)
    assert found == {key: found[key] if expected[key] is None else expected[key] for key in found}
    assert report.rejected == 0 and report.read == report.accepted == batch.n_rollouts


@pytest.mark.parametrize("name", SETS)
def test_a_converted_copy_is_equal(test_data: Path, tmp_path: Path, name: str) -> None:
    batch = load(test_data / name)
    write_jsonl(batch, tmp_path / "a.jsonl")
    write_parquet(batch, tmp_path / "b.parquet")
    for copy in (load(tmp_path / "a.jsonl"), load(tmp_path / "b.parquet")):
        assert batch_rows(copy) == batch_rows(batch)


ESTIMATORS = ("grpo", "gigpo", "graft_td", "graft")
CHOSEN = {
    "verl_agent_webshop": "actions",
    "nemo_gym/example_session_state_mgmt_rollouts.jsonl": "file",
    "nemo_gym/workplace_assistant_rollouts.jsonl": "file",
}
"""How rollouts are grouped where the files do not say it: some choice, to have credits to compare."""


@pytest.mark.parametrize("name", SETS)
def test_graft_convert_keeps_counts_and_credits(test_data: Path, tmp_path: Path, name: str) -> None:
    choice = ["--group-by", CHOSEN[name]] if name in CHOSEN else []
    batch = load(test_data / name, group_by=CHOSEN.get(name))
    expected = counts(batch)
    assert not batch.groups_assumed
    for suffix in ("parquet", "jsonl"):
        out = tmp_path / f"converted.{suffix}"
        assert main(["convert", str(test_data / name), "-o", str(out), *choice]) == 0
        copy = load(out)
        assert counts(copy) == expected and not copy.groups_assumed
        for estimator in ESTIMATORS:
            assert estimate(copy, estimator).tobytes() == estimate(batch, estimator).tobytes(), (estimator, suffix)


@pytest.mark.parametrize("name", CHOSEN)
def test_graft_convert_keeps_that_groups_are_only_assumed(test_data: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "converted.parquet"
    assert main(["convert", str(test_data / name), "-o", str(out)]) == 0
    batch, copy = load(test_data / name), load(out)
    assert counts(copy) == counts(batch) and copy.groups_assumed and batch.groups_assumed
    for which in (batch, copy):
        with pytest.raises(GroupMissingError):
            estimate(which, "grpo")


def reported(test_data: Path, name: str) -> tuple[RolloutBatch, LoadReport, str]:
    batch, report = load(test_data / name, report=True)
    return batch, report, "\n".join(report.notes)


def test_traps_of_inspect_logs_are_told(test_data: Path) -> None:
    batch, report, notes = reported(test_data, "inspect_ai")
    found = codes(report)
    assert found["duplicate_rollouts"] == 1, "log_formats.json and .eval are one run, log_streaming.eval is another"
    assert found["no_outcome"] == 1 and report.formats == ("inspect-ai",) * 7
    for words in ("holds no samples", "out of order in the archive", "C, P, I and N", "attachments were put", "[image <hash>]"):
        assert words in notes
    steps = batch_rows(batch)[1]
    assert not any("attachment://" in s["observation"] or "base64" in s["observation"] for s in steps)
    picture = next(
        iter(json.loads((test_data / "inspect_ai" / "log_images.json").read_text())["samples"][0]["attachments"].values())
    )
    mark = f"[image {hashlib.sha1(picture.partition(',')[2].encode()).hexdigest()[:12]}]"
    assert [s["observation"] for s in steps if "[image " in s["observation"]] == [f"What is this a picture of?\n{mark}"]
    assert sum(s["action"] == 'bash {"cmd":"ls"}' for s in steps) == 5, "a tool call whose function is a text"
    ids = list(zip(batch.rollouts.column("group_id").to_pylist(), batch.rollout_ids, strict=True))
    streaming = [rollout for group, rollout in ids if group.startswith("log_streaming/")]
    assert streaming == ["1", "2", "1", "2"], "samples in order, epochs in order"
    assert {"log_formats.json/popularity/1", "log_formats.eval/popularity/1"} <= {group for group, _ in ids}


def test_a_log_without_samples_is_no_error(test_data: Path) -> None:
    batch, report = load(test_data / "inspect_ai" / "2025-05-12T20-28-13-04-00_no-samples.json", report=True)
    assert (batch.n_rollouts, report.read, report.rejected) == (0, 0, 0) and "holds no samples" in report.notes[0]


def test_traps_of_intercode_are_told(test_data: Path) -> None:
    batch, report, notes = reported(test_data, "intercode")
    assert "3 task sets use the same task ids" in notes and not report.warnings
    assert {"nl2bash_fs_3/0", "nl2bash_fs_1/0", "ctf_test/0"} <= set(batch.group_ids)
    assert batch.text(int(batch.observation[0])) == "find files in /workspace directory which are modified 30 days ago"
    assert batch.reward[:2].tolist() == [0.67, 1.0] and batch.outcome[0] == 1.0
    assert ((batch.outcome > 0) & (batch.outcome < 1)).any() and batch.outcome.max() == 1, "fractions"


def test_traps_of_nemo_gym_are_told(test_data: Path) -> None:
    batch, report, notes = reported(test_data, "nemo_gym/toolsandbox_rollouts.jsonl")
    assert codes(report) == {"infrastructure_error": 5} and "rollouts without any step (5x)" in notes
    assert batch.rollouts.column("outcome").null_count == 5
    batch, report, _ = reported(test_data, "nemo_gym/blackjack_rollouts.jsonl")
    assert sorted(batch.outcome.tolist()) == [-1, -1, 1, 1, 1] and not report.warnings
    assert set(batch_rows(batch)[1][0]) and batch.text(int(batch.action[0])) == "hit"
    batch, report, _ = reported(test_data, "nemo_gym/example_session_state_mgmt_rollouts.jsonl")
    assert codes(report) == {"group_missing": 5} and batch.groups_assumed
    assert batch.text(int(batch.action[0])) == 'increment_counter {"count":13}'


def test_traps_of_swe_agents_are_told(test_data: Path) -> None:
    batch, report, notes = reported(test_data, "swe_agent")
    assert codes(report) == {"group_from_name": 9, "no_outcome": 9} and "has only the history" in notes
    assert batch.group_ids == ["function_calling_simple", "marshmallow-code__marshmallow-1867"]
    assert len(set(batch.rollout_ids)) == 9 and "ls -F" in {batch.text(i) for i in batch.action}
    batch, report, _ = reported(test_data, "mini_swe_agent")
    assert codes(report) == {"group_from_name": 2, "no_outcome": 2} and batch.group_ids == ["github_issue", "local"]
    assert [batch.text(i) for i in batch.action][-1] == "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def test_events_of_openhands(test_data: Path) -> None:
    batch, report, _ = reported(test_data, "openhands/output.jsonl")
    assert batch.group_ids == ["neubig/pr-viewer#5", "neubig/pr-viewer#1"] and not report.warnings
    events = [json.loads(line)["history"] for line in (test_data / "openhands" / "output.jsonl").read_text().splitlines()]
    acted = [sum("action" in e and e["action"] != "message" for e in history) for history in events]
    assert batch.lengths.tolist() == acted == [4, 22], "one step per action event of the agent"
    batch = load(test_data / "openhands" / "basic.json")
    assert batch.lengths.tolist() == [2] and batch.text(int(batch.observation[1])).startswith("--- /workspace/game_2048.py")
